#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# clang-format over all C++ and CUDA sources, with the version that scripts/requirements.txt names,
# and the licence line of every source file (scripts/spdx.py, whose --check is a test of its own).
#   scripts/format.sh            formats in place
#   scripts/format.sh --check    lists what is not formatted, exit 1; exit 77 without clang-format
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

wanted_version() { sed -n 's/^clang-format==//p' "$ROOT/scripts/requirements.txt"; }

# The formatting of other versions differs in places, so only the wanted one will do.
find_clang_format() {
  local candidate version
  version="$(wanted_version)"
  for candidate in "$VENV/bin/clang-format" clang-format "clang-format-${version%%.*}"; do
    if have "$candidate" && "$candidate" --version | grep -qF "version $version"; then
      printf '%s\n' "$candidate"
      return 0
    fi
  done
  return 1
}

sources() {
  find "$ROOT/kernels" "$ROOT/harness" "$ROOT/docs" -path "$ROOT/kernels/own" -prune -o -type f \
    \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print0 | sort -z
}

# list_unformatted TOOL: prints the files that it would change; fails when there are any.
list_unformatted() {
  local files
  files="$({ sources | xargs -0 "$1" --dry-run --Werror 2>&1 || true; } |
    sed -n 's/^\([^:]*\):[0-9]*:[0-9]*: error: .*/\1/p' | sort -u)"
  [[ -n $files ]] || return 0
  printf '%s\n' "$files"
  say "format.sh: these files are not formatted; run scripts/format.sh"
  return 1
}

main() {
  local tool check=no
  refuse_words "--check" "${@:2}"
  case "${1:-}" in
    "") ;;
    --check) check=yes ;;
    -h | --help) show_usage && return 0 ;;
    *) die "unknown option '$1'; allowed: --check" ;;
  esac
  if ! tool="$(find_clang_format)"; then
    say "format.sh: skipped, clang-format $(wanted_version) is not installed (scripts/setup.sh)"
    return 77
  fi
  if [[ $check == yes ]]; then
    list_unformatted "$tool"
  else
    python3 "$ROOT/scripts/spdx.py"
    sources | xargs -0 "$tool" -i
  fi
}

# In one piece: the licence line may just have been written into this file.
{ main "$@"; exit; }
