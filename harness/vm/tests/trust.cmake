# SPDX-License-Identifier: MIT
# Trust: golden vectors from hardware, ptxas as the judge of spellings, fuzzing.
add_subdirectory(${CMAKE_CURRENT_LIST_DIR}/tools)

foreach(test vectors_test wgmma_vectors_test blackwell_vectors_test blackwell_ptxas_test)
  ptxvm_add_test(${test})
  target_link_libraries(ptxvm_${test} PRIVATE ptxvm_vectors_lib)
  target_compile_definitions(ptxvm_${test} PRIVATE
    PTXVM_VECTORS="${CMAKE_CURRENT_LIST_DIR}/vectors")
endforeach()

set_tests_properties(vm.blackwell_ptxas_test PROPERTIES LABELS ptxas SKIP_RETURN_CODE 77)

# Runs the recorder's own program on the machine, with one group; the tests above replay all groups.
add_test(NAME vm.vectors_self_check
  COMMAND ptxvm_vectors --device vm --self-check --groups mbarrier)
add_test(NAME vm.vectors_refuse_the_machine
  COMMAND ${CMAKE_COMMAND} -DCODE=2 "-DSAYS=only a GPU is recorded" -P
          ${CMAKE_CURRENT_LIST_DIR}/refuses.cmake -- $<TARGET_FILE:ptxvm_vectors> --device vm
          --groups mbarrier --record ${CMAKE_CURRENT_BINARY_DIR})

add_test(NAME vm.vectors_refuse_the_machine_for_blackwell
  COMMAND ${CMAKE_COMMAND} -DCODE=2 "-DSAYS=a vector must come from hardware" -P
          ${CMAKE_CURRENT_LIST_DIR}/refuses.cmake -- $<TARGET_FILE:ptxvm_vectors> --blackwell
          --device vm)

ptxvm_add_test(isa_mutants_test)
target_compile_definitions(ptxvm_isa_mutants_test PRIVATE
  PTXVM_ALSO_ACCEPTS="${CMAKE_CURRENT_LIST_DIR}/ptxas_also_accepts.txt")
# COST: it calls ptxas many times in turn, and should not be what the others wait for.
set_tests_properties(vm.isa_mutants_test PROPERTIES LABELS ptxas SKIP_RETURN_CODE 77 COST 75)

ptxvm_add_test(fuzz_replay_test)
target_compile_definitions(ptxvm_fuzz_replay_test PRIVATE
  PTXVM_FUZZ_CORPUS="${CMAKE_CURRENT_LIST_DIR}/fuzz/corpus")

option(PTXVM_FUZZ "Build the libFuzzer target (clang only; instruments the library too)" OFF)
if(PTXVM_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "PTXVM_FUZZ needs clang++")
  endif()
  target_compile_options(ptxvm PRIVATE -g -fsanitize=fuzzer-no-link,address,undefined
                                       -fno-sanitize-recover=undefined)
  target_link_options(ptxvm PUBLIC -fsanitize=address,undefined)
  foreach(fuzzer fuzz fuzz_runs)
    add_executable(ptxvm_${fuzzer} fuzz/${fuzzer}.cpp)
    target_include_directories(ptxvm_${fuzzer} PRIVATE
      ${CMAKE_CURRENT_LIST_DIR} ${CMAKE_CURRENT_LIST_DIR}/..)
    target_compile_options(ptxvm_${fuzzer} PRIVATE -g -fsanitize=fuzzer,address,undefined)
    target_link_options(ptxvm_${fuzzer} PRIVATE -fsanitize=fuzzer,address,undefined)
    target_link_libraries(ptxvm_${fuzzer} PRIVATE ptxvm)
  endforeach()
endif()
