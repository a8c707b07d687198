# SPDX-License-Identifier: MIT
# cmake -DCODE=2 -DSAYS=TEXT -P refuses.cmake -- COMMAND...: fails unless the command exits with CODE
# and its standard error has TEXT. PASS_REGULAR_EXPRESSION of ctest ignores the exit code.
set(command)
foreach(i RANGE ${CMAKE_ARGC})
  if(found AND i LESS CMAKE_ARGC)
    list(APPEND command ${CMAKE_ARGV${i}})
  elseif("${CMAKE_ARGV${i}}" STREQUAL "--")
    set(found TRUE)
  endif()
endforeach()
execute_process(COMMAND ${command} RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE err)
if(NOT code STREQUAL CODE)
  message(FATAL_ERROR "exit code ${code}, expected ${CODE}: ${out}${err}")
elseif(NOT err MATCHES "${SAYS}")
  message(FATAL_ERROR "standard error lacks '${SAYS}': ${err}")
endif()
