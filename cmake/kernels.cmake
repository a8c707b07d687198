# SPDX-License-Identifier: MIT
# How kernel files are built: their PTX for the virtual machine, and kernels outside the ladder.
include_guard(GLOBAL)
get_filename_component(fa_root ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
set(fa_ptxas_tool ${fa_root}/scripts/ptxas_report.py)
set(FA_HOPPER_ARCHITECTURES 90a-real CACHE STRING "What kernels in hopper/ folders are compiled for")
set(FA_BLACKWELL_ARCHITECTURES 100a-real CACHE STRING "What kernels in blackwell/ are compiled for")

# fa_compile_kernels(TARGET FOLDER ARCHITECTURE SOURCES...): its .cu files as the ladder's are
# compiled, ptxas' report beside each object, and FOLDER/NAME.ptx of each for the virtual machine;
# appends these to fa_ptx_files. Set the target's CUDA_ARCHITECTURES before.
function(fa_compile_kernels target folder architecture)
  target_link_libraries(${target} PUBLIC fa_options)
  set_target_properties(${target} PROPERTIES UNITY_BUILD OFF)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:-Xptxas=-v>)
  set(launcher ${Python3_EXECUTABLE} ${fa_ptxas_tool} compile)
  # What the object is made of, where that is compiled with the same options.
  get_target_property(compiled ${target} CUDA_ARCHITECTURES)
  set(has_ptx OFF)
  if(CMAKE_BUILD_TYPE STREQUAL "Release" AND CMAKE_GENERATOR MATCHES "Ninja"
     AND compiled MATCHES "(^|;)${architecture}(-real|-virtual)?(;|$)")
    set(has_ptx ON)
    list(APPEND launcher --ptx ${folder} ${architecture})
  endif()
  list(APPEND launcher ${CMAKE_CUDA_COMPILER_LAUNCHER})  # a compiler cache
  set_target_properties(${target} PROPERTIES CUDA_COMPILER_LAUNCHER "${launcher}")
  foreach(source IN LISTS ARGN)
    get_filename_component(name ${source} NAME_WE)
    set(output ${folder}/${name}.ptx)
    if(output IN_LIST fa_ptx_files)
      message(FATAL_ERROR "${source}: there is another kernel file named ${name}; rename this one")
    endif()
    if(has_ptx)
      set_source_files_properties(${source} PROPERTIES OBJECT_OUTPUTS ${output})
    else()
      fa_add_ptx(${source} ${architecture} ${output})
    endif()
    list(APPEND fa_ptx_files ${output})
  endforeach()
  set(fa_ptx_files ${fa_ptx_files} PARENT_SCOPE)
endfunction()

# fa_add_ptx(SOURCE ARCHITECTURE OUTPUT): its PTX, compiled for that alone.
function(fa_add_ptx source architecture output)
  get_filename_component(name ${source} NAME_WE)
  get_filename_component(folder ${output} DIRECTORY)
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
    COMMAND ${CMAKE_CUDA_COMPILER} -ptx -lineinfo -std=c++20 -O3 -DNDEBUG
            -arch=compute_${architecture}
            "$<$<BOOL:${CMAKE_CUDA_HOST_COMPILER}>:-ccbin=${CMAKE_CUDA_HOST_COMPILER}>"
            "$<$<BOOL:${FA_TUNE}>:-DFA_TUNE>" -I${fa_root} -MD -MF ${output}.d
            ${source} -o ${output}
    DEPENDS ${source} DEPFILE ${output}.d
    COMMENT "PTX of ${name}" COMMAND_EXPAND_LISTS VERBATIM)
endfunction()

# fa_add_own(TARGET PTX_FOLDER FOLDER): the kernels FOLDER/*.cu, and FOLDER/hopper/*.cu for sm_90a
# alone, each with its FA_RUNG row. Link TARGET to a program and its catalogue has them. Appends to
# fa_ptx_files. The names of the files are in the global property TARGET_FILES.
function(fa_add_own target ptx_folder folder)
  add_library(${target} INTERFACE)
  file(GLOB any CONFIGURE_DEPENDS ${folder}/*.cu)
  file(GLOB hopper CONFIGURE_DEPENDS ${folder}/hopper/*.cu)
  if(NOT any AND NOT hopper)
    return()
  endif()
  set(kernels ${target}_kernels)
  set(others ${fa_ptx_files})
  set(objects)
  foreach(source ${any} ${hopper})
    get_filename_component(name ${source} NAME_WE)
    string(MAKE_C_IDENTIFIER ${name} name)
    set(library ${target}_${name})
    if(TARGET ${library})
      message(FATAL_ERROR "${source}: there is another kernel file named ${name}; rename this one")
    endif()
    add_library(${library} OBJECT ${source})
    set(architecture 80)
    if(source IN_LIST hopper)
      set(architecture 90a)
      set_target_properties(${library} PROPERTIES CUDA_ARCHITECTURES "${FA_HOPPER_ARCHITECTURES}")
    endif()
    fa_compile_kernels(${library} ${ptx_folder} ${architecture} ${source})
    list(GET fa_ptx_files -1 ptx)
    add_custom_target(${library}_ptx DEPENDS ${ptx})
    list(APPEND objects $<TARGET_OBJECTS:${library}>)
    set_property(GLOBAL APPEND PROPERTY ${target}_FILES ${name})
  endforeach()
  add_library(${kernels} STATIC ${objects})
  set_target_properties(${kernels} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(${kernels} PRIVATE fa_kernels)
  # Nothing refers to a row: without this the linker would leave its file out.
  target_link_libraries(${target} INTERFACE "$<LINK_LIBRARY:WHOLE_ARCHIVE,${kernels}>")

  set(fa_ptx_files ${fa_ptx_files} PARENT_SCOPE)
  list(REMOVE_ITEM fa_ptx_files ${others})
  add_custom_target(${target}_ptx ALL DEPENDS ${fa_ptx_files})
  add_dependencies(${target} ${target}_ptx)
endfunction()

# fa_add_own_programs(MAIN FOLDER): for each kernel of fa_own a program FOLDER/fa_NAME that has no
# other of them, so that one which does not compile stops nobody else (scripts/exercise.py).
function(fa_add_own_programs main folder)
  get_property(names GLOBAL PROPERTY fa_own_FILES)
  foreach(name ${names})
    add_executable(fa_${name} EXCLUDE_FROM_ALL ${main} $<TARGET_OBJECTS:fa_own_${name}>)
    set_target_properties(fa_${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${folder})
    target_link_libraries(fa_${name} PRIVATE fa_cli)
    add_dependencies(fa_${name} fa_own_${name}_ptx)
  endforeach()
endfunction()

# fa_add_exercises(FOLDER): build/exercises/fa, a program like fa with the kernels of FOLDER in its
# catalogue. They run on the virtual machine alone, so ptxas has nothing to do: half of the time to
# compile.
function(fa_add_exercises folder)
  set(CMAKE_CUDA_ARCHITECTURES 80-virtual)
  set(FA_HOPPER_ARCHITECTURES 90a-virtual)
  set(fa_ptx_files)
  fa_add_own(fa_exercises_own ${PROJECT_BINARY_DIR}/exercises/ptx ${folder})
  add_executable(fa_exercises ${fa_root}/harness/cli/main.cpp)
  set_target_properties(fa_exercises PROPERTIES
    OUTPUT_NAME fa RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/exercises)
  target_link_libraries(fa_exercises PRIVATE fa_cli fa_exercises_own)
endfunction()
