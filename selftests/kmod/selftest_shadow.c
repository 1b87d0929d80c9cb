// SPDX-License-Identifier: GPL-2.0
/*
 * Keeps kmemleak from scanning the shadow memory of KASAN. x86 allocates it as any other memory
 * of early boot (early_alloc() in arch/x86/mm/kasan_init_64.c), and kmemleak takes each block for
 * an object in which pointers may be. An eighth of all memory is searched then, although there are
 * none in it, which is most of the time of a scan. Loading the module fails on purpose, since all
 * is done.
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
		/* What has no memory shares one page, which is mapped by itself. */
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
	pr_info("kmemleak does not scan %d blocks of KASAN's shadow\n", selftest_shadow_ignore());
	return -ENODEV;
}
module_init(selftest_shadow_init);

MODULE_DESCRIPTION("keeps kmemleak from scanning KASAN's shadow");
MODULE_LICENSE("GPL");
