#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Measures the ladder: set-up, build, check, then rungs and other implementations in turns; charts.
#   scripts/bench.sh [--sets NAME,NAME,...] [--runs N] [--json FILE [--overwrite]] [--no-build]
#                    [options of fa bench]
# With a GPU: results go to runs/<gpu>-<time>/ or beside FILE, and are resumed if half done; a file
# that holds anything else stays as it is, unless --overwrite starts FILE and those beside it afresh.
# With --runs each set is measured N times, run by run, into ladder/run1.json and so on: the folder of
# the runs is a set with intervals. A run visits each kernel once, every second run in reverse order;
# only the first verifies.
# The sets:
#   limits   limits.json  what bare loops reach on the card (fa limits)
#   ladder   ladder.json  float16 rungs, B=16 H=16: N=8192 at D=128 and 64; those that the lengths are
#                         shown of also N=512, 2048, 16384
#   causal   ladder.json  those that mask: N=512, 2048, 8192 at D=128, N=8192 at D=64
#   ragged   ragged.json  those that take any length: N=1000 and 8191 beside 1024 and 8192
#   model    model.json   those that take what a model has: in bfloat16 N=2048 and 8192 at D=128 and 8192
#                         at D=64, with the mask and without, and in float16 beside 35; rows of [batch,
#                         seq, heads, dim] in both types; windows of 1024 and 4096 keys; sinks
#   packed   packed.json  packed batches of 200 to 30,000 and of 200 to 2000 tokens in bfloat16, and
#                         dense ones of as much work
#   fp32     fp32.json    float32 rungs beside PyTorch's: B=4 H=16, N=512..8192 at D=64 and N=4096 at
#                         D=32 and 128; B=10 H=64 N=1024 D=32; B=1 H=16 D=64, up to the length where
#                         the scores no longer fit into 144 GB
#   decode   decode.json  rungs for new queries against a cache, D=128: one sequence of 1 and of 1024 to
#                         131072 keys with 32 query heads and 8 of K and V; batches of 16 and 64 with 8192
#                         keys and 8 or 32 heads of K and V; those that can also 64 lengths from 1 to
#                         32768, pages of 16 and 64 keys, and 4 and 16 queries
#   cold     cold.json    what a model's layers ask of their caches: one sequence of 1024 to 16384 keys
#                         with 32/8, 28/4, 40/8 and 64/8 heads, batches (of 512 keys too, with as
#                         many heads as the card has SMs and with several times as many), D=64, a few
#                         queries, random lengths; the rungs that are the fastest for some of them
#   spread   spread.json  the softmax as the scores spread: rungs 27, 28 and 39, N=8192 at D=128
#                         with a standard deviation of 1 to 16 and with rising scores; 1 and 16 with
#                         the mask, and at D=64
#   backward backward.json gradients: 60 at N=8192, D=64; the others at N=1024 and 8192, at D=64 and with
#                         shared heads, with a window; the last ones also at N=2048 and 16384 and
#                         with packed batches, the very last in bfloat16 and as scores spread
# FA_RUNS_DIR, FA_BUILD_DIR and FA_VENV_DIR name other folders than runs/, build/ and .venv/.
# With options of fa bench, those alone are measured, into ladder.json or FILE.
# Without a GPU every rung is run, verified and counted in the virtual machine: the counts go to FILE, else
# to runs/vm/counts.json, and their chart beside them. Nothing is timed; the charts of times are the
# committed measurements, drawn again and marked as such.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

SETS=limits,ladder,causal,ragged,model,packed,decode,cold,fp32,spread,backward
ATTENTION_PEERS=fa2,cudnn,fa3
DECODE_PEERS=$ATTENTION_PEERS,flashinfer
HALF_PEERS=$ATTENTION_PEERS,triton,cublas,copy
SQUARE="r['dtype'] == 'float16' and r['family'] not in ('decode', 'backward')" # one forward pass
# The best rung on mma.sync and those on wgmma from the overlap on: how the earlier ones scale with
# the length is not worth the time that they take at the greatest.
LENGTHS="r['id'] == '06' or r['family'] == 'hopper' and r['id'] >= '25'"
TORCH_PEERS=torch_standard,torch_efficient
SINGLE_PEERS=$TORCH_PEERS,cublas,copy
FAILED=0
OVERWRITE=() # --overwrite, if it was given
STARTED=" "  # files that were started afresh by now
QUEUE=()     # of benches for the next process
LISTING=""   # the rungs, as fa list --json prints them
RUNS=1       # of a set
RUN=""       # which one is measured, where there are several

trap stop_child INT TERM

# require_results_file FILE: a file can be there, or be made in a folder that is there or can be;
# found out before anything runs for minutes.
require_results_file() {
  local folder probe
  [[ ! -e $1 || -f $1 ]] || die "--json '$1' is not a regular file" 3
  [[ $1 != */ ]] || die "--json '$1' is the name of a folder" 3
  folder="$(dirname "$(readlink -m -- "$1")")"
  mkdir -p "$folder" || die "the folder of --json '$1' cannot be made" 3
  probe="$(mktemp "$folder/.bench-XXXXXX" 2>/dev/null)" ||
    die "the folder of --json '$1' cannot be written" 3
  rm -f "$probe"
}

# file_of JSON SET: where the rows of a set go: beside JSON, or with several runs into a folder there.
file_of() {
  local folder name
  folder="$(dirname "$1")"
  name="$2.json"
  [[ $2 != ladder ]] || name="$(basename "$1")"
  [[ -z $RUN ]] || name="${name%.json}/run$RUN.json"
  mkdir -p "$(dirname "$folder/$name")"
  printf '%s/%s\n' "$folder" "$name"
}

draw_charts() {
  local results="$1" out="$2" note="${3:-}" python
  python="$(python_with numpy matplotlib)" || die "no Python with numpy and matplotlib was found" 3
  step "charts: $out"
  FA_BUILD_DIR="$BUILD_DIR" run_child "$python" "$ROOT/plots/render.py" --results "$results" \
    --out "$out" --note "$note"
}

# bench_with_peers FILE WORD...: queues words of fa bench and peers.py for run_queue.
bench_with_peers() {
  local json="$1" first afresh=()
  shift
  if [[ -n $RUN ]]; then
    set -- "$@" --rounds 1 --brief
    first="$(dirname "$json")/run1.json"
    [[ $RUN -eq 1 || ! -f $first ]] || set -- "$@" --verified "$first"
    # No kernel follows the same neighbour's heat in all runs.
    [[ $((RUN % 2)) -eq 1 ]] || set -- "$@" --backwards
  fi
  # The first measurement into a file starts it afresh, the others add to it.
  if [[ ${#OVERWRITE[@]} -gt 0 && $STARTED != *" $json "* ]]; then
    afresh=("${OVERWRITE[@]}")
    STARTED+="$json "
  fi
  [[ ${#QUEUE[@]} -eq 0 ]] || QUEUE+=(--then)
  QUEUE+=("$@" --json "$json" ${afresh[@]+"${afresh[@]}"})
}

# remember CODE: a wrong result (1) outlasts what could not run (3).
remember() { [[ $1 -eq 0 || $FAILED -eq 1 ]] || FAILED=$1; }

# Runs what is queued, in one process. What is wrong (1) or could not run (3) has a row that says so
# and does not stop the other measurements; FAILED remembers it.
run_queue() {
  local code=0
  [[ ${#QUEUE[@]} -gt 0 ]] || return 0
  FA_BUILD_DIR="$BUILD_DIR" PYTHONPATH="$ROOT/harness/python:$ROOT/harness/vm/python${PYTHONPATH:+:$PYTHONPATH}" \
    run_child python3 "$ROOT/scripts/peers.py" "${QUEUE[@]}" || code=$?
  QUEUE=()
  case "$code" in
    0) ;;
    1 | 3) remember "$code" ;;
    130 | 143) die "interrupted" 130 ;;
    *) die "a measurement was refused; the messages above say why" "$code" ;;
  esac
}

# rungs_where CONDITION: ids of the rungs `r` that this card runs and for which a Python condition holds.
rungs_where() {
  python3 -c "import json, sys
rungs = json.load(sys.stdin)['rungs']
refused = {r['id'] for r in rungs for i in r['instances'] if i['refused'] and not i['ablation']}
print(*(r['id'] for r in rungs if r['id'] not in refused and ($1)))" <<<"$LISTING"
}

# bench_rungs CONDITION FILE WORD...: the rungs for which the condition holds, if there are any.
bench_rungs() {
  local rungs
  read -r -a rungs <<<"$(rungs_where "$1")"
  [[ ${#rungs[@]} -gt 0 ]] || return 0
  bench_with_peers "$2" "${rungs[@]}" "${@:3}"
}

measure_limits() {
  local code=0 json afresh=(${OVERWRITE[@]+"${OVERWRITE[@]}"})
  json="$(file_of "$1" limits)"
  if [[ -s $json && ${#OVERWRITE[@]} -eq 0 ]]; then
    if ! grep -q '^ "interrupted": true,$' "$json"; then
      say "$json is there and stays; --overwrite measures it again"
      return 0
    fi
    afresh=(--overwrite)
  fi
  run_child "$(fa_binary)" limits --json "$json" ${afresh[@]+"${afresh[@]}"} >&2 ||
    code=$?
  [[ $code -ne 130 ]] || die "interrupted" 130
  remember "$code"
}

# Tiles that are not a rung's own, and the ceilings of PyTorch, are timed at one problem only.
measure_ladder() {
  local half="$SQUARE" json
  json="$(file_of "$1" ladder)"
  local bare=(--no-ablations --peers)
  bench_rungs "$half" "$json" --seqs 8192 --peers $HALF_PEERS
  bench_rungs "$half" "$json" --seqs 8192 --dim 64 "${bare[@]}" "$ATTENTION_PEERS,triton"
  bench_rungs "$half and ($LENGTHS)" "$json" --seqs 512,2048,16384 "${bare[@]}" \
    "$ATTENTION_PEERS"
}

measure_causal() {
  local masking="$SQUARE and r['causal']" json
  json="$(file_of "$1" ladder)"
  local shape=(--causal --no-ablations --peers "$ATTENTION_PEERS")
  bench_rungs "$masking" "$json" "${shape[@]}" --seqs 512,2048,8192
  bench_rungs "$masking" "$json" "${shape[@]}" --seqs 8192 --dim 64
}

measure_ragged() {
  local ragged="$SQUARE and r['ragged']" json
  json="$(file_of "$1" ragged)"
  bench_rungs "$ragged" "$json" --seqs 1000,1024,8191,8192 --no-ablations --peers "$ATTENTION_PEERS"
}

measure_model() {
  local json views="$SQUARE and r['strided']" mask dim
  json="$(file_of "$1" model)"
  local shape=(--no-ablations --peers "$ATTENTION_PEERS") brain=(--dtype bfloat16)
  for mask in "" --causal; do
    for dim in 128 64; do # in float16 beside the last rung that takes nothing else
      bench_rungs "$views or r['id'] == '35'" "$json" "${shape[@]}" --seqs 8192 --dim $dim $mask
    done
    bench_rungs "$views" "$json" "${shape[@]}" "${brain[@]}" --seqs 2048,8192 $mask
    bench_rungs "$views" "$json" "${shape[@]}" "${brain[@]}" --seqs 8192 --dim 64 $mask
  done
  bench_rungs "$views" "$json" "${shape[@]}" "${brain[@]}" --seqs 8192 --layout bnhd
  bench_rungs "$views" "$json" "${shape[@]}" --seqs 8192 --layout bnhd
  for mask in 1023 4095; do
    bench_rungs "$views and r['windowed']" "$json" "${shape[@]}" "${brain[@]}" --seqs 8192 --causal \
      --window-left $mask
  done
  bench_rungs "$views and r['sinks']" "$json" "${shape[@]}" "${brain[@]}" --seqs 8192 --causal --sinks
}

# Dense batches have about as much work as the packed ones. Tiles that are not a rung's own show what
# clusters are for short sequences.
measure_packed() {
  local json mask packing="$SQUARE and r['packed']"
  json="$(file_of "$1" packed)"
  local shape=(--peers "$ATTENTION_PEERS" --dtype bfloat16 --layout bnhd)
  local long=200,12000,700,5000,1500,300,20000,2800,420,8192,1024,3600,240,16000,30000
  local short=900,200,1700,350,2000,260,1200,640,480,1500,230,820,1900,300,1100,560
  short+=,210,1330,720,400,1810,250,980,1600,330,610,2000,270,1420,770,520,1000
  for mask in "" --causal; do
    bench_rungs "$packing" "$json" "${shape[@]}" --query-lengths $long $mask
    bench_rungs "$packing or r['id'] == '38'" "$json" "${shape[@]}" --batch 7 --seqs 16384 $mask
    bench_rungs "$packing" "$json" "${shape[@]}" --query-lengths $short $mask
    bench_rungs "$packing or r['id'] == '38'" "$json" "${shape[@]}" --batch 34 --seqs 1024 $mask
  done
}

# The shapes that the chapters of the float32 rungs compare.
measure_fp32_chapters() {
  local json="$1" single="r['family'] == 'fp32'"
  local four=(--batch 4 --heads 16)
  bench_rungs "$single" "$json" "${four[@]}" --dim 64 --seqs 512,1024,2048,4096,8192 \
    --peers $TORCH_PEERS
  bench_rungs "$single" "$json" "${four[@]}" --dim 128 --seqs 4096 --peers $TORCH_PEERS
  bench_rungs "$single" "$json" "${four[@]}" --dim 32 --seqs 4096 --no-ablations \
    --peers $TORCH_PEERS
  bench_rungs "$single" "$json" --batch 10 --heads 64 --dim 32 --seqs 1024 \
    --no-ablations --peers $TORCH_PEERS
}

# At the greatest lengths a launch takes seconds: the first and the last rung are enough there, and
# that S no longer fits is what they are to show. PyTorch's two matrices need the card alone.
measure_fp32() {
  local json single="r['family'] == 'fp32'" last before
  json="$(file_of "$1" fp32)"
  local shape=(--batch 1 --heads 16 --dim 64)
  last="$(rungs_where "$single" | sed 's/.* //')"
  local ends="$single and (not r['parent'] or r['id'] == '$last')"
  measure_fp32_chapters "$json"
  bench_rungs "$single" "$json" "${shape[@]}" --seqs 512,2048,8192 --peers $SINGLE_PEERS
  bench_rungs "$ends" "$json" "${shape[@]}" --seqs 16384 --no-ablations \
    --peers $TORCH_PEERS
  run_queue
  before=$FAILED
  bench_rungs "$ends" "$json" "${shape[@]}" --seqs 32768,65536 --no-ablations \
    --peers torch_efficient
  bench_with_peers "$json" none --dtype float32 "${shape[@]}" --seqs 32768,65536 \
    --peers torch_standard
  run_queue
  [[ $FAILED -ne 3 ]] || FAILED=$before
}

# Spaced launches find the L2 flushed, so a cache that would fit there is read from memory as well.
measure_decode() {
  local json cached="r['family'] == 'decode'" keys
  json="$(file_of "$1" decode)"
  local shape=(--heads 32 --queries 1 --no-ablations --peers "$DECODE_PEERS")
  bench_rungs "$cached" "$json" "${shape[@]}" --batch 1 --kv-heads 8 --seqs 8192
  bench_rungs "$cached" "$json" "${shape[@]}" --batch 16 --kv-heads 8 --seqs 8192
  bench_rungs "$cached" "$json" "${shape[@]}" --batch 1 --kv-heads 8 \
    --seqs 1,1024,4096,32768,131072
  bench_rungs "$cached" "$json" "${shape[@]}" --batch 16 --kv-heads 32 --seqs 8192
  for keys in 8 32; do
    bench_rungs "$cached" "$json" "${shape[@]}" --batch 64 --kv-heads $keys --seqs 8192
  done
  bench_rungs "$cached and r['lengths']" "$json" "${shape[@]}" --batch 64 --kv-heads 8 \
    --seqs 32768 --lengths random
  for keys in 16 64; do
    bench_rungs "$cached and r['paged']" "$json" "${shape[@]}" --batch 16 --kv-heads 8 --seqs 8192 \
      --page $keys
  done
  for keys in 4 16; do
    bench_rungs "$cached and r['few_queries']" "$json" --heads 32 --queries $keys --no-ablations \
      --peers "$DECODE_PEERS" --causal --batch 16 --kv-heads 8 --seqs 8192
  done
}

measure_cold() {
  local json heads batch
  local one="r['id'] in ('45', '50', '52', '53')" ragged="r['id'] in ('45', '46', '50', '53')"
  local several="r['id'] in ('48', '49')"
  local shape=(--queries 1 --no-ablations --peers "$DECODE_PEERS")
  json="$(file_of "$1" cold)"
  for heads in 32/8 28/4 40/8 64/8; do
    bench_rungs "$one" "$json" "${shape[@]}" --heads "${heads%/*}" --kv-heads "${heads#*/}" \
      --batch 1 --seqs 1024,5000,8192,16384
  done
  bench_rungs "$one" "$json" "${shape[@]}" --heads 40 --kv-heads 8 --batch 4 --seqs 3000
  for batch in 8 32; do
    bench_rungs "$one" "$json" "${shape[@]}" --heads 16 --kv-heads 16 --batch $batch --seqs 512
  done
  for batch in 32 64; do
    bench_rungs "$one" "$json" "${shape[@]}" --heads 28 --kv-heads 4 --batch $batch --seqs 512
  done
  bench_rungs "$one" "$json" "${shape[@]}" --heads 160 --kv-heads 32 --dim 64 --batch 8 --seqs 512,3000
  shape+=(--heads 32 --kv-heads 8)
  bench_rungs "$one" "$json" "${shape[@]}" --batch 16 --seqs 1024
  for batch in 16 64; do
    bench_rungs "$one" "$json" "${shape[@]}" --batch $batch --seqs 512
  done
  bench_rungs "$one" "$json" "${shape[@]}" --batch 20 --seqs 512,3000
  bench_rungs "$one" "$json" "${shape[@]}" --dim 64 --batch 16 --seqs 1024
  for batch in 1 4 32 64; do
    bench_rungs "$one" "$json" "${shape[@]}" --dim 64 --batch $batch --seqs 4096
  done
  bench_rungs "$ragged" "$json" "${shape[@]}" --batch 8 --seqs 4096 --lengths random
  bench_rungs "$ragged" "$json" "${shape[@]}" --batch 16 --seqs 1500 --lengths random
  bench_rungs "$ragged" "$json" "${shape[@]}" --batch 64 --seqs 1024 --lengths random
  shape=(--heads 32 --kv-heads 8 --causal --no-ablations --peers "$DECODE_PEERS")
  bench_rungs "$several" "$json" "${shape[@]}" --queries 4 --batch 4 --seqs 512
  bench_rungs "$several" "$json" "${shape[@]}" --queries 2 --batch 1 --seqs 8192
  bench_rungs "$several" "$json" "${shape[@]}" --queries 2 --batch 8 --seqs 2048 --dim 64
}

# The first rung stores P and dS, which fit for one length; peers take no float32. The chapters up to
# 69 compare all rungs, those behind it the last ones.
measure_backward() {
  local json mask spread gradients="r['family'] == 'backward'"
  json="$(file_of "$1" backward)"
  local half="$gradients and r['dtype'] == 'float16'" late last
  late="$half and r['id'] >= '69'"
  last="r['id'] == '$(rungs_where "$half" | sed 's/.* //')'"
  local shape=(--no-ablations --peers "$ATTENTION_PEERS") square=(--batch 16 --heads 16)
  local alike=950,1020,985,1050,960,1040,1000,975,1030,955,1010,990,1045,965,1025,980
  bench_rungs "$gradients and r['dtype'] == 'float32'" "$json" "${shape[@]}" --batch 1 --heads 16 \
    --dim 64 --seqs 8192
  for mask in "" --causal; do
    bench_rungs "$half" "$json" "${shape[@]}" "${square[@]}" --seqs 1024,8192 $mask
    bench_rungs "$half" "$json" "${shape[@]}" "${square[@]}" --seqs 8192 --dim 64 $mask
    bench_rungs "$late" "$json" "${shape[@]}" "${square[@]}" --seqs 2048 $mask
    bench_rungs "$late" "$json" "${shape[@]}" --batch 4 --heads 16 --seqs 16384 $mask
    bench_rungs "$last" "$json" "${shape[@]}" "${square[@]}" --seqs 8192 --dtype bfloat16 $mask
    for spread in 4 16; do
      bench_rungs "$last" "$json" "${shape[@]}" "${square[@]}" --seqs 8192 --spread $spread $mask
    done
  done
  bench_rungs "$half and r['windowed']" "$json" "${shape[@]}" "${square[@]}" --seqs 8192 --causal \
    --window-left 1023
  bench_rungs "$late and r['packed']" "$json" "${shape[@]}" --batch 1 --heads 16 --seqs 16384
  bench_rungs "$late and r['packed']" "$json" "${shape[@]}" --heads 16 --query-lengths $alike
  bench_rungs "$half" "$json" "${shape[@]}" --heads 64 --kv-heads 8 --batch 1 --seqs 8192 --causal
  bench_rungs "$late" "$json" "${shape[@]}" --heads 32 --kv-heads 4 --batch 1 --seqs 16384 --causal
  shape+=(--heads 32 --kv-heads 8 --causal)
  bench_rungs "$late" "$json" "${shape[@]}" --batch 2 --seqs 4096
  bench_rungs "$late and r['packed']" "$json" "${shape[@]}" --batch 16 --seqs 2000 \
    --query-lengths random --dtype bfloat16
}

# 27 has the exact running maximum, 28 is the first that has not, and the last of Hopper's has all
# that came later.
measure_spread() {
  local json last rungs spread
  json="$(file_of "$1" spread)"
  local shape=(--seqs 8192 --no-ablations --peers "$ATTENTION_PEERS")
  last="$(rungs_where "$SQUARE and r['family'] == 'hopper'" | sed 's/.* //')"
  rungs="r['id'] in ('27', '28', '$last')"
  for spread in 1 2 4 8 16; do
    bench_rungs "$rungs" "$json" "${shape[@]}" --spread $spread
  done
  bench_rungs "$rungs" "$json" "${shape[@]}" --inputs rising
  for spread in 1 16; do
    bench_rungs "$rungs and r['causal']" "$json" "${shape[@]}" --causal --spread $spread
    bench_rungs "$rungs" "$json" "${shape[@]}" --dim 64 --spread $spread
    bench_rungs "$rungs and r['causal']" "$json" "${shape[@]}" --dim 64 --causal --spread $spread
  done
}

measure() {
  local sets="$1" json="$2" set folder file run
  shift 2
  folder="$(dirname "$json")"
  require_results_file "$json"
  LISTING="$("$(fa_binary)" list --json)"
  step "check"
  run_child "$(fa_binary)" check all --suite quick --device gpu >&2
  if [[ $# -gt 0 ]]; then
    step "bench: $json"
    bench_with_peers "$json" "$@"
    run_queue
  else
    for ((run = 1; run <= RUNS; ++run)); do
      [[ $RUNS -eq 1 ]] || RUN=$run
      for set in ${sets//,/ }; do
        step "bench: $set${RUN:+, run $RUN of $RUNS}"
        "measure_$set" "$json"
        [[ ${#QUEUE[@]} -gt 0 || $set == limits || $set == fp32 ]] ||
          say "$set: no rung of it runs on this GPU"
        run_queue
      done
    done
  fi
  for file in "$json" "$folder"/{fp32,spread,decode}.json; do
    [[ ! -f $file ]] || draw_charts "$file" "$folder/charts"
    [[ ! -f ${file%.json}/run1.json ]] || draw_charts "${file%.json}" "$folder/charts"
  done
  [[ $FAILED -eq 0 ]] || die "some rows are not ok; they say why" "$FAILED"
}

# known_sets LIST: fails with a message when a name is none of SETS.
known_sets() {
  local set
  [[ -n $1 ]] || die "--sets names no set; allowed: ${SETS//,/, }"
  for set in ${1//,/ }; do
    [[ ",$SETS," == *",$set,"* ]] || die "unknown set '$set'; allowed: ${SETS//,/, }"
  done
}

count_in_vm() {
  local json="$1" code=0
  say "No NVIDIA GPU here: the ladder runs in the virtual machine, and nothing is timed."
  require_results_file "$json"
  [[ ! -s $json || ${#OVERWRITE[@]} -gt 0 ]] || die "--json '$json' exists; --overwrite replaces it"
  step "run, verify and count: $json"
  run_child "$(fa_binary)" explain all --seq 1024 --dim 128,64 --ablations --no-checkers --save "$json" \
    ${OVERWRITE[@]+"${OVERWRITE[@]}"} >/dev/null || code=$?
  [[ $code -ne 1 ]] || die "a rung is wrong in the virtual machine; $json says which" 1
  [[ $code -ne 130 ]] || die "interrupted; $json has the rungs until then" 130
  [[ $code -eq 0 ]] || die "nothing was counted; the messages above say why" "$code"
  draw_charts "$json" "$(dirname "$json")/charts"
}

redraw_committed() {
  say "Times: these are the committed measurements, drawn again. They are not of this machine."
  local results gpu found=no
  for results in "$ROOT"/plots/results/*/{ladder,fp32,spread,decode}; do
    [[ -d $results ]] || continue
    found=yes
    gpu="$(basename "$(dirname "$results")")"
    draw_charts "$results" "$RUNS_DIR/committed-$gpu" "committed measurement, not of this machine"
  done
  [[ $found == yes ]] || say "There are no committed measurements in plots/results yet."
}

main() {
  local build=yes json="" sets="" rest=()
  while [[ $# -gt 0 ]]; do
    case "$1" in
      -h | --help) show_usage && return 0 ;;
      --no-build) build=no ;;
      --overwrite) OVERWRITE=(--overwrite) ;;
      --json)
        [[ -z $json ]] || die "--json is given twice"
        json="$(option_value "$1" "${2:-}")" || exit
        shift
        ;;
      --runs)
        RUNS="${2:-}"
        [[ $RUNS =~ ^[1-9][0-9]?$ ]] || die "--runs '$RUNS' is not between 1 and 99"
        shift
        ;;
      --sets)
        sets="${2:-}"
        known_sets "$sets"
        shift
        ;;
      *) rest+=("$1") ;;
    esac
    shift
  done
  local targets=(fa fa_shared)
  if have_gpu; then
    [[ -z $sets || ${#rest[@]} -eq 0 ]] || die "--sets cannot be combined with '${rest[*]}'"
    [[ $RUNS -eq 1 || ${#rest[@]} -eq 0 ]] || die "--runs cannot be combined with '${rest[*]}'"
  else
    # The file that nobody named is this script's own.
    [[ -n $json ]] || OVERWRITE=(--overwrite)
    [[ -z $sets && $RUNS -eq 1 ]] || die "--sets, --runs: nothing can be timed without a GPU"
    [[ ${#rest[@]} -eq 0 ]] || die "'${rest[*]}': nothing can be timed without a GPU"
    targets=(fa)
  fi
  require_writable "$RUNS_DIR" FA_RUNS_DIR
  [[ $build == no ]] || set_up_and_build charts "${targets[@]}"
  fa_binary >/dev/null || die "fa is not built in $BUILD_DIR"
  if have_gpu; then
    measure "${sets:-$SETS}" "${json:-$RUNS_DIR/$(gpu_slug)-$(date -u +%Y%m%d-%H%M%S)/ladder.json}" \
      ${rest[@]+"${rest[@]}"}
  else
    count_in_vm "${json:-$RUNS_DIR/vm/counts.json}"
    redraw_committed
  fi
}

main "$@"
