# SPDX-License-Identifier: MIT
# fa_test_main: the main function of test executables. Works with Catch2 2 and 3.
include_guard(GLOBAL)
find_package(Catch2 REQUIRED)

add_library(fa_test_main STATIC ${CMAKE_CURRENT_LIST_DIR}/main.cpp)
target_link_libraries(fa_test_main PUBLIC Catch2::Catch2)
target_compile_features(fa_test_main PUBLIC cxx_std_20)
