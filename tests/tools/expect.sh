# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
#
# Helpers for the tests of the command. To be sourced by run.

# ends STATUS COMMAND...: it ends so, and prints what it prints
ends() {
	local want=$1 status=0
	shift

	"$@" || status=$?
	[ "$status" = "$want" ] || { echo "status $status, not $want"; return 1; }
}

# said TEXT STATUS COMMAND...: it ends so, and said that on stderr
said() {
	local text=$1 err
	shift

	err=$(ends "$@" 2>&1 >/dev/null) || { echo "$err"; return 1; }
	grep -q -F -e "$text" <<<"$err" || { echo "it said: $err"; return 1; }
}

# Is it JSON of which that is true? (jq, and Python, which reads it by itself)
json_is() { # FILE EXPRESSION [JQ-OPTION]...
	/usr/bin/python3 -c 'import json, sys; json.load(sys.stdin)' <"$1" || return
	[ "$(jq -c "${@:3}" "$2" "$1")" = true ] || { echo "not so: $2"; cat "$1"; return 1; }
}
