// SPDX-License-Identifier: GPL-2.0
/*
 * Has long rings, at least half a MiB in each queue, and waits to be killed.
 *
 *   rings DEVICE
 *
 * Prints "ready". The pages of the rings are not from slab, so kmemleak cannot see
 * them; the test looks at how much memory the kernel uses afterwards.
 */
#include "pair.h"

#include <unistd.h>

#define DEPTH 8192

int main(int argc, char **argv)
{
	struct ibv_srq_init_attr srq_init = { .attr = { DEPTH, 4, 0 } };
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .cap = { DEPTH, DEPTH, 4, 4, 64 },
	};
	struct ibv_context *ctx;
	struct ibv_pd *pd;

	if (argc != 2)
		return 2;
	ctx = open_device(argv[1]);
	pd = ibv_alloc_pd(ctx);
	init.send_cq = init.recv_cq = ibv_create_cq(ctx, 4 * DEPTH, NULL, NULL, 0);
	if (!pd || !init.send_cq)
		die("PD or CQ");
	if (!ibv_create_qp(pd, &init))
		die("ibv_create_qp");
	if (!ibv_create_srq(pd, &srq_init))
		die("ibv_create_srq");
	printf("ready\n");
	fflush(stdout);
	pause();
	return 0;
}
