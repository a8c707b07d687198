#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Hardware counters (ncu) of every rung's kernels: one launch each at B=1 H=2 N=1024 D=128.
#   scripts/profile.sh [--out FILE.json] [--no-build] [options of scripts/profile_kernels.py]
# Needs a GPU whose counters may be read. The file goes to runs/<gpu>-ncu.json, or to FILE.json.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

if have_gpu && ! have ncu; then die "ncu (Nsight Compute) was not found on PATH" 3; fi
gpu_report ncu profile_kernels.py ncu "$@"
