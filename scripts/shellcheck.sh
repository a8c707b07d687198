#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs shellcheck over every shell script; exits 77 where shellcheck is not installed.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
refuse_words "none" "$@"
cd "$ROOT"

PATH="$VENV/bin:$PATH"
if ! have shellcheck; then
  echo "shellcheck.sh: skipped, shellcheck is not installed" >&2
  exit 77
fi
exec shellcheck -x scripts/*.sh .ci/run
