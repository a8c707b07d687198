#!/usr/bin/env bash
# clang-format over all C++ and CUDA sources, with the version that scripts/requirements.txt names.
#   scripts/format.sh            formats in place
#   scripts/format.sh --check    lists what is not formatted and exits 1; exits 77 without clang-format
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
  find "$ROOT/kernels" "$ROOT/harness" -type f \
    \( -name '*.h' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print0 | sort -z
}

main() {
  local tool options=(-i)
  case "${1:-}" in
    "") ;;
    --check) options=(--dry-run --Werror) ;;
    -h | --help) show_usage && return 0 ;;
    *) die "unknown option '$1'; allowed: --check" ;;
  esac
  if ! tool="$(find_clang_format)"; then
    say "format.sh: skipped, clang-format $(wanted_version) is not installed (scripts/setup.sh)"
    return 77
  fi
  sources | xargs -0 "$tool" "${options[@]}"
}

main "$@"
