# SPDX-License-Identifier: MIT
# Picks nvcc, its host side and the architectures before CUDA is enabled as a language.

if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(CMAKE_CUDA_COMPILER nvcc
    HINTS $ENV{FA_VENV_DIR}/cuda ${PROJECT_SOURCE_DIR}/.venv/cuda ENV CUDA_HOME /usr/local/cuda
    PATH_SUFFIXES bin)
  if(NOT CMAKE_CUDA_COMPILER)
    message(FATAL_ERROR "nvcc not found. Run scripts/setup.sh, or set CUDA_HOME to a CUDA 13 toolkit.")
  endif()
endif()

# Empty: for the cards that are here (cmake/architectures.cmake).
include(${CMAKE_CURRENT_LIST_DIR}/architectures.cmake)
set(FA_CUDA_ARCHITECTURES "" CACHE STRING
  "CUDA architectures; empty: the GPUs present, else 80 and PTX for later ones")
set(fa_architectures ${FA_CUDA_ARCHITECTURES})
if(NOT fa_architectures)
  execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
    OUTPUT_VARIABLE fa_caps ERROR_QUIET RESULT_VARIABLE fa_smi)
  if(NOT fa_smi EQUAL 0)
    set(fa_caps "")
  endif()
  string(REGEX MATCHALL "[0-9]+\\.[0-9]+" fa_caps "${fa_caps}")
  set(fa_nvcc ${CMAKE_CUDA_COMPILER} $ENV{CUDACXX})
  list(GET fa_nvcc 0 fa_nvcc)
  execute_process(COMMAND ${fa_nvcc} --list-gpu-code
    OUTPUT_VARIABLE fa_known OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  fa_architectures(fa_architectures "${fa_known}" ${fa_caps})
endif()
list(TRANSFORM fa_architectures REPLACE "^([0-9]+a?)$" "\\1-real")
set(CMAKE_CUDA_ARCHITECTURES ${fa_architectures})
message(STATUS "CUDA architectures: ${CMAKE_CUDA_ARCHITECTURES}")
