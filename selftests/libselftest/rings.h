/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The rings that the kernel shares with this process, accessed without the library:
 * where they are, their indices, and the doorbell.
 */
#ifndef SELFTEST_RINGS_H
#define SELFTEST_RINGS_H

#include <rdma/ib_user_verbs.h>
#include <rdma/xroce-abi.h>
#include <stdatomic.h>

#include "check.h"

#define MAX_RINGS 1024

struct ring {
	uint8_t *at;
	/* Whole pages: more than its slots may need. */
	size_t size;
};

struct rings {
	struct ring ring[MAX_RINGS];
	int count;
};

/*
 * Adds to R the mappings of device files that neither R nor BUT has; how many. The receive
 * ring of a queue pair lies in the mapping of its send ring, see receive_ring_at().
 */
int find_rings(struct rings *r, const struct rings *but);

/* Where that begins in the mapping of QP, bytes; of a QP without one, something else does. */
size_t receive_ring_at(struct ibv_qp *qp);

struct xroce_ring_hdr *ring_hdr(const struct ring *r);

/* Slot 0, if the ring has one of SIZE bytes. */
void *first_slot(const struct ring *r, size_t size);

void store_index(const struct ring *r, uint32_t index);

int qp_doorbell(struct ibv_qp *qp);

/* Of a tag-matching queue. */
int srq_doorbell(struct ibv_srq *srq);

#endif /* SELFTEST_RINGS_H */
