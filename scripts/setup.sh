#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Installs what the project needs and does not find: compiler and libraries (apt), Python packages
# (.venv, or FA_VENV_DIR), nvcc (cuda in there). Does nothing, and needs no network, where all of it
# is there.
#   scripts/setup.sh [build] [cuda] [python]             default: all three
#   scripts/setup.sh web                                 emscripten and a browser, for the live pages
#   scripts/setup.sh charts                              numpy and matplotlib alone, from anywhere
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

CMAKE_MINIMUM=3.25
PYTHON_MINIMUM=3.11
CUDA_STAMP="$VENV/requirements-cuda.stamp"
PYTHON_STAMP="$VENV/requirements.stamp"
lists_are_new="" # of apt-get

# apt-get is waited for, because half an installation helps nobody; pip is told to stop.
trap stop_child INT TERM

# --- what is missing -----------------------------------------------------------------------------

version_at_least() { [[ "$(printf '%s\n%s\n' "$2" "$1" | sort -V | head -n 1)" == "$2" ]]; }

cmake_version() { cmake --version | sed -n '1s/[^0-9]*//p'; }

has_cmake() { have cmake && version_at_least "$(cmake_version)" $CMAKE_MINIMUM; }

# has_header HEADER...: any one of them can be included.
has_header() {
  local header
  for header in "$@"; do
    if printf '#include <%s>\n' "$header" | g++ -std=c++20 -E -x c++ - >/dev/null 2>&1; then
      return 0
    fi
  done
  return 1
}

has_venv_module() { have python3 && python3 -c 'import ensurepip, venv' >/dev/null 2>&1; }

missing_build_packages() {
  have git || echo git
  have g++ || echo g++
  has_cmake || echo cmake
  have ninja || echo ninja-build
  have make || echo make # what cmake generates for where nobody names Ninja
  have python3 || echo python3
  has_header catch2/catch_all.hpp catch2/catch.hpp || echo catch2
  has_header nlohmann/json.hpp || echo nlohmann-json3-dev
  has_header CLI/CLI.hpp || echo libcli11-dev
  has_header fmt/core.h || echo libfmt-dev
}

# What the live pages are built with.
missing_web_packages() {
  have emcc || echo emscripten
  [[ -e /usr/share/nodejs/acorn ]] || have npm || echo node-acorn
  have ninja || echo ninja-build
}

# What tests them.
missing_browser() {
  have chromium-headless-shell || have chromium || have google-chrome || echo chromium-headless-shell
}

missing_python_packages() { has_venv_module || echo python3-venv; }

# --- installing ----------------------------------------------------------------------------------

as_root() {
  if [[ $(id -u) -eq 0 ]]; then
    "$@"
  else
    sudo "$@"
  fi
}

# apt_install PACKAGE...: does nothing without packages. Its many lines are shown when it fails.
apt_install() {
  local output
  [[ $# -gt 0 ]] || return 0
  have apt-get ||
    die "missing: $*; install them with this system's package manager (names as in Debian)" 3
  [[ $(id -u) -eq 0 ]] || have sudo || die "missing: $*; as root: apt-get install $*" 3
  step "apt-get install $*"
  [[ -n $lists_are_new ]] || as_root apt-get -qq update >&2 ||
    say "apt-get update failed; using the lists that are here"
  lists_are_new=yes
  output="$(as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq install -y --no-install-recommends "$@" 2>&1)" ||
    die "apt-get could not install: $*
$output" 3
  hash -r
}

require_versions() {
  has_cmake || die "cmake $CMAKE_MINIMUM or newer is needed, found $(cmake_version)" 3
  version_at_least "$(python3 --version | sed 's/[^0-9]*//')" $PYTHON_MINIMUM ||
    die "python3 $PYTHON_MINIMUM or newer is needed, found $(python3 --version)" 3
}

# stamp_matches STAMP FILE: what FILE lists was installed before.
stamp_matches() { [[ -f $1 ]] && cmp -s "$1" "$2"; }

# pip_install REQUIREMENTS STAMP [OPTION...]
pip_install() {
  local requirements="$1" stamp="$2"
  shift 2
  require_writable "$VENV" FA_VENV_DIR
  if [[ ! -x $VENV/bin/python ]]; then
    python3 -m venv "$VENV" || return 1
  fi
  step "pip install -r ${requirements#"$ROOT"/}"
  run_group "$VENV/bin/python" -m pip install --quiet --retries 2 --disable-pip-version-check "$@" \
    -r "$requirements" >&2 || return 1
  cp "$requirements" "$stamp"
}

setup_build() {
  local missing
  mapfile -t missing < <(missing_build_packages)
  apt_install "${missing[@]}"
  require_versions
}

setup_web() {
  local missing
  mapfile -t missing < <(missing_web_packages)
  (apt_install "${missing[@]}") || say "emscripten, or what it needs, is not here: pages have no live parts"
  mapfile -t missing < <(missing_browser)
  (apt_install "${missing[@]}") || say "no browser is here: the pages are not tested in one"
}

setup_python() {
  local requirements="$ROOT/scripts/requirements.txt" missing
  stamp_matches "$PYTHON_STAMP" "$requirements" && return 0
  mapfile -t missing < <(missing_python_packages)
  apt_install "${missing[@]}"
  pip_install "$requirements" "$PYTHON_STAMP" && return 0
  python_with numpy matplotlib >/dev/null ||
    die "numpy and matplotlib are missing and could not be installed (see pip's message above)" 3
  say "pip could not install scripts/requirements.txt; charts use the system's matplotlib,"
  say "and tests whose packages are missing will be skipped"
}

setup_charts() { python_with numpy matplotlib >/dev/null || setup_python; }

setup_cuda() {
  local requirements="$ROOT/scripts/requirements-cuda.txt" missing
  if find_nvcc >/dev/null; then
    return 0
  fi
  mapfile -t missing < <(missing_python_packages)
  apt_install "${missing[@]}"
  # --no-deps: the packages name each other without versions, and pip would mix toolkits.
  if ! pip_install "$requirements" "$CUDA_STAMP" --no-deps || ! link_toolkit ||
    ! find_nvcc >/dev/null; then
    die "nvcc was not found on PATH, in CUDA_HOME or in /usr/local/cuda, and could not be installed
  from the Python package index; install a CUDA 13 toolkit and set CUDA_HOME" 3
  fi
  say "nvcc: $(find_nvcc)"
}

# The packages unpack to one toolkit folder; .venv/cuda is where CMake looks for it.
link_toolkit() {
  local nvcc
  nvcc="$(find "$VENV/lib" -path '*/nvidia/*/bin/nvcc' -print -quit)"
  [[ -n $nvcc ]] || return 1
  ln -sfn "$(dirname "$(dirname "$nvcc")")" "$VENV/cuda"
  ln -sfn lib "$VENV/cuda/lib64" # the linker's path in nvcc.profile
}

main() {
  local part
  [[ $# -gt 0 ]] || set -- build cuda python
  for part in "$@"; do
    case "$part" in
      build | cuda | python | web | charts) ;;
      -h | --help) show_usage && return 0 ;;
      *) die "unknown part '$part'; allowed: build cuda python web charts" ;;
    esac
  done
  for part in "$@"; do "setup_$part"; done
}

main "$@"
