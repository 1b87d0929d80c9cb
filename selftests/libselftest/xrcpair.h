/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An XRC connection between two ends in one process, in addition to their RC
 * connection. The receiving end has a domain of its own, which contains one SRQ.
 */
#ifndef SELFTEST_XRCPAIR_H
#define SELFTEST_XRCPAIR_H

#include <fcntl.h>

#include "pair.h"

struct xrc_pair {
	/* As the ends that it was made of, whose all but the queue pair is. */
	struct end ini, tgt;
	struct ibv_xrcd *xrcd;
};

/* Connects FROM to TO. */
void make_xrc_pair(struct xrc_pair *p, const struct end *from, const struct end *to);

void free_xrc_pair(struct xrc_pair *p);

#endif /* SELFTEST_XRCPAIR_H */
