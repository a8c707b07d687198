# SPDX-License-Identifier: MIT
# What the rungs for sm_80 are compiled for; those in kernels/hopper are compiled for 90a everywhere,
# those in kernels/blackwell for 100a.

# fa_architectures(OUT KNOWN CAPABILITIES...): values of CMAKE_CUDA_ARCHITECTURES for cards of these
# compute capabilities ("8.6"), where KNOWN is what nvcc --list-gpu-code prints. Without a card that
# rungs run on: code for 8.x, and PTX that the driver of a later card compiles.
function(fa_architectures out known)
  set(found)
  foreach(capability IN LISTS ARGN)
    string(REPLACE "." "" sm ${capability})
    if(sm LESS 80)
      continue()
    elseif(sm EQUAL 90)
      list(APPEND found 90a-real)  # the same target as the Hopper rungs'
    elseif("${known}" MATCHES "(^|\n)sm_${sm}(\n|$)")
      list(APPEND found ${sm}-real)
    else()
      list(APPEND found 80-virtual)  # a card later than this nvcc
    endif()
  endforeach()
  if(NOT found)
    set(found 80-real 80-virtual)
  endif()
  list(REMOVE_DUPLICATES found)
  set(${out} ${found} PARENT_SCOPE)
endfunction()
