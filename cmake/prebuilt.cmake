# SPDX-License-Identifier: MIT
# A Python wheel of the files in FA_PREBUILT, a build folder in which fa_python is up to date.
if(NOT EXISTS ${FA_PREBUILT}/harness/python/cmake_install.cmake)
  message(FATAL_ERROR "FA_PREBUILT ${FA_PREBUILT} is not a build folder of this project; build it "
    "with scripts/bench.sh, or leave FA_PREBUILT out")
endif()
add_custom_target(fa_python)
install(CODE "execute_process(
  COMMAND \"${CMAKE_COMMAND}\" --install \"${FA_PREBUILT}/harness/python\" --component python
    --prefix \"\${CMAKE_INSTALL_PREFIX}\"
  COMMAND_ERROR_IS_FATAL ANY)" COMPONENT python)
