// SPDX-License-Identifier: GPL-2.0
/*
 * One of many processes that have many connections, for tools/bench/scale.
 *
 *   bench-crowd DEVICE GID-INDEX NODES DEPTH
 *
 * A node is the device opened once, with a PD and a CQ, that is, everything that a
 * process of its own would have in the kernel. The program prints "ok" once the nodes
 * exist. It then reads commands, one per line, that say what to create; the table at
 * the end lists them. The answer is a line "ok" with the numbers of the objects that
 * were created. Any error ends the program and prints its place and text. Objects are
 * never destroyed: the program waits to be killed.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <signal.h>

#include "check.h"

#define TO_INIT (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define TO_RTR (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
		IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define TO_RTS (IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | \
		IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC)

struct node {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq;
};

static struct ibv_device *device;
static int gid_index, nnodes, depth;
static struct node *nodes;
static struct ibv_qp **qps;
static int nqps;

static void add_qp(struct ibv_qp *qp)
{
	CHECK(qp);
	CHECK(qps = realloc(qps, (nqps + 1) * sizeof(*qps)));
	qps[nqps++] = qp;
}

/* The device called NAME. To find it takes longer than all the rest: providers are loaded. */
static struct ibv_device *find_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int i;

	for (i = 0; list && list[i] && strcmp(ibv_get_device_name(list[i]), name); i++)
		;
	CHECK(list && list[i]);
	return list[i];
}

/* open */
static void do_open(void)
{
	struct node *n;

	for (n = nodes; n < nodes + nnodes; n++) {
		CHECK(n->ctx = ibv_open_device(device));
		CHECK(n->pd = ibv_alloc_pd(n->ctx));
		CHECK(n->cq = ibv_create_cq(n->ctx, depth, NULL, NULL, 0));
	}
}

/* domain PATH: every node opens it. */
static void do_domain(void)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .oflags = O_CREAT,
	};
	struct node *n;

	CHECK((attr.fd = open(strtok(NULL, " \n"), O_RDONLY)) >= 0);
	for (n = nodes; n < nodes + nnodes; n++)
		CHECK(n->xrcd = ibv_open_xrcd(n->ctx, &attr));
	close(attr.fd);
}

/* srqs: one for each node, of its domain if it has opened one. */
static void do_srqs(void)
{
	struct node *n;

	for (n = nodes; n < nodes + nnodes; n++) {
		struct ibv_srq_init_attr_ex attr = {
			.attr = { .max_wr = depth, .max_sge = 1 },
			.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
			.srq_type = IBV_SRQT_BASIC, .pd = n->pd,
		};

		if (n->xrcd) {
			attr.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
			attr.srq_type = IBV_SRQT_XRC;
			attr.xrcd = n->xrcd;
			attr.cq = n->cq;
		}
		CHECK(n->srq = ibv_create_srq_ex(n->ctx, &attr));
	}
}

/* targets COUNT: the nodes take turns. */
static void do_targets(void)
{
	int i, count = atoi(strtok(NULL, " \n"));

	for (i = 0; i < count; i++) {
		struct node *n = &nodes[i % nnodes];
		struct ibv_qp_init_attr_ex init = {
			.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD,
			.xrcd = n->xrcd,
		};

		add_qp(ibv_create_qp_ex(n->ctx, &init));
	}
}

static void make_senders(enum ibv_qp_type type, int each)
{
	struct node *n;
	int i;

	for (n = nodes; n < nodes + nnodes; n++) {
		struct ibv_qp_init_attr_ex init = {
			.qp_type = type, .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = n->pd,
			.send_cq = n->cq, .recv_cq = n->cq, .srq = n->srq,
			.cap = { .max_send_wr = depth, .max_send_sge = 1 },
		};

		for (i = 0; i < each; i++)
			add_qp(ibv_create_qp_ex(n->ctx, &init));
	}
}

/* initiators: one for each node. */
static void do_initiators(void)
{
	make_senders(IBV_QPT_XRC_SEND, 1);
}

/* rc EACH: so many for each node, on its SRQ if it has one. */
static void do_rc(void)
{
	make_senders(IBV_QPT_RC, atoi(strtok(NULL, " \n")));
}

/* connect GID NUMBER...: the queue pairs, in the order in which they were made. */
static void do_connect(void)
{
	struct ibv_qp_attr a = {
		.port_num = 1, .path_mtu = IBV_MTU_1024, .min_rnr_timer = 12,
		.max_dest_rd_atomic = 4, .max_rd_atomic = 4,
		.timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .sgid_index = gid_index, .hop_limit = 64 } },
	};
	char *gid = strtok(NULL, " \n");
	int i;

	CHECK(gid && strlen(gid) == 32);
	for (i = 0; i < 16; i++)
		CHECK(sscanf(gid + 2 * i, "%2hhx", &a.ah_attr.grh.dgid.raw[i]) == 1);
	for (i = 0; i < nqps; i++) {
		char *number = strtok(NULL, " \n");

		CHECK(number);
		a.dest_qp_num = atoi(number);
		a.qp_state = IBV_QPS_INIT;
		CHECK(!ibv_modify_qp(qps[i], &a, TO_INIT));
		a.qp_state = IBV_QPS_RTR;
		CHECK(!ibv_modify_qp(qps[i], &a, TO_RTR));
		/* A target sends nothing. */
		if (qps[i]->qp_type == IBV_QPT_XRC_RECV)
			continue;
		a.qp_state = IBV_QPS_RTS;
		CHECK(!ibv_modify_qp(qps[i], &a, TO_RTS));
	}
	CHECK(!strtok(NULL, " \n"));
}

static const struct {
	const char *name;
	void (*run)(void);
	int makes_qps;
} commands[] = {
	{ "open", do_open, 0 }, { "domain", do_domain, 0 }, { "srqs", do_srqs, 0 },
	{ "targets", do_targets, 1 }, { "initiators", do_initiators, 1 }, { "rc", do_rc, 1 },
	{ "connect", do_connect, 0 },
};

/* As many files as the system lets a process have; few of the callers need more than they get. */
static void allow_files(void)
{
	struct rlimit limit;

	CHECK(!getrlimit(RLIMIT_NOFILE, &limit));
	limit.rlim_cur = limit.rlim_max;
	CHECK(!setrlimit(RLIMIT_NOFILE, &limit));
}

int main(int argc, char **argv)
{
	size_t i, room = 0;
	char *line = NULL;

	if (argc != 5)
		return 2;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	device = find_device(argv[1]);
	gid_index = atoi(argv[2]);
	nnodes = atoi(argv[3]);
	depth = atoi(argv[4]);
	CHECK(nodes = calloc(nnodes, sizeof(*nodes)));
	allow_files();
	puts("ok");
	fflush(stdout);
	while (getline(&line, &room, stdin) > 0) {
		const char *name = strtok(line, " \n");
		int first = nqps;

		for (i = 0; i < sizeof(commands) / sizeof(*commands); i++)
			if (!strcmp(commands[i].name, name))
				break;
		CHECK(i < sizeof(commands) / sizeof(*commands));
		commands[i].run();
		printf("ok");
		for (; commands[i].makes_qps && first < nqps; first++)
			printf(" %u", qps[first]->qp_num);
		printf("\n");
		fflush(stdout);
	}
	return 0;
}
