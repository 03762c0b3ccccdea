#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# timers.sh [NAME...]: what seventeen kinds of timers do in eight cases. The answers are the tables
# of docs/timers.md.
#
# Among those: libuv counts a delay from the time at which the turn of its loop began, and the wait
# that follows, too, so that it is whole, unless a descriptor is ready: then it is too short. A
# timeval of LONG_MAX seconds is due at once for libevent. A POSIX timer that is disarmed is still
# told on Linux 6.12. What comes of a stall is one run, all of them, or none.
#
# Of each kind it prints a line for each table, and fails if docs/timers.md has another one. Wants
# Debian 12, whose packages are to be there (it says which are not), and boots kernels by scripts/vm
# from its cache.

. "$(dirname "$0")/lib.sh"

page=$top/docs/timers.md here=$top/findings/timers
packages=(gcc g++ pkg-config libuv1-dev libevent-dev libev-dev libglib2.0-dev libsystemd-dev
	libdpdk-dev qtbase5-dev openjdk-17-jdk-headless libnetty-java python3-uvloop tcl8.6
	erlang-base librust-tokio-dev cargo liburing-dev)
missing=()
for package in "${packages[@]}"; do
	dpkg-query -W "$package" >/dev/null 2>&1 || missing+=("$package")
done
[ ${#missing[@]} = 0 ] || die "not installed: apt-get install ${missing[*]}"
flags=(-O1 -Wall -Wextra -Wno-missing-field-initializers -pthread -I"$top/uapi" -I"$top/userlib/include")

# build PROGRAM FLAG...
build() {
	local source=$here/$1.c compiler=(gcc -std=gnu11)

	[ -e "$source" ] || source=$here/$1.cc compiler=(g++ -std=c++17 -fPIC)
	"${compiler[@]}" "${flags[@]}" -o "$work/$1" "$source" "${@:2}" -lm
}

rust() {
	mkdir -p "$work/rust/src" "$work/rust/.cargo"
	cp "$here/tokio.rs" "$work/rust/src/main.rs"
	cat >"$work/rust/Cargo.toml" <<-EOF
		[package]
		name = "timers"
		version = "0.0.0"
		edition = "2021"
		[dependencies]
		tokio = { version = "1", features = ["rt", "time"] }
	EOF
	cat >"$work/rust/.cargo/config.toml" <<-EOF
		[source.crates-io]
		replace-with = "debian"
		[source.debian]
		directory = "/usr/share/cargo/registry"
	EOF
	(cd "$work/rust" && CARGO_HOME=$work/cargo /usr/bin/cargo run -q --offline)
}

java_of() {
	[ -d "$work/classes" ] ||
		javac -cp /usr/share/java/netty-common.jar -d "$work/classes" "$here/Timers.java"
	java -cp "/usr/share/java/netty-common.jar:$work/classes" Timers "$1"
}

# in_guest KERNEL PROGRAM...: these, one after the other
in_guest() {
	local program

	for program in "${@:2}"; do
		build "$program" -static "$top/build/userlib/libtwheel.a" -luring || return
	done
	TWHEEL_CACHE=$cache "$top/scripts/vm" -k "$1-cloud" -f "$work:/timers" -l "$work/log" \
		/bin/sh -c "modprobe twheel; for one in ${*:2}; do /timers/\$one; done"
}

answers() {
	# shellcheck disable=SC2046 # flags are words
	case $1 in
	kernel-6.12)	in_guest 6.12 timerfd posix io_uring clock_set multishot ;;
	kernel-7.3)	in_guest 7.3 posix ;;
	libuv)	build libuv -luv && "$work/libuv" ;;
	libevent)	build libevent -levent_core && "$work/libevent" ;;
	libev)	build libev -lev && "$work/libev" ;;
	glib)	build glib $(pkg-config --cflags --libs glib-2.0) && "$work/glib" ;;
	sd_event)
		build sd_event "-DSYSTEMD=\"$(pkg-config --modversion libsystemd)\"" -lsystemd &&
			"$work/sd_event" ;;
	qt)	build qt $(pkg-config --cflags --libs Qt5Core) && "$work/qt" 2>/dev/null ;;
	dpdk)	build dpdk $(pkg-config --cflags --libs libdpdk) && "$work/dpdk" ;;
	twheel|pool)	build "$1" "$top/build/userlib/libtwheel.a" && "$work/$1" ;;
	asyncio|uvloop)	/usr/bin/python3 "$here/loops.py" "$1" ;;
	tcl)	tclsh8.6 "$here/tcl.tcl" ;;
	erlang)	escript "$here/erlang.escript" ;;
	tokio)	TOKIO=$(dpkg-query -W -f '${source:Upstream-Version}' librust-tokio-dev) rust ;;
	*)	java_of "$1" ;;
	esac
}

# rows NAME: its lines in the two tables
rows() {
	answers "$1" | awk -F '\t' '
		NF == 3 { print "| " $1 " | " $2 " | " $3 " |" }
		NF > 3 { for (i = 2; i < NF; i += 2) said[$i] = $(i + 1)
			gsub(/;/, "; ", said["never"]); gsub(/;  /, "; ", said["never"])
			print "| " $1 " | " said["never"] " | " said["left"] " | " said["done"] " |"
			print "| " $1 " | " said["now"] " | " said["equal"] " | " said["stall"] \
				" | " said["again"] " | " said["cancel"] " |" }'
}

make -s -C "$top" lib >&2
[ $# -gt 0 ] || set -- kernel-6.12 kernel-7.3 libuv libevent libev glib qt sd_event asyncio uvloop \
	Timer Executor DelayQueue Netty tokio dpdk tcl erlang twheel pool
for name; do
	# What takes a busy machine too long is tried twice more.
	for _ in 1 2 3; do
		rows "$name" >"$work/rows" || :
		[ -s "$work/rows" ] || echo "nothing" >"$work/rows"
		grep -q -v -F -x -f "$page" "$work/rows" || break
	done
	while read -r line; do
		expect "$name" "$line" "$(grep -F -x -e "$line" "$page" ||
			echo "another line of docs/timers.md")"
	done <"$work/rows"
done
