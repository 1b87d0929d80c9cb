// SPDX-License-Identifier: GPL-2.0
#include "bare_commands.h"

static void fill_nothing(struct owned *self, void *request)
{
}

void fill_cq(struct owned *self, void *request)
{
	struct ib_uverbs_create_cq *r = request;

	r->cqe = 4;
	r->comp_channel = -1;
}

static void fill_domain(struct owned *self, void *request)
{
	struct ib_uverbs_open_xrcd *r = request;

	r->fd = -1;
	r->oflags = O_CREAT;
}

static void fill_port(struct owned *self, void *request)
{
	((struct ib_uverbs_query_port *)request)->port_num = 1;
}

const struct command bare[] = {
	{ CMD(ALLOC_PD), fill_nothing, IN(alloc_pd), OUT(alloc_pd), 0, 0, {}, PD, 0 },
	{ CMD(CREATE_CQ), fill_cq, IN(create_cq), OUT(create_cq), 8, 24, {}, CQ, 0 },
	{ CMD(CREATE_COMP_CHANNEL), fill_nothing, IN(create_comp_channel), OUT(create_comp_channel),
	  0, 0, {}, NONE, 0 },
	{ CMD(OPEN_XRCD), fill_domain, IN(open_xrcd), OUT(open_xrcd), 0, 0, {}, XRCD, 0 },
	{ CMD(QUERY_DEVICE), fill_nothing, IN(query_device), OUT(query_device), 0, 0, {}, NONE, 0 },
	{ CMD(QUERY_PORT), fill_port, IN(query_port), OUT(query_port), 0, 0, {}, NONE, 0 },
};

void expect_of_bare(struct owned *self, unsigned int way, int wanted)
{
	static struct request r;
	char what[64];
	unsigned int i;

	for (i = 0; i < sizeof(bare) / sizeof(bare[0]); i++) {
		snprintf(what, sizeof(what), "%s, way %u", bare[i].name, way);
		memset(&r, 0, sizeof(r));
		bare[i].fill(self, r.body);
		expect_errno(what, ways[way](self, &bare[i], &r), wanted);
	}
}
