# SPDX-License-Identifier: MIT
# How kernel files are built: their PTX for the virtual machine, and kernels outside the ladder.
include_guard(GLOBAL)
get_filename_component(fa_root ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
set(fa_ptxas_tool ${fa_root}/scripts/ptxas_report.py)
set(FA_HOPPER_ARCHITECTURES 90a-real CACHE STRING "What kernels in hopper/ folders are compiled for")

# fa_compile_kernels(TARGET FOLDER ARCHITECTURE SOURCES...): its .cu files as the ladder's are
# compiled, ptxas' report beside each object, and FOLDER/NAME.ptx of each for the virtual machine;
# appends these to fa_ptx_files. Set the target's CUDA_ARCHITECTURES before.
function(fa_compile_kernels target folder architecture)
  target_link_libraries(${target} PUBLIC fa_options)
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
# fa_ptx_files.
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
  foreach(kind any hopper)
    if(${kind})
      add_library(${kernels}_${kind} OBJECT ${${kind}})
      set(architecture 80)
      if(kind STREQUAL "hopper")
        set(architecture 90a)
        set_target_properties(${kernels}_hopper PROPERTIES
          CUDA_ARCHITECTURES "${FA_HOPPER_ARCHITECTURES}")
      endif()
      fa_compile_kernels(${kernels}_${kind} ${ptx_folder} ${architecture} ${${kind}})
      list(APPEND objects $<TARGET_OBJECTS:${kernels}_${kind}>)
    endif()
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
