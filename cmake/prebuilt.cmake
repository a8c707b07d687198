# SPDX-License-Identifier: MIT
# A Python wheel of the files in FA_PREBUILT, a build folder that is up to date. What the wheel needs
# and scripts/bench.sh does not build is built there now; nothing else there changes.
if(NOT EXISTS ${FA_PREBUILT}/harness/python/cmake_install.cmake)
  message(FATAL_ERROR "FA_PREBUILT ${FA_PREBUILT} is not a build folder of this project; build it "
    "with scripts/bench.sh, or leave FA_PREBUILT out")
endif()
set(fa_missing)
foreach(file fa libfa.so libptxvm_c.so)
  if(NOT EXISTS ${FA_PREBUILT}/${file})
    set(fa_missing COMMAND ${CMAKE_COMMAND} --build ${FA_PREBUILT} --target fa_python)
  endif()
endforeach()
add_custom_target(fa_python ${fa_missing})
install(CODE "execute_process(
  COMMAND \"${CMAKE_COMMAND}\" --install \"${FA_PREBUILT}/harness/python\" --component python
    --prefix \"\${CMAKE_INSTALL_PREFIX}\"
  COMMAND_ERROR_IS_FATAL ANY)" COMPONENT python)
