# SPDX-License-Identifier: GPL-2.0
#
# Every verb of twheel, and how its test programs are built. What a verb does is
# in scripts/; what is built is in build/.

KERNEL ?= 6.1-cloud
WORKLOAD ?= tests/demo/day.workload
PREFIX ?= /usr/local
DESTDIR ?=

# The first target, what a bare "make" does
.PHONY: help
help:
	@echo 'make demo      a server with a million connections, in a virtual machine'
	@echo '               (WORKLOAD=FILE: another day, see tests/demo/day.workload)'
	@echo 'make check     all tests (SUITES="host vm": only these)'
	@echo 'make vm        a shell in a virtual machine with the module loaded'
	@echo 'make modules   twheel.ko for the kernel of the virtual machine'
	@echo '               (KDIR=HEADERS: for the kernel of these headers instead)'
	@echo 'make lib       libtwheel'
	@echo 'make install   module, library, headers, man pages, udev rule (PREFIX, DESTDIR)'
	@echo 'make mutants   plant bugs one by one and see that the tests find each'
	@echo 'make bench     what it costs, beside its peers (bench-quick: the essential)'
	@echo 'make clean     remove all that was built; downloads stay in the cache'

.PHONY: modules lib demo check vm install mutants bench bench-quick clean
modules:
	@scripts/deps module
	scripts/module $(if $(KDIR),$(KDIR),$(KERNEL))

lib:
	@scripts/deps build
	$(MAKE) -C userlib all PREFIX=$(PREFIX)

demo:
	@scripts/demo $(WORKLOAD)

check:
	@scripts/check $(SUITES)

vm: greet = echo 'twheel is loaded, see /dev/twheel. To end: exit'
vm:
	@scripts/deps vm
	@scripts/vm -s sh -c "modprobe twheel; $(greet); busybox ash; exit 0"

install:
	@scripts/deps module
	@DESTDIR=$(DESTDIR) PREFIX=$(PREFIX) $(if $(KDIR),KDIR=$(KDIR)) scripts/install

mutants:
	tests/mutants/run

bench:
	@tests/bench/run

bench-quick:
	@tests/bench/run -q

clean:
	rm -rf build

# Programs for the virtual machine: static; the 32-bit ones without the C
# library, of which Debian has none in that size; shared where libkmod is needed,
# which is never static.
program = $(CC) -std=gnu11 -O2 -g -Wall -Wextra -Werror -Iuapi
bare32 = -m32 -static -nostdlib -ffreestanding -fno-stack-protector \
	-isystem /usr/include/$(shell $(CC) -print-multiarch)
headers = uapi/linux/twheel.h $(wildcard tests/*/*.h tests/*/*/*.h)

build/tests/%32: tests/%32.c $(headers)
	@mkdir -p $(@D)
	$(program) $(bare32) -o $@ $<

build/tests/loader/%: tests/loader/%.c $(headers)
	@mkdir -p $(@D)
	$(program) -o $@ $< -lkmod

build/tests/%: tests/%.c $(headers)
	@mkdir -p $(@D)
	$(program) -static -pthread -o $@ $<

build/tests/demo/demo: $(wildcard tests/demo/*.c) $(headers)
	@mkdir -p $(@D)
	$(program) -static -o $@ $(filter %.c,$^)
