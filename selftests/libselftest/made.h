/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One object of each kind in a context, with the kernel's handles: the program's own
 * objects, and those of another context. Also checks of refused calls, which must
 * neither create nor change anything.
 */
#ifndef SELFTEST_MADE_H
#define SELFTEST_MADE_H

#include <fcntl.h>

#include "devices.h"

enum kind { PD, MR, MW, CQ, QP, SRQ, AH, XRCD, DM, KINDS, NONE = KINDS };

static const char *const kind_names[] = {
	"PD", "MR", "MW", "CQ", "QP", "SRQ", "AH", "XRCD", "DM",
};

#define FILLERS 64

struct made {
	struct ibv_context *ctx;
	struct ibv_pd *pd, *filler[FILLERS];
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_srq *srq;
	struct ibv_ah *ah;
	struct ibv_xrcd *xrcd;
	struct ibv_dm *dm;
	union ibv_gid gid;
	uint32_t handle[KINDS];
	uint8_t buf[8192] __attribute__((aligned(4096)));
};

static inline struct ibv_ah_attr address_of(const union ibv_gid *gid)
{
	return (struct ibv_ah_attr){
		.is_global = 1, .port_num = 1,
		.grh = { .dgid = *gid, .sgid_index = gid_index[0], .hop_limit = 16 },
	};
}

/* One of each kind in context CTX. */
static inline void make_in(struct made *m, struct ibv_context *ctx)
{
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1, .oflags = O_CREAT,
	};
	struct ibv_srq_init_attr srq = { .attr = { .max_wr = 8, .max_sge = 1 } };
	struct ibv_qp_init_attr qp = { .qp_type = IBV_QPT_UD, .cap = { 4, 4, 1, 1, 0 } };
	struct ibv_alloc_dm_attr dm = { .length = 4096 };
	struct ibv_ah_attr to;

	m->ctx = ctx;
	CHECK(!ibv_query_gid(m->ctx, 1, gid_index[0], &m->gid));
	CHECK((m->pd = ibv_alloc_pd(m->ctx)));
	CHECK((m->mr = ibv_reg_mr(m->pd, m->buf, sizeof(m->buf),
				  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND)));
	CHECK((m->mw = ibv_alloc_mw(m->pd, IBV_MW_TYPE_1)));
	CHECK((m->cq = ibv_create_cq(m->ctx, 16, NULL, NULL, 0)));
	qp.send_cq = qp.recv_cq = m->cq;
	CHECK((m->qp = ibv_create_qp(m->pd, &qp)));
	CHECK((m->srq = ibv_create_srq(m->pd, &srq)));
	to = address_of(&m->gid);
	CHECK((m->ah = ibv_create_ah(m->pd, &to)));
	CHECK((m->xrcd = ibv_open_xrcd(m->ctx, &domain)));
	CHECK((m->dm = ibv_alloc_dm(m->ctx, &dm)));
	m->handle[PD] = m->pd->handle;
	m->handle[MR] = m->mr->handle;
	m->handle[MW] = m->mw->handle;
	m->handle[CQ] = m->cq->handle;
	m->handle[QP] = m->qp->handle;
	m->handle[SRQ] = m->srq->handle;
	m->handle[AH] = m->ah->handle;
	/* struct verbs_xrcd: it follows the mask; struct verbs_dm: it follows. */
	m->handle[XRCD] = ((uint32_t *)(m->xrcd + 1))[1];
	m->handle[DM] = ((uint32_t *)(m->dm + 1))[0];
}

/* The same in a context of their own, with handles from FIRST on, up to FILLERS. */
static inline void make_all(struct made *m, int first)
{
	struct ibv_context *ctx = open_device(device[0]);
	int i;

	memset(m, 0, sizeof(*m));
	for (i = 0; i < first; i++)
		CHECK((m->filler[i] = ibv_alloc_pd(ctx)));
	make_in(m, ctx);
}

/* Nothing is in use by what was refused, or one of these is EBUSY. */
static inline void unmake(struct made *m)
{
	CHECK(!ibv_free_dm(m->dm) && !ibv_close_xrcd(m->xrcd) && !ibv_destroy_ah(m->ah));
	CHECK(!ibv_destroy_qp(m->qp) && !ibv_destroy_srq(m->srq) && !ibv_destroy_cq(m->cq));
	CHECK(!ibv_dealloc_mw(m->mw) && !ibv_dereg_mr(m->mr) && !ibv_dealloc_pd(m->pd));
}

static inline void free_all(struct made *m)
{
	int i;

	unmake(m);
	for (i = 0; i < FILLERS; i++)
		if (m->filler[i])
			CHECK(!ibv_dealloc_pd(m->filler[i]));
	CHECK(!ibv_close_device(m->ctx));
}

/* What the kernel has of queues, regions and so on, of all processes, in a line. */
static inline void census(char *line, size_t size)
{
	FILE *f = popen("rdma res show", "r");
	size_t n = f ? fread(line, 1, size - 1, f) : 0;

	line[n] = 0;
	CHECK(f && n);
	pclose(f);
}

/* What GOT is must be WANTED; WHAT says of what. */
static inline void expect_errno(const char *what, int got, int wanted)
{
	if (got != wanted)
		printf("%s: errno %d, %s, not %d\n", what, got, strerror(got), wanted);
	CHECK(got == wanted);
}

/* MAKE gives nothing, and ERR. */
#define REFUSED(err, make)						\
	do {								\
		errno = 0;						\
		expect_errno(#make, (make) ? 0 : errno, err);		\
	} while (0)

/* CALL returns ERR. */
#define RETURNS(err, call) expect_errno(#call, call, err)

static struct made ours, theirs;
static char at_first[4096];

/* Around what is refused: there is as much as before, and all of it can go. */
static inline void begin(void)
{
	make_all(&ours, 0);
	make_all(&theirs, FILLERS);
	census(at_first, sizeof(at_first));
}

static inline void end(void)
{
	char now[sizeof(at_first)];

	census(now, sizeof(now));
	if (strcmp(at_first, now))
		printf("before:\n%safter:\n%s", at_first, now);
	CHECK(!strcmp(at_first, now));
	free_all(&ours);
	free_all(&theirs);
}

#endif /* SELFTEST_MADE_H */
