/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counts the objects that the kernel has for this program's context. This is faster
 * than census() of made.h, which sees the driver's side and is used only at the end of
 * a case.
 */
#ifndef SELFTEST_COUNTED_H
#define SELFTEST_COUNTED_H

#include "made.h"
#include "rawioctl.h"

/* How many objects our context has. */
int objects(struct owned *self);

#endif /* SELFTEST_COUNTED_H */
