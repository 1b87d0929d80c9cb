// SPDX-License-Identifier: GPL-2.0
/*
 * Measures how many messages per second go from one device to another.
 *
 *   bench-flow DEV1 GID1 DEV2 GID2 MTU RC|XRC own|all PROCESSES write|read|send MS SIZE...
 *
 * Each of PROCESSES processes has a client on DEV1 and a server on DEV2, both of which one
 * thread serves by polling. A client sends to the server of its own process, or to all in
 * turn. With RC there is a QP for each client and server that talk, with XRC an initiator
 * and a target for each client. Servers receive from an SRQ. A client has up to 64 messages
 * outstanding, fewer of large ones, and asks for one completion per group of them; each
 * message is posted by a call of its own. Prints a line for each SIZE: messages per second,
 * of all processes together.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>

#include "check.h"

#define MAX 64
#define WINDOW 64
#define OUTSTANDING (16 << 20)
#define BATCH 32
#define DOMAIN "/tmp/bench-flow.xrcd"
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ)

/* What the processes tell each other; process I writes of[I]. */
static struct {
	pthread_barrier_t all;
	int running;
	union ibv_gid gid[2];
	struct {
		uint32_t client[MAX], server[MAX], srqn, rkey;
		uint64_t addr;
		double rate;
	} of[MAX];
} *shared;

static struct side {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp[MAX];
	int reads;
} client, server;

static char **device;
static int me, processes, xrc, all;
static enum ibv_mtu mtu;
static enum ibv_wr_opcode opcode;
static struct ibv_srq *srq;
static struct ibv_xrcd *xrcd;
static size_t largest;

static void together(void)
{
	pthread_barrier_wait(&shared->all);
}

static int talk(int i, int k)
{
	return all || i == k;
}

/* Does process I have a QP for process K? XRC needs none but its own. */
static int has_qp(int i, int k)
{
	return xrc ? i == k : talk(i, k);
}

static void open_side(struct side *s, int which)
{
	struct ibv_device_attr attr;
	void *buf;

	s->ctx = open_device(device[2 * which]);
	CHECK(!ibv_query_device(s->ctx, &attr));
	s->reads = attr.max_qp_rd_atom < 16 ? attr.max_qp_rd_atom : 16;
	CHECK(!ibv_query_gid(s->ctx, 1, atoi(device[2 * which + 1]), &shared->gid[which]));
	CHECK(s->pd = ibv_alloc_pd(s->ctx));
	CHECK(s->cq = ibv_create_cq(s->ctx, 2 * WINDOW * processes, NULL, NULL, 0));
	buf = aligned_alloc(4096, (largest + 4095) & ~(size_t)4095);
	CHECK(buf);
	memset(buf, 1, largest);
	CHECK(s->mr = ibv_reg_mr(s->pd, buf, largest, ACCESS));
}

static void open_srq(void)
{
	struct ibv_xrcd_init_attr domain = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS, .oflags = O_CREAT,
	};
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = WINDOW * processes, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_BASIC, .pd = server.pd,
	};

	if (xrc) {
		CHECK((domain.fd = open(DOMAIN, O_RDONLY | O_CREAT, 0600)) >= 0);
		CHECK(xrcd = ibv_open_xrcd(server.ctx, &domain));
		close(domain.fd);
		attr.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
		attr.srq_type = IBV_SRQT_XRC;
		attr.xrcd = xrcd;
		attr.cq = server.cq;
	}
	CHECK(srq = ibv_create_srq_ex(server.ctx, &attr));
	if (xrc)
		CHECK(!ibv_get_srq_num(srq, &shared->of[me].srqn));
}

static struct ibv_qp *make_qp(struct side *s)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = xrc ? IBV_QPT_XRC_SEND : IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD, .pd = s->pd,
		.send_cq = s->cq, .recv_cq = s->cq, .srq = s == &server ? srq : NULL,
		.cap = { .max_send_wr = WINDOW, .max_send_sge = 1 },
	};
	struct ibv_qp_init_attr_ex target = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcd,
	};
	struct ibv_qp *qp;

	CHECK(qp = ibv_create_qp_ex(s->ctx, xrc && s == &server ? &target : &init));
	return qp;
}

static void connect_qp(struct side *s, struct ibv_qp *qp, int which, uint32_t peer)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .path_mtu = mtu, .dest_qp_num = peer,
		.min_rnr_timer = 1, .max_dest_rd_atomic = s->reads, .max_rd_atomic = s->reads,
		.timeout = PATIENT, .retry_cnt = RETRIES, .rnr_retry = 7,
		.qp_access_flags = ACCESS,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .sgid_index = atoi(device[2 * which + 1]), .hop_limit = 64,
				      .dgid = shared->gid[!which] } },
	};

	CHECK(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     IBV_QP_ACCESS_FLAGS));
	a.qp_state = IBV_QPS_RTR;
	CHECK(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
			     IBV_QP_MIN_RNR_TIMER));
	if (xrc && which)
		return;
	a.qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
}

static void give_receives(int n)
{
	struct ibv_sge sge = { (uintptr_t)server.mr->addr, largest, server.mr->lkey };
	struct ibv_recv_wr wr[BATCH], *bad;
	int i;

	if (!n)
		return;
	for (i = 0; i < n; i++)
		wr[i] = (struct ibv_recv_wr) {
			.next = i + 1 < n ? &wr[i + 1] : NULL, .sg_list = &sge, .num_sge = 1
		};
	CHECK(!ibv_post_srq_recv(srq, wr, &bad));
}

static int take(struct ibv_cq *cq)
{
	struct ibv_wc wc[BATCH];
	int i, n = ibv_poll_cq(cq, BATCH, wc);

	CHECK(n >= 0);
	for (i = 0; i < n; i++)
		CHECK(wc[i].status == IBV_WC_SUCCESS);
	return n;
}

static void serve(void)
{
	if (opcode == IBV_WR_SEND)
		give_receives(take(server.cq));
}

/* N messages to server K, the last of which tells its completion. */
static void post(int k, uint32_t size, int n)
{
	struct ibv_sge sge = { (uintptr_t)client.mr->addr, size, client.mr->lkey };
	struct ibv_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = opcode,
		.wr.rdma = { shared->of[k].addr, shared->of[k].rkey },
		.qp_type.xrc.remote_srqn = shared->of[k].srqn,
	}, *bad;

	while (n--) {
		wr.send_flags = n ? 0 : IBV_SEND_SIGNALED;
		CHECK(!ibv_post_send(client.qp[xrc ? me : k], &wr, &bad));
	}
}

static int next_server(int k)
{
	do
		k = (k + 1) % processes;
	while (!talk(me, k));
	return k;
}

/* For so many seconds, and at least one group; messages per second. */
static double flow(uint32_t size, double seconds)
{
	int window = OUTSTANDING / size < WINDOW ? OUTSTANDING / size : WINDOW;
	int group, n, turn = 0, more = 1, outstanding = 0, k = me;
	uint64_t done = 0;
	double start, took;

	if (window < 4)
		window = 4;
	group = window / 4;
	__atomic_store_n(&shared->running, processes, __ATOMIC_SEQ_CST);
	together();
	start = now();
	do {
		for (; more && outstanding + group <= window; outstanding += group) {
			k = next_server(k);
			post(k, size, group);
		}
		n = take(client.cq) * group;
		outstanding -= n;
		done += n;
		serve();
		/* To read the clock is a system call on some machines. */
		if (n || !(++turn & 15))
			more = now() < start + seconds;
	} while (more || outstanding);
	took = now() - start;
	__atomic_sub_fetch(&shared->running, 1, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&shared->running, __ATOMIC_SEQ_CST))
		serve();
	together();
	return done / took;
}

static void set_up(void)
{
	int k;

	open_side(&client, 0);
	open_side(&server, 1);
	open_srq();
	shared->of[me].addr = (uintptr_t)server.mr->addr;
	shared->of[me].rkey = server.mr->rkey;
	for (k = 0; k < WINDOW * processes; k += BATCH)
		give_receives(BATCH);
	for (k = 0; k < processes; k++) {
		if (!has_qp(me, k))
			continue;
		client.qp[k] = make_qp(&client);
		server.qp[k] = make_qp(&server);
		shared->of[me].client[k] = client.qp[k]->qp_num;
		shared->of[me].server[k] = server.qp[k]->qp_num;
	}
	together();
	for (k = 0; k < processes; k++) {
		if (!has_qp(me, k))
			continue;
		connect_qp(&client, client.qp[k], 0, shared->of[k].server[me]);
		connect_qp(&server, server.qp[k], 1, shared->of[k].client[me]);
	}
	together();
}

static int process(char **sizes, double seconds)
{
	int i;

	set_up();
	/* Neighbours are found, pages are there. */
	flow(8, 0);
	for (; *sizes; sizes++) {
		double rate = 0;

		shared->of[me].rate = flow(atoi(*sizes), seconds);
		together();
		for (i = 0; i < processes; i++)
			rate += shared->of[i].rate;
		if (!me)
			printf("%.2f\n", rate);
		together();
	}
	fflush(stdout);
	return 0;
}

int main(int argc, char **argv)
{
	pthread_barrierattr_t attr;
	int i, status, bad = 0;

	if (argc < 12)
		return 2;
	device = argv + 1;
	mtu = atoi(argv[5]) == 4096 ? IBV_MTU_4096 : atoi(argv[5]) == 2048 ? IBV_MTU_2048 : IBV_MTU_1024;
	xrc = !strcmp(argv[6], "XRC");
	all = !strcmp(argv[7], "all");
	processes = atoi(argv[8]);
	opcode = !strcmp(argv[9], "write") ? IBV_WR_RDMA_WRITE :
		 !strcmp(argv[9], "read") ? IBV_WR_RDMA_READ : IBV_WR_SEND;
	if (processes < 1 || processes > MAX)
		return 2;
	largest = 4096;
	for (i = 11; argv[i]; i++) {
		if (atoi(argv[i]) < 1)
			return 2;
		if ((size_t)atoi(argv[i]) > largest)
			largest = atoi(argv[i]);
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	CHECK(!pthread_barrierattr_init(&attr));
	CHECK(!pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED));
	CHECK(!pthread_barrier_init(&shared->all, &attr, processes));
	for (me = 0; me < processes; me++) {
		pid_t child = fork();

		CHECK(child >= 0);
		if (!child) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			return process(argv + 11, atof(argv[10]) / 1000);
		}
	}
	/* If one fails, the others would wait for it forever; they die with this process. */
	for (i = 0; i < processes && !bad; i++)
		bad = wait(&status) < 0 || status;
	return bad;
}
