#!/usr/bin/env bash
# Measures the ladder: set-up, build, check, then rungs and other implementations in turns; charts.
#   scripts/bench.sh [--json FILE] [--no-build] [options of fa bench]
# With a GPU: results go to runs/<gpu>-<time>/ladder.json or to FILE, which is resumed if half done.
# Without options of fa bench: B=16 H=16, D=128 at N=512..16384, then D=64 at N=8192.
# Without a GPU every rung is checked and counted in the virtual machine: the results go to
# runs/vm/counts.json or to FILE, the chart of them beside it. Nothing is timed; the charts of times
# are the committed measurements, drawn again and marked as such.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

SEQS=512,1024,2048,4096,8192,16384

draw_charts() {
  local results="$1" out="$2" note="${3:-}" python
  python="$(python_with numpy matplotlib)" || die "no Python with numpy and matplotlib was found" 3
  step "charts: $out"
  FA_BUILD_DIR="$BUILD_DIR" "$python" "$ROOT/plots/render.py" --results "$results" --out "$out" \
    --note "$note"
}

bench_with_peers() {
  FA_BUILD_DIR="$BUILD_DIR" python3 "$ROOT/scripts/peers.py" all --json "$@"
}

measure() {
  local json="$1"
  shift
  mkdir -p "$(dirname "$json")"
  step "check"
  "$(fa_binary)" check all --suite quick --device gpu >&2
  step "bench: $json"
  if [[ $# -gt 0 ]]; then
    bench_with_peers "$json" "$@"
  else
    bench_with_peers "$json" --seqs $SEQS
    bench_with_peers "$json" --seqs 8192 --dim 64
  fi
  draw_charts "$json" "$(dirname "$json")/charts"
}

count_in_vm() {
  local json="$1"
  say "No NVIDIA GPU here: the ladder runs in the virtual machine, and nothing is timed."
  mkdir -p "$(dirname "$json")"
  step "check"
  "$(fa_binary)" check all --suite quick --device vm >&2
  step "count: $json"
  "$(fa_binary)" explain all --seq 1024 --dim 128,64 --ablations --json >"$json.part" ||
    die "a rung is wrong in the virtual machine; $json.part says which" 1
  mv "$json.part" "$json"
  draw_charts "$json" "$(dirname "$json")/charts"
}

redraw_committed() {
  say "Times: these are the committed measurements, drawn again. They are not of this machine."
  local results gpu found=no
  for results in "$ROOT"/plots/results/*/ladder.json; do
    [[ -f $results ]] || continue
    found=yes
    gpu="$(basename "$(dirname "$results")")"
    draw_charts "$results" "$ROOT/runs/committed-$gpu" "committed measurement, not of this machine"
  done
  [[ $found == yes ]] || say "There are no committed measurements in plots/results yet."
}

main() {
  local build=yes json="" rest=()
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -h | --help) show_usage && return 0 ;;
      --no-build) build=no ;;
      --json)
        json="${2:-}"
        [[ -n $json ]] || die "--json needs a file name"
        shift
        ;;
      *) rest+=("$1") ;;
    esac
    shift
  done
  [[ $build == no ]] || set_up_and_build charts
  fa_binary >/dev/null || die "fa is not built in $BUILD_DIR"
  if have_gpu; then
    measure "${json:-$ROOT/runs/$(gpu_slug)-$(date -u +%Y%m%d-%H%M%S)/ladder.json}" \
      ${rest[@]+"${rest[@]}"}
  else
    [[ ${#rest[@]} -eq 0 ]] || die "'${rest[*]}': nothing can be timed without a GPU"
    count_in_vm "${json:-$ROOT/runs/vm/counts.json}"
    redraw_committed
  fi
}

main "$@"
