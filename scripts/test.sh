#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Everything that can be tested on this machine: set-up, build, tests, formatting, clang-tidy.
#   scripts/test.sh [options of ctest]
# Tests that need a GPU are reported as skipped where there is none.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

trap stop_child INT TERM

# Options of ctest, which ignores what it does not know. VALUED ones have a value.
VALUED=" -R --tests-regex -E --exclude-regex -L --label-regex -LE --label-exclude -I \
--tests-information -j --parallel --repeat --timeout --output-junit "
BARE=" -V --verbose -VV --extra-verbose -Q --quiet -N --show-only --progress --rerun-failed \
--stop-on-failure --schedule-random --output-on-failure "

# check_options WORD...
check_options() {
  while [[ $# -gt 0 ]]; do
    if [[ $VALUED == *" $1 "* ]]; then
      [[ $# -gt 1 ]] || die "$1 needs a value"
      shift
    elif [[ $BARE != *" $1 "* && ! $1 =~ ^-j[0-9]+$ ]]; then
      die "unknown option '$1'; allowed:$VALUED${BARE# }"
    fi
    shift
  done
}

main() {
  if [[ ${1:-} == -h || ${1:-} == --help ]]; then
    show_usage
    return 0
  fi
  check_options "$@"
  set_up_and_build "python web"
  step "test"
  # One job more than cores: some tests wait for a browser.
  run_group ctest --test-dir "$BUILD_DIR" --output-on-failure --no-tests=error \
    -j "${FA_JOBS:-$(($(nproc) + 1))}" "$@"
}

main "$@"
