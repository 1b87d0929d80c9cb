// SPDX-License-Identifier: GPL-2.0
/*
 * Destroys objects that are in use, with the library's own calls (pyverbs would destroy
 * the dependent objects first): the call fails with EBUSY, and the object still works
 * afterwards.
 *
 *   inuse DEVICE [xrc]
 */
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int failed;

static void busy(const char *what, int ret)
{
	/* The library's calls give the errno value or -1 with errno. */
	int err = ret < 0 ? errno : ret;

	if (err != EBUSY) {
		printf("%s: %s instead of EBUSY\n", what, err ? strerror(err) : "succeeded");
		failed = 1;
	}
}

static void good(const char *what, int ret)
{
	if (ret) {
		printf("%s: %s\n", what, strerror(ret < 0 ? errno : ret));
		failed = 1;
	}
}

static void *made(const char *what, void *p)
{
	if (!p) {
		printf("cannot make %s: %s\n", what, strerror(errno));
		exit(1);
	}
	return p;
}

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL), **d;

	for (d = list; d && *d; d++)
		if (!strcmp(ibv_get_device_name(*d), name))
			return ibv_open_device(*d);
	return NULL;
}

static void xrc(struct ibv_context *ctx, struct ibv_pd *pd, struct ibv_cq *cq)
{
	char path[] = "/tmp/inuse-XXXXXX";
	int fd = mkstemp(path);
	struct ibv_xrcd_init_attr xa = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd, .oflags = O_CREAT,
	};
	struct ibv_xrcd *xrcd = made("XRCD", ibv_open_xrcd(ctx, &xa));
	struct ibv_srq_init_attr_ex sa = {
		.attr = { .max_wr = 4, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_XRC, .xrcd = xrcd, .cq = cq, .pd = pd,
	};
	struct ibv_srq *srq = made("XRC SRQ", ibv_create_srq_ex(ctx, &sa));
	struct ibv_qp_init_attr_ex qa = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd,
	};
	struct ibv_qp *tgt;

	unlink(path);
	busy("XRCD with an SRQ", ibv_close_xrcd(xrcd));
	busy("CQ with an XRC SRQ", ibv_destroy_cq(cq));
	busy("PD with an XRC SRQ", ibv_dealloc_pd(pd));
	tgt = made("TGT", ibv_create_qp_ex(ctx, &qa));
	good("destroy XRC SRQ", ibv_destroy_srq(srq));
	busy("XRCD with a TGT", ibv_close_xrcd(xrcd));
	good("destroy TGT", ibv_destroy_qp(tgt));
	good("close XRCD", ibv_close_xrcd(xrcd));
	close(fd);
}

int main(int argc, char **argv)
{
	struct ibv_context *ctx = made("context", open_device(argc > 1 ? argv[1] : "x1"));
	struct ibv_pd *pd = made("PD", ibv_alloc_pd(ctx));
	struct ibv_comp_channel *ch = made("channel", ibv_create_comp_channel(ctx));
	struct ibv_cq *cq = made("CQ", ibv_create_cq(ctx, 16, NULL, ch, 0));
	struct ibv_srq_init_attr sa = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_srq *srq = made("SRQ", ibv_create_srq(pd, &sa));
	struct ibv_qp_init_attr qa = {
		.send_cq = cq, .recv_cq = cq, .srq = srq, .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 4, .max_send_sge = 1 },
	};
	struct ibv_qp *qp = made("QP", ibv_create_qp(pd, &qa));
	static char buf[4096];
	struct ibv_mr *mr = made("MR", ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE));

	busy("CQ with a QP", ibv_destroy_cq(cq));
	busy("SRQ with a QP", ibv_destroy_srq(srq));
	busy("PD with a QP", ibv_dealloc_pd(pd));
	busy("channel with a CQ", ibv_destroy_comp_channel(ch));
	good("destroy QP", ibv_destroy_qp(qp));
	good("destroy SRQ", ibv_destroy_srq(srq));
	busy("PD with an MR", ibv_dealloc_pd(pd));
	if (argc > 2 && !strcmp(argv[2], "xrc"))
		xrc(ctx, pd, cq);
	good("dereg MR", ibv_dereg_mr(mr));
	good("destroy CQ", ibv_destroy_cq(cq));
	good("destroy channel", ibv_destroy_comp_channel(ch));
	good("dealloc PD", ibv_dealloc_pd(pd));
	good("close device", ibv_close_device(ctx));
	return failed;
}
