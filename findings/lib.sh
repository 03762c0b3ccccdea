# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash disable=SC2034 # whoever sources this uses the variables
#
# What the findings share. To be sourced first: it makes a folder, $work, which goes when the
# finding ends, with all that was fetched and whatever still runs there.
#
# debian SUITE PACKAGE=VERSION...   fetch these with all that they depend on, into $tree
# in_tree PROGRAM ARGUMENT...       run a program of $tree, with the libraries there
# npm_get PACKAGE@VERSION...        fetch these of npm; $modules is where they are
# serve PROGRAM ARGUMENT...         run a program of $tree until the finding ends
# port                              say a port of 127.0.0.1 that is free
# expect WHAT SEEN WANTED           say what was seen; the finding fails if that is not WANTED

. "$(dirname "${BASH_SOURCE[0]}")/../scripts/lib.sh"

work=$(mktemp -d)
tree=$work/tree modules=$work/node_modules
changed='' servers=()
# Lists of packages go with the rest.
export TWHEEL_CACHE=$work/cache

end() {
	local status=$? server

	for server in "${servers[@]}"; do
		kill "$server" 2>/dev/null || :
		wait "$server" 2>/dev/null || :
	done
	rm -rf "$work"
	[ $status = 0 ] || exit $status
	[ -z "$changed" ] || {
		echo "$me: the behaviour has changed"
		exit 1
	}
	echo "$me: as it was found"
}
trap end EXIT
trap 'exit 1' INT TERM

debian() {
	say "fetching from Debian's $1: ${*:2}"
	"$top/scripts/archive" "$1" update
	"$top/scripts/archive" "$1" root "$tree" "${@:2}"
}

# By the loader there, as this machine's libraries may be older than what the program wants.
in_tree() {
	"$tree/lib64/ld-linux-x86-64.so.2" --library-path \
		"$tree/usr/lib/x86_64-linux-gnu:$tree/usr/lib/x86_64-linux-gnu/systemd" "$tree/$1" "${@:2}"
}

npm_get() {
	say "fetching by npm: $*"
	npm install --prefix "$work" --cache "$work/npm" --no-audit --no-fund --ignore-scripts \
		--no-package-lock --loglevel error "$@" >&2
	echo "node $(node --version), $*"
}

serve() {
	in_tree "$@" >"$work/server.log" 2>&1 &
	servers+=($!)
}

port() {
	node -e 'const s = require("net").createServer().listen(0, "127.0.0.1", () => {
		console.log(s.address().port); s.close(); })'
}

expect() {
	echo "$1: $2"
	[ "$2" != "$3" ] || return 0
	echo "    was found: $3"
	changed=1
}
