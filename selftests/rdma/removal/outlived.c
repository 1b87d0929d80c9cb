// SPDX-License-Identifier: GPL-2.0
/*
 * Uses a device over IPv6 whose namespace ends before the device does.
 *
 *   outlived DEVICE GID-INDEX ADDRESS
 *
 * ADDRESS is the address of a host that does not answer. The program prints "ready"
 * when routes to this address and to its own host are in use by connections, by an
 * address handle, and by a packet that waits for the memory of its payload; when a
 * queue pair is in a multicast group, 239.77.0.1; and when a call into the device does
 * not return, which keeps the device from ending. It then reads a line, which says that
 * the namespace is gone, and gives the call and the packet what they wait for. It
 * succeeds if everything can be destroyed and closed.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <pthread.h>
#include <rdma/ib_user_verbs.h>
#include <sys/mman.h>

#include "ends.h"
#include "guard.h"

/* To the silent host: a request that is repeated, one that waits for memory, a datagram. */
static struct end repeated, waiting, datagrams;
static struct ibv_ah *ah;

static uint8_t *pages(void)
{
	uint8_t *p = mmap(NULL, 2 * GUARD_PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static void message(struct end *from, struct end *to)
{
	struct ibv_wc wc;

	CHECK(!post_receive(to, 1) && !post_send(from, 2, 8));
	CHECK(next_wc(to->cq, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	CHECK(next_wc(from->cq, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
}

static void connect_to(struct pair *self, struct end *e, const union ibv_gid *host)
{
	struct ibv_qp nobody = { .qp_num = 99 };
	struct end there = { .qp = &nobody, .gid = *host };

	make_end(e, self->on.name[0], self->on.gid_index[0]);
	connect_end(e, &there);
}

static void send_datagram(struct pair *self, const union ibv_gid *host)
{
	struct end *e = &datagrams;
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .cap = { 4, 4, 1, 1, 0 } };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_ah_attr to = {
		.is_global = 1, .port_num = 1,
		.grh = { .dgid = *host, .sgid_index = self->on.gid_index[0], .hop_limit = 16 },
	};
	const union ibv_gid group = {
		.raw = { [10] = 0xff, [11] = 0xff, [12] = 239, [13] = 77, [14] = 0, [15] = 1 },
	};
	struct ibv_send_wr *bad, wr = {
		.num_sge = 1, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
		.wr.ud.remote_qpn = 99,
	};
	struct ibv_sge sge;
	struct ibv_wc wc;

	open_end(e, self->on.name[0], self->on.gid_index[0]);
	init.send_cq = init.recv_cq = e->cq;
	CHECK((e->qp = ibv_create_qp(e->pd, &init)) && (ah = ibv_create_ah(e->pd, &to)));
	CHECK(!ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     IBV_QP_QKEY));
	attr.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_qp(e->qp, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(e->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
	CHECK(!ibv_attach_mcast(e->qp, &group, 0));
	sge = (struct ibv_sge){ (uintptr_t)e->buf, 8, e->mr->lkey };
	wr.sg_list = &sge;
	wr.wr.ud.ah = ah;
	CHECK(!ibv_post_send(e->qp, &wr, &bad));
	CHECK(next_wc(e->cq, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
}

/* Where a call is made, and the page at whose end its header is. */
struct call {
	struct ibv_context *ctx;
	uint8_t *page;
};

/* A call whose header is at the end of a page and whose rest is in the page behind. */
static void *call(void *arg)
{
	const struct call *c = arg;
	struct ib_uverbs_cmd_hdr *hdr = (void *)(c->page + GUARD_PAGE - sizeof(*hdr));

	hdr->command = IB_USER_VERBS_CMD_QUERY_PORT;
	hdr->in_words = (sizeof(*hdr) + sizeof(struct ib_uverbs_query_port)) / 4;
	hdr->out_words = sizeof(struct ib_uverbs_query_port_resp) / 4;
	CHECK(write(c->ctx->cmd_fd, hdr, 4 * hdr->in_words) < 0);
	return NULL;
}

int main(int argc, char **argv)
{
	uint8_t *command = pages(), *payload = pages();
	struct call late = { .page = command };
	int command_fd, payload_fd;
	struct ibv_sge sge = { (uintptr_t)payload, 8, 0 };
	struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND };
	struct ibv_async_event event;
	union ibv_gid host;
	struct ibv_mr *mr;
	static struct pair self;
	pthread_t thread;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (argc != 4)
		return 2;
	self.on.name[0] = self.on.name[1] = argv[1];
	self.on.gid_index[0] = self.on.gid_index[1] = atoi(argv[2]);
	CHECK(inet_pton(AF_INET6, argv[3], &host) == 1);
	make_pair(&self);
	message(&self.a, &self.b);
	message(&self.b, &self.a);
	send_datagram(&self, &host);
	connect_to(&self, &repeated, &host);
	CHECK(!post_send(&repeated, 1, 8));
	connect_to(&self, &waiting, &host);
	CHECK((mr = ibv_reg_mr(waiting.pd, payload, GUARD_PAGE, IBV_ACCESS_ON_DEMAND)));
	sge.lkey = mr->lkey;
	payload_fd = guard(payload, 1);
	command_fd = guard(command + GUARD_PAGE, 1);
	late.ctx = self.a.ctx;
	CHECK(!pthread_create(&thread, NULL, call, &late));
	await_touch(command_fd);
	CHECK(!ibv_post_send(waiting.qp, &wr, &bad));
	printf("ready\n");
	CHECK(getchar() == '\n');
	give(payload_fd, payload, 1);
	give(command_fd, command + GUARD_PAGE, 1);
	CHECK(!pthread_join(thread, NULL));
	/* Nothing is left of this one, its group above all. */
	CHECK(next_event(datagrams.ctx, IBV_EVENT_DEVICE_FATAL, &event));
	ibv_ack_async_event(&event);
	CHECK(!ibv_destroy_ah(ah) && !ibv_dereg_mr(mr));
	free_end(&datagrams);
	free_end(&repeated);
	free_end(&waiting);
	free_pair(&self);
	printf("closed\n");
	return 0;
}
