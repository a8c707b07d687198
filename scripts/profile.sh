#!/usr/bin/env bash
# Hardware counters (ncu) of every rung's kernels: one launch each at B=16 H=16 N=1024 D=128.
#   scripts/profile.sh [--out FILE.json] [--no-build] [options of scripts/profile_kernels.py]
# Needs a GPU whose counters may be read. The file goes to runs/<gpu>-ncu.json, or to FILE.json.
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
  have_gpu || die "no NVIDIA GPU here; ncu needs one" 3
  have ncu || die "ncu (Nsight Compute) was not found on PATH" 3
  [[ $build == no ]] || set_up_and_build charts
  FA_BUILD_DIR="$BUILD_DIR" exec python3 "$ROOT/scripts/profile_kernels.py" \
    --out "${out:-$ROOT/runs/$(gpu_slug)-ncu.json}" ${rest[@]+"${rest[@]}"}
}

main "$@"
