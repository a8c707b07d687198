#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# compute-sanitizer (memcheck, racecheck, synccheck, initcheck) on every rung, at a small shape.
#   scripts/sanitize.sh [--out FILE.json] [--no-build] [options of scripts/sanitize.py]
# Needs a GPU. The summary goes to runs/<gpu>-sanitize.json, or to FILE.json.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

gpu_report compute-sanitizer sanitize.py sanitize "$@"
