# SPDX-License-Identifier: MIT
# fa_test_main: the main function of test executables. Works with Catch2 2 and 3.
include_guard(GLOBAL)
find_package(Catch2 REQUIRED)

add_library(fa_test_main STATIC ${CMAKE_CURRENT_LIST_DIR}/main.cpp)
target_link_libraries(fa_test_main PUBLIC Catch2::Catch2)
target_compile_features(fa_test_main PUBLIC cxx_std_20)
# Tests compile a third faster so. Small functions are inlined: a copy from a header that a test has,
# too, may be the one that the library's code calls.
target_compile_options(fa_test_main PUBLIC
  $<$<CONFIG:Release>:-O1 -finline-functions -finline-small-functions>)
