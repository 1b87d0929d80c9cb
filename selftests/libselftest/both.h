/* SPDX-License-Identifier: GPL-2.0 */
/* Objects of each kind, and a connection, on the same devices. */
#ifndef SELFTEST_BOTH_H
#define SELFTEST_BOTH_H

#include "ends.h"
#include "made.h"

struct both {
	struct owned owned;
	struct pair pair;
};

/* To be called before a case: the pair has the devices that the arguments name, too. */
void share_devices(struct both *self);

#endif /* SELFTEST_BOTH_H */
