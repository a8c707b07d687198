# Picks nvcc, its host side and the architectures before CUDA is enabled as a language.

if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(CMAKE_CUDA_COMPILER nvcc
    HINTS ${PROJECT_SOURCE_DIR}/.venv/cuda ENV CUDA_HOME /usr/local/cuda
    PATH_SUFFIXES bin)
  if(NOT CMAKE_CUDA_COMPILER)
    message(FATAL_ERROR "nvcc not found. Run scripts/setup.sh, or set CUDA_HOME to a CUDA 13 toolkit.")
  endif()
endif()

# The card that is here, else the two targets that the ladder is written for. sm_90 must be sm_90a:
# wgmma and setmaxnreg exist only in the architecture-specific target.
set(FA_CUDA_ARCHITECTURES "" CACHE STRING "CUDA architectures; empty: the GPUs present, else 80;90a")
set(fa_architectures ${FA_CUDA_ARCHITECTURES})
if(NOT fa_architectures)
  execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
    OUTPUT_VARIABLE fa_caps OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE fa_smi)
  if(fa_smi EQUAL 0 AND fa_caps MATCHES "^[0-9]+\\.[0-9]+")
    string(REGEX MATCHALL "[0-9]+\\.[0-9]+" fa_architectures "${fa_caps}")
    list(REMOVE_DUPLICATES fa_architectures)
    string(REPLACE "." "" fa_architectures "${fa_architectures}")
    list(TRANSFORM fa_architectures REPLACE "^90$" "90a")
  else()
    set(fa_architectures 80 90a)
  endif()
endif()
list(TRANSFORM fa_architectures REPLACE "^([0-9]+a?)$" "\\1-real")
set(CMAKE_CUDA_ARCHITECTURES ${fa_architectures})
message(STATUS "CUDA architectures: ${CMAKE_CUDA_ARCHITECTURES}")
