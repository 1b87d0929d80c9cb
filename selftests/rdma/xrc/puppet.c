// SPDX-License-Identifier: GPL-2.0
/*
 * A process that performs XRC operations as it is told, line by line, so that a test
 * can let several processes act against each other, raw commands included.
 *
 * A line is a command and its arguments. Objects are named by small numbers that the
 * test chooses. The answer is one line: "ok" and values, or "errno N". lib/puppet.py
 * knows the meaning of the commands; each has a function here.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <infiniband/xroce_dv.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "patience.h"
#include "rawioctl.h"
#include "rings.h"

#define SLOTS 256
#define ROOM 65536
#define DEPTH 256

struct device {
	struct ibv_context *ctx;
	struct ibv_pd *pd[2];
	struct ibv_cq *cq;
	struct ibv_mr *mr[2];
	union ibv_gid gid;
	int gid_index;
	uint8_t *buf;
};

static struct device devices[4];
static struct ibv_xrcd *xrcds[SLOTS];
static struct device *xrcd_device[SLOTS];
static struct ibv_srq *srqs[SLOTS];
static struct ring srq_ring[SLOTS];
static struct device *srq_device[SLOTS];
static int srq_pd[SLOTS];
static struct ibv_qp *qps[SLOTS];
static struct device *qp_device[SLOTS];
static struct ibv_mr *mrs[SLOTS];

/* The arguments of the command, as text and as numbers. */
static char *text[16];
static long arg[16];
static int nargs;
static char answer[65536];

static void say(const char *format, ...)
{
	size_t at = strlen(answer);
	va_list list;

	va_start(list, format);
	vsnprintf(answer + at, sizeof(answer) - at, format, list);
	va_end(list);
}

/* What a call that returns NULL on failure says; what it returns goes to *WHERE. */
#define MADE(where, call)						\
	({								\
		typeof(where) to = (where);				\
									\
		errno = 0;						\
		*to = (call);						\
		*to ? 0 : errno ? errno : EPROTO;			\
	})

static int slot(int n)
{
	CHECK(arg[n] >= 0 && arg[n] < SLOTS);
	return arg[n];
}

static struct device *device(int n)
{
	CHECK(arg[n] >= 0 && arg[n] < 4);
	return &devices[arg[n]];
}

/* ---- contexts and files ---- */

/* device D NAME GID-INDEX: with two PDs, a CQ and memory. */
static int do_device(void)
{
	struct device *d = device(0);
	int i;

	d->ctx = open_device(text[1]);
	d->gid_index = arg[2];
	CHECK(!ibv_query_gid(d->ctx, 1, d->gid_index, &d->gid));
	d->buf = aligned_alloc(4096, ROOM);
	CHECK(d->buf);
	memset(d->buf, 0, ROOM);
	CHECK(d->cq = ibv_create_cq(d->ctx, 2 * DEPTH, NULL, NULL, 0));
	for (i = 0; i < 2; i++) {
		CHECK(d->pd[i] = ibv_alloc_pd(d->ctx));
		CHECK(d->mr[i] = ibv_reg_mr(d->pd[i], d->buf, ROOM,
					    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					    IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC));
	}
	say(" ");
	for (i = 0; i < 16; i++)
		say("%02x", d->gid.raw[i]);
	return 0;
}

/*
 * close D: the device. Its targets and domains are left as they are. The rest
 * goes first, if it can.
 */
static int do_close(void)
{
	struct device *d = device(0);
	int i;

	for (i = 0; i < 2; i++) {
		ibv_dereg_mr(d->mr[i]);
		ibv_dealloc_pd(d->pd[i]);
	}
	ibv_destroy_cq(d->cq);
	return ibv_close_device(d->ctx);
}

/* fd PATH FLAGS: answers the descriptor. unfd FD. */
static int do_fd(void)
{
	int fd = open(text[0], arg[1] | O_CLOEXEC, 0600);

	if (fd < 0)
		return errno;
	say(" %d", fd);
	return 0;
}

static int do_unfd(void)
{
	return close(arg[0]) ? errno : 0;
}

/*
 * fork: the child, whose number is the answer, goes on. This process waits for
 * its end and then gives a second answer, the child's status.
 */
static int do_fork(void)
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (!pid) {
		say(" %d", getpid());
		return 0;
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	say(" %d", status);
	return 0;
}

static int do_exit(void)
{
	_exit(arg[0]);
}

/* ---- objects ---- */

/* xrcd X D FD OFLAGS; unxrcd X */
static int do_xrcd(void)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = arg[2], .oflags = arg[3],
	};

	xrcd_device[slot(0)] = device(1);
	return MADE(&xrcds[arg[0]], ibv_open_xrcd(device(1)->ctx, &attr));
}

static int do_unxrcd(void)
{
	return ibv_close_xrcd(xrcds[slot(0)]);
}

/* srq S D X PD DEPTH: answers its number. */
static int do_srq(void)
{
	static struct rings before, made;
	struct device *d = device(1);
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = arg[4], .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_XRC, .xrcd = xrcds[slot(2)], .cq = d->cq, .pd = d->pd[arg[3]],
	};
	uint32_t number;
	int ret;

	before.count = made.count = 0;
	find_rings(&before, NULL);
	ret = MADE(&srqs[slot(0)], ibv_create_srq_ex(d->ctx, &attr));
	if (ret)
		return ret;
	CHECK(find_rings(&made, &before) == 1);
	srq_ring[arg[0]] = made.ring[0];
	srq_device[arg[0]] = d;
	srq_pd[arg[0]] = arg[3];
	CHECK(!ibv_get_srq_num(srqs[arg[0]], &number));
	say(" %u", number);
	return 0;
}

/* basic S D: answers what the kernel calls it, which is not told to users. */
static int do_basic(void)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 16, .max_sge = 1 } };
	struct device *d = device(1);

	srq_device[slot(0)] = d;
	srq_pd[arg[0]] = 0;
	return MADE(&srqs[arg[0]], ibv_create_srq(d->pd[0], &attr));
}

static int do_unsrq(void)
{
	return ibv_destroy_srq(srqs[slot(0)]);
}

/* spoil S: the ring says that far more was posted than it holds. */
static int do_spoil(void)
{
	const struct ring *r = &srq_ring[slot(0)];

	CHECK(r->at);
	store_index(r, ring_hdr(r)->user_index + (1 << 20));
	return 0;
}

/* limit S N; getlimit S */
static int do_limit(void)
{
	struct ibv_srq_attr attr = { .srq_limit = arg[1] };

	return ibv_modify_srq(srqs[slot(0)], &attr, IBV_SRQ_LIMIT);
}

static int do_getlimit(void)
{
	struct ibv_srq_attr attr;
	int ret = ibv_query_srq(srqs[slot(0)], &attr);

	if (!ret)
		say(" %u", attr.srq_limit);
	return ret;
}

/* post S COUNT LENGTH [M]: receives, all into the same place, the device's memory or M's. */
static int do_post(void)
{
	struct device *d = srq_device[slot(0)];
	struct ibv_mr *mr = nargs > 3 ? mrs[slot(3)] : d->mr[srq_pd[arg[0]]];
	struct ibv_sge sge = { (uintptr_t)mr->addr, arg[2], mr->lkey };
	struct ibv_recv_wr *bad, wr = { .wr_id = arg[0], .sg_list = &sge, .num_sge = 1 };
	int ret = 0;

	while (!ret && arg[1]-- > 0)
		ret = ibv_post_srq_recv(srqs[arg[0]], &wr, &bad);
	return ret;
}

/* tgt Q D X: answers its number; view Q D X QPN; ini Q D; unqp Q */
static int do_tgt(void)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD, .xrcd = xrcds[slot(2)],
	};
	int ret = MADE(&qps[slot(0)], ibv_create_qp_ex(device(1)->ctx, &init));

	if (ret)
		return ret;
	qp_device[arg[0]] = device(1);
	say(" %u", qps[arg[0]]->qp_num);
	return 0;
}

static int do_view(void)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = arg[3], .xrcd = xrcds[slot(2)], .qp_type = IBV_QPT_XRC_RECV,
	};

	qp_device[slot(0)] = device(1);
	return MADE(&qps[arg[0]], ibv_open_qp(device(1)->ctx, &attr));
}

static int do_ini(void)
{
	struct device *d = device(1);
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_SEND, .comp_mask = IBV_QP_INIT_ATTR_PD, .pd = d->pd[0],
		.send_cq = d->cq, .recv_cq = d->cq,
		.cap = { .max_send_wr = DEPTH, .max_send_sge = 1 },
	};
	int ret = MADE(&qps[slot(0)], ibv_create_qp_ex(d->ctx, &init));

	if (ret)
		return ret;
	qp_device[arg[0]] = d;
	say(" %u", qps[arg[0]]->qp_num);
	return 0;
}

static int do_unqp(void)
{
	return ibv_destroy_qp(qps[slot(0)]);
}

/* mr M D PD ACCESS: of memory of its own; answers address, lkey, rkey. unmr M */
static int do_mr(void)
{
	uint8_t *buf = aligned_alloc(4096, 4096);
	int ret;

	CHECK(buf);
	memset(buf, 0, 4096);
	ret = MADE(&mrs[slot(0)], ibv_reg_mr(device(1)->pd[arg[2]], buf, 4096, arg[3]));
	if (!ret)
		say(" %lu %u %u", (unsigned long)buf, mrs[arg[0]]->lkey, mrs[arg[0]]->rkey);
	return ret;
}

static int do_unmr(void)
{
	return ibv_dereg_mr(mrs[slot(0)]);
}

/* bytes M FROM COUNT: what the memory holds, as hex. */
static int do_bytes(void)
{
	const uint8_t *at = mrs[slot(0)]->addr;
	long i;

	CHECK(arg[1] >= 0 && arg[2] <= 4096 - arg[1]);
	say(" ");
	for (i = 0; i < arg[2]; i++)
		say("%02x", at[arg[1] + i]);
	return 0;
}

/* ---- states ---- */

/* init Q ACCESS */
static int do_init(void)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = arg[1],
	};

	return ibv_modify_qp(qps[slot(0)], &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     IBV_QP_ACCESS_FLAGS);
}

#define TO_RTR (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
		IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)

/* What arguments 1 to 3, DESTINATION GID RNR-TIMER, say of D's peer. */
static struct ibv_qp_attr peer(const struct device *d)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024, .dest_qp_num = arg[1],
		.max_dest_rd_atomic = 4, .min_rnr_timer = arg[3],
		.ah_attr = { .is_global = 1, .port_num = 1,
			     .grh = { .sgid_index = d->gid_index, .hop_limit = 16 } },
	};
	int i;

	CHECK(strlen(text[2]) == 32);
	for (i = 0; i < 16; i++)
		CHECK(sscanf(text[2] + 2 * i, "%2hhx", &a.ah_attr.grh.dgid.raw[i]) == 1);
	return a;
}

/* rtr Q DESTINATION GID RNR-TIMER */
static int do_rtr(void)
{
	struct ibv_qp_attr a = peer(qp_device[slot(0)]);

	return ibv_modify_qp(qps[arg[0]], &a, IBV_QP_STATE | TO_RTR);
}

/* rts Q TIMEOUT RETRIES RNR-RETRIES [PSN] */
static int do_rts(void)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTS, .timeout = arg[1], .retry_cnt = arg[2],
		.rnr_retry = arg[3], .max_rd_atomic = 4, .sq_psn = nargs > 4 ? arg[4] : 0,
	};

	return ibv_modify_qp(qps[slot(0)], &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

/* hasty Q: gives up soon from now on */
static int do_hasty(void)
{
	return make_hasty(qps[slot(0)]);
}

/* to Q STATE; state Q; timer Q RNR-TIMER, and what query says of it */
static int do_to(void)
{
	struct ibv_qp_attr a = { .qp_state = arg[1] };

	return ibv_modify_qp(qps[slot(0)], &a, IBV_QP_STATE);
}

static int do_state(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;
	int ret = ibv_query_qp(qps[slot(0)], &a, IBV_QP_STATE | IBV_QP_DEST_QPN |
			       IBV_QP_MIN_RNR_TIMER, &init);

	if (!ret)
		say(" %d %u %u", a.qp_state, a.dest_qp_num, a.min_rnr_timer);
	return ret;
}

/* source Q: which of the port's GIDs it has. */
static int do_source(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;
	int ret = ibv_query_qp(qps[slot(0)], &a, IBV_QP_AV, &init);

	if (!ret)
		say(" %d", a.ah_attr.grh.sgid_index);
	return ret;
}

/* alternate Q: sets a path to migrate to. */
static int do_alternate(void)
{
	struct ibv_qp_attr a = { .alt_port_num = 1, .alt_timeout = 14 };

	return ibv_modify_qp(qps[slot(0)], &a, IBV_QP_ALT_PATH);
}

static int do_timer(void)
{
	struct ibv_qp_attr a = { .min_rnr_timer = arg[1] };

	return ibv_modify_qp(qps[slot(0)], &a, IBV_QP_MIN_RNR_TIMER);
}

/* ---- receive QPs by number ---- */

/* rcv X DESTINATION GID RNR-TIMER ACCESS: answers the number */
static int do_rcv(void)
{
	struct ibv_qp_attr a = peer(xrcd_device[slot(0)]);
	uint32_t number;
	int ret;

	a.port_num = 1;
	a.qp_access_flags = arg[4];
	ret = xroce_dv_create_xrc_rcv_qp(xrcds[arg[0]], &a, TO_RTR | IBV_QP_PKEY_INDEX |
					 IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, &number);
	if (!ret)
		say(" %u", number);
	return ret;
}

/* reg X QPN; unreg X QPN */
static int do_reg(void)
{
	return xroce_dv_reg_xrc_rcv_qp(xrcds[slot(0)], arg[1]);
}

static int do_unreg(void)
{
	return xroce_dv_unreg_xrc_rcv_qp(xrcds[slot(0)], arg[1]);
}

/* rcvto X QPN STATE; rcvstate X QPN */
static int do_rcvto(void)
{
	struct ibv_qp_attr a = { .qp_state = arg[2] };

	return xroce_dv_modify_xrc_rcv_qp(xrcds[slot(0)], arg[1], &a, IBV_QP_STATE);
}

static int do_rcvstate(void)
{
	struct ibv_qp_attr a;
	int ret = xroce_dv_query_xrc_rcv_qp(xrcds[slot(0)], arg[1], &a, IBV_QP_STATE, NULL);

	if (!ret)
		say(" %d", a.qp_state);
	return ret;
}

/* ---- traffic ---- */

/* send Q OPCODE SRQN LENGTH ID [RKEY ADDRESS] */
static int do_send(void)
{
	struct device *d = qp_device[slot(0)];
	struct ibv_sge sge = { (uintptr_t)d->buf + ROOM / 2, arg[3], d->mr[0]->lkey };
	struct ibv_send_wr *bad, wr = {
		.wr_id = arg[4], .sg_list = &sge, .num_sge = 1, .opcode = arg[1],
		.send_flags = IBV_SEND_SIGNALED, .imm_data = arg[4],
		.qp_type.xrc.remote_srqn = arg[2],
	};

	if (wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD || wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
		sge.length = 8;
		wr.wr.atomic.rkey = arg[5];
		wr.wr.atomic.remote_addr = strtoul(text[6], NULL, 0);
		wr.wr.atomic.compare_add = 0;
		wr.wr.atomic.swap = 1;
	} else if (nargs > 5) {
		wr.wr.rdma.rkey = arg[5];
		wr.wr.rdma.remote_addr = strtoul(text[6], NULL, 0);
	}
	memset(d->buf + ROOM / 2, 0xa5, 4096);
	return ibv_post_send(qps[arg[0]], &wr, &bad);
}

/*
 * poll D COUNT SECONDS: up to so many completions, as
 * status:opcode:qpn:id:immediate:length.
 */
static int do_poll(void)
{
	double end = deadline(arg[2]);
	long count = arg[1];
	struct ibv_wc wc;
	int n;

	while (count > 0) {
		n = ibv_poll_cq(device(0)->cq, 1, &wc);
		/* The device has gone. */
		if (n < 0)
			return EIO;
		if (n) {
			say(" %d:%d:%u:%lu:%u:%u", wc.status, wc.opcode, wc.qp_num,
			    (unsigned long)wc.wr_id, wc.wc_flags & IBV_WC_WITH_IMM ? wc.imm_data : 0,
			    wc.byte_len);
			count--;
		} else if (is_past(end)) {
			break;
		} else {
			usleep(10);
		}
	}
	return 0;
}

static int is_of_srq(enum ibv_event_type type)
{
	return type == IBV_EVENT_SRQ_ERR || type == IBV_EVENT_SRQ_LIMIT_REACHED;
}

static int is_of_qp(enum ibv_event_type type)
{
	return (type >= IBV_EVENT_QP_FATAL && type <= IBV_EVENT_PATH_MIG_ERR) ||
	       type == IBV_EVENT_QP_LAST_WQE_REACHED;
}

/*
 * events D COUNT SECONDS: waits for so many, then takes what else is there; as
 * type:slot, where the slot is that of the QP or SRQ, -1 for other objects, -2
 * for a receive QP by number.
 */
static int do_events(void)
{
	struct ibv_context *ctx = device(0)->ctx;
	struct ibv_async_event ev;
	long count = arg[1];

	while (readable(ctx->async_fd, count > 0 ? arg[2] : 0)) {
		enum ibv_event_type type;
		uint32_t number;
		int i, found = -1;

		if (ibv_get_async_event(ctx, &ev))
			break;
		if (xroce_dv_is_xrc_rcv_qp_event(&ev, &type, &number)) {
			say(" %d:-2", type);
			ibv_ack_async_event(&ev);
			count--;
			continue;
		}
		for (i = 0; i < SLOTS && found < 0; i++)
			if (is_of_srq(ev.event_type) ? ev.element.srq == srqs[i] :
			    is_of_qp(ev.event_type) && ev.element.qp == qps[i])
				found = i;
		say(" %d:%d", ev.event_type, found);
		/* One that was made by a raw command is none of the library's. */
		if (!is_of_qp(ev.event_type) || ev.element.qp)
			ibv_ack_async_event(&ev);
		count--;
	}
	return 0;
}

/* ---- past the library ---- */

/* handles: the kernel's numbers. handle KIND SLOT */
static int do_handle(void)
{
	switch (text[0][0]) {
	case 'q': say(" %u", qps[slot(1)]->handle); break;
	case 's': say(" %u", srqs[slot(1)]->handle); break;
	case 'p': say(" %u", device(1)->pd[0]->handle); break;
	case 'c': say(" %u", device(1)->cq->handle); break;
	/* The domain's is in a part of the structure that is not public. */
	default: return EINVAL;
	}
	return 0;
}

/*
 * raw D COMMAND HEX RESPONSE-BYTES: one write() on the device's file. A zero
 * response address is replaced by a buffer's; the answer is its content.
 */
static int do_raw(void)
{
	static uint8_t request[4096], response[4096];
	struct ib_uverbs_cmd_hdr header = { .command = arg[1], .out_words = arg[3] / 4 };
	size_t bytes = strcmp(text[2], "-") ? strlen(text[2]) / 2 : 0, i;
	uint64_t at = (uintptr_t)response, zero = 0;

	CHECK(bytes + sizeof(header) <= sizeof(request) && arg[3] <= (long)sizeof(response));
	header.in_words = (bytes + sizeof(header)) / 4;
	memcpy(request, &header, sizeof(header));
	for (i = 0; i < bytes; i++)
		CHECK(sscanf(text[2] + 2 * i, "%2hhx", &request[sizeof(header) + i]) == 1);
	if (arg[3] && !memcmp(request + sizeof(header), &zero, 8))
		memcpy(request + sizeof(header), &at, 8);
	memset(response, 0, sizeof(response));
	if (write(device(0)->ctx->cmd_fd, request, bytes + sizeof(header)) < 0)
		return errno;
	say(" ");
	for (i = 0; i < (size_t)arg[3]; i++)
		say("%02x", response[i]);
	return 0;
}

/*
 * ioctl D METHOD ID:LENGTH:DATA...: a method of xroce's on XRC domains; answers
 * each attribute's data as it is then.
 */
static int do_ioctl(void)
{
	struct raw raw;
	int i, ret;

	raw_begin(&raw, arg[1]);
	CHECK(nargs - 2 <= RAW_ATTRS);
	for (i = 2; i < nargs; i++) {
		unsigned int id, len;
		unsigned long data;

		CHECK(sscanf(text[i], "%u:%u:%lu", &id, &len, &data) == 3);
		raw_attr(&raw, id, len, data);
	}
	ret = raw_call(device(0)->ctx, &raw);
	for (i = 0; !ret && i < raw.hdr.num_attrs; i++)
		say(" %lu", (unsigned long)raw.attrs[i].data);
	return ret;
}

/* churn D FD COUNT: opens and closes a domain so often. */
static int do_churn(void)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = arg[1], .oflags = O_CREAT,
	};
	struct ibv_xrcd *xrcd;
	int ret;

	while (arg[2]-- > 0) {
		ret = MADE(&xrcd, ibv_open_xrcd(device(0)->ctx, &attr));
		if (!ret)
			ret = ibv_close_xrcd(xrcd);
		if (ret)
			return ret;
	}
	return 0;
}

static const struct {
	const char *name;
	int nargs;
	int (*run)(void);
} commands[] = {
#define COMMAND(name, nargs) { #name, nargs, do_##name }
	COMMAND(device, 3), COMMAND(close, 1), COMMAND(fd, 2), COMMAND(unfd, 1), COMMAND(fork, 0),
	COMMAND(exit, 1), COMMAND(xrcd, 4), COMMAND(unxrcd, 1), COMMAND(srq, 5), COMMAND(basic, 2),
	COMMAND(unsrq, 1), COMMAND(spoil, 1), COMMAND(limit, 2), COMMAND(getlimit, 1), COMMAND(post, 3),
	COMMAND(tgt, 3), COMMAND(view, 4), COMMAND(ini, 2), COMMAND(unqp, 1), COMMAND(mr, 4),
	COMMAND(unmr, 1), COMMAND(bytes, 3), COMMAND(init, 2), COMMAND(rtr, 4), COMMAND(rts, 4),
	COMMAND(hasty, 1), COMMAND(to, 2), COMMAND(state, 1), COMMAND(timer, 2), COMMAND(source, 1),
	COMMAND(alternate, 1), COMMAND(send, 5), COMMAND(poll, 3),
	COMMAND(events, 3), COMMAND(handle, 2), COMMAND(raw, 4), COMMAND(churn, 3),
	COMMAND(rcv, 5), COMMAND(reg, 2), COMMAND(unreg, 2), COMMAND(rcvto, 3), COMMAND(rcvstate, 2),
	COMMAND(ioctl, 2),
};

int main(void)
{
	static char line[16384];
	size_t i;
	int ret;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (fgets(line, sizeof(line), stdin)) {
		char *name = strtok(line, " \n");

		if (!name)
			continue;
		for (nargs = 0; nargs < 16 && (text[nargs] = strtok(NULL, " \n")); nargs++)
			arg[nargs] = strtol(text[nargs], NULL, 0);
		for (i = 0; i < sizeof(commands) / sizeof(*commands); i++)
			if (!strcmp(commands[i].name, name))
				break;
		CHECK(i < sizeof(commands) / sizeof(*commands));
		CHECK(nargs >= commands[i].nargs);
		answer[0] = 0;
		ret = commands[i].run();
		if (ret)
			printf("errno %d\n", ret < 0 ? -ret : ret);
		else
			printf("ok%s\n", answer);
		fflush(stdout);
	}
	return 0;
}
