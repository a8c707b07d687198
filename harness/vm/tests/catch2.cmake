# SPDX-License-Identifier: MIT
# fa_test_main: the main function of test executables. Works with Catch2 2 and 3.
include_guard(GLOBAL)
find_package(Catch2 REQUIRED)

add_library(fa_test_main STATIC ${CMAKE_CURRENT_LIST_DIR}/main.cpp)
target_link_libraries(fa_test_main PUBLIC Catch2::Catch2)
target_compile_features(fa_test_main PUBLIC cxx_std_20)
target_compile_options(fa_test_main PRIVATE $<$<CXX_COMPILER_ID:GNU,Clang>:-O0>)  # run once

# fa_precompile_catch(TARGET KIND): Catch2 takes as long to read as most tests do, so that targets of
# one kind, with the same options of the compiler, share it: that of the first.
function(fa_precompile_catch target kind)
  get_property(first GLOBAL PROPERTY fa_precompiled_${kind})
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    set_property(GLOBAL PROPERTY fa_precompiled_${kind} ${target})
    target_precompile_headers(${target} PRIVATE ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/catch.h
      <algorithm> <array> <cstdint> <functional> <map> <string> <vector>)
  endif()
endfunction()
