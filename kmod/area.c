// SPDX-License-Identifier: GPL-2.0
/*
 * The memory of shared timers: the area that a program maps, with the words and the ring,
 * and the kernel's private memory for their wheel. See shared.h.
 */
#include <linux/align.h>
#include <linux/log2.h>
#include <linux/math.h>
#include <linux/memcontrol.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/shm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "account.h"
#include "compat.h"
#include "context.h"
#include "shared.h"

/* What one side writes is in other cache lines than what the other does. */
#define TW_AREA_ALIGN 64

/* Memory is charged and cleared in pieces of this many pages: 256 KB */
#define TW_PIECE 64U

/* What scanning a dirty timer may take, in ns: generous */
#define TW_SCAN_NS 32

/**
 * tw_shared_possible() - can there be shared timers?
 *
 * Not where what is stored at one address can be seen late at another that maps the
 * same memory, nor where a program's exchange of 64 bits is none for the kernel.
 *
 * Return: true if so.
 */
bool tw_shared_possible(void)
{
	return IS_ENABLED(CONFIG_64BIT) && SHMLBA == PAGE_SIZE;
}

/* Lay out the area, in a head that is not yet in it. Returns its size. */
static size_t tw_area_lay_out(struct twheel_shared *head, u32 nr)
{
	u32 groups = DIV_ROUND_UP(nr, TW_GROUP);
	u32 ring = roundup_pow_of_two(nr);
	size_t size = sizeof(*head);

	*head = (struct twheel_shared){
		.size = sizeof(*head),
		.nr = nr,
		.ring_mask = ring - 1,
		.group = TW_GROUP,
		.next_wake = U64_MAX,
	};
	head->groups = size;
	size += ALIGN(DIV_ROUND_UP(groups, 64) * sizeof(u64), TW_AREA_ALIGN);
	head->dirty = size;
	/* The last group is scanned as if it was whole. */
	size += ALIGN(groups * TW_GROUP_WORDS * sizeof(u64), TW_AREA_ALIGN);
	head->ring = size;
	size += ALIGN(ring * sizeof(u32), TW_AREA_ALIGN);
	head->words = size;
	size += (size_t)nr * sizeof(u64);
	return PAGE_ALIGN(size);
}

static size_t tw_private_size(u32 nr)
{
	return TW_ENTRY_ALL_SLOTS * sizeof(struct tw_entry_slot) +
	       ((size_t)tw_entries_blocks(nr) << TW_ENTRY_BLOCK_BITS) * sizeof(u32) +
	       nr * sizeof(struct tw_timer);
}

static void tw_private_lay_out(struct tw_shared *shared, u32 nr, u32 phase)
{
	struct tw_entries *wheel = &shared->wheel;

	/* Blocks are lines of the cache: slots are as long as some, and so are blocks. */
	BUILD_BUG_ON(TW_ENTRY_ALL_SLOTS * sizeof(struct tw_entry_slot) % TW_AREA_ALIGN);
	BUILD_BUG_ON(TW_ENTRY_ALL_SLOTS > 1U << TW_ENTRY_SLOT_BITS);
	BUILD_BUG_ON(TWHEEL_SHARED_MAX / TW_BLOCK_ENTRIES + TW_ENTRY_ALL_SLOTS >=
		     1U << (32 - max(TW_ENTRY_SLOT_BITS, TW_ENTRY_BLOCK_BITS)));
	wheel->slots = shared->private.at;
	wheel->cells = (u32 *)&wheel->slots[TW_ENTRY_ALL_SLOTS];
	wheel->timers = (struct tw_timer *)
		&wheel->cells[(size_t)tw_entries_blocks(nr) << TW_ENTRY_BLOCK_BITS];
	tw_entries_init(wheel, phase);
}

/*
 * Each piece is charged just before it is allocated. So for others of the user's programs no more
 * is missing than there is, or than one piece besides, also where much is asked for again and
 * again that is not to be had.
 */
static int tw_pages_alloc(struct tw_pages *memory, struct tw_user *user, size_t size)
{
	unsigned int nr = PAGE_ALIGN(size) >> PAGE_SHIFT;

	memory->pages = kvcalloc(nr, sizeof(*memory->pages), TW_GFP);
	if (!memory->pages)
		return -ENOMEM;
	while (memory->nr < nr) {
		if (!(memory->nr % TW_PIECE)) {
			u64 bytes = (u64)min(nr - memory->nr, TW_PIECE) << PAGE_SHIFT;

			if (fatal_signal_pending(current))
				return -EINTR;
			if (!tw_user_charge(user, bytes))
				return -ENOSPC;
			memory->charged += bytes;
			cond_resched();
		}
		memory->pages[memory->nr] = alloc_page(TW_GFP | __GFP_ZERO);
		if (!memory->pages[memory->nr])
			return -ENOMEM;
		memory->nr++;
	}
	memory->at = vmap(memory->pages, nr, VM_MAP, PAGE_KERNEL);
	return memory->at ? 0 : -ENOMEM;
}

/* All that tw_pages_alloc() has allocated and charged, be it done or not */
static void tw_pages_free(struct tw_pages *memory, struct tw_user *user)
{
	vunmap(memory->at);
	while (memory->nr) {
		__free_page(memory->pages[--memory->nr]);
		if (!(memory->nr % TW_PIECE))
			cond_resched();
	}
	kvfree(memory->pages);
	tw_user_uncharge(user, memory->charged);
}

static int tw_area_alloc(struct twheel *tw, struct tw_shared *shared, u32 nr)
{
	struct twheel_shared head;
	int ret;
	u32 i;

	shared->size = tw_area_lay_out(&head, nr);
	if (!tw_user_has_room(tw->user, shared->size + PAGE_ALIGN(tw_private_size(nr))))
		return -ENOSPC;
	ret = tw_pages_alloc(&shared->memory, tw->user, shared->size) ?:
	      tw_pages_alloc(&shared->private, tw->user, tw_private_size(nr));
	if (ret)
		return ret;
	shared->area = shared->memory.at;
	tw_private_lay_out(shared, nr, tw->nr);
	*shared->area = head;
	shared->words = (void *)shared->area + head.words;
	shared->ring = (void *)shared->area + head.ring;
	shared->dirty = (void *)shared->area + head.dirty;
	shared->groups = (void *)shared->area + head.groups;
	shared->ring_mask = head.ring_mask;
	shared->nr_groups = DIV_ROUND_UP(nr, TW_GROUP);
	shared->next_word = shared->nr_groups * TW_GROUP_WORDS;
	for (i = 0; i < nr; i++) {
		atomic64_set(&shared->words[i], TWHEEL_WORD_IDLE);
		/* A position that the ring will not come to for long */
		shared->wheel.timers[i] = (struct tw_timer){ .last_expiry = -1 };
		if (!(i % PAGE_SIZE))
			cond_resched();
	}
	return 0;
}

/**
 * tw_shared_create() - make shared timers, all of them idle
 * @tw: the wheel that they are for, to whose cgroup they are charged
 * @nr: how many
 * @tick: length of a tick, in ns
 *
 * Context: may sleep.
 * Return: them, or an error pointer: -EOPNOTSUPP, -ENOSPC, -ENOMEM, or -EINTR where the task is
 * killed.
 */
struct tw_shared *tw_shared_create(struct twheel *tw, u32 nr, u32 tick)
{
	struct tw_shared *shared;
	struct mem_cgroup *old;
	int ret = -ENOMEM;

	if (!tw_shared_possible())
		return ERR_PTR(-EOPNOTSUPP);
	old = set_active_memcg(tw->memcg);
	shared = kzalloc(sizeof(*shared), TW_GFP);
	if (shared) {
		shared->nr = nr;
		shared->lead = div_u64((u64)nr * TW_SCAN_NS, tick);
		ret = tw_area_alloc(tw, shared, nr);
	}
	set_active_memcg(old);
	if (ret && shared)
		tw_shared_destroy(tw, shared);
	return ret ? ERR_PTR(ret) : shared;
}

/**
 * tw_shared_destroy() - end shared timers
 * @tw: the wheel that they were for
 * @shared: them, or NULL; nobody maps or uses them any more
 *
 * Context: may sleep.
 */
void tw_shared_destroy(struct twheel *tw, struct tw_shared *shared)
{
	if (!shared)
		return;
	tw_pages_free(&shared->private, tw->user);
	tw_pages_free(&shared->memory, tw->user);
	kfree(shared);
}

static vm_fault_t tw_area_fault(struct vm_fault *vmf)
{
	struct tw_shared *shared = vmf->vma->vm_private_data;

	if (vmf->pgoff >= shared->memory.nr)
		return VM_FAULT_SIGBUS;
	return vmf_insert_pfn(vmf->vma, vmf->address,
			      page_to_pfn(shared->memory.pages[vmf->pgoff]));
}

/* An area stays where it was mapped. */
static int tw_area_mremap(struct vm_area_struct *vma)
{
	return -EINVAL;
}

/*
 * A mapping holds the file, and so the timers. Nothing else holds its pages: with VM_PFNMAP
 * none can be taken into a pipe or pinned by a device, where it would outlive the account
 * that it is charged to.
 */
static const struct vm_operations_struct tw_area_ops = {
	.fault = tw_area_fault,
	.mremap = tw_area_mremap,
};

/**
 * tw_shared_mmap() - map the area into a program
 * @shared: the timers
 * @vma: where to
 *
 * Context: may sleep.
 * Return: 0, -EINVAL or -EACCES.
 */
int tw_shared_mmap(struct tw_shared *shared, struct vm_area_struct *vma)
{
	if (vma->vm_pgoff || vma->vm_end - vma->vm_start != shared->size ||
	    !(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	if (vma->vm_flags & VM_EXEC)
		return -EACCES;
	tw_vm_flags_change(vma, VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP, VM_MAYEXEC);
	vma->vm_private_data = shared;
	vma->vm_ops = &tw_area_ops;
	return 0;
}
