// SPDX-License-Identifier: GPL-2.0
/* What modinfo says of the module that module! of the kernel crate cannot. */
#include <linux/module.h>

/* module! has no field for the version; Kbuild takes it from the file VERSION. */
MODULE_VERSION(XROCE_VERSION);
