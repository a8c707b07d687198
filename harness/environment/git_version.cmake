# SPDX-License-Identifier: MIT
# Run at every build: writes OUTPUT with the commit of SOURCE_DIR, only when that changed.
#   cmake -DSOURCE_DIR=... -DOUTPUT=... [-DSHA=... -DDIRTY=0|1] -P git_version.cmake
# SHA and DIRTY (the cache entries FA_GIT_SHA and FA_GIT_DIRTY) are for a tree exported without .git.

set(sha "unknown")
set(dirty 1)
if(SHA)
  set(sha "${SHA}")
  if(DEFINED DIRTY AND NOT DIRTY STREQUAL "")
    set(dirty ${DIRTY})
  endif()
elseif(EXISTS ${SOURCE_DIR}/.git)
  execute_process(COMMAND git -C ${SOURCE_DIR} rev-parse HEAD
    OUTPUT_VARIABLE head OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(failed EQUAL 0)
    set(sha "${head}")
    # What cannot change a measurement does not make it dirty.
    execute_process(
      COMMAND git -C ${SOURCE_DIR} status --porcelain -- . :!docs :!plots :!*.md
      OUTPUT_VARIABLE changes ERROR_QUIET RESULT_VARIABLE failed)
    if(failed EQUAL 0 AND changes STREQUAL "")
      set(dirty 0)
    endif()
  endif()
endif()
if(NOT dirty MATCHES "^[01]$")
  message(FATAL_ERROR "FA_GIT_DIRTY is '${dirty}', it must be 0 or 1")
endif()

set(text "#pragma once\n#define FA_BUILD_GIT_SHA \"${sha}\"\n#define FA_BUILD_GIT_DIRTY ${dirty}\n")
set(old "")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT old STREQUAL text)
  file(WRITE ${OUTPUT} "${text}")
endif()
