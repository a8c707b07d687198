#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds the documentation into a folder that any static host serves, also below a path prefix; any
# broken link or missing page is an error. FA_SITE_URL, where it is set, is the address of the published
# site: its page for missing pages and its map need one.
#   scripts/docs.sh [FOLDER]         builds into FOLDER, by default site/
#   scripts/docs.sh serve            serves it on http://127.0.0.1:8000 and follows changes
#   scripts/docs.sh check            builds into FA_BUILD_DIR/site with what is installed; 77 without
#                                    mkdocs
# Pages run kernels where emscripten is installed and nvcc is found; else they say nothing of it.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

WEB_DIR="$BUILD_DIR/web"
export NO_MKDOCS_2_WARNING=1

# The linker of Debian's emscripten looks for acorn where node does not.
export NODE_PATH="${NODE_PATH:-/usr/share/nodejs}"

# build_machine: harness/web as WebAssembly, into WEB_DIR/machine.
build_machine() {
  if have ccache; then
    export EM_COMPILER_WRAPPER="${EM_COMPILER_WRAPPER-ccache}"
  fi
  step "WebAssembly ($WEB_DIR/machine)"
  local source="$ROOT/harness/web" fresh
  fresh="$(fresh_if_moved "$source" "$WEB_DIR/machine")"
  emcmake cmake ${fresh:+"$fresh"} -G Ninja -S "$source" -B "$WEB_DIR/machine" >&2 &&
    cmake --build "$WEB_DIR/machine" -j "$(jobs_count)" >&2
}

# build_live [no-build]: what the live pages load, into FA_WEB_DATA; says why where that cannot be.
build_live() {
  if ! have emcc; then
    say "docs.sh: emscripten is not installed (scripts/setup.sh web): the pages have no live parts"
    return 0
  fi
  if [[ ${1:-} != no-build ]]; then
    if ! find_nvcc >/dev/null; then
      say "docs.sh: nvcc was not found (scripts/setup.sh cuda): the pages have no live parts"
      return 0
    fi
    configure_and_build fa fa_exercises
  elif ! fa_binary >/dev/null; then
    say "docs.sh: fa is not built: the pages have no live parts"
    return 0
  fi
  build_machine || die "the WebAssembly build failed; see above" 1
  python3 "$ROOT/scripts/web.py" --build "$BUILD_DIR" --machine "$WEB_DIR/machine" \
    --out "$WEB_DIR/pages" || exit 1
  export FA_WEB_DATA="$WEB_DIR/pages"
}

# build_site FOLDER: from an empty one, so that no page of an earlier build stays.
build_site() {
  cd "$ROOT"
  "$VENV/bin/python" -m mkdocs build --clean --strict --quiet --site-dir "$1"
}

check_site() {
  if ! "$VENV/bin/python" -c 'import mkdocs, material, latex2mathml, matplotlib' 2>/dev/null; then
    say "docs.sh: skipped, mkdocs or what it needs is not installed (scripts/setup.sh)"
    exit 77
  fi
  build_live no-build
  build_site "$BUILD_DIR/site"
}

main() {
  case "${1:-}" in
    -h | --help) show_usage && return 0 ;;
    -*) die "unknown option '$1'; allowed: serve, check, or a folder" ;;
  esac
  refuse_words "serve, check, or one folder" "${@:2}"
  # A mistyped word is no folder.
  [[ $# -eq 0 || $1 =~ ^(serve|check)$ || $1 == */* || -d $1 ]] ||
    die "there is no folder '$1'; allowed: serve, check, or a folder (./$1)"
  case "${1:-}" in
    serve)
      "$ROOT/scripts/setup.sh" python web
      build_live
      cd "$ROOT"
      exec "$VENV/bin/python" -m mkdocs serve
      ;;
    check) check_site ;;
    *)
      local folder
      folder="$(realpath -m "${1:-$ROOT/site}")"
      require_empty_or_site "$folder"
      { mkdir -p "$folder" && [[ -w $folder ]]; } 2>/dev/null ||
        die "cannot write '$folder'; name another folder: scripts/docs.sh FOLDER" 3
      "$ROOT/scripts/setup.sh" python web
      build_live
      build_site "$folder"
      say "docs.sh: $folder"
      ;;
  esac
}

# require_empty_or_site FOLDER: the build removes what is in it.
require_empty_or_site() {
  if [[ -e $1 && ! -f $1/search/search_index.json && -n "$(ls -A "$1")" ]]; then
    die "'$1' holds other files, which the build would remove; name a new folder"
  fi
}

main "$@"
