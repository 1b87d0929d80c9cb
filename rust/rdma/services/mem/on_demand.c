// SPDX-License-Identifier: GPL-2.0
/* On-demand paging: pages of a process that are looked up when they are used. */
#include <linux/delay.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/uaccess.h>

#include "services/mem/on_demand.h"

/* mmgrab() is inline. The address space of the calling process, not its memory. */
struct mm_struct *xrdma_mm_grab(void)
{
	if (!current->mm)
		return NULL;
	mmgrab(current->mm);
	return current->mm;
}

/* mmdrop() is inline. */
void xrdma_mm_drop(struct mm_struct *mm)
{
	mmdrop(mm);
}

/*
 * Memory of a file system that a process serves (FUSE): a fault lasts as long as
 * that process likes, FOLL_NOWAIT or not. A page that is read without read-ahead,
 * or written to while it is written back, is waited for in filemap_fault() and
 * fuse_page_mkwrite().
 */
static bool xrdma_vma_is_served(const struct vm_area_struct *vma)
{
	return vma->vm_file &&
	       file_inode(vma->vm_file)->i_sb->s_magic == FUSE_SUPER_MAGIC;
}

/*
 * Holds some of the @n pages from the one with @addr on, as far as they are in one
 * area; how many, or an errno value. The caller has the lock of @mm.
 */
static long xrdma_mm_hold_some(struct mm_struct *mm, unsigned long addr, size_t n,
			       bool write, struct page **pages, int *locked)
{
	struct vm_area_struct *vma;
	unsigned int flags = FOLL_NOWAIT;

	addr = untagged_addr_remote(mm, addr);
	vma = vma_lookup(mm, addr);
	if (!vma)
		return -EFAULT;
	if (xrdma_vma_is_served(vma)) {
		/* Even to mark a shared page dirty may be to wait: it is locked for that. */
		if (write && (vma->vm_flags & VM_SHARED))
			return -EFAULT;
		flags = FOLL_NOFAULT;
	}
	if (write)
		flags |= FOLL_WRITE;
	n = min(n, (vma->vm_end - addr) >> PAGE_SHIFT);
	return pin_user_pages_remote(mm, addr, n, flags, pages, locked);
}

/*
 * mmget_not_zero() and the lock of an address space are inline. Brings @n pages
 * from the one with @addr on in, for writing if @write, and holds them; -EFAULT
 * unless all are there, and when the process has ended. Sleeps, but does not
 * wait for whoever provides a page or is changing the address space, which may
 * depend on a process that never gets there: -EAGAIN then, and pages of files
 * and swap are on their way. A page that userfaultfd guards is not: its monitor
 * is told of faults that wait only. Nor is one of a file system that a process
 * serves: -EFAULT unless it is there, and to write to it.
 */
int xrdma_mm_hold(struct mm_struct *mm, __u64 addr, size_t n, bool write,
		  struct page **pages)
{
	size_t got = 0;
	long ret = 0;

	if (overflows_type(addr, unsigned long) || !mmget_not_zero(mm))
		return -EFAULT;
	while (got < n) {
		int locked = 1;

		/* Who has it for writing may itself wait for a process (FUSE). */
		if (!mmap_read_trylock(mm)) {
			ret = -EAGAIN;
			break;
		}
		ret = xrdma_mm_hold_some(mm,
					 (addr & PAGE_MASK) + got * PAGE_SIZE,
					 n - got, write, pages + got, &locked);
		if (locked)
			mmap_read_unlock(mm);
		if (ret <= 0)
			break;
		got += ret;
	}
	/* The last user of the memory takes it down, which is not for us to do. */
	mmput_async(mm);
	if (got == n)
		return 0;
	if (got)
		unpin_user_pages(pages, got);
	return ret == 0 || ret == -EAGAIN || ret == -EBUSY ? -EAGAIN : -EFAULT;
}

/*
 * Kept with the above: waits before try number @tries. Pages that come from a disk
 * are there soon; the longer a page stays away, the less often it is asked for,
 * since many may wait for such pages.
 */
void xrdma_mm_wait(__u32 tries)
{
	unsigned long us = clamp(tries, 4U, 200U) * 50UL;

	usleep_range(us, us + us / 4);
}

/* Kept beside its counterpart. */
void xrdma_mm_release(struct page **pages, size_t n, bool dirty)
{
	unpin_user_pages_dirty_lock(pages, n, dirty);
}
