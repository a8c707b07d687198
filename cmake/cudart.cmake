# SPDX-License-Identifier: MIT
# fa_cudart: CUDA's headers and static runtime for C++ targets, from the toolkit of the nvcc that is
# used. FindCUDAToolkit asks for libcudart.so without a version, which the toolkit of Python packages
# does not have. Include it after CUDA is enabled as a language.
include_guard(GLOBAL)
find_package(Threads REQUIRED)
list(GET CMAKE_CUDA_TOOLKIT_INCLUDE_DIRECTORIES 0 fa_cuda_include)
find_library(FA_CUDART cudart_static REQUIRED NO_DEFAULT_PATH
  PATHS ${fa_cuda_include}/../lib64 ${fa_cuda_include}/../lib ${fa_cuda_include}/../lib/x64
        ${CMAKE_CUDA_IMPLICIT_LINK_DIRECTORIES})
add_library(fa_cudart INTERFACE)
target_include_directories(fa_cudart SYSTEM INTERFACE ${fa_cuda_include})
target_link_libraries(fa_cudart INTERFACE ${FA_CUDART} Threads::Threads rt ${CMAKE_DL_LIBS})
