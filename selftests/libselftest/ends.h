/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The two ends of a case's connection, on the case's devices.
 */
#ifndef SELFTEST_ENDS_H
#define SELFTEST_ENDS_H

#include "devices.h"

struct pair {
	struct devices on;
	struct end a, b;
};

void make_ends(struct pair *self);

void join(struct pair *self);

void make_pair(struct pair *self);

void free_end(struct end *e);

void free_pair(struct pair *self);

#endif /* SELFTEST_ENDS_H */
