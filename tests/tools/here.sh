# shellcheck shell=bash disable=SC2016,SC2154 # run sets them; gdb reads them
# SPDX-License-Identifier: GPL-2.0
#
# The command on this machine, where the module is not loaded: what it says of that, and
# what works without it. To be sourced by run.

installs() { # FOLDER
	local left

	make -s -C tools install DESTDIR="$1" PREFIX=/usr || return
	[ "$("$1/usr/bin/twheel" --version)" = "$("$twheel" --version)" ] || return
	[ -s "$1/usr/share/man/man1/twheel.1" ] && [ -x "$1/usr/share/twheel/bpftrace/arms.bt" ] &&
		[ -s "$1/usr/share/bash-completion/completions/twheel" ] || return
	make -s -C tools uninstall DESTDIR="$1" PREFIX=/usr || return
	left=$(find "$1" -type f -o -type l)
	[ -z "$left$(ls "$1/usr/share/twheel" 2>/dev/null)" ] || { echo "left: $left"; return 1; }
}

# gdb's commands: each timer of a program is in the slot that says so; sums that are wrong are named.
in_gdb() {
	local out=$work/gdb said=$work/gdb.said

	make -s -C userlib BUILD="$out" CFLAGS='-g -O1' "$out/libtwheel.a" &&
		gcc -g -O1 -Wall -Wextra -Werror -Iuapi -Iuserlib/include -o "$out/program" \
			tests/tools/gdb.c "$out/libtwheel.a" || return
	TWHEEL_BACKEND=user DEBUGINFOD_URLS='' timeout 120 gdb -nx -batch -ex 'source tools/gdb/twheel.py' \
		-ex 'break stop_here' -ex run -ex up -ex 'twheel list' -ex 'twheel slots tw' \
		-ex 'echo all\n' -ex 'twheel timers tw' \
		-ex 'set var tw->user->wheel.pending = 2000' \
		-ex 'twheel slots 0' -ex 'twheel slots tw' "$out/program" >"$said" 2>&1 || return
	tests/tools/gdb_said <"$said" || { cat "$said"; return 1; }
}

# The same of the module, in a machine that gdb stops: the symbols are twheel.ko's, at the addresses
# that the kernel names. gdb ends the machine.
module_in_gdb() {
	local out=$work/gdb-module said=$work/gdb-module.said machine ko

	mkdir -p "$out" && : >"$out/guest" && make -s lib && ko=$(scripts/module 6.1-cloud) &&
		gcc -static -O1 -Wall -Wextra -Werror -Iuapi -Iuserlib/include -o "$out/program" \
			tests/tools/gdb.c build/userlib/libtwheel.a || return
	scripts/vm -g "$out/stub" -t 200 -l "$build/log/tools-gdb.log" -f "$out/program" sh -c '
		modprobe twheel && cd /sys/module/twheel/sections && grep . .text .data .bss .rodata &&
		exec program stay' >"$out/guest" 2>"$out/errors" &
	machine=$!
	until grep -q '^id ' "$out/guest" || ! kill -0 $machine; do
		sleep 0.1
	done
	at() { tr -d '\r' <"$out/guest" | sed -n "s/^$1://p"; }
	{
		grep '^id ' "$out/guest"
		timeout 120 gdb -nx -batch -ex 'set architecture i386:x86-64' -ex "add-symbol-file $ko $(at .text) \
			-s .data $(at .data) -s .bss $(at .bss) -s .rodata $(at .rodata)" \
			-ex "target remote $out/stub" -ex 'source tools/gdb/twheel.py' -ex 'twheel list' \
			-ex 'python gdb.set_convenience_variable("tw", of_kernel()[0])' -ex 'twheel slots $tw' \
			-ex 'echo all\n' -ex 'twheel timers $tw' -ex 'set var $tw->wheel.pending = 2000' \
			-ex 'twheel slots 0' -ex 'twheel slots $tw' -ex kill
	} >"$said" 2>&1
	wait $machine
	tests/tools/gdb_said <"$said" || { cat "$said" "$out/errors"; return 1; }
}

lint() {
	local found

	found=$(mandoc -T lint tools/twheel.1 2>/dev/null |
		grep -v 'STYLE: referenced manual not found') || true
	[ -z "$found" ] || { echo "$found"; return 1; }
}

commands() { "$twheel" --help | sed -n 's/^  \([a-z]*\) .*/\1/p'; }

# The long options that a command says it has
options() {
	"$twheel" "$1" --help | grep -o -e '--[a-z-]*' | grep -v -x -e --help -e --usage | sort -u
}

all_described() {
	local command option missing=0

	for command in $(commands); do
		grep -q -x "^.It Cm $command" tools/twheel.1 || { echo "no $command"; missing=1; }
		for option in $(options "$command"); do
			grep -q -e "^.It.* Fl ${option#-}\b" tools/twheel.1 ||
				{ echo "no $option of $command"; missing=1; }
		done
	done
	return "$missing"
}

# bash's completions for the last of the words
complete_words() {
	PATH=${from:-$build/tools}:$PATH bash -c '
		. tools/twheel.bash-completion
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		_twheel
		printf "%s\n" "${COMPREPLY[@]}"' bash "$@"
}

completes() {
	local command want got bad=0

	got=$(complete_words twheel "" | grep -v '^--' | sort)
	[ "$got" = "$(commands | sort)" ] || { echo "commands: $got"; bad=1; }
	for command in $(commands); do
		want=$(options "$command")
		got=$(complete_words twheel "$command" -- | grep -v -x -e --help | sort)
		[ "$got" = "$want" ] || { echo "options of $command: $got"; bad=1; }
	done
	return "$bad"
}

# fish's completions for a line
fish_offers() {
	# shellcheck disable=SC2016
	PATH=${from:-$build/tools}:$PATH fish --no-config -c \
		'source tools/twheel.fish-completion; complete -C "$argv[1]"' "$1" | cut -f 1 | sort
}

fish_completes() {
	[ "$(fish_offers 'twheel ')" = "$(commands | sort)" ] || { fish_offers 'twheel '; return 1; }
	[ "$(fish_offers 'twheel peek --' | grep -v -x -e --help -e --usage)" = "$(options peek)" ] ||
		{ fish_offers 'twheel peek --'; return 1; }
	[ "$(fish_offers 'twheel jobs pau')" = pause ] || { fish_offers 'twheel jobs pau'; return 1; }
}

# zsh completes on a terminal alone: what its function would add is printed in place of that.
zsh_offers() {
	PATH=${from:-$build/tools}:$PATH zsh -fc '
		compadd() { shift; print -l -- ${(P)1} }
		_describe() { print -l -- ${${(P)2}%%:*} }
		words=("$@") CURRENT=$#
		. tools/twheel.zsh-completion' zsh "$@" | sort
}

zsh_completes() {
	[ "$(zsh_offers twheel '')" = "$(commands | sort)" ] || { zsh_offers twheel ''; return 1; }
	[ "$(zsh_offers twheel peek -- | grep -v -x -e --help -e --usage)" = "$(options peek)" ] ||
		{ zsh_offers twheel peek --; return 1; }
	zsh_offers twheel jobs pau | grep -q -x pause
}

# Anybody who puts a job names its tube, and a name may be a command to a shell.
names_stay_names() {
	local from=$work/hostile name words bad=0

	mkdir -p "$from"
	name="\$($from/run);-\$HOME.(x)"
	printf '#!/bin/sh\ntouch %q\n' "$from/was-run" >"$from/run"
	printf '#!/bin/sh\necho NAME\necho %q\n' "$name" >"$from/twheel"
	chmod +x "$from/run" "$from/twheel"
	for words in put 'jobs show'; do
		# shellcheck disable=SC2086 # these are words
		[ "$(complete_words twheel $words "")" = "$(printf %q "$name")" ] ||
			{ echo "bash: $words"; bad=1; }
		[ -n "$quick" ] || [ "$(fish_offers "twheel $words \\\$" | grep -cxF "$name")" = 1 ] ||
			{ echo "fish: $words"; fish_offers "twheel $words \\\$"; bad=1; }
		# shellcheck disable=SC2086
		[ -n "$quick" ] || zsh_offers twheel $words '' | grep -qxF "$name" ||
			{ echo "zsh: $words"; bad=1; }
	done
	[ ! -e "$from/was-run" ] || { echo "a name was run"; bad=1; }
	return "$bad"
}

bench_json() {
	"$twheel" bench -q --json >"$work/bench.json" || return
	json_is "$work/bench.json" '.timers == 2000 and
		(.results["timerfd and epoll"]["re-arm"] > 0) and
		(.results["twheel, program, 256 in a call"]["expire and read"] > 0) and
		(.results["twheel, kernel, one in a call"].error | length > 0)'
}

here() {
	local command modprobe='not loaded; as root: modprobe twheel'

	[ ! -e /sys/module/twheel ] || {
		echo "ok - without the module # SKIP it is loaded here"
		return
	}
	check "no command: the usage, and status 2" said Usage: 2 "$twheel"
	check "no such command" said "no command 'nosuch'" 2 "$twheel" nosuch
	for command in $(commands); do
		check "$command: an option that there is not" ends 2 "$twheel" "$command" --nosuch
	done
	for command in info list top stats watch; do
		check "$command without the module says what to do" said "$modprobe" 3 \
			"$twheel" "$command"
	done
	"$twheel" info --json >"$work/info.json" 2>/dev/null || true
	check "info --json without the module" json_is "$work/info.json" \
		'.loaded == false and .module == null and .library.backend == "user"'
	"$twheel" stats --prometheus >"$work/metrics" 2>/dev/null || true
	check "stats --prometheus without the module" prometheus_is "$work/metrics" \
		'value("twheel_module_loaded") == 0'
	check "stats: neither PID nor PID:FD" said "neither PID nor PID:FD" 2 "$twheel" stats 12:x
	check "info: no other wheel, by the environment" explains kernel "allows no other wheel"
	check "info: why there are no shared timers" no_shared
	check "info --json: the same" json_is "$work/info.json" \
		'.bpf.usable == false and (.bpf.error | startswith("no twheel-loader"))'
	check "info: no such backend" explains nobody "has to be kernel, bpf or user"
	check "jobs: too few words" said "too few words: write twheel jobs pause NAME" 2 \
		"$twheel" jobs pause
	check "jobs: too many words" said "too many words: write twheel jobs list" 2 \
		"$twheel" jobs list all
	[ -n "$quick" ] || check "gdb finds a wheel of a program, its slots and its timers" in_gdb
	[ -n "$quick" ] || ! on_x86_64 ||
		check "gdb finds a wheel of the module in a machine, its slots and its timers" module_in_gdb
	check "a full disk is noticed" said "can't print" 1 full_disk
	check "bench, in its short form" bench_json
	check "bench says what it is" grep -q 'Wall-clock time of this machine' \
		<("$twheel" bench -n 100)
}

# explains BACKEND TEXT: info says that of the environment's TWHEEL_BACKEND
explains() { TWHEEL_BACKEND=$1 ends 3 "$twheel" info 2>&1 | grep -F "TWHEEL_BACKEND=$1 $2"; }

no_shared() { ends 3 "$twheel" info 2>/dev/null | grep -F 'none: no twheel-loader; install'; }

full_disk() { "$twheel" --version >/dev/full; }
