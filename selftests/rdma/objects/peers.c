// SPDX-License-Identifier: GPL-2.0
// selftest: timeout=90 debug=long xroce
/*
 * Peers that cannot be reached: address handles, queue pairs on their way to RTR, and
 * receive QPs by number. A refused call leaves nothing behind, and the next attempt, to
 * a peer that exists, succeeds.
 *
 * The core asks the host's routes and neighbours, addr_resolve() of core/addr.c. An
 * errno of the route is the verb's errno. A neighbour that does not answer within a
 * second makes it ETIMEDOUT (process_one_req()). The core names the interface. With an
 * interface, IPv4 treats an address without a route as that of a neighbour
 * (ip_route_output_key_hash_rcu()), whatever the routes say; IPv6 does not.
 *
 * The device is on e1 in namespace h1, as set up by tools/lib/net.sh. See devices.h for the
 * arguments.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <pthread.h>
#include <unistd.h>

#include "asleep.h"
#include "made.h"
#include "rawioctl.h"

static const struct peer {
	const char *source, *to, *what;
	int err;
} peers[] = {
	{ "::ffff:10.7.0.1", "::ffff:10.7.0.77", "a neighbour that is silent", ETIMEDOUT },
	{ "::ffff:10.7.0.1", "::ffff:10.99.0.1", "no route, by IPv4", ETIMEDOUT },
	{ "::ffff:10.7.0.1", "::ffff:10.98.0.1", "an unreachable route, by IPv4", ETIMEDOUT },
	{ "fd07::1", "fd07::77", "a neighbour that is silent, by IPv6", ETIMEDOUT },
	{ "fd07::1", "2001:db8::1", "no route", ENETUNREACH },
	{ "fd07::1", "2001:db8:1::1", "an unreachable route", EHOSTUNREACH },
	{ "fd07::1", "2001:db8:2::1", "a prohibited one", EACCES },
	{ "fd07::1", "2001:db8:3::1", "a black hole", EINVAL },
};

#define EACH_PEER(p) (p = peers; p < peers + sizeof(peers) / sizeof(peers[0]); p++)

static union ibv_gid gid_of(const char *text)
{
	union ibv_gid gid;

	CHECK(inet_pton(AF_INET6, text, &gid) == 1);
	return gid;
}

/* The index of a RoCEv2 GID. */
static int index_of(struct owned *self, const char *text)
{
	union ibv_gid gid = gid_of(text);
	struct ibv_gid_entry entry;
	int i;

	for (i = 0; i < 32; i++)
		if (!ibv_query_gid_ex(self->ours.ctx, 1, i, &entry, 0) &&
		    entry.gid_type == IBV_GID_TYPE_ROCE_V2 && !memcmp(&entry.gid, &gid, 16))
			return i;
	CHECK(!"the device has no such GID");
	return -1;
}

static struct ibv_ah_attr way_to(struct owned *self, const struct peer *p)
{
	union ibv_gid gid = gid_of(p->to);
	struct ibv_ah_attr attr = address_of(&self->on, &gid);

	attr.grh.sgid_index = index_of(self, p->source);
	return attr;
}

static void setup(struct owned *self)
{
	CHECK(!system("ip -n h1 route replace unreachable 10.98.0.0/24 && "
		      "ip -n h1 route replace unreachable 2001:db8:1::/48 && "
		      "ip -n h1 route replace prohibit 2001:db8:2::/48 && "
		      "ip -n h1 route replace blackhole 2001:db8:3::/48"));
	begin_owned(self);
}

static void address_handles(struct owned *self)
{
	const struct peer *p;
	struct ibv_ah_attr attr;

	setup(self);
	for EACH_PEER(p) {
		attr = way_to(self, p);
		errno = 0;
		expect_errno(p->what, ibv_create_ah(self->ours.pd, &attr) ? 0 : errno, p->err);
	}
	end_owned(self);
}

static struct ibv_qp *in_init(struct owned *self, enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex ex = {
		.qp_type = type, .send_cq = self->ours.cq, .recv_cq = self->ours.cq,
		.pd = self->ours.pd,
		.cap = { 1, 1, 1, 1, 0 }, .comp_mask = IBV_QP_INIT_ATTR_PD,
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp *qp;

	if (type == IBV_QPT_XRC_SEND)
		ex.cap.max_recv_wr = ex.cap.max_recv_sge = 0;
	if (type == IBV_QPT_XRC_RECV) {
		ex.comp_mask = IBV_QP_INIT_ATTR_XRCD;
		ex.xrcd = self->ours.xrcd;
	}
	CHECK((qp = ibv_create_qp_ex(self->ours.ctx, &ex)));
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     IBV_QP_ACCESS_FLAGS));
	return qp;
}

static int to_rtr(struct ibv_qp *qp, enum ibv_qp_type type, const struct ibv_ah_attr *to)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = 77, .ah_attr = *to,
		.max_dest_rd_atomic = 1, .min_rnr_timer = 1,
	};
	int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

	if (type == IBV_QPT_RC || type == IBV_QPT_XRC_RECV)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	return ibv_modify_qp(qp, &attr, mask);
}

static void queue_pairs(struct owned *self)
{
	static const enum ibv_qp_type types[] = {
		IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV,
	};
	const struct peer there = { "::ffff:10.7.0.1", "::ffff:10.7.0.2", NULL, 0 };
	struct ibv_ah_attr to;
	const struct peer *p;
	struct ibv_qp *qp;
	char what[80];
	int i;

	setup(self);
	for (i = 0; i < 4; i++) {
		qp = in_init(self, types[i]);
		for EACH_PEER(p) {
			/* One type waits for all of those. */
			if (i && p->err == ETIMEDOUT && p != peers)
				continue;
			to = way_to(self, p);
			snprintf(what, sizeof(what), "type %d, %s", types[i], p->what);
			expect_errno(what, to_rtr(qp, types[i], &to), p->err);
			CHECK(state_of(qp) == IBV_QPS_INIT);
		}
		to = way_to(self, &there);
		RETURNS(0, to_rtr(qp, types[i], &to));
		CHECK(state_of(qp) == IBV_QPS_RTR);
		CHECK(!ibv_destroy_qp(qp));
	}
	end_owned(self);
}

/* xroce_dv_create_xrc_rcv_qp(3) takes its target to RTR at once; none is left if that fails. */
static void receive_qps(struct owned *self)
{
	struct xroce_rcv_qp_attr attr = {
		.attr_mask = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS |
			     IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
		.port_num = 1, .path_mtu = IBV_MTU_1024, .dest_qp_num = 77,
		.dest = { .is_global = 1, .port_num = 1 },
	};
	const struct peer *p;
	uint32_t qpn = 0;
	struct raw raw;

	setup(self);
	for EACH_PEER(p) {
		union ibv_gid to = gid_of(p->to);

		memcpy(attr.dest.dgid, &to, 16);
		attr.dest.sgid_index = index_of(self, p->source);
		raw_begin(&raw, XROCE_METHOD_RCV_QP_CREATE);
		raw_attr(&raw, XROCE_ATTR_RCV_QP_XRCD, 0, self->ours.handle[XRCD]);
		raw_attr(&raw, XROCE_ATTR_RCV_QP_HANDLE, 0, 0);
		raw_attr(&raw, XROCE_ATTR_RCV_QP_QPN, 4, (uintptr_t)&qpn);
		raw_attr(&raw, XROCE_ATTR_RCV_QP_ATTR, sizeof(attr), (uintptr_t)&attr);
		expect_errno(p->what, raw_call(self->ours.ctx, &raw), p->err);
		CHECK(!qpn);
	}
	end_owned(self);
}

/* With the interface down there is no neighbour to ask. This takes its addresses of IPv6. */
static void interface_down(struct owned *self)
{
	const struct peer there = { "::ffff:10.7.0.1", "::ffff:10.7.0.2", NULL, 0 };
	double end_of_wait;
	struct ibv_ah_attr to;
	struct ibv_qp *qp;
	int err;

	setup(self);
	to = way_to(self, &there);
	qp = in_init(self, IBV_QPT_RC);
	CHECK(!system("ip -n h1 link set e1 down"));
	REFUSED(ENETUNREACH, ibv_create_ah(self->ours.pd, &to));
	RETURNS(ENETUNREACH, to_rtr(qp, IBV_QPT_RC, &to));
	CHECK(state_of(qp) == IBV_QPS_INIT);
	CHECK(!system("ip -n h1 link set e1 up && ip -n h1 addr add fd07::1/64 dev e1 nodad"));
	end_of_wait = deadline(20);
	/* The wire may not be up yet, and the core waits for a neighbour no longer than a second. */
	do
		err = to_rtr(qp, IBV_QPT_RC, &to);
	while (err == ETIMEDOUT && !is_past(end_of_wait));
	RETURNS(0, err);
	CHECK(!ibv_destroy_qp(qp));
	end_owned(self);
}

/* A call of another thread that waits for a neighbour, and what it uses. */
struct waiting {
	pthread_t thread;
	struct ibv_ah_attr to;
	struct ibv_pd *pd;
	struct ibv_qp *qp;
	int tid, err, is_over;
};

static void *call(void *arg)
{
	struct waiting *w = arg;
	int err = 0;

	__atomic_store_n(&w->tid, gettid(), __ATOMIC_SEQ_CST);
	if (w->qp)
		err = to_rtr(w->qp, IBV_QPT_RC, &w->to);
	else if (!ibv_create_ah(w->pd, &w->to))
		err = errno;
	w->err = err;
	__atomic_store_n(&w->is_over, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

/*
 * DROPs what the call of W is using, and again when it is over; the errno of the first
 * time. On a slow machine the call may be over then.
 */
static int dropped_meanwhile(struct owned *self, struct waiting *w, int (*drop)(struct waiting *w),
			     int host)
{
	const struct peer nobody = { "::ffff:10.7.0.1", "::ffff:10.7.0.80", NULL, 0 };
	int err;

	w->to = way_to(self, &nobody);
	/* One that nobody asked for yet. */
	w->to.grh.dgid.raw[15] += host;
	w->tid = w->is_over = 0;
	CHECK(!pthread_create(&w->thread, NULL, call, w));
	while (!is_asleep(__atomic_load_n(&w->tid, __ATOMIC_SEQ_CST)) &&
	       !__atomic_load_n(&w->is_over, __ATOMIC_SEQ_CST))
		;
	err = drop(w);
	CHECK(!pthread_join(w->thread, NULL));
	CHECK(w->err == ETIMEDOUT);
	if (err)
		RETURNS(0, drop(w));
	return err;
}

static int drop_pd(struct waiting *w)
{
	return ibv_dealloc_pd(w->pd);
}

static int drop_qp(struct waiting *w)
{
	return ibv_destroy_qp(w->qp);
}

/* What another call uses does not go. */
static void meanwhile(struct owned *self)
{
	struct waiting w = {};
	int host = 0, tries, err;

	setup(self);
	for (err = tries = 0; !err && tries < 20; tries++) {
		CHECK((w.pd = ibv_alloc_pd(self->ours.ctx)));
		err = dropped_meanwhile(self, &w, drop_pd, host++);
	}
	CHECK(err == EBUSY);
	for (err = tries = 0; !err && tries < 20; tries++) {
		w.qp = in_init(self, IBV_QPT_RC);
		err = dropped_meanwhile(self, &w, drop_qp, host++);
	}
	CHECK(err == EBUSY);
	end_owned(self);
}

static const CASES(struct owned) cases[] = {
	{ "address_handles", address_handles },
	{ "queue_pairs", queue_pairs },
	{ "receive_qps", receive_qps },
	{ "meanwhile", meanwhile },
	{ "interface_down", interface_down },
	{}
};

int main(int argc, char **argv)
{
	static struct owned self;

	return RUN_CASES(&self, cases, argc, argv);
}
