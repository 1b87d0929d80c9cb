// SPDX-License-Identifier: GPL-2.0
/* What modinfo says of the module that module! of the kernel crate cannot. */
#include <linux/module.h>

/* module! has no field for the version; XROCE_VERSION is xroce-version of Kbuild. */
MODULE_VERSION(XROCE_VERSION);
