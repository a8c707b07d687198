# SPDX-License-Identifier: MIT
# fa_test_main: the main function of test executables. Works with Catch2 2 and 3.
include_guard(GLOBAL)
find_package(Catch2 REQUIRED)

add_library(fa_test_main STATIC ${CMAKE_CURRENT_LIST_DIR}/main.cpp)
target_link_libraries(fa_test_main PUBLIC Catch2::Catch2)
target_compile_features(fa_test_main PUBLIC cxx_std_20)
target_compile_options(fa_test_main PRIVATE $<$<CXX_COMPILER_ID:GNU,Clang>:-O0>)  # run once

# fa_precompile_catch(TARGET KIND HEADERS...): Catch2 takes as long to read as most tests do, so that
# targets of one kind, with the same options of the compiler, share it, and what else most of them
# include: that of the first. The machine's own library is what runs long, not its tests: these are
# compiled in half of the time that -O3 takes.
function(fa_precompile_catch target kind)
  target_compile_options(${target} PRIVATE
    # False positives of GCC 12 in std::string.
    $<$<AND:$<CXX_COMPILER_ID:GNU>,$<COMPILE_LANGUAGE:CXX>>:-Wno-array-bounds$<SEMICOLON>-Wno-stringop-overflow>
    $<$<AND:$<CONFIG:Release>,$<COMPILE_LANGUAGE:CXX>>:-O1>)
  get_property(first GLOBAL PROPERTY fa_precompiled_${kind})
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    set_property(GLOBAL PROPERTY fa_precompiled_${kind} ${target})
    target_precompile_headers(${target} PRIVATE ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/catch.h
      <algorithm> <array> <cstdint> <functional> <map> <string> <vector> ${ARGN})
  endif()
endfunction()
