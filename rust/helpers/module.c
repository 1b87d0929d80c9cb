// SPDX-License-Identifier: GPL-2.0
/* Fields of modinfo that the module! macro of the kernel crate cannot set. */
#include <linux/module.h>

/* module! has no field for the version; XROCE_VERSION is xroce-version of Kbuild. */
MODULE_VERSION(XROCE_VERSION);
