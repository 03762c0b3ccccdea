// SPDX-License-Identifier: GPL-2.0
/*
 * Ends the virtual machine that it runs in. On x86 by QEMU's isa-debug-exit device:
 * writing 16 makes QEMU end with 2 * 16 + 1, which nothing else makes it do. Others
 * have no such device and are switched off.
 */
#include <stdio.h>
#include <unistd.h>

#ifdef __x86_64__
#include <sys/io.h>

static int leave(void)
{
	if (ioperm(0xf4, 1, 1))
		return -1;
	outb(16, 0xf4);
	return 0;
}
#else
#include <sys/reboot.h>

static int leave(void)
{
	return reboot(RB_POWER_OFF);
}
#endif

int main(void)
{
	if (leave()) {
		perror("vm-exit");
		return 1;
	}
	/* QEMU takes its time, and this is called by init, which must not end. */
	for (;;)
		pause();
}
