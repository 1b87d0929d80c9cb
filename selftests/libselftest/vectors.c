// SPDX-License-Identifier: GPL-2.0
#include "vectors.h"

void setup(struct vectors *self)
{
	self->ctx = open_device(self->on.name[0]);
	self->pd = ibv_alloc_pd(self->ctx);
	self->sink = ibv_create_cq(self->ctx, 1024, NULL, NULL, 0);
	self->channel = ibv_create_comp_channel(self->ctx);
	CHECK(self->pd && self->sink && self->channel);
}

struct ibv_cq *new_cq(struct vectors *self, int entries, struct ibv_comp_channel *ch,
		      int vector)
{
	struct ibv_cq *cq = ibv_create_cq(self->ctx, entries, NULL, ch, vector);

	CHECK(cq);
	return cq;
}

void new_pair(struct vectors *self, struct end e[2], struct ibv_cq *send,
	      struct ibv_cq *recv)
{
	int i;

	for (i = 0; i < 2; i++) {
		struct ibv_qp_init_attr init = {
			.qp_type = IBV_QPT_RC,
			.cap = { PAIR_DEPTH, PAIR_DEPTH, 1, 1, 0 },
			.send_cq = i ? self->sink : send,
			.recv_cq = i ? self->sink : recv,
		};

		memset(&e[i], 0, sizeof(e[i]));
		e[i].ctx = self->ctx;
		e[i].gid_index = self->on.gid_index[0];
		CHECK(!ibv_query_gid(self->ctx, 1, self->on.gid_index[0], &e[i].gid));
		e[i].qp = ibv_create_qp(self->pd, &init);
		CHECK(e[i].qp);
	}
	connect_end(&e[0], &e[1]);
	connect_end(&e[1], &e[0]);
}

void end_pair(struct end e[2])
{
	CHECK(!ibv_destroy_qp(e[0].qp));
	CHECK(!ibv_destroy_qp(e[1].qp));
}

int post(struct end *e, enum ibv_wr_opcode opcode, int flags, int n)
{
	struct ibv_send_wr wr[PAIR_DEPTH] = { 0 }, *bad;
	int i;

	for (i = 0; i < n; i++) {
		wr[i].opcode = opcode;
		wr[i].send_flags = flags;
		wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
	}
	return ibv_post_send(e->qp, wr, &bad);
}

void writes(struct end *e, int n)
{
	CHECK(!post(e, IBV_WR_RDMA_WRITE, IBV_SEND_SIGNALED, n));
}

void complete_receive(struct vectors *self, struct end e[2], int solicited)
{
	struct ibv_recv_wr wr = { 0 }, *bad;
	struct ibv_wc wc;

	CHECK(!ibv_post_recv(e[0].qp, &wr, &bad));
	CHECK(!post(&e[1], IBV_WR_SEND, IBV_SEND_SIGNALED |
		    (solicited ? IBV_SEND_SOLICITED : 0), 1));
	/* Acknowledged, so the receiver's completion is in its CQ. */
	CHECK(next_wc(self->sink, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
}

struct ibv_cq *event_of(struct ibv_comp_channel *ch)
{
	struct ibv_cq *cq;
	void *context;

	CHECK(readable(ch->fd, 20));
	CHECK(!ibv_get_cq_event(ch, &cq, &context));
	ibv_ack_cq_events(cq, 1);
	return cq;
}

void drain(struct ibv_cq *cq, int n)
{
	struct ibv_wc wc;

	while (n--)
		CHECK(next_wc(cq, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	CHECK(ibv_poll_cq(cq, 1, &wc) == 0);
}

int fence(struct vectors *self, int vector, struct ibv_cq *cq)
{
	struct ibv_cq *got;
	int n = 0;

	if (!self->fence_cq[vector]) {
		self->fence_cq[vector] = new_cq(self, 16, self->channel, vector);
		new_pair(self, self->fence_pair[vector], self->fence_cq[vector],
			 self->fence_cq[vector]);
	}
	CHECK(!ibv_req_notify_cq(self->fence_cq[vector], 0));
	writes(self->fence_pair[vector], 1);
	while ((got = event_of(self->channel)) != self->fence_cq[vector]) {
		CHECK(got == cq);
		n++;
	}
	drain(self->fence_cq[vector], 1);
	return n;
}

int interrupts(const struct devices *on, int vector, unsigned long *count)
{
	char name[64], *line = NULL, *p;
	int cpus[MAX_CPUS], n = 0, i, irq = -1;
	size_t size = 0;
	FILE *f = fopen("/proc/interrupts", "r");

	memset(count, 0, MAX_CPUS * sizeof(*count));
	snprintf(name, sizeof(name), " %s-comp%d\n", on->name[0], vector);
	CHECK(f && getline(&line, &size, f) > 0);
	for (p = strstr(line, "CPU"); p && n < MAX_CPUS; p = strstr(p + 3, "CPU"))
		cpus[n++] = atoi(p + 3);
	while (irq < 0 && getline(&line, &size, f) > 0) {
		if (!strstr(line, name))
			continue;
		irq = strtol(line, &p, 10);
		for (i = 0, p++; i < n; i++)
			count[cpus[i]] = strtoul(p, &p, 10);
	}
	fclose(f);
	free(line);
	return irq;
}

int set_affinity(int irq, int cpu)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/irq/%d/smp_affinity_list", irq);
	f = fopen(path, "w");
	if (!f)
		return 0;
	fprintf(f, "%d\n", cpu);
	return !fclose(f);
}

int moderate(struct ibv_cq *cq, int count, int period)
{
	struct ibv_modify_cq_attr a = {
		.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = { count, period },
	};

	return ibv_modify_cq(cq, &a);
}
