# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A Debian of its own, copied from the one in the cache, in which things are installed.
# To be sourced by run.

# inside COMMAND...: run it there, as root. The kernel's headers are mounted where a package
# would put them, and so are this tree and what ccache keeps, at their places.
inside() {
	# shellcheck disable=SC2016 # expanded by that shell
	unshare --mount sh -ec '
		root=$1 kernel=$2
		shift 2
		mount -t proc proc "$root/proc"
		mount --rbind /dev "$root/dev"
		for dir in usr/src usr/lib; do
			for part in "$kernel/root/$dir"/linux-*; do
				mkdir -p "$root/$dir/${part##*/}"
				mount --bind "$part" "$root/$dir/${part##*/}"
			done
		done
		for dir in "$PWD" ${CCACHE_DIR:+"$CCACHE_DIR"}; do
			mkdir -p "$root$dir" "$dir"
			mount --bind "$dir" "$root$dir"
		done
		exec chroot "$root" env -C "$PWD" LC_ALL=C DEBIAN_FRONTEND=noninteractive "$@"' \
		sh "$root" "$kernel" "$@"
}

new_system() {
	local base dir

	base=$(scripts/root system) && kernel=$(scripts/kernel/get 6.1-cloud) || return
	release=$(cat "$kernel/release")
	root=$work/root
	cp -a "$base" "$root"
	dir=$root/usr/lib/modules/$release
	mkdir -p "$dir"
	cp "$kernel"/modules/modules.{builtin,builtin.modinfo,order} "$dir"
	ln -s "/usr/src/linux-headers-$release" "$dir/build"
	# DKMS of Debian 13 takes a kernel that has no other module for one that was removed.
	gcc -c -x c -o "$dir/other.ko" /dev/null
	depmod -b "$root" "$release"
	# (Caches, and what DKMS and dpkg keep of what was: no part of an installation)
	inside true && listing >"$work/before"
}

# All files of that system, but logs, caches, and what programs remember
listing() {
	files_and_groups | sort
}
files_and_groups() {
	find "$root" -path "$root$top" -prune -o ! -type d \
		\( ! -path "$root/var/*" -o -path "$root/var/lib/dkms/twheel/*" \) ! -path "$root/tmp/*" ! -name '*.dep*' ! -name '*.alias*' \
		! -name '*.symbols*' ! -name 'modules.softdep' ! -name 'modules.devname' \
		! -name 'modules.builtin.*' ! -name 'ld.so.cache*' ! -path "$root/etc/*-" \
		! -path "$root/etc/dkms/*" -printf '/%P\n'
	cut -d : -f 1 "$root/etc/group"
}

# The installed packages there, and DKMS's list
module_is() {
	local found

	found=$(modinfo -b "$root" -k "$release" -F version twheel) && same "$1" "$found"
}
dkms_has() { same "$1" "$(inside dkms status | sed 's/,.*//; s|.*/||' | xargs)"; }
said() { grep -q "$1" "$work/said" || { cat "$work/said"; return 1; }; }
ends() { # STATUS COMMAND...: keeps what it says
	local status=0

	inside "${@:2}" >"$work/said" 2>&1 </dev/null || status=$?
	same "$1" "$status" || { tail -n 30 "$work/said"; return 1; }
}
nothing_left() {
	local more

	more=$(listing | comm -13 "$work/before" - | grep -v -x -F "${1:-}")
	[ -z "$more" ] || { echo "left: $more"; return 1; }
}

# A module of which only the name matters to those who replace it.
early_module() {
	printf '%s\n' '#include <linux/module.h>' 'MODULE_LICENSE("GPL");' \
		'MODULE_DESCRIPTION("earlier");'
}

# As 0.1.0 left it: without a version in the module, so that DKMS finds it as good as any.
early_install() {
	local dir=$root/usr/src/twheel-0.1.0

	mkdir "$dir"
	early_module >"$dir/twheel.c"
	echo 'obj-m := twheel.o' >"$dir/Kbuild"
	sed "s/@VERSION@/0.1.0/; /EXCLUSIVE/d" scripts/packaging/dkms.conf.in >"$dir/dkms.conf"
	inside dkms install twheel/0.1.0 -k "$release" >/dev/null 2>&1
}

# A package of an earlier version: with "real", its module is what it is here, else only a
# name.
early_package() {
	local dir=$work/early/twheel-0.2.9

	rm -rf "$dir"
	mkdir -p "$dir"
	tar -c --exclude=./build --exclude=./.git . | tar -x -C "$dir"
	sed -i 's/^VERSION := .*/VERSION := 0.2.9/' "$dir/scripts/packaging/version.mk"
	sed -i '1s/(.*)/(0.2.9)/' "$dir/debian/changelog"
	# Nobody reads its documents, which take longest.
	# shellcheck disable=SC2016 # for that script to expand
	printf '#!/bin/sh\nmkdir -p "$1" && echo none >"$1/index.html"\n' >"$dir/scripts/html"
	if [ "${1:-}" != real ]; then
		rm "$dir"/{core,kmod}/*
		: >"$dir/core/none.h"
		early_module >"$dir/kmod/early.c"
		printf '%s\n' 'obj-m := twheel.o' 'twheel-y := kmod/early.o' >"$dir/Kbuild"
	fi
	(cd "$dir" && dpkg-buildpackage -us -uc -A) >"$work/early.log" 2>&1 || {
		tail -n 20 "$work/early.log"
		return 1
	}
	cp "$work"/early/*.deb "$root/tmp/"
}

# Neither DKMS nor systemd, as in a small image
without_dkms() {
	local tool

	for tool in usr/bin/systemd-sysusers usr/sbin/dkms; do
		mv "$root/$tool" "$root/$tool.away"
	done
	check "without headers of the running kernel, make install is refused" ends 2 make install
	check "with what helps" said "install linux-headers-$(uname -r), or give KDIR=HEADERS"
	check "make install without DKMS and systemd, for one kernel" \
		ends 0 make install KDIR="/lib/modules/$release/build"
	check "the module is there" module_is "$version"
	check "there is the group" grep -q '^twheel:' "$root/etc/group"
	check "make uninstall" ends 0 make uninstall
	for tool in usr/bin/systemd-sysusers usr/sbin/dkms; do
		mv "$root/$tool.away" "$root/$tool"
	done
	check "it leaves nothing" nothing_left
}

# Where the module is no package, but the library is one
beside_the_library() {
	local place

	check "the module's package is removed" ends 0 dpkg -r twheel-dkms
	ln -s usr "$root/own"
	for place in /usr /usr/../usr/ / /own; do
		check "make uninstall PREFIX=$place beside the library's packages is refused" \
			ends 2 make uninstall PREFIX="$place"
	done
	check "with the command that helps" \
		said 'apt-get remove librust-twheel-dev libtwheel-dev libtwheel0 python3-twheel twheel-doc twheel-loader twheel-tools twheeld'
	check "nor can make install write over them" ends 2 make install PREFIX=/usr
	rm "$root/own"
	check "each of their files is there" ends 0 dpkg -V libtwheel-dev libtwheel0 twheel-tools
	check "somewhere else it may be" ends 0 env PREFIX=/usr/local scripts/packaging/refuse-packages
	check "the module's package is installed again" ends 0 \
		dpkg -i "/tmp/twheel-dkms_${version}_all.deb"
}

in_system() {
	must "a Debian for the packages" new_system

	check "an installation of 0.1.0" early_install
	check "its module is there" module_is ''
	check "make install over it" ends 0 make install
	check "the module is replaced, too" module_is "$version"
	check "DKMS knows this version alone" dkms_has "$version"
	check "the earlier source is gone" same "twheel-$version" "$(cd "$root/usr/src" && echo twheel-*)"
	check "there is the group" grep -q '^twheel:' "$root/etc/group"
	check "make install once more" ends 0 make install
	check "the module is there" module_is "$version"
	check "make uninstall" ends 0 make uninstall
	check "it leaves nothing" nothing_left
	without_dkms
	check "headers of a kernel that are not there are refused" ends 2 make install KDIR=/nowhere
	check "in a sentence" said 'there are no kernel headers in KDIR=/nowhere'

	cp "$debs"/*.deb "$root/tmp/"
	check "a package of an earlier version is built" early_package
	check "the earlier package is installed" ends 0 dpkg -i /tmp/twheel-dkms_0.2.9_all.deb
	check "its module is there" module_is ''
	check "the packages are installed, over it" ends 0 \
		sh -c 'dpkg -i $(ls /tmp/*_'"$version"'_*.deb | grep -v dbgsym)'
	check "its module is replaced" module_is "$version"
	check "DKMS knows the package's version alone" dkms_has "$version"
	check "the package's rule is there" [ -e "$root/usr/lib/udev/rules.d/60-twheel.rules" ]
	check "make install beside the package is refused" ends 2 make install
	check "with the command that helps" said 'apt-get remove twheel-dkms'
	beside_the_library
	check "programs build with what is installed" ends 0 env AUTOPKGTEST_TMP=/tmp debian/tests/library
	[ ! -e tools ] || check "the command runs" ends 0 twheel --help
	check "the server and its worker run" ends 0 debian/tests/jobs
	[ ! -e bindings ] || check "Python has the module" ends 0 python3 -c 'import twheel, twheel.asyncio'
	check "the packages are removed" ends 0 sh -c \
		'dpkg -r $(dpkg-query -W -f "\${Package} \${Source}\n" | sed -n "s/ twheel$//p; s/^twheel-dkms .*/&/p" | cut -d " " -f 1 | sort -u)'
	check "and purged" ends 0 dpkg -P twheel-dkms libtwheel0 twheel-loader twheeld
	# (A group stays, as Debian wants it: files may be somebody's.)
	check "they leave nothing but the group" nothing_left twheel
}
