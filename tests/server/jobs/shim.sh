# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# For suites that run programs of this folder. To be sourced after tap.sh.

export PYTHONPATH=$PYTHONPATH:$top/tests/server/jobs SHIM=$work/shim.so
shim() {
	gcc -Wall -Wextra -Werror -O2 -shared -fPIC -o "$SHIM" "$top/tests/server/jobs/shim.c" -ldl
}
