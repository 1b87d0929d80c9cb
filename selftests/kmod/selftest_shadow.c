// SPDX-License-Identifier: GPL-2.0
/*
 * Keeps kmemleak from scanning the shadow memory of KASAN. x86 allocates it as any other memory
 * of early boot (early_alloc() in arch/x86/mm/kasan_init_64.c), and kmemleak takes each block for
 * an object that may contain pointers. There are none in the shadow. It is an eighth of all memory,
 * and half of the time of a scan goes to it. Loading the module fails on purpose, since nothing is
 * left to do then.
 */
#include <linux/kasan.h>
#include <linux/kmemleak.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/pgtable.h>

#if defined(CONFIG_X86_64) && defined(CONFIG_KASAN_GENERIC) && defined(CONFIG_DEBUG_KMEMLEAK)
/* The shadow of all memory that is mapped directly, in huge pages, each of which is an object. */
static int selftest_shadow_ignore(void)
{
	unsigned long last = (unsigned long)kasan_mem_to_shadow(high_memory);
	unsigned long at = (unsigned long)kasan_mem_to_shadow(__va(0)) & PMD_MASK;
	unsigned int level;
	int blocks = 0;
	pte_t *entry;

	for (; at < last; at += PMD_SIZE) {
		entry = lookup_address(at, &level);
		/* Where there is no memory, nothing is mapped; single pages are too few to matter. */
		if (!entry || level != PG_LEVEL_2M || !pte_present(*entry))
			continue;
		kmemleak_ignore_phys(slow_virt_to_phys((void *)at));
		blocks++;
	}
	return blocks;
}
#else
static int selftest_shadow_ignore(void)
{
	return 0;
}
#endif

static int __init selftest_shadow_init(void)
{
	int blocks = selftest_shadow_ignore();

	pr_info(KBUILD_MODNAME ": kmemleak does not scan %d blocks of KASAN's shadow\n", blocks);
	return -ENODEV;
}
module_init(selftest_shadow_init);

MODULE_DESCRIPTION("keeps kmemleak from scanning KASAN's shadow");
MODULE_LICENSE("GPL");
