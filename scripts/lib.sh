# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034 # whoever sources this uses the variables
#
# Shared by the scripts: where things are, how they speak. To be sourced.

set -euo pipefail

top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$top/build
cache=${TWHEEL_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/twheel}
me=${0##*/}

# What is said goes also into the file that scripts/check shows it from: of what runs
# here, the errors may be caught.
say() {
	printf '%s: %s\n' "$me" "$*" >&2
	doing "$*"
}
doing() { [ -z "${TWHEEL_NOW:-}" ] || printf '%s\n' "$*" >"$TWHEEL_NOW" 2>/dev/null || :; }
die() { say "$*"; exit 1; }

# The files of the tree in this folder, built ones left out, each with a NUL behind it. (A copy of it
# may have no .git, and git refuses to look at what belongs to somebody else.)
tree_files() {
	{ [ -e .git ] && git ls-files -z --cached --others --exclude-standard 2>/dev/null; } ||
		find . \( -path ./build -o -path ./.git \) -prune -o -type f -printf '%P\0'
}
# tree_copy FOLDER: copy them there. (A file that was removed is in git's list until that is committed.)
tree_copy() {
	tree_files | tar -c --null --ignore-failed-read -T - 2>/dev/null | tar -x -C "$1"
}

# Checks that say the same each time may keep what they have passed, unless TWHEEL_FRESH is set.
remembers() { [ -z "${TWHEEL_FRESH:-}" ]; }

# Two runs at the same time must not fill the same folder: hold LOCK until the
# script ends. It is said when that means waiting.
lock() {
	mkdir -p "$(dirname "$1")" ||
		case $1 in
		"$build"/*)	die "what is built is kept in $build: make it writable, or clone to another folder" ;;
		*)		die "nothing can be kept there; the environment's TWHEEL_CACHE=FOLDER says where else" ;;
		esac
	exec {lock_fd}>"$1"
	flock --nonblock "$lock_fd" && return
	say "waiting for another run that holds $1"
	flock "$lock_fd"
	doing "has $1"
}

# watch_build KERNEL DIR PID: wait for the process that builds it in DIR, and say now and
# then how far it is: how many objects there are, of as many as there were the last time, or
# as scripts/kernel/objects has.
watch_build() {
	local want have second start=$SECONDS

	want=$(cat "$cache/kernel/$1.objects" 2>/dev/null ||
		sed -n "s/^$1 //p" "$top/scripts/kernel/objects")
	while kill -0 "$3" 2>/dev/null; do
		have=$(find "$2" -name '*.o' 2>/dev/null | wc -l)
		have=$((100 * have / ${want:-2000}))
		say "building the kernel '$1': $((have < 99 ? have : 99)) %, $((SECONDS - start)) s"
		for second in {1..10}; do
			kill -0 "$3" 2>/dev/null || break
			sleep 1
		done
	done
	wait "$3" || return
	mkdir -p "$cache/kernel"
	find "$2" -name '*.o' | wc -l >"$cache/kernel/$1.objects"
}
