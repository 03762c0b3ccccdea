# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# libFuzzer on sources of twheeld. To be sourced after tap.sh by the run of a folder "fuzz" that
# has programs NAME.c; $seconds is how long each takes.

folder=$(dirname "$self")
topic=$(basename "$(dirname "$folder")")
out=$build/tests/$topic
mkdir -p "$build/log/$topic" "$out"

# fuzzer NAME SOURCE...: it builds; its inputs are to be in $work/NAME
fuzzer() {
	local glib

	mkdir "$work/$1" "$work/found-$1"
	read -ra glib <<<"$(pkg-config --cflags --libs glib-2.0)"
	must "the fuzzer '$1' builds" tests/harness/compile "$out/fuzz-$1" "$folder/$1.c" "${@:2}" -- \
		clang -std=gnu11 -D_GNU_SOURCE -Itests/harness -Itwheeld -g -O1 -Wall -Wextra -Werror \
		-Wno-unused-parameter -Dfuzz_one_input=LLVMFuzzerTestOneInput -DTAB_LINE_MOST=600 \
		-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
		-lconfig -lnettle -lical -licui18n -licuuc "${glib[@]}"
}

# try NAME LONGEST [OPTION...]
try() {
	timeout -k 10 $((seconds + 600)) "$out/fuzz-$1" -max_len="$2" -seed="${SEED:-1}" \
		-max_total_time="$seconds" -print_final_stats=1 -timeout=20 \
		-artifact_prefix="$build/log/$topic/$1-" "${@:3}" "$work/found-$1" "$work/$1" \
		>"$work/log" 2>&1 || { tail -n 40 "$work/log"; return 1; }
}

# fuzz WHAT NAME LONGEST [OPTION...]: a test of it
fuzz() {
	check "$1, for $seconds s" try "${@:2}"
	sed -n "s/^stat::number_of_executed_units: */# $2: inputs tried: /p" "$work/log"
}
