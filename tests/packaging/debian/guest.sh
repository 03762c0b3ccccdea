# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Packages in a virtual machine, where the module is loaded and a wheel is open while
# packages change. To be sourced by run.

in_guest() {
	must "an earlier package with the module of now" early_package real
	check "it is installed" ends 0 dpkg -i /tmp/twheel-dkms_0.2.9_all.deb
	must "the library is built" make -s lib
	must "a program that has a wheel" gcc -std=gnu11 -O2 -Wall -Wextra -Werror -static -pthread \
		-Iuserlib/include -Iuapi -o "$root/usr/local/bin/hold" tests/packaging/debian/hold.c \
		build/userlib/libtwheel.a
	cp debian/tests/{library,module} "$root/usr/local/bin/"
	must "the system as an archive" inside tar -C / -c -f /var/tmp/system.tar \
		--exclude=./{proc,dev,sys,var/tmp,usr/share/doc,usr/share/locale,usr/share/man}'/*' \
		--exclude=".$top" .
	scripts/vm -m 4G -t 1500 -l build/log/packages.log -f "$root/var/tmp/system.tar:/system.tar" \
		-f tests/packaging/debian/in_guest:/in_guest sh /in_guest "$version" >"$work/guest" || :
	grep -E '^(ok|not ok|#)' "$work/guest" || :
	check "the machine came to its end" grep -q -x 'end of in_guest' "$work/guest"
}
