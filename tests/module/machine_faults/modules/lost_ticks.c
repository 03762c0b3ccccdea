// SPDX-License-Identifier: GPL-2.0
/*
 * A processor whose timer interrupts stay away, for as long as the parameter
 * "lost" is set. Its clocks go on. For a machine with one processor.
 */
#include <linux/irqflags.h>
#include <linux/module.h>
#include <linux/moduleparam.h>

#include <asm/apic.h>

static bool lost;

static int lost_set(const char *text, const struct kernel_param *param)
{
	bool was = lost;
	unsigned long flags;
	u32 entry;
	int ret = param_set_bool(text, param);

	if (ret || lost == was)
		return ret;
	local_irq_save(flags);
	entry = apic_read(APIC_LVTT);
	if (lost) {
		apic_write(APIC_LVTT, entry | APIC_LVT_MASKED);
	} else {
		apic_write(APIC_LVTT, entry & ~APIC_LVT_MASKED);
		/* What was due meanwhile is due at once. */
		apic_write(APIC_TMICT, 1);
	}
	local_irq_restore(flags);
	return 0;
}

static const struct kernel_param_ops lost_ops = {
	.set = lost_set,
	.get = param_get_bool,
};

module_param_cb(lost, &lost_ops, &lost, 0600);
MODULE_PARM_DESC(lost, "timer interrupts stay away");
MODULE_DESCRIPTION("Lose the timer interrupts of a processor");
MODULE_LICENSE("GPL");
