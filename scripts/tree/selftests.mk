# SPDX-License-Identifier: GPL-2.0
#
# Programs that use /dev/twheel. Where there is none, each is skipped.

CFLAGS += -std=gnu11 -O2 -g -Wall -pthread -DSKIP_WITHOUT_DEVICE $(KHDR_INCLUDES)

TEST_GEN_PROGS := @programs@

LOCAL_HDRS := $(wildcard *.h)

include ../lib.mk
