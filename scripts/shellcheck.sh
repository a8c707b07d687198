#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs shellcheck over every shell script; exits 77 where shellcheck is not installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! command -v shellcheck >/dev/null; then
  echo "shellcheck.sh: skipped, shellcheck is not installed" >&2
  exit 77
fi
exec shellcheck -x scripts/*.sh .ci/run
