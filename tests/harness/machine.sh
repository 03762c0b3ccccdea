# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Shared by suites whose programs run in a virtual machine. To be sourced by the "run"
# of a suite; in the simplest one that does
#
#	options "$@"
#	tap one_machine
#
# Its programs are the sources of its folder. These say in their first comments, if
# need be, what the module is to be loaded with, how many seconds they may take, how
# many processors they want, and why they are for the long form only:
#
#	 * module parameters: NAME=VALUE ...
#	 * most seconds: 300
#	 * processors: 2
#	 * long: a user's crowd of wheels
#
# NAME32 is the program NAME.c as one of 32 bits, which is for the long form, too, where that
# says "also in: 32-bits".
#
# The environment's TIMES=N makes those programs that know it do N times as much, and
# PATIENCE=N allows each N times as long. SEED=N is where random numbers begin, BRIEF=1 has
# less of these, and WORLD=small loads a module with tiny constants.

. "$(dirname "${BASH_SOURCE[0]}")/tap.sh"
trap 'cp "$work/"*.log "$build/log/" 2>/dev/null || :; rm -r "$work"' EXIT

# A suite may set these before its options.
kernel=6.1-cloud cpus=2 memory=1G icount=() words='' all='' quick='' rest='' seconds=120 programs=()
log_name=$suite_name

# options [-a] [-q|-r] [-k KERNEL] [-c CPUS] [-i] [-w WORDS] [NAME...]: -a is for all of it,
# whatever that is, and -q for what is done before each commit: all programs but the long
# ones, and less of some; -r for the rest: these. The others are those of scripts/vm.
options() {
	local opt

	need_machine
	while getopts aqrk:c:iw: opt; do
		case $opt in
		a)	all=1 ;;
		q)	quick=1 ;;
		r)	rest=1 ;;
		k)	kernel=$OPTARG ;;
		c)	cpus=$OPTARG ;;
		i)	icount=(-i) ;;
		w)	words+=" $OPTARG" ;;
		*)	usage ;;
		esac
	done
	shift $((OPTIND - 1))
	# All that there is of it is gone through for leaks, twice, which takes long.
	[ "$kernel" != sanitize ] || memory=512M
	[ $# = 0 ] || programs=("$@")
	[ ${#programs[@]} -gt 0 ] ||
		mapfile -t programs < <(cd "tests/$suite" && printf '%s\n' *.c | sed 's/\.c$//'
			grep -l '^ \* also in:.* 32-bits' -- *.c | sed 's/\.c$/32/')
	[ ! "$quick" ] || mapfile -t programs < <(for program in "${programs[@]}"; do
		[[ $program = *32 ]] || [ "$(note "$program" long)" ] || echo "$program"
	done)
	[ ! "$rest" ] || mapfile -t programs < <(for program in "${programs[@]}"; do
		[[ $program != *32 ]] && ! grep -q -e '^ \* long: ' -e 'brief()' "tests/$suite/$program.c" ||
			echo "$program"
	done)
	log_name=$suite_name-$kernel-$cpus${WORLD:+-$WORLD}
}

# note PROGRAM WORDS: what its first comment says of that
note() {
	[ ! -e "tests/$suite/$1.c" ] || sed -n "s/^ \* $2: //p" "tests/$suite/$1.c"
}

build_programs() {
	doing "building the programs"
	folder=$(tests/harness/programs "$kernel" "$suite" "${programs[@]}")
}

# The suite's modules, in a tree of links, so that nothing is built beside the source.
build_modules() {
	modules=$build/tests/$suite/modules-$kernel
	mkdir -p "$modules"
	cp -rsf "$top/tests/$suite/modules/." "$modules"
	flock "$modules.lock" scripts/kbuild "$kernel" "$modules"
}

# machine LOG PROGRAM... [-- OPTION...]: run programs in a machine, with these options of
# scripts/vm. A file /tests/setup that is put into it is read there first.
machine() {
	local log=$1 most longest=0 total=180 status=0 files=()

	shift
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		most=$(note "$1" "most seconds")
		most=$(((${most:-$seconds} * ${TIMES:-1}) * ${PATIENCE:-1}))
		echo "$1 $most $(note "$1" "module parameters")"
		total=$((total + most))
		[ "$most" -le "$longest" ] || longest=$most
		files+=(-f "$folder/$1:/tests/$1")
		shift
	done >"$work/$log.list"
	doing "a machine with the kernel $kernel runs the programs"
	scripts/vm -k "$kernel" -c "$cpus" -m "$memory" "${icount[@]}" -w "$words" \
		-t "$total" -u $((180 + longest)) -l "$work/$log.log" "${files[@]}" "${@:2}" \
		-f "$work/$log.list:/tests/list" \
		-f tests/harness/guest:/tests/guest env "WORLD=${WORLD:-}" \
		"TIMES=${TIMES:-1}" "PATIENCE=${PATIENCE:-1}" \
		"SEED=${SEED:-1}" "ALL=$all" "BRIEF=${quick:-${BRIEF:-}}" sh /tests/guest || status=$?
	echo "$status" >"$work/$log.status"
}

# The status; 126 is one of warnings, which are looked for program by program.
ended_well() {
	local status

	status=$(cat "$1")
	[ "$status" = 0 ] || [ "$status" = 126 ] || { echo "its status is $status"; return 1; }
}

# log_part LOG PROGRAM PART: a suite may know warnings that are as they have to be
log_part() { scripts/log-check "$1" "$3"; }

# log_checks LOG PROGRAM...: the kernel's log of that machine
log_checks() {
	local log=$work/$1.log program name="the machine"

	[ "$1" = "$log_name" ] || name=$1
	check "$name: ends well" ended_well "$work/$1.status"
	check "$name: no warning in the kernel's log before the first program" \
		log_part "$log" '' '/vm: up$/,/vm: start /p'
	for program in "${@:2}"; do
		check "$program: no warning in the kernel's log" log_part "$log" "$program" \
			"/vm: start $program\$/,/vm: \(start \|end\$\)/p"
	done
	# shellcheck disable=SC2016 # for sed to expand
	check "$name: no warning in the kernel's log after the last program" \
		log_part "$log" '' '/vm: end$/,$p'
}

# one_machine [OPTION...]: all programs in one machine
one_machine() {
	must "the programs build" build_programs
	machine "$log_name" "${programs[@]}" -- "$@" | merge "${programs[@]}"
	log_checks "$log_name" "${programs[@]}"
}
