#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Everything that can be tested on this machine: set-up, build, tests, formatting, clang-tidy.
#   scripts/test.sh [options of ctest]
# Tests that need a GPU are reported as skipped where there is none.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

trap stop_child INT TERM

main() {
  if [[ ${1:-} == -h || ${1:-} == --help ]]; then
    show_usage
    return 0
  fi
  set_up_and_build "python web"
  step "test"
  # One job more than cores: some tests wait for a browser.
  run_group ctest --test-dir "$BUILD_DIR" --output-on-failure --no-tests=error \
    -j "${FA_JOBS:-$(($(nproc) + 1))}" "$@"
}

main "$@"
