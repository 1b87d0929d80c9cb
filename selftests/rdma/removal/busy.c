// SPDX-License-Identifier: GPL-2.0
/*
 * Sends without end until the device goes away, and then reports how that looked.
 *
 *   busy [xrc] DEVICE GID-INDEX [PEER-DEVICE GID-INDEX]
 *
 * Sends over RC, or over XRC to an SRQ of a domain on the second device. Prints "ready"
 * when traffic flows. Succeeds if posting or polling reported an error once the device
 * was gone, a fatal event came, and everything could still be destroyed and closed.
 */
#include <poll.h>

#include "clock.h"
#include "xrcpair.h"

/* Waits for the event that says that the device is gone. */
static int fatal_event(struct ibv_context *ctx, double seconds)
{
	double end = now() + seconds;

	while (now() < end) {
		struct pollfd p = { .fd = ctx->async_fd, .events = POLLIN };
		struct ibv_async_event ev;
		int type;

		if (poll(&p, 1, 200) != 1 || ibv_get_async_event(ctx, &ev))
			continue;
		type = ev.event_type;
		ibv_ack_async_event(&ev);
		if (type == IBV_EVENT_DEVICE_FATAL)
			return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static struct end a, b;
	struct end *from = &a, *to = &b;
	struct xrc_pair xrc;
	struct ibv_wc wc[16];
	long done = 0;
	int bad = 0, is_xrc = 0, n, i;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc > 1 && !strcmp(argv[1], "xrc")) {
		is_xrc = 1;
		argc--;
		argv++;
	}
	if (argc != 3 && argc != 5)
		return 2;
	make_end(&a, argv[1], atoi(argv[2]));
	make_end(&b, argv[argc - 2], atoi(argv[argc - 1]));
	if (is_xrc) {
		make_xrc_pair(&xrc, &a, &b);
		from = &xrc.ini;
		to = &xrc.tgt;
	} else {
		connect_end(&a, &b);
		connect_end(&b, &a);
	}
	for (i = 0; i < PAIR_DEPTH; i++)
		post_receive(to, i);
	while (!bad) {
		int err = post_send(from, 0, PAIR_SIZE);

		bad = err && err != ENOMEM;
		n = ibv_poll_cq(b.cq, 16, wc);
		for (i = 0; i < n; i++) {
			bad |= wc[i].status != IBV_WC_SUCCESS;
			err = post_receive(to, 0);
			bad |= err && err != ENOMEM;
			if (++done == 200)
				printf("ready\n");
		}
		bad |= n < 0;
		n = ibv_poll_cq(a.cq, 16, wc);
		for (i = 0; i < n; i++)
			bad |= wc[i].status != IBV_WC_SUCCESS;
		bad |= n < 0;
	}
	printf("stopped after %ld messages\n", done);
	n = fatal_event(a.ctx, 60) || (a.ctx != b.ctx && fatal_event(b.ctx, 1));
	if (!n) {
		printf("no fatal event\n");
		return 1;
	}
	if (is_xrc)
		free_xrc_pair(&xrc);
	if (ibv_destroy_qp(a.qp) || ibv_destroy_qp(b.qp) ||
	    ibv_destroy_cq(a.cq) || ibv_destroy_cq(b.cq) ||
	    ibv_dereg_mr(a.mr) || ibv_dereg_mr(b.mr) ||
	    ibv_dealloc_pd(a.pd) || ibv_dealloc_pd(b.pd))
		die("destroy after removal");
	if (ibv_close_device(a.ctx) || ibv_close_device(b.ctx))
		die("close after removal");
	printf("closed\n");
	return 0;
}
