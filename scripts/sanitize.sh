#!/usr/bin/env bash
# compute-sanitizer (memcheck, racecheck, synccheck, initcheck) on every rung, at a small shape.
#   scripts/sanitize.sh [--out FILE.json] [--no-build] [options of scripts/sanitize.py]
# Needs a GPU. The summary goes to runs/<gpu>-sanitize.json, or to FILE.json, with Markdown beside.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

main() {
  local build=yes out="" rest=()
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -h | --help) show_usage && return 0 ;;
      --no-build) build=no ;;
      --out) out="${2:-}" && shift ;;
      *) rest+=("$1") ;;
    esac
    shift
  done
  have_gpu || die "no NVIDIA GPU here; compute-sanitizer needs one" 3
  [[ $build == no ]] || set_up_and_build charts
  exec python3 "$ROOT/scripts/sanitize.py" \
    --out "${out:-$ROOT/runs/$(gpu_slug)-sanitize.json}" ${rest[@]+"${rest[@]}"}
}

main "$@"
