# shellcheck shell=bash disable=SC2016,SC2154 # run sets them; jq reads them
# SPDX-License-Identifier: GPL-2.0
#
# The command in the virtual machine, with the module: what tests/tools/guest printed is
# cut into cases, and looked at. To be sourced by run.

run_machine() {
	local terminal=/lib/terminfo/s/screen options=()

	# Since Debian 13
	[ -e $terminal ] || terminal=/usr/share/terminfo/s/screen
	[ -n "$quick" ] || options=(-m 2G -f tests/tools/guest_full:/tools/full
		-f /usr/bin/tmux:/tools/bin/tmux -f "$terminal:/lib/terminfo/s/screen"
		-f /usr/lib/locale/C.utf8:/usr/lib/locale/C.utf8
		-f /usr/bin/bpftrace:/tools/bin/bpftrace -f tools/bpftrace:/tools/bpftrace)
	scripts/vm -t 600 -l "$build/log/tools-vm.log" "${options[@]}" \
		-f build/tests/tools/wheels:/tools/bin/wheels -f "$twheel:/tools/bin/twheel" \
		-f /usr/bin/setpriv:/tools/bin/setpriv \
		-f tests/tools/guest:/tools/guest sh /tools/guest >"$transcript" || true
}

# Files for each case: NAME, NAME.errors, NAME.status
cut_cases() {
	mkdir -p "$cases"
	awk -v dir="$cases" '
		/^@case / { name = dir "/" $2; file = name; printf "" >file; next }
		/^@errors$/ { file = name ".errors"; printf "" >file; next }
		/^@status / { print $2 >(name ".status"); file = ""; next }
		file { print >file }' "$transcript"
}

# was NAME STATUS [TEXT]: a case ended so, and its output or errors have that
was() {
	local status

	status=$(cat "$cases/$1.status") || { tail -n 20 "$transcript"; return 1; }
	[ "$status" = "$2" ] && grep -q -e "${3:-}" "$cases/$1" "$cases/$1.errors" && return
	[ -z "${3:-}" ] && [ "$status" = "$2" ] && return
	echo "status $status, want $2, with: ${3:-}"
	cat "$cases/$1" "$cases/$1.errors"
	return 1
}

# json NAME EXPRESSION: of the output of a case; $pid, $child, $first, $same, $second and
# $user_pid are processes and descriptors
json() {
	was "$1" 0 && json_is "$cases/$1" "$2" --argjson pid "$pid" --argjson child "$child" \
		--argjson first "$first" --argjson same "$same" --argjson second "$second" \
		--argjson user_pid "$user_pid"
}

# A line of JSON for each event
lines() { # NAME EXPRESSION
	was "$1" 0 && jq -c -s . "$cases/$1" >"$cases/$1.all" && json_is "$cases/$1.all" "$2"
}

prometheus_is() { # FILE EXPRESSION
	/usr/bin/python3 tests/tools/metrics "$@"
}

# The screen has that number of lines, none longer than that, and in one of them the text.
screen_is() { # NAME LINES COLUMNS TEXT
	was "$1" 0 "$4" || return
	[ "$(wc -l <"$cases/$1")" -le "$2" ] && [ "$(wc -L <"$cases/$1")" -le "$3" ] && return
	cat "$cases/$1"
	return 1
}

infos() {
	check "info, as root" was info 0 'you: *may open it'
	check "info: the wheel is in the kernel" was info 0 'a wheel in the kernel'
	check "info: shared timers are the module's" was info 0 'shared: *in the kernel, by the module'
	check "info --json" json info_json '.loaded and .module.device.usable and
		.library.backend == "kernel" and (.module.features | index("shared") != null) and
		.module.max_timers == 16777216 and .module.device.mode == "0600" and
		(.module.max_unprivileged_timers - 3 * .module.max_user_timers | fabs) < 99'
	check "info, as a user who may not open the device" was info_user 4 'udev rule'
	check "info: what would be there instead" was info_user 4 'in the program itself'
	check "info: which group is missing" was info_group 4 'adduser USER twheel'
	check "info, as one of that group" was info_member 0 'you: *may open it'
	check "info, where there is no device" was info_no_node 3 'no /dev/twheel here'
}

lists() {
	check "list without wheels" was list_none 0 '^ *WHEEL'
	check "list without wheels, as JSON" json list_none_json '. == []'
	check "list without wheels, as a user" was list_none_user 0 'only root can see'
	check "list: the wheels of all, for root" json list_json 'length == 6 and
		([.[].wheel] | unique | length) == 6 and
		(map(select(.uid == 0)) | length) == 3 and
		(map(select(.uid == 1000)) | length) == 3'
	check "list: what a wheel holds" json list_json '.[0] | .clock == "realtime" and
		.tick == 5000000 and .pending == 3 and .ready == 2 and .limit == 1000 and
		.armed == 5 and .expired == 2 and .refused == 0'
	check "list: who has a wheel, in one process and in several" json list_json '
		.[0].holders | map({pid, fd}) == [{pid: $pid, fd: $first}, {pid: $pid, fd: $same},
		{pid: $child, fd: $first}]'
	check "list: two wheels are two" json list_json '.[1] | .wheel != 0 and .pending == 7 and
		.refused == 1 and .holders == [{pid: $pid, fd: $second, program: "wheels"}]'
	check "list: a user sees his own" json list_user 'length == 3 and
		all(.uid == 1000) and .[0].holders[0].pid == $user_pid'
	check "list: the same wheel, for people" was list 0 "^ *[0-9]* *$child .*the same wheel"
	check "list: names of users" was list 0 ' wheels  *user '
	check "list: a name can't steer the terminal" was list 0 'evil?\[2J"'
}

stats() {
	check "stats of all" was stats 0 "fd $first .*evil"
	check "stats: for people" was stats 0 '^  refused  *1$'
	check "stats of all, as JSON" json stats_json 'length == 6 and all(has("lateness"))'
	check "stats of a process" json stats_pid 'length == 2 and .[0].drained == 0 and
		.[0].lateness[0] == 2 and (.[0].lateness | length) == 64'
	check "stats of a process that shares a wheel" json stats_child 'length == 2 and
		.[0].armed == 5 and .[1].armed == 0'
	check "stats of a descriptor" json stats_fd 'length == 1 and .[0].pending == 7 and
		.[0].armed == 7'
	check "stats: two descriptors of a wheel are of the same" same_wheel
	check "stats, as the user whose it is" json stats_user 'length == 2 and .[1].armed == 7'
	check "stats, as another user" was stats_foreign 4 'as root: twheel stats'
	check "stats of what is no wheel" was stats_no_fd 1 'is no wheel'
	check "stats of a process without a wheel" was stats_no_wheel 1 'has no wheel'
	check "stats of nobody" was stats_nobody 1 'there is no process'
	check "prometheus: a parser takes it" prometheus_is "$cases/prometheus" 'len(families) > 15'
	check "prometheus: what is in it" prometheus_is "$cases/prometheus" \
		'value("twheel_module_loaded") == 1 and value("twheel_wheels") == 6 and
		value("twheel_pending", uid="0", clock="realtime") == 3 and
		value("twheel_tick_seconds", uid="0", clock="realtime") == 0.005 and
		value("twheel_armed_total", uid="1000", clock="realtime") == 5'
	check "prometheus: the histogram" prometheus_is "$cases/prometheus" \
		'histograms_are_right() and value("twheel_lateness_seconds_bucket", uid="0",
		clock="realtime", le="+Inf") == 2'
}

same_wheel() {
	[ "$(jq '.[0].wheel' "$cases/stats_same")" = "$(jq '.[0].wheel' "$cases/stats_first")" ] &&
		json stats_same 'length == 1'
}

left_nothing() { was "$1" 0 && [ ! -s "$cases/$1" ]; }

watches() {
	check "watch: arm" was watch 0 'wheels\[[0-9]*\] .* arm  *timer 0x[0-9a-f]* in .*user data 0x2a'
	check "watch: cancel" was watch 0 'cancel  *timer 0x[0-9a-f]*, which was pending'
	check "watch: -n ends it after that many lines" [ "$(wc -l <"$cases/watch")" = 60 ]
	check "watch --json: each event" lines watch_json 'length == 60 and
		(map(.event) | unique | contains(["arm", "cancel", "expire", "modify", "read"])) and
		all(.time > 0 and .wheel > 0)'
	check "watch --json: how many expired" lines watch_json '
		map(select(.event == "expire") | .timers) | length > 0 and
		all(. >= 1 and . <= 64)'
	check "watch --json: times are of one clock" lines watch_json '
		map(select(.event == "arm") | .deadline - .time) | length > 0 and
		all(. > -60e9 and . <= 3600e9)'
	check "watch of one wheel" lines watch_wheel '([.[].wheel] | unique | length) == 1 and
		length == 20'
	check "watch for a time, where nothing happens" was watch_time 0
	check "watch, as a user" was watch_user 4 'only root may trace'
	check "watch leaves no trace" left_nothing watch_left
	check "watch: one that is killed leaves its trace" was watch_killed 0 '^twheel-[0-9]*$'
	check "watch: the next one removes that" left_nothing watch_after
	check "watch: events that were lost are counted" was watch_lost 0 \
		'^twheel: [1-9][0-9]* events came too fast and were lost$'
	check "watch: it leaves no trace then, either" left_nothing watch_left_lost
}

waits() {
	check "bench, with the kernel" json bench '
		(.results["twheel, kernel, 256 in a call"]["arm"] > 0) and
		(.results["twheel, kernel, one in a call"]["expire and read"] > 0)'
}

tops() {
	check "top: the wheels, most pending first" screen_is top 14 110 'wheels  *root  *monotonic'
	check "top: as wide as the screen" was top 0 'PENDING *READY *EXP/S *LATE$'
	check "top: what there is" was top 0 '^twheel: 7 wheels, [0-9]* pending, [0-9]* ready'
	check "top: another order" screen_is top_number 14 110 'sorted by number'
	check "top: how often timers expire" was top_number 0 ' [1-9][0-9]* expiries a second'
	check "top: a smaller screen" screen_is top_small 6 60 '^twheel: 7 wheels'
	check "top: q ends it" was top_ended 0 '^0$'
	check "top: Ctrl-C ends it" was top_interrupt 0 '^ended with 130$'
	check "top: the screen is as it was" was top_interrupt_terminal 0 '^1 0$'
	check "top: TERM ends it" was top_term 0 '^ended with 143$'
	check "top: the screen is as it was then, too" was top_term_terminal 0 '^1 0$'
	check "top without a terminal" was top_no_terminal 2 'needs a terminal'
}

in_machine() {
	local pid child first same second user_pid rest

	cut_cases
	read -r pid child first same second <"$cases/ids" || true
	read -r user_pid rest <<<"$(tail -n 1 "$cases/ids")"
	: "$rest"
	infos
	lists
	stats
	watches
	waits
	if [ -z "$quick" ]; then
		tops
		check "bpftrace: lateness" was bpftrace_lateness 0 '^@latest_us\[[0-9]*\]: [0-9]'
		check "bpftrace: who arms" was bpftrace_arms 0 '^@arm\[wheels, [0-9]*\]: [1-9]'
		check "bpftrace: runs" was bpftrace_runs 0 '^@longest_timer_us: [0-9]'
	fi
	check "list, once the module is unloaded" was list_unloaded 3 'not loaded'
	check "no warning in the kernel's log" scripts/log-check "$build/log/tools-vm.log"
}
