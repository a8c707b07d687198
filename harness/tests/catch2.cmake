# SPDX-License-Identifier: MIT
# fa_add_test(NAME SOURCES... [LIBS TARGETS...]): a Catch2 executable, registered with ctest under
# its name. Works with Catch2 2 and 3.
include_guard(GLOBAL)
find_package(Catch2 REQUIRED)

add_library(fa_test_main STATIC ${CMAKE_CURRENT_LIST_DIR}/main.cpp)
target_link_libraries(fa_test_main PUBLIC Catch2::Catch2)
target_compile_features(fa_test_main PUBLIC cxx_std_20)

function(fa_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBS")
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE fa_test_main fa_options ${arg_LIBS})
  add_test(NAME ${name} COMMAND ${name})
endfunction()
