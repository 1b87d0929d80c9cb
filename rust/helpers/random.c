// SPDX-License-Identifier: GPL-2.0
/* Random numbers. */
#include <linux/random.h>

#include "helpers.h"

/* get_random_u64() is declared by a macro that bindgen does not see. */
u64 xrdma_random_u64(void)
{
	return get_random_u64();
}
