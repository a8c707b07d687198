#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs a command in a clone of the committed tree on a machine made from nothing: a Debian 12 in a
# folder, with git, certificates and ccache, no compiler and no CUDA. It shows whether the set-up of
# the scripts is whole, which a developer's machine hides.
#   scripts/fresh.sh [--toolkit] COMMAND...              scripts/fresh.sh scripts/test.sh
#   --toolkit   with the CUDA toolkit of CUDA_HOME under /usr/local/cuda, and nothing on PATH, as on
#               a machine with a GPU
# The system is removed after the command. FA_FRESH_DIR keeps what the next run need not fetch or
# compile again (default: flash-ladder-fresh in XDG_CACHE_HOME, else in ~/.cache). Needs root and
# debootstrap; without them it exits with 3.
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

SUITE=bookworm
PACKAGES=ca-certificates,git,ccache
FRESH="$(absolute "${FA_FRESH_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/flash-ladder-fresh}")"

# Installed into the base system once, and copied for each run, so that no run sees the last one's.
make_base() {
  local base="$1"
  [[ "$(cat "$base.done" 2>/dev/null)" != "$PACKAGES" ]] || return 0
  rm -rf "$base"
  mkdir -p "$base"
  step "debootstrap $SUITE"
  debootstrap --variant=minbase --include="$PACKAGES" "$SUITE" "$base" \
    "${FA_DEBIAN_MIRROR:-http://deb.debian.org/debian}" >"$FRESH/debootstrap.log" 2>&1 ||
    die "debootstrap failed; see $FRESH/debootstrap.log" 3
  printf '%s\n' "$PACKAGES" >"$base.done"
}

# What a machine has from its network and not from its image: name service, mirrors, certificates.
give_network() {
  local room="$1" file
  for file in /etc/resolv.conf /etc/hosts /etc/pip.conf /etc/ssl/certs/ca-certificates.crt; do
    [[ ! -f $file ]] || cp -L "$file" "$room$file"
  done
}

# enter ROOM TOOLKIT COMMAND...: in namespaces of its own, so that mounts end with the command.
enter() {
  local room="$1" toolkit="$2"
  shift 2
  mkdir -p "$room/cache" "$FRESH/cache/apt" "$FRESH/cache/pip"
  # shellcheck disable=SC2016 # words of the inner shell
  unshare --mount --pid --fork --kill-child bash -c '
    set -euo pipefail
    room=$1 cache=$2 toolkit=$3
    shift 3
    mount -t proc proc "$room/proc"
    mount -t sysfs -o ro sysfs "$room/sys"
    mount -t tmpfs -o mode=755 tmpfs "$room/dev"
    for node in null zero full random urandom tty; do
      touch "$room/dev/$node"
      mount --bind "/dev/$node" "$room/dev/$node"
    done
    mkdir "$room/dev/pts" "$room/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts "$room/dev/pts"
    ln -s pts/ptmx "$room/dev/ptmx"
    ln -s /proc/self/fd "$room/dev/fd"
    mount -t tmpfs -o mode=1777 tmpfs "$room/dev/shm"
    mount --bind "$cache" "$room/cache"
    mount --bind "$cache/apt" "$room/var/cache/apt/archives"
    if [[ -n $toolkit ]]; then
      mkdir -p "$room/usr/local/cuda"
      mount --bind -o ro "$toolkit" "$room/usr/local/cuda"
    fi
    exec chroot "$room" "$@"' fresh "$room" "$FRESH/cache" "$toolkit" "$@"
}

main() {
  local toolkit="" base="$FRESH/$SUITE"
  if [[ ${1:-} == -h || ${1:-} == --help ]]; then
    show_usage
    return 0
  fi
  if [[ ${1:-} == --toolkit ]]; then
    toolkit="$(readlink -f "${CUDA_HOME:-/usr/local/cuda}")"
    [[ -x $toolkit/bin/nvcc ]] || die "--toolkit: '$toolkit' (CUDA_HOME) has no bin/nvcc" 3
    shift
  fi
  [[ ${1:-} != -* ]] || die "unknown option '$1'; allowed: --toolkit"
  [[ $# -gt 0 ]] || die "no command given; for instance: scripts/fresh.sh scripts/test.sh"
  [[ $(id -u) -eq 0 ]] || die "a fresh system is made by root alone" 3
  have debootstrap || die "debootstrap is not installed (Debian: apt-get install debootstrap)" 3
  make_base "$base"
  room="$(mktemp -d "$FRESH/room-XXXXXX")"
  trap 'rm -rf "$room"' EXIT
  step "fresh room: $room"
  cp -a "$base/." "$room"
  give_network "$room"
  # dpkg waits for the disk after every file, against a loss of power; no room outlasts one.
  echo force-unsafe-io >"$room/etc/dpkg/dpkg.cfg.d/unsafe-io"
  git clone --quiet --no-hardlinks "$ROOT" "$room/root/flash-ladder"
  enter "$room" "$toolkit" /usr/bin/env -i HOME=/root TERM="${TERM:-dumb}" LANG=C.UTF-8 \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PIP_CACHE_DIR=/cache/pip CCACHE_DIR=/cache/ccache CCACHE_COMPILERCHECK=content \
    CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_CUDA_COMPILER_LAUNCHER=ccache \
    ${CI:+CI="$CI"} ${FA_JOBS:+FA_JOBS="$FA_JOBS"} \
    bash -c 'cd /root/flash-ladder && exec "$@"' fresh "$@"
}

main "$@"
