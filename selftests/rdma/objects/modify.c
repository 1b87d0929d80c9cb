// SPDX-License-Identifier: GPL-2.0
// selftest: timeout=60 debug=long xroce
/*
 * ibv_modify_qp(3): for each kind of queue pair and each step from RESET to RTS the
 * required attributes, the forbidden attributes, values out of range, and steps that do
 * not exist; and the attributes that can be changed in RTS and SQD. A refused call
 * changes nothing.
 *
 *   modify                       lists the cases
 *   modify CASE DEVICE GID-INDEX
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "ends.h"

enum { RESET_INIT, INIT_RTR, RTR_RTS, STEPS };

static const enum ibv_qp_state after[STEPS] = { IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS };

#define CONNECTED (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RESPONDS (IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define REQUESTS (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | \
		  IBV_QP_MAX_QP_RD_ATOMIC)
#define READY (IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)

/* IBTA volume 1, table 96; what a step needs besides IBV_QP_STATE. */
static const struct kind {
	const char *name;
	enum ibv_qp_type type;
	int needs[STEPS];
	/* Of these no step may have any. (What XRC's other half has uverbs drops.) */
	int never[STEPS];
} kinds[] = {
	{ "RC", IBV_QPT_RC, { READY, CONNECTED | RESPONDS, REQUESTS },
	  { IBV_QP_QKEY | IBV_QP_SQ_PSN | IBV_QP_AV, IBV_QP_QKEY | IBV_QP_TIMEOUT | IBV_QP_PORT,
	    IBV_QP_QKEY | IBV_QP_DEST_QPN | IBV_QP_PATH_MTU } },
	{ "UC", IBV_QPT_UC, { READY, CONNECTED, IBV_QP_SQ_PSN },
	  { IBV_QP_QKEY | IBV_QP_SQ_PSN, RESPONDS | IBV_QP_QKEY, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT } },
	{ "UD", IBV_QPT_UD, { IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0, IBV_QP_SQ_PSN },
	  { IBV_QP_ACCESS_FLAGS | IBV_QP_AV, IBV_QP_AV | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
	    IBV_QP_TIMEOUT | IBV_QP_RNR_RETRY } },
	{ "XRC INI", IBV_QPT_XRC_SEND, { READY, CONNECTED, REQUESTS },
	  { IBV_QP_QKEY | IBV_QP_SQ_PSN, IBV_QP_TIMEOUT | IBV_QP_QKEY, IBV_QP_QKEY | IBV_QP_PATH_MTU } },
	{ "XRC TGT", IBV_QPT_XRC_RECV, { READY, CONNECTED | RESPONDS, IBV_QP_SQ_PSN | IBV_QP_TIMEOUT },
	  { IBV_QP_QKEY | IBV_QP_SQ_PSN, IBV_QP_QKEY | IBV_QP_SQ_PSN, IBV_QP_QKEY | IBV_QP_PATH_MTU } },
};

static struct ibv_xrcd *xrcd;

/* Values that fit all kinds. */
static struct ibv_qp_attr good(struct pair *self)
{
	return (struct ibv_qp_attr){
		.port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE, .qkey = 0x1234,
		.path_mtu = IBV_MTU_1024, .dest_qp_num = 0x77, .rq_psn = 1, .sq_psn = 1,
		/* The connection manager passes on what the peer offers: 128 with rxe. */
		.max_dest_rd_atomic = 4, .max_rd_atomic = 128, .min_rnr_timer = 1, .timeout = 14,
		.retry_cnt = 7, .rnr_retry = 7,
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .dgid = self->b.gid, .sgid_index = self->a.gid_index,
				      .hop_limit = 16 } },
	};
}

static struct ibv_qp *make(struct pair *self, const struct kind *k)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = k->type, .send_cq = self->a.cq, .recv_cq = self->a.cq,
		.comp_mask = IBV_QP_INIT_ATTR_PD, .pd = self->a.pd, .cap = { 4, 4, 1, 1, 0 },
	};
	struct ibv_qp *qp;

	if (k->type == IBV_QPT_XRC_RECV) {
		init.comp_mask = IBV_QP_INIT_ATTR_XRCD;
		init.xrcd = xrcd;
	} else if (k->type == IBV_QPT_XRC_SEND) {
		init.cap.max_recv_wr = init.cap.max_recv_sge = 0;
	}
	qp = ibv_create_qp_ex(self->a.ctx, &init);
	CHECK(qp);
	return qp;
}

static int step(struct pair *self, struct ibv_qp *qp, enum ibv_qp_state to, int mask)
{
	struct ibv_qp_attr attr = good(self);

	attr.qp_state = to;
	return ibv_modify_qp(qp, &attr, IBV_QP_STATE | mask);
}

/* MASK with TO is refused with WANTED, and QP is as it was. */
static void refused(struct pair *self, const struct kind *k, struct ibv_qp *qp,
		    enum ibv_qp_state to, int mask, int wanted)
{
	enum ibv_qp_state before = state_of(qp);
	int err = step(self, qp, to, mask);

	if (err != wanted)
		printf("%s to state %d, mask %#x: errno %d\n", k->name, to, mask, err);
	CHECK(err == wanted);
	CHECK(state_of(qp) == before);
}

static void begin(struct pair *self)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1, .oflags = O_CREAT,
	};

	make_ends(self);
	xrcd = ibv_open_xrcd(self->a.ctx, &attr);
	CHECK(xrcd);
}

static void end(struct pair *self)
{
	CHECK(!ibv_close_xrcd(xrcd));
	free_pair(self);
}

#define EACH_KIND(k) (k = kinds; k < kinds + sizeof(kinds) / sizeof(kinds[0]); k++)

/* Each needed attribute left out in turn, each wrong one added. */
static void masks(struct pair *self)
{
	const struct kind *k;
	struct ibv_qp *qp;
	int s, bit;

	begin(self);
	for EACH_KIND(k) {
		qp = make(self, k);
		for (s = 0; s < STEPS; s++) {
			for (bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
				if (k->needs[s] & bit)
					refused(self, k, qp, after[s], k->needs[s] & ~bit, EINVAL);
				if (k->never[s] & bit)
					refused(self, k, qp, after[s], k->needs[s] | bit, EINVAL);
			}
			refused(self, k, qp, after[s], k->needs[s] | IBV_QP_CAP, EOPNOTSUPP);
			refused(self, k, qp, after[s], k->needs[s] | IBV_QP_RATE_LIMIT, EOPNOTSUPP);
			CHECK(!step(self, qp, after[s], k->needs[s]));
			CHECK(state_of(qp) == after[s]);
		}
		CHECK(!ibv_destroy_qp(qp));
	}
	end(self);
}

/* Steps that there are not. */
static void steps(struct pair *self)
{
	static const enum ibv_qp_state none[][2] = {
		{ IBV_QPS_RESET, IBV_QPS_RTR }, { IBV_QPS_RESET, IBV_QPS_RTS },
		{ IBV_QPS_RESET, IBV_QPS_SQD }, { IBV_QPS_RESET, IBV_QPS_ERR }, { IBV_QPS_INIT, IBV_QPS_RTS },
		{ IBV_QPS_INIT, IBV_QPS_SQD }, { IBV_QPS_RTR, IBV_QPS_INIT },
		{ IBV_QPS_RTR, IBV_QPS_SQD }, { IBV_QPS_RTS, IBV_QPS_INIT },
		{ IBV_QPS_RTS, IBV_QPS_RTR }, { IBV_QPS_ERR, IBV_QPS_INIT },
		{ IBV_QPS_ERR, IBV_QPS_RTR }, { IBV_QPS_ERR, IBV_QPS_RTS },
	};
	const struct kind *k;
	unsigned int i;
	int s, to;

	begin(self);
	for EACH_KIND(k) {
		for (i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
			struct ibv_qp *qp = make(self, k);

			for (s = 0; state_of(qp) != none[i][0]; s++)
				if (none[i][0] == IBV_QPS_ERR && s == INIT_RTR)
					CHECK(!step(self, qp, IBV_QPS_ERR, 0));
				else
					CHECK(!step(self, qp, after[s], k->needs[s]));
			to = none[i][1];
			refused(self, k, qp, to, to <= IBV_QPS_RTS && to ? k->needs[to - 1] : 0,
				EINVAL);
			refused(self, k, qp, 99, 0, EINVAL);
			CHECK(!ibv_destroy_qp(qp));
		}
	}
	end(self);
}

/* Which attributes a running queue pair may change: qp_state_table of core/verbs.c. */
static const struct {
	/* RTS to RTS and SQD to RTS, and SQD to SQD. */
	int rts, sqd;
	/* modify_qp_mask() of uverbs_cmd.c takes these out first. */
	int dropped;
} running[] = {
#define PATH (IBV_QP_ACCESS_FLAGS | IBV_QP_PATH_MIG_STATE)
#define SENDER (IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_PKEY_INDEX)
	{ PATH | IBV_QP_CUR_STATE | IBV_QP_MIN_RNR_TIMER,
	  PATH | SENDER | RESPONDS | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC, 0 },
	/* The core says that UC may have IBV_QP_AV, but adds IBV_QP_PORT, which it may not. */
	{ PATH | IBV_QP_CUR_STATE, PATH | IBV_QP_PKEY_INDEX, 0 },
	{ IBV_QP_QKEY | IBV_QP_CUR_STATE, IBV_QP_QKEY | IBV_QP_PKEY_INDEX, 0 },
	{ PATH | IBV_QP_CUR_STATE,
	  PATH | SENDER | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC, RESPONDS },
	{ PATH | IBV_QP_CUR_STATE | IBV_QP_MIN_RNR_TIMER, PATH | SENDER | RESPONDS,
	  IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC },
};

/* One attribute more on the way from FROM to TO, in which ALLOWED ones go well. */
static void each_attribute(struct pair *self, const struct kind *k, enum ibv_qp_state from,
			   enum ibv_qp_state to, int allowed)
{
	int bit, s, err;

	allowed |= running[k - kinds].dropped;
	for (bit = IBV_QP_CUR_STATE; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
		struct ibv_qp_attr attr = good(self);
		struct ibv_qp *qp = make(self, k);

		for (s = 0; s < STEPS; s++)
			CHECK(!step(self, qp, after[s], k->needs[s]));
		if (from == IBV_QPS_SQD)
			CHECK(!step(self, qp, IBV_QPS_SQD, 0));
		attr.cur_qp_state = from;
		attr.qp_state = to;
		/* An alternate path is never RoCE's. */
		attr.alt_ah_attr = attr.ah_attr;
		attr.alt_port_num = 1;
		err = ibv_modify_qp(qp, &attr, (from == to ? 0 : IBV_QP_STATE) | bit);
		s = bit == IBV_QP_CAP ? EOPNOTSUPP : allowed & bit ? 0 : EINVAL;
		if (err != s)
			printf("%s, state %d to %d, attribute %#x: errno %d\n", k->name, from, to,
			       bit, err);
		CHECK(err == s);
		CHECK(state_of(qp) == (err ? from : to));
		CHECK(!ibv_destroy_qp(qp));
	}
}

static void attributes_of_running(struct pair *self)
{
	const struct kind *k;

	begin(self);
	for EACH_KIND(k) {
		each_attribute(self, k, IBV_QPS_RTS, IBV_QPS_RTS, running[k - kinds].rts);
		each_attribute(self, k, IBV_QPS_RTS, IBV_QPS_SQD, IBV_QP_EN_SQD_ASYNC_NOTIFY);
		each_attribute(self, k, IBV_QPS_SQD, IBV_QPS_SQD, running[k - kinds].sqd);
		each_attribute(self, k, IBV_QPS_SQD, IBV_QPS_RTS, running[k - kinds].rts);
	}
	end(self);
}

/* There is no way back out of SQD, and none into SQE but a failed send. */
static void steps_of_running(struct pair *self)
{
	const struct kind *k;
	struct ibv_qp *qp;
	int s;

	begin(self);
	for EACH_KIND(k) {
		qp = make(self, k);
		refused(self, k, qp, IBV_QPS_SQE, 0, EINVAL);
		for (s = 0; s < STEPS; s++) {
			CHECK(!step(self, qp, after[s], k->needs[s]));
			refused(self, k, qp, IBV_QPS_SQE, 0, EINVAL);
		}
		CHECK(!step(self, qp, IBV_QPS_SQD, 0));
		refused(self, k, qp, IBV_QPS_SQE, 0, EINVAL);
		refused(self, k, qp, IBV_QPS_INIT, 0, EINVAL);
		refused(self, k, qp, IBV_QPS_INIT, k->needs[RESET_INIT], EINVAL);
		refused(self, k, qp, IBV_QPS_RTR, 0, EINVAL);
		refused(self, k, qp, IBV_QPS_RTR, k->needs[INIT_RTR], EINVAL);
		CHECK(!step(self, qp, IBV_QPS_ERR, 0));
		refused(self, k, qp, IBV_QPS_SQE, 0, EINVAL);
		refused(self, k, qp, IBV_QPS_SQD, 0, EINVAL);
		CHECK(!ibv_destroy_qp(qp));
	}
	end(self);
}

static void no_port(struct ibv_qp_attr *t) { t->port_num = 0; }
static void port_2(struct ibv_qp_attr *t) { t->port_num = 2; }
static void pkey_1(struct ibv_qp_attr *t) { t->pkey_index = 1; }
static void no_access(struct ibv_qp_attr *t) { t->qp_access_flags = 1 << 12; }
static void mtu_0(struct ibv_qp_attr *t) { t->path_mtu = 0; }
static void mtu_6(struct ibv_qp_attr *t) { t->path_mtu = 6; }
static void mtu_large(struct ibv_qp_attr *t) { t->path_mtu = IBV_MTU_4096; }
static void long_qpn(struct ibv_qp_attr *t) { t->dest_qp_num = 1 << 24; }
static void rnr_timer(struct ibv_qp_attr *t) { t->min_rnr_timer = 32; }
static void dest_reads(struct ibv_qp_attr *t) { t->max_dest_rd_atomic = 65; }
static void reads(struct ibv_qp_attr *t) { t->max_rd_atomic = 129; }
static void timeout(struct ibv_qp_attr *t) { t->timeout = 32; }
static void retries(struct ibv_qp_attr *t) { t->retry_cnt = 8; }
static void rnr_retries(struct ibv_qp_attr *t) { t->rnr_retry = 8; }
static void no_grh(struct ibv_qp_attr *t) { t->ah_attr.is_global = 0; }
static void path_port(struct ibv_qp_attr *t) { t->ah_attr.port_num = 3; }
static void no_gid(struct ibv_qp_attr *t) { memset(&t->ah_attr.grh.dgid, 0, 16); }
/* An address of IPv6, from one of IPv4. */
static void other_family(struct ibv_qp_attr *t)
{
	t->ah_attr.grh.dgid.raw[0] = 0xfd;
}

/* Values out of range; with all in range the step goes well. */
static void values(struct pair *self)
{
	static const struct {
		int step, bit;
		void (*spoil)(struct ibv_qp_attr *attr);
	} bad[] = {
		{ RESET_INIT, IBV_QP_PORT, no_port }, { RESET_INIT, IBV_QP_PORT, port_2 },
		{ RESET_INIT, IBV_QP_PKEY_INDEX, pkey_1 },
		{ RESET_INIT, IBV_QP_ACCESS_FLAGS, no_access },
		{ INIT_RTR, IBV_QP_PATH_MTU, mtu_0 }, { INIT_RTR, IBV_QP_PATH_MTU, mtu_6 },
		{ INIT_RTR, IBV_QP_PATH_MTU, mtu_large },
		{ INIT_RTR, IBV_QP_DEST_QPN, long_qpn },
		{ INIT_RTR, IBV_QP_MIN_RNR_TIMER, rnr_timer },
		{ INIT_RTR, IBV_QP_MAX_DEST_RD_ATOMIC, dest_reads },
		{ INIT_RTR, IBV_QP_AV, no_grh }, { INIT_RTR, IBV_QP_AV, path_port },
		{ INIT_RTR, IBV_QP_AV, no_gid },
		{ INIT_RTR, IBV_QP_AV, other_family },
		{ RTR_RTS, IBV_QP_MAX_QP_RD_ATOMIC, reads }, { RTR_RTS, IBV_QP_TIMEOUT, timeout },
		{ RTR_RTS, IBV_QP_RETRY_CNT, retries }, { RTR_RTS, IBV_QP_RNR_RETRY, rnr_retries },
	};
	const struct kind *k;
	struct ibv_qp *qp;
	unsigned int i;
	int s, err;

	begin(self);
	for EACH_KIND(k) {
		qp = make(self, k);
		for (s = 0; s < STEPS; s++) {
			for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
				struct ibv_qp_attr attr = good(self);

				if (bad[i].step != s || !(k->needs[s] & bad[i].bit))
					continue;
				attr.qp_state = after[s];
				bad[i].spoil(&attr);
				err = ibv_modify_qp(qp, &attr, IBV_QP_STATE | k->needs[s]);
				if (err != EINVAL)
					printf("%s, value %u: errno %d\n", k->name, i, err);
				CHECK(err == EINVAL);
				CHECK((int)state_of(qp) == s);
			}
			CHECK(!step(self, qp, after[s], k->needs[s]));
		}
		CHECK(!ibv_destroy_qp(qp));
	}
	end(self);
}

/* A wrong IBV_QP_CUR_STATE, and an alternate path, which RoCE does not have. */
static void current(struct pair *self)
{
	struct ibv_qp_attr attr = good(self);
	const struct kind *k = kinds;
	struct ibv_qp *qp;
	int s;

	begin(self);
	qp = make(self, k);
	for (s = 0; s < STEPS; s++)
		CHECK(!step(self, qp, after[s], k->needs[s]));
	attr.cur_qp_state = IBV_QPS_SQD;
	attr.qp_state = IBV_QPS_RTS;
	CHECK(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE) == EINVAL);
	attr.cur_qp_state = IBV_QPS_RTS;
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE));
	attr.alt_ah_attr = attr.ah_attr;
	attr.alt_port_num = 1;
	CHECK(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_ALT_PATH) == EINVAL);
	CHECK(state_of(qp) == IBV_QPS_RTS);
	CHECK(!ibv_destroy_qp(qp));
	end(self);
}

/* Drops CAP_NET_RAW. */
static void lose_net_raw(void)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct caps[2];

	CHECK(!syscall(SYS_capget, &head, caps));
	caps[0].effective &= ~(1u << CAP_NET_RAW);
	CHECK(!syscall(SYS_capset, &head, caps));
}

/* A privileged Q_Key (the top bit) is for who has CAP_NET_RAW. */
static void privileged_qkey(struct pair *self)
{
	const struct kind *ud = &kinds[2];
	struct ibv_qp_attr attr = good(self);
	struct ibv_qp *qp;
	int status;
	pid_t pid;

	attr.qp_state = IBV_QPS_INIT;
	attr.qkey = 0x80001234;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		lose_net_raw();
		begin(self);
		qp = make(self, ud);
		CHECK(ibv_modify_qp(qp, &attr, IBV_QP_STATE | ud->needs[0]) == EPERM);
		CHECK(state_of(qp) == IBV_QPS_RESET);
		CHECK(!step(self, qp, IBV_QPS_INIT, ud->needs[0]));
		CHECK(!ibv_destroy_qp(qp));
		end(self);
		_exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	begin(self);
	qp = make(self, ud);
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | ud->needs[0]));
	CHECK(!ibv_destroy_qp(qp));
	end(self);
}

static const CASES(struct pair) cases[] = {
	{ "masks", masks },
	{ "steps", steps },
	{ "attributes_of_running", attributes_of_running },
	{ "steps_of_running", steps_of_running },
	{ "values", values },
	{ "current", current },
	{ "privileged_qkey", privileged_qkey },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	static struct pair self;

	return RUN_CASES(&self, cases, argc, argv);
}
