#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds the documentation site into site/; any broken link or missing page is an error.
#   scripts/docs.sh            builds
#   scripts/docs.sh serve      serves it on http://127.0.0.1:8000 and follows changes
#   scripts/docs.sh check      builds into a folder that is thrown away; 77 without mkdocs
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

check_site() {
  if [[ ! -x $VENV/bin/mkdocs ]]; then
    say "docs.sh: skipped, mkdocs is not installed (scripts/setup.sh)"
    exit 77
  fi
  FOLDER="$(mktemp -d)"
  trap 'rm -rf "$FOLDER"' EXIT
  cd "$ROOT"
  "$VENV/bin/mkdocs" build --strict --quiet --site-dir "$FOLDER"
}

main() {
  local action=(build --strict --quiet)
  case "${1:-}" in
    "") ;;
    serve) action=(serve) ;;
    check)
      check_site
      return 0
      ;;
    -h | --help) show_usage && return 0 ;;
    *) die "unknown action '$1'; allowed: serve, check" ;;
  esac
  "$ROOT/scripts/setup.sh" python
  cd "$ROOT"
  exec "$VENV/bin/mkdocs" "${action[@]}"
}

main "$@"
