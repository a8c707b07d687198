# SPDX-License-Identifier: MIT
# fa_add_test(NAME SOURCES... [LIBS TARGETS...]): a Catch2 executable, registered with ctest under
# its name. Not with catch_discover_tests: each case would be a process that starts and prepares anew
# what the cases of a file share.
include_guard(GLOBAL)
include(${CMAKE_CURRENT_LIST_DIR}/../vm/tests/catch2.cmake)

function(fa_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LIBS")
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  # fmt, whether used or not: the precompiled header has its definitions.
  target_link_libraries(${name} PRIVATE fa_test_main fa_options fmt::fmt ${arg_LIBS})
  fa_precompile_catch(${name} harness <fmt/format.h> <nlohmann/json.hpp>)
  add_test(NAME ${name} COMMAND ${name})
endfunction()
