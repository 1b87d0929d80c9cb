/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The two ends of a case's connection, a and b, on the case's devices.
 */
#ifndef SELFTEST_ENDS_H
#define SELFTEST_ENDS_H

#include "devices.h"

static struct end a, b;

static inline void make_ends(void)
{
	make_end(&a, device[0], gid_index[0]);
	make_end(&b, device[1], gid_index[1]);
}

static inline void join(void)
{
	connect_end(&a, &b);
	connect_end(&b, &a);
}

static inline void make_pair(void)
{
	make_ends();
	join();
}

static inline void free_end(struct end *e)
{
	CHECK(!ibv_destroy_qp(e->qp));
	CHECK(!ibv_destroy_cq(e->cq));
	CHECK(!ibv_dereg_mr(e->mr));
	CHECK(!ibv_dealloc_pd(e->pd));
	CHECK(!ibv_close_device(e->ctx));
	free(e->buf);
}

static inline void free_pair(void)
{
	free_end(&a);
	free_end(&b);
}

#endif /* SELFTEST_ENDS_H */
