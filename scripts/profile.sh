#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Hardware counters (ncu) of every rung's kernels: one launch each at B=1 H=2 N=1024 D=128, or, of
# those that decode, at B=2 H=8/2 Nq=1 Nkv=2048 D=128.
#   scripts/profile.sh [--family decode|backward] [--out FILE.json] [--no-build]
#                      [options of profile_kernels.py]
# Needs a GPU whose counters may be read. The file goes to runs/<gpu>-ncu.json, with a family to
# runs/<gpu>-ncu_<family>.json, or to FILE.json.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

name=ncu
[[ ! " $* " =~ " --family"[\ =](decode|backward)" " ]] || name=ncu_${BASH_REMATCH[1]}
gpu_report ncu profile_kernels.py "$name" "$@"
