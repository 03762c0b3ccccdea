# SPDX-License-Identifier: GPL-2.0
#
# Every verb of twheel, and how its test programs are built. What a verb does is
# in scripts/; what is built is in build/.

KERNEL ?= 6.1-cloud
WORKLOAD ?= demo/day.workload
PREFIX ?= /usr/local
DESTDIR ?=

# The kernel's own Makefiles, and ours of twheeld, take a space for the end of a name.
ifneq ($(words $(CURDIR)),1)
$(error the path of this folder has a space in it, which make can't do: move or clone it to another)
endif

# What is half written when the disk is full is not built.
.DELETE_ON_ERROR:

# The first target, what a bare "make" does
.PHONY: help
help:
	@echo 'make demo      a server with a million connections, in a virtual machine'
	@echo '               (BACKEND=user: on this machine itself, without the module; BACKEND=bpf:'
	@echo '               on a stock kernel that is locked down and refuses the module)'
	@echo '               (WORKLOAD=FILE: another day, see demo/day.workload;'
	@echo '               MODE=shared: also with shared timers, both side by side)'
	@echo 'make demo-jobs 10,000 delayed jobs in twheeld, which is killed twice meanwhile'
	@echo 'make check     the tests to run before each commit: minutes'
	@echo '               (SUITES="contract unit": the whole of these suites)'
	@echo 'make check-all the rest of them, on kernels that look for mistakes, too'
	@echo 'make vm        a shell in a virtual machine with the module loaded'
	@echo 'make modules   twheel.ko for the kernel of the virtual machine'
	@echo '               (KDIR=HEADERS: for the kernel of these headers instead)'
	@echo 'make matrix    the tests on every kernel that scripts/kernel/get lists'
	@echo '               (modules and vm take KERNEL=NAME as well, 6.1-cloud if not said)'
	@echo 'make torture   the long tests: sanitizers, fault injection, fuzzing, faults of the machine'
	@echo 'make coverage  which lines of the module all tests together reach'
	@echo 'make lib       libtwheel'
	@echo 'make tools     the command twheel: list, top, stats, watch, jobs ...'
	@echo 'make twheeld   the server of delayed jobs'
	@echo 'make install   module, library, command, twheeld, man pages, udev rule (PREFIX, DESTDIR)'
	@echo '               (make uninstall, with the same PREFIX and DESTDIR, removes them)'
	@echo 'make html      all documents and manual pages, with a search, in build/html'
	@echo 'make deb       Debian packages of all that, in build/deb'
	@echo 'make container an image of the server, its worker and the command'
	@echo 'make mutants   plant bugs one by one and see that the tests find each'
	@echo 'make bench     what it costs, beside its peers (bench-quick: the essential)'
	@echo 'make compdb    build/compile_commands.json, for editors and clang tools'
	@echo 'make release   sign a tag of this version, and begin NEXT=VERSION'
	@echo 'make clean     remove all that was built; downloads stay in the cache'

.PHONY: modules lib html compdb release demo check vm install uninstall deb container mutants matrix torture coverage bench bench-quick clean check-all tools twheeld demo-jobs
modules:
	@scripts/deps $(if $(KDIR),headers,module)
	scripts/module $(if $(KDIR),$(KDIR),$(KERNEL))

lib:
	@scripts/deps build
	$(MAKE) -C userlib all PREFIX=$(PREFIX)

html:
	@scripts/deps html
	scripts/html build/html
	@echo 'See build/html/index.html'

tools:
	@scripts/deps tools-build
	$(MAKE) -C tools all PREFIX=$(PREFIX)

# Two suites may want it at the same time.
twheeld:
	@scripts/deps twheeld-build
	@mkdir -p build
	flock -o build/twheeld.lock $(MAKE) -s -C twheeld

demo: export WORKLOAD := $(WORKLOAD)
demo:
	@scripts/demo "$$WORKLOAD" "$$MODE" "$$BACKEND"

demo-jobs:
	@scripts/demo-jobs

check:
	@scripts/check $(SUITES)

check-all:
	@scripts/check -a

vm: greet = echo 'twheel is loaded, see /dev/twheel. To end: exit'
# The command is built for this machine, and so not for a kernel of another processor.
vm: command = $(if $(findstring arm64,$(KERNEL)),,-f $(CURDIR)/build/tools/twheel:/bin/twheel)
vm:
	@scripts/deps vm
	@$(if $(command),$(MAKE) -s --no-print-directory tools)
	@scripts/vm -k $(KERNEL) $(command) -s sh -c "modprobe twheel; $(greet); busybox ash; exit 0"

# By the environment, as a shell would read them again on a line of its own.
install uninstall: export DESTDIR := $(DESTDIR)
install uninstall: export PREFIX := $(PREFIX)
# With DESTDIR, nothing on this machine changes: what is missing is only said.
install:
	@scripts/deps $(if $(DESTDIR),-n) headers tools-build twheeld-build
	@scripts/install

uninstall:
	@scripts/uninstall

deb:
	@scripts/deps deb
	@scripts/deb

container:
	@scripts/container

mutants:
	@tests/mutants/run; status=$$?; tests/mutants/generated && exit $$status

matrix:
	@scripts/deps kernels
	@tests/module/kernels/run -a

torture:
	@scripts/torture

coverage:
	@scripts/deps fault_injection kunit loader
	@scripts/coverage

bench:
	@bench/run

bench-quick:
	@bench/run -q

# The module is compiled from links to its source.
compdb:
	@scripts/deps compdb
	rm -rf build/modules/$(KERNEL)
	bear --output build/compile_commands.json -- sh -c 'scripts/module $(KERNEL) && \
		for one in userlib tools twheeld; do $(MAKE) -s -B -C $$one all || exit; done'
	sed -i 's#"file": "\(.*\)/build/modules/$(KERNEL)/\(core\|kmod\)/#"file": "\1/\2/#' \
		build/compile_commands.json

release: export NEXT ?=
release:
	@scripts/release "$$NEXT"

clean:
	rm -rf build

# Programs for the virtual machine: static; NAME32 as a program of 32 bits, whose warnings are
# for 64; shared where libkmod is needed, which is never static. (tests/harness/programs makes
# them for other processors.)
OUT ?= build
CC32 ?= $(CC) -m32 -isystem /usr/include/$(shell $(CC) -print-multiarch)
options = -std=gnu11 -O2 -g -Wall -Wextra -Werror -Iuapi -Itests/harness
program = $(CC) $(options)
headers = uapi/linux/twheel.h $(wildcard bench/*.h bench/guarantees/*.h demo/*.h tests/*/*.h tests/*/*/*.h)

$(OUT)/tests/%32: tests/%.c $(headers)
	@mkdir -p $(@D)
	$(CC32) $(options) -w -static -pthread -o $@ $<

$(OUT)/tests/module/loader/%: tests/module/loader/%.c $(headers)
	tests/harness/compile $@ $< -- $(program) -lkmod

$(OUT)/tests/%: tests/%.c $(headers)
	tests/harness/compile $@ $< -- $(program) -static -pthread

build/bench/guarantees/%: bench/guarantees/%.c $(headers)
	@mkdir -p $(@D)
	$(program) -static -pthread -o $@ $<

# With the BPF program inside, see bpf/
bpf := $(wildcard bpf/*.[ch] bpf/shim/linux/*.h core/*.[ch])
$(OUT)/tests/bpf/%: tests/bpf/%.c $(headers) $(wildcard userlib/*/*.[ch]) $(bpf)
	$(MAKE) -s -C bpf
	$(MAKE) -s $(library)
	tests/harness/compile $@ $< -- $(program) -Iuserlib/include -Ibpf -pthread \
		build/bpf/libtwheel-bpf.a $(library) -lbpf -lelf -lz

build/tests/module/calls/calls: $(wildcard tests/module/calls/calls*.c) $(headers)
	tests/harness/compile $@ $(filter %.c,$^) -- $(program) -static -pthread

library := build/userlib/libtwheel.a
$(library): $(wildcard userlib/*/*.[ch] userlib/*/*/*.[ch] core/*.[ch] bpf/*.[ch]) uapi/linux/twheel.h \
		userlib/Makefile userlib/libtwheel.map
	$(MAKE) -s -C userlib ../$@

with_library := $(addprefix build/bench/,guarantees/lateness pools/pools)
$(with_library): build/%: %.c $(headers) $(library)
	@mkdir -p $(@D)
	$(program) -Iuserlib/include -static -pthread -o $@ $(filter %.c %.a,$^)

build/demo/demo: $(wildcard demo/*.c) $(wildcard twheeld/base/duration.[ch]) $(headers) $(library)
	@mkdir -p $(@D)
	$(program) -Iuserlib/include -Itwheeld -static -Wl,--wrap=ioctl,--wrap=syscall -o $@ $(filter %.c %.a,$^)
