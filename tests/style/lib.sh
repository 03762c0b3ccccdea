# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
#
# Shared by the checks. To be sourced. A check prints complaints, and nothing
# when it has none.

. "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"
cd "$top"

out=$build/tests/style/$me
rm -rf "$out"
mkdir -p "$out"

# All files that are, or are to be, in the repository. The texts of licences are others'.
files() {
	local file

	tree_files | tr '\0' '\n' | sort -u | grep -v '^LICENSES/' |
		while read -r file; do
			[ ! -f "$file" ] || echo "$file"
		done
}

sources() { files | grep '\.[ch]$'; }

structures() { sed -n 's/^struct \(.*\) {$/\1/p' uapi/linux/twheel.h | grep .; }

# A tool that has found nothing in a file once finds nothing there again. "fresh KEY FILE"
# is false for such a file. KEY is all else that the tool's answer depends on.
clean=$cache/style/$me
mkdir -p "$cache/style"
touch "$clean"
fresh() {
	local sum

	sum=$({ echo "$1"; cat "$2"; } | sha256sum)
	! remembers || ! grep -q -x -F "${sum%% *}" "$clean" || return 1
	echo "${sum%% *}" >>"$out/clean.new"
}

# To be called when the tool has found nothing in any of the fresh ones.
all_clean() { [ ! -e "$out/clean.new" ] || cat "$out/clean.new" >>"$clean"; }
