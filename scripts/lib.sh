# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034 # whoever sources this uses the variables
#
# What the scripts share: where things are, how they speak. To be sourced.

set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$top/build
cache=${TWHEEL_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/twheel}
me=${0##*/}

say() { printf '%s: %s\n' "$me" "$*" >&2; }
die() { say "$*"; exit 1; }

# Two runs at the same time must not fill the same folder: hold LOCK until the
# script ends. It is said when that means waiting.
lock() {
	mkdir -p "$(dirname "$1")" ||
		die "nothing can be kept there; the environment's TWHEEL_CACHE=FOLDER says where else"
	exec {lock_fd}>"$1"
	flock --nonblock "$lock_fd" && return
	say "waiting for another run that holds $1"
	flock "$lock_fd"
}
