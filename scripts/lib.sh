# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# Shared by the scripts in this folder: source it, do not run it.
# Every function here is quick and offline; scripts/setup.sh is what installs things.

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"

# absolute PATH: as seen from the folder that the script was called in; some parts run elsewhere.
absolute() { realpath -sm -- "$1"; }

# What the scripts write is in these folders, so that a checkout may be read-only.
VENV="$(absolute "${FA_VENV_DIR:-$ROOT/.venv}")"
BUILD_DIR="$(absolute "${FA_BUILD_DIR:-$ROOT/build}")"
RUNS_DIR="$(absolute "${FA_RUNS_DIR:-$ROOT/runs}")"

# Progress and problems go to stderr; stdout is for results.
say() { printf '%s\n' "$*" >&2; }
step() { say "== $*"; }
die() {
  say "${0##*/}: error: $1"
  exit "${2:-2}"
}

have() { command -v "$1" >/dev/null 2>&1; }

# jobs: how many compilers may run at once (FA_JOBS overrides).
jobs_count() { printf '%s\n' "${FA_JOBS:-$(nproc)}"; }

have_gpu() { have nvidia-smi && nvidia-smi -L 2>/dev/null | grep -q '^GPU '; }

# gpu_slug: "NVIDIA H200" -> h200, for folder names.
gpu_slug() {
  nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1 | tr '[:upper:]' '[:lower:]' |
    sed -e 's/nvidia //' -e 's/[^a-z0-9]\+/-/g' -e 's/-$//'
}

# find_nvcc: the compiler that a new build folder gets; fails when there is none.
find_nvcc() {
  local candidate
  for candidate in "${CUDACXX:-}" "$VENV/cuda/bin/nvcc" ${CUDA_HOME:+"$CUDA_HOME/bin/nvcc"} \
    /usr/local/cuda/bin/nvcc "$(command -v nvcc || true)"; do
    if [[ -n $candidate ]] && is_usable_nvcc "$candidate"; then
      printf '%s\n' "$candidate"
      return 0
    fi
  done
  return 1
}

# Stores of 32 bytes for sm_100a need CUDA 12.9 or newer.
is_usable_nvcc() {
  have "$1" || return 1
  local version
  version="$("$1" --version 2>/dev/null | sed -n 's/.*release \([0-9.]\+\),.*/\1/p')"
  [[ $(printf '%s\n' 12.9 "${version:-0}" | sort -V | head -n 1) == 12.9 ]]
}

# python_with MODULE...: the first of .venv and python3 that imports them all; fails when none does.
python_with() {
  local python
  for python in "$VENV/bin/python" python3; do
    if have "$python" && "$python" -c "import $(IFS=,; printf '%s' "$*")" >/dev/null 2>&1; then
      printf '%s\n' "$python"
      return 0
    fi
  done
  return 1
}

# fa_binary: the built command-line tool.
fa_binary() {
  [[ -x $BUILD_DIR/fa ]] && printf '%s\n' "$BUILD_DIR/fa"
}

# require_writable FOLDER VARIABLE: makes the folder; VARIABLE is what puts it elsewhere.
require_writable() {
  { mkdir -p "$1" && [[ -w $1 ]]; } 2>/dev/null ||
    die "cannot write '$1'; set $2 to a folder that can be written" 3
}

# What runs long is a child that is told when the script is: nothing is left behind, and what was
# measured until then is written.
CHILD="" # its process, or its group with a minus
GROUP="" # not empty in run_group

stop_child() {
  trap '' INT TERM
  set +m
  if [[ -n $CHILD ]]; then
    kill -TERM -- "$CHILD" 2>/dev/null || true
    [[ $CHILD != -* ]] || end_group "$CHILD"
    wait "${CHILD#-}" || true
  fi
  die "interrupted" 130
}

# end_group -GROUP: the last may end later than the first; what does not in five seconds is ended.
end_group() {
  local times
  for ((times = 0; times < 140; ++times)); do
    kill -0 -- "$1" 2>/dev/null || return 0
    [[ $times -ne 100 ]] || kill -KILL -- "$1" 2>/dev/null || true
    sleep 0.05
  done
}

# run_child COMMAND...: its exit code.
run_child() {
  local code=0 before
  before="$(trap -p INT TERM)"
  trap stop_child INT TERM
  "$@" &
  CHILD=${GROUP:+-}$!
  wait "${CHILD#-}" || code=$?
  CHILD=""
  trap - INT TERM
  eval "$before"
  return "$code"
}

# run_group COMMAND...: for programs that do not tell their own children (cmake, ctest). All of them
# are told, because they are in a group of their own.
run_group() {
  local code=0 GROUP=yes
  set -m
  run_child "$@" || code=$?
  set +m
  return "$code"
}

# cache_entry FOLDER NAME: of the CMakeCache.txt in FOLDER.
cache_entry() { sed -n "s/^$2:INTERNAL=//p" "$1/CMakeCache.txt"; }

# fresh_if_moved SOURCE BUILD: the option that cmake needs where its cache was made for other folders,
# because it holds absolute paths and the checkout was copied or moved.
fresh_if_moved() {
  [[ -f $2/CMakeCache.txt ]] || return 0
  if [[ ! $(cache_entry "$2" CMAKE_HOME_DIRECTORY) -ef $1 ||
    ! $(cache_entry "$2" CMAKE_CACHEFILE_DIR) -ef $2 ]]; then
    say "$2 was configured for another folder: starting its CMakeCache.txt afresh"
    echo --fresh
  fi
}

# configure_and_build [TARGET...]: the release preset, into FA_BUILD_DIR. Without a target everything
# is built. Several sources make one object (unity builds): a build from nothing takes two thirds of
# the time.
configure_and_build() {
  local fresh nvcc
  require_writable "$BUILD_DIR" FA_BUILD_DIR
  fresh="$(fresh_if_moved "$ROOT" "$BUILD_DIR")"
  step "build ($BUILD_DIR)"
  # Of its own choice cmake takes the first nvcc, however old.
  nvcc="$(find_nvcc)" || nvcc=""
  run_group env ${nvcc:+CUDACXX="$nvcc"} cmake -S "$ROOT" --preset release -B "$BUILD_DIR" \
    ${fresh:+"$fresh"} -DCMAKE_UNITY_BUILD=ON >&2 ||
    die "cmake could not configure; the messages above say why" 3
  run_group cmake --build "$BUILD_DIR" -j "$(jobs_count)" ${1:+--target "$@"} >&2 ||
    die "the build failed; see above" 1
}

# set_up_and_build "PART ..." [TARGET...]: compiler, nvcc and the given parts of setup.sh, then the
# build.
set_up_and_build() {
  local parts
  read -r -a parts <<<"$1"
  step "set-up"
  run_child "$ROOT/scripts/setup.sh" build cuda "${parts[@]}"
  configure_and_build "${@:2}"
}

# option_value OPTION FILE: the name of its file, unless that is another option.
option_value() {
  [[ -n $2 ]] || die "$1 needs a file name"
  [[ $2 != -* ]] || die "$1 needs a file name, and '$2' looks like an option; write ./$2"
  printf '%s\n' "$2"
}

# refuse_words ALLOWED [WORD...]: what is left of a command line that takes no more words.
refuse_words() { [[ $# -eq 1 ]] || die "unknown word '$2'; allowed: $1"; }

# gpu_report TOOL SCRIPT NAME [--out FILE] [--no-build] [OPTION...]: builds, then runs a Python script
# that uses TOOL and writes FILE, or <gpu>-NAME.json in FA_RUNS_DIR, else runs/.
gpu_report() {
  local tool="$1" script="$2" name="$3" build=yes out="" rest=()
  shift 3
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -h | --help) show_usage && return 0 ;;
      --no-build) build=no ;;
      --out)
        out="$(option_value "$1" "${2:-}")" || exit
        shift
        ;;
      *) rest+=("$1") ;;
    esac
    shift
  done
  have_gpu || die "no NVIDIA GPU here; $tool needs one" 3
  PATH+=":${CUDA_HOME:-/usr/local/cuda}/bin"
  have "$tool" || die "$tool was not found on PATH or in CUDA_HOME; the CUDA toolkit has it" 3
  [[ $build == no ]] || set_up_and_build "" fa
  require_writable "$RUNS_DIR" FA_RUNS_DIR
  FA_BUILD_DIR="$BUILD_DIR" exec python3 "$ROOT/scripts/$script" \
    --out "${out:-$RUNS_DIR/$(gpu_slug)-$name.json}" ${rest[@]+"${rest[@]}"}
}

# show_usage: the comment at the top of the running script.
show_usage() { sed -n '2,/^set -/{/^set -/d;/SPDX-/d;s/^# \{0,1\}//p}' "$0"; }
