#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Everything that can be tested on this machine: set-up, build, tests, formatting, clang-tidy.
#   scripts/test.sh [options of ctest]
#   scripts/test.sh --only TEST        in a built tree: builds what this test runs, or all where its
#                                      command does not say what that is, and runs it
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

# built_by TEST: the files of the build that its command names, one a line; exit 2 where there is no
# such test.
built_by() {
  ctest --test-dir "$BUILD_DIR" --show-only=json-v1 | python3 -c '
import difflib, json, subprocess, sys
build, name = sys.argv[1:]
tests = {test["name"]: test.get("command", []) for test in json.load(sys.stdin)["tests"]}
if name not in tests:
    near = ", ".join(difflib.get_close_matches(name, tests, n=3)) or "ctest -N lists them"
    sys.exit(f"test.sh: there is no test \"{name}\"; the nearest: {near}")
listed = subprocess.run(["ninja", "-C", build, "-t", "targets", "all"], capture_output=True, text=True)
outputs = {line.partition(": ")[0] for line in listed.stdout.splitlines()}
words = {word.removeprefix(f"{build}/") for word in tests[name]}
print("\n".join(sorted(words & outputs)))' "$BUILD_DIR" "$1" || return 2
}

run_only() {
  local files targets
  [[ -f $BUILD_DIR/build.ninja ]] || set_up_and_build "python web" fa
  files="$(built_by "$1")" || exit 2
  mapfile -t targets <<<"$files"
  run_group cmake --build "$BUILD_DIR" -j "$(jobs_count)" ${files:+--target "${targets[@]}"} >&2 ||
    die "the build failed; see above" 1
  run_group ctest --test-dir "$BUILD_DIR" --output-on-failure -R "^${1//./\\.}\$"
}

main() {
  if [[ ${1:-} == -h || ${1:-} == --help ]]; then
    show_usage
    return 0
  fi
  if [[ ${1:-} == --only ]]; then
    [[ $# -eq 2 && -n $2 ]] || die "--only needs the name of one test, and nothing behind it"
    run_only "$2"
    return
  fi
  check_options "$@"
  set_up_and_build "python web"
  step "test"
  # One job more than cores: some tests wait for a browser.
  run_group ctest --test-dir "$BUILD_DIR" --output-on-failure --no-tests=error \
    -j "${FA_JOBS:-$(($(nproc) + 1))}" "$@"
}

main "$@"
