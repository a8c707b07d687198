# SPDX-License-Identifier: MIT
# CUDA's runtime on the machine, for `ptxvm exec`. It is built where the headers of CUDA 13 are: they
# say what the functions take, and which there are.
find_path(PTXVM_CUDA_INCLUDE cuda_runtime_api.h NO_CMAKE_FIND_ROOT_PATH
  HINTS ${CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES} ENV CUDA_HOME ENV CUDA_PATH
  PATHS /usr/local/cuda PATH_SUFFIXES include)
set(major)
if(EXISTS "${PTXVM_CUDA_INCLUDE}/cuda_runtime_api.h")
  file(STRINGS ${PTXVM_CUDA_INCLUDE}/cuda_runtime_api.h version REGEX "define CUDART_VERSION +[0-9]+")
  string(REGEX REPLACE ".* ([0-9]+)[0-9][0-9][0-9]$" "\\1" major "${version}")
endif()
if(NOT major STREQUAL "13" OR NOT CMAKE_SYSTEM_NAME STREQUAL "Linux")
  message(STATUS "ptxvm exec is left out: it needs Linux and the headers of CUDA 13")
  return()
endif()

# Functions that nothing here defines say so when they are called.
file(STRINGS ${PTXVM_CUDA_INCLUDE}/cuda_runtime_api.h functions REGEX "CUDARTAPI +cuda[A-Za-z0-9]+\\(")
list(TRANSFORM functions REPLACE "^.*CUDARTAPI +(cuda[A-Za-z0-9]+)\\(.*$" "\\1")
list(REMOVE_DUPLICATES functions)
list(TRANSFORM functions REPLACE "(.+)" "MISSING(\\1)" OUTPUT_VARIABLE missing)
# Names of nvcc --default-stream per-thread.
file(STRINGS ${PTXVM_CUDA_INCLUDE}/cuda_runtime_api.h same REGEX "define +cuda.*__CUDART_API_PT[DS][SZ]\\(")
list(TRANSFORM same REPLACE "^.*_API_PTDS\\((cuda[A-Za-z0-9_]+)\\).*$" "SAME(\\1, \\1_ptds)")
list(TRANSFORM same REPLACE "^.*_API_PTSZ\\((cuda[A-Za-z0-9_]+)\\).*$" "SAME(\\1, \\1_ptsz)")
list(REMOVE_DUPLICATES same)
file(STRINGS ${PTXVM_CUDA_INCLUDE}/driver_types.h errors REGEX "^ +cuda(Error[A-Za-z0-9]+|Success) += +[0-9]+")
list(TRANSFORM errors REPLACE "^ +(cuda[A-Za-z0-9]+).*$" "ERROR(\\1)")
set(generated ${CMAKE_CURRENT_BINARY_DIR}/cuda)
foreach(file missing same errors)
  list(JOIN ${file} "\n" text)
  file(CONFIGURE OUTPUT ${generated}/cuda_${file}.inc CONTENT "${text}\n" @ONLY)
endforeach()

add_library(ptxvm_cudart SHARED
  cuda/device.cpp
  cuda/driver.cpp
  cuda/fatbin.cpp
  cuda/launch.cpp
  cuda/machine.cpp
  cuda/memory.cpp
  cuda/missing.cpp
  cuda/start.cpp
  tools/machine_options.cpp)
# The names by which programs ask for it: libcudart.so.13, and the driver's beside it.
set_target_properties(ptxvm_cudart PROPERTIES
  OUTPUT_NAME cudart VERSION ${major} SOVERSION ${major} UNITY_BUILD OFF
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/cuda
  LINK_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/cuda/cudart.map
  LINK_OPTIONS
    "-Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/cuda/cudart.map;-Wl,--no-undefined")
add_custom_command(TARGET ptxvm_cudart POST_BUILD COMMAND ${CMAKE_COMMAND} -E create_symlink
  libcudart.so.${major} ${PROJECT_BINARY_DIR}/cuda/libcuda.so.1 VERBATIM)
target_include_directories(ptxvm_cudart PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${generated})
target_include_directories(ptxvm_cudart SYSTEM PRIVATE ${PTXVM_CUDA_INCLUDE})
target_link_libraries(ptxvm_cudart PRIVATE ptxvm ${CMAKE_DL_LIBS})
target_compile_options(ptxvm_cudart PRIVATE -Wall -Wextra -Wconversion -Wshadow
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
install(FILES $<TARGET_FILE:ptxvm_cudart> ${PROJECT_BINARY_DIR}/cuda/libcuda.so.1
  COMPONENT ptxvm DESTINATION ${CMAKE_INSTALL_LIBDIR}/ptxvm)
