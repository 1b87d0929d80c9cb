// SPDX-License-Identifier: GPL-2.0
#include "made.h"

const char *const kind_names[KINDS] = {
	"PD", "MR", "MW", "CQ", "QP", "SRQ", "AH", "XRCD", "DM",
};

struct ibv_ah_attr address_of(const struct devices *on, const union ibv_gid *gid)
{
	return (struct ibv_ah_attr){
		.is_global = 1, .port_num = 1,
		.grh = { .dgid = *gid, .sgid_index = on->gid_index[0], .hop_limit = 16 },
	};
}

void make_in(const struct devices *on, struct made *m, struct ibv_context *ctx)
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
	CHECK(!ibv_query_gid(m->ctx, 1, on->gid_index[0], &m->gid));
	CHECK((m->pd = ibv_alloc_pd(m->ctx)));
	CHECK((m->mr = ibv_reg_mr(m->pd, m->buf, sizeof(m->buf),
				  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND)));
	CHECK((m->mw = ibv_alloc_mw(m->pd, IBV_MW_TYPE_1)));
	CHECK((m->cq = ibv_create_cq(m->ctx, 16, NULL, NULL, 0)));
	qp.send_cq = qp.recv_cq = m->cq;
	CHECK((m->qp = ibv_create_qp(m->pd, &qp)));
	CHECK((m->srq = ibv_create_srq(m->pd, &srq)));
	to = address_of(on, &m->gid);
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

void make_all(const struct devices *on, struct made *m, int first)
{
	struct ibv_context *ctx = open_device(on->name[0]);
	int i;

	memset(m, 0, sizeof(*m));
	for (i = 0; i < first; i++)
		CHECK((m->filler[i] = ibv_alloc_pd(ctx)));
	make_in(on, m, ctx);
}

void unmake(struct made *m)
{
	CHECK(!ibv_free_dm(m->dm) && !ibv_close_xrcd(m->xrcd) && !ibv_destroy_ah(m->ah));
	CHECK(!ibv_destroy_qp(m->qp) && !ibv_destroy_srq(m->srq) && !ibv_destroy_cq(m->cq));
	CHECK(!ibv_dealloc_mw(m->mw) && !ibv_dereg_mr(m->mr) && !ibv_dealloc_pd(m->pd));
}

void free_all(struct made *m)
{
	int i;

	unmake(m);
	for (i = 0; i < FILLERS; i++)
		if (m->filler[i])
			CHECK(!ibv_dealloc_pd(m->filler[i]));
	CHECK(!ibv_close_device(m->ctx));
}

void census(char *line, size_t size)
{
	FILE *f = popen("rdma res show", "r");
	size_t n = f ? fread(line, 1, size - 1, f) : 0;

	line[n] = 0;
	CHECK(f && n);
	pclose(f);
}

void expect_errno(const char *what, int got, int wanted)
{
	if (got != wanted)
		printf("%s: errno %d, %s, not %d\n", what, got, strerror(got), wanted);
	CHECK(got == wanted);
}

void begin_owned(struct owned *self)
{
	make_all(&self->on, &self->ours, 0);
	make_all(&self->on, &self->theirs, FILLERS);
	census(self->at_first, sizeof(self->at_first));
}

void end_owned(struct owned *self)
{
	char now[sizeof(self->at_first)];

	census(now, sizeof(now));
	if (strcmp(self->at_first, now))
		printf("before:\n%safter:\n%s", self->at_first, now);
	CHECK(!strcmp(self->at_first, now));
	free_all(&self->ours);
	free_all(&self->theirs);
}
