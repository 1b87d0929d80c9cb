// SPDX-License-Identifier: GPL-2.0
/*
 * XRC receive QPs by number (<infiniband/xroce_dv.h>): targets for which processes
 * register and of which no process has an object.
 *
 *   rcvqp                                               lists the cases
 *   rcvqp CASE SERVER-DEVICE GID-INDEX CLIENT-DEVICE GID-INDEX
 *   rcvqp until_removed ...                             says "ready" when it is
 *                                                       registered, "closed" when
 *                                                       the device is gone
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "rcvqp.h"

/* ---- in a child ---- */

/* Are all attributes of QP ARG as create() set them? */
static uint32_t as_made(struct peer *p, const struct message *m)
{
	struct ibv_qp_attr attr, made = connected_to(0, &m->client, p->on->gid_index[SERVER]);

	memset(&attr, 0xff, sizeof(attr));
	CHECK(!xroce_dv_query_xrc_rcv_qp(p->xrcd, m->arg, &attr, USUAL, NULL));
	CHECK(attr.qp_state == IBV_QPS_RTR);
	CHECK(attr.qp_access_flags == made.qp_access_flags);
	CHECK(attr.port_num == 1 && attr.pkey_index == 0);
	CHECK(attr.path_mtu == made.path_mtu && attr.rq_psn == made.rq_psn);
	CHECK(attr.max_dest_rd_atomic == 3 && attr.min_rnr_timer == 1);
	CHECK(attr.max_rd_atomic == 0 && attr.retry_cnt == 0);
	CHECK(attr.ah_attr.is_global && attr.ah_attr.port_num == 1);
	/* The hop limit is the one that ib_core found. */
	CHECK(attr.ah_attr.grh.sgid_index == p->on->gid_index[SERVER] &&
	      attr.ah_attr.grh.hop_limit);
	CHECK(!memcmp(&attr.ah_attr.grh.dgid, &m->client, 16));
	return attr.dest_qp_num;
}

/* Brings QP ARG from the error state back to where create() left it. */
static uint32_t revive(struct peer *p, const struct message *m)
{
	struct ibv_qp_attr attr = connected_to(m->extra, &m->client, p->on->gid_index[SERVER]);

	attr.qp_state = IBV_QPS_RTR;
	CHECK(xroce_dv_modify_xrc_rcv_qp(p->xrcd, m->arg, &attr, TO_RTR) == EINVAL);
	attr.qp_state = IBV_QPS_RESET;
	CHECK(!xroce_dv_modify_xrc_rcv_qp(p->xrcd, m->arg, &attr, IBV_QP_STATE));
	attr.qp_state = IBV_QPS_INIT;
	CHECK(!xroce_dv_modify_xrc_rcv_qp(p->xrcd, m->arg, &attr, TO_INIT));
	attr.qp_state = IBV_QPS_RTR;
	CHECK(xroce_dv_modify_xrc_rcv_qp(p->xrcd, m->arg, &attr, TO_RTR & ~IBV_QP_AV) == EINVAL);
	CHECK(!xroce_dv_modify_xrc_rcv_qp(p->xrcd, m->arg, &attr, TO_RTR));
	return 0;
}

/* Gives QP ARG a peer at an address that nobody has; an errno value. */
static uint32_t to_nobody(struct peer *p, const struct message *m)
{
	struct ibv_qp_attr attr = connected_to(1, &m->client, p->on->gid_index[SERVER]);

	attr.qp_state = IBV_QPS_RTR;
	attr.ah_attr.grh.dgid.raw[15] = 99;
	return xroce_dv_modify_xrc_rcv_qp(p->xrcd, m->arg, &attr, TO_RTR);
}

/* Makes a receive QP for the client's QP ARG that goes with the domain only; its number. */
static uint32_t create_persistent(struct peer *p, const struct message *m)
{
	struct ibv_qp_attr attr = connected_to(m->arg, &m->client, p->on->gid_index[SERVER]);
	uint32_t qpn = 0;

	CHECK(!xroce_dv_create_xrc_rcv_qp_ex(p->xrcd, &attr, USUAL,
					     XROCE_DV_XRC_RCV_QP_PERSISTENT, &qpn));
	return qpn;
}

/* Receives a message through QP ARG; the number that it bears. */
static uint32_t receive(struct peer *p, const struct message *m)
{
	struct ibv_wc wc;

	CHECK(next_wc(p->cq, &wc) == 1);
	CHECK(wc.status == IBV_WC_SUCCESS && wc.opcode == IBV_WC_RECV);
	CHECK(wc.byte_len == SIZE && wc.qp_num == m->arg && (wc.wc_flags & IBV_WC_WITH_IMM));
	CHECK(p->buf[wc.wr_id * SIZE] == (uint8_t)wc.imm_data);
	CHECK(p->buf[wc.wr_id * SIZE + SIZE - 1] == (uint8_t)wc.imm_data);
	return wc.imm_data;
}

/* Waits for an event of QP ARG; its type. */
static uint32_t await_event(struct peer *p, const struct message *m)
{
	struct ibv_async_event ev;
	enum ibv_event_type type;
	uint32_t qpn;

	while (readable(p->ctx->async_fd, 20)) {
		CHECK(!ibv_get_async_event(p->ctx, &ev));
		ibv_ack_async_event(&ev);
		if (!xroce_dv_is_xrc_rcv_qp_event(&ev, &type, &qpn))
			continue;
		CHECK(qpn == m->arg);
		return type;
	}
	CHECK(!"an event");
	return 0;
}

/* Is there an event? All that were to come have come elsewhere. */
static uint32_t has_event(struct peer *p, const struct message *m)
{
	struct pollfd fd = { .fd = p->ctx->async_fd, .events = POLLIN };

	(void)m;
	return poll(&fd, 1, 0) == 1;
}

/* ---- in the program ---- */

/* Sends message N to SRQ number SRQN; how it completed. */
static enum ibv_wc_status send_to(struct client *c, uint32_t srqn, uint32_t n)
{
	memset(c->buf, n, SIZE);
	return send_buffer(c, srqn, n, n);
}

/* ---- the cases ---- */

/* Made by one process, received by another; everyone of the domain can ask. */
static void traffic(struct domains *self)
{
	struct child maker = start(self), other = start(self);
	uint32_t qpn, srqn, n;
	struct client c;

	make_client(&self->on, &c);
	qpn = tell(&self->on, &maker, create, c.qp->qp_num);
	CHECK(targets() == 1 && shown(qpn, 0, 1) == 1);
	connect_client(&self->on, &c, qpn);
	srqn = tell(&self->on, &other, make_srq, DEPTH);
	for (n = 0; n < DEPTH; n++) {
		CHECK(send_to(&c, srqn, n) == IBV_WC_SUCCESS);
		CHECK(tell(&self->on, &other, receive, qpn) == n);
	}
	CHECK(tell(&self->on, &other, as_made, qpn) == c.qp->qp_num);
	CHECK(targets() == 1);
	CHECK(tell(&self->on, &maker, unreg, qpn) == 0);
	CHECK(targets() == 0);
	CHECK(tell(&self->on, &maker, close_domain, 0) == 0);
	end_child(&maker);
	CHECK(tell(&self->on, &other, close_domain, 0) == 0);
	end_child(&other);
}

/* The maker is killed; the other who is registered keeps the QP. */
static void maker_killed(struct domains *self)
{
	struct child maker = start(self), other = start(self);
	uint32_t qpn, srqn, n;
	struct client c;

	make_client(&self->on, &c);
	qpn = tell(&self->on, &maker, create, c.qp->qp_num);
	connect_client(&self->on, &c, qpn);
	CHECK(tell(&self->on, &other, reg, qpn) == 0);
	CHECK(shown(qpn, 0, 2) == 1);
	srqn = tell(&self->on, &other, make_srq, DEPTH);
	kill_child(&maker);
	CHECK(targets() == 1 && shown(qpn, 0, 1) == 1);
	for (n = 0; n < 10; n++) {
		CHECK(send_to(&c, srqn, n) == IBV_WC_SUCCESS);
		CHECK(tell(&self->on, &other, receive, qpn) == n);
	}
	/* The last one out. */
	CHECK(tell(&self->on, &other, unreg, qpn) == 0);
	CHECK(targets() == 0);
	CHECK(tell(&self->on, &other, state, qpn) == 100 + EINVAL);
	unanswered(&c, srqn);
	end_child(&other);
}

/* The rule of the proposal: the QP goes with the domain, whoever made it or was registered. */
static void persistent(struct domains *self)
{
	struct child maker = start(self), other = start(self);
	struct child third = start(self);
	uint32_t qpn, srqn, n;
	struct client c;

	make_client(&self->on, &c);
	qpn = tell(&self->on, &maker, create_persistent, c.qp->qp_num);
	connect_client(&self->on, &c, qpn);
	/* The others have only their SRQs. */
	srqn = tell(&self->on, &other, make_srq, DEPTH);
	kill_child(&maker);
	CHECK(shown(qpn, 0, 0) == 1);
	for (n = 0; n < 5; n++) {
		CHECK(send_to(&c, srqn, n) == IBV_WC_SUCCESS);
		CHECK(tell(&self->on, &other, receive, qpn) == n);
	}
	/* Those who come and go do it no harm. */
	CHECK(tell(&self->on, &third, reg, qpn) == 0);
	CHECK(tell(&self->on, &third, unreg, qpn) == 0);
	CHECK(tell(&self->on, &third, open_view, qpn) == 0);
	CHECK(tell(&self->on, &third, destroy_view, 0) == 0);
	CHECK(shown(qpn, 0, 0) == 1);
	CHECK(send_to(&c, srqn, n) == IBV_WC_SUCCESS);
	CHECK(tell(&self->on, &other, receive, qpn) == n);
	end_child(&third);
	CHECK(targets() == 1);
	end_child(&other);
	CHECK(targets() == 0);
	unanswered(&c, srqn);
}

/* Nobody is registered but the maker, who is killed or exits. */
static void maker_alone(struct domains *self)
{
	struct child maker = start(self), other = start(self);
	struct client c;
	uint32_t qpn;

	make_client(&self->on, &c);
	qpn = tell(&self->on, &maker, create, c.qp->qp_num);
	CHECK(tell(&self->on, &other, state, qpn) == IBV_QPS_RTR);
	kill_child(&maker);
	CHECK(targets() == 0);
	CHECK(tell(&self->on, &other, state, qpn) == 100 + EINVAL);
	maker = start(self);
	qpn = tell(&self->on, &maker, create, c.qp->qp_num);
	CHECK(targets() == 1);
	end_child(&maker);
	CHECK(targets() == 0);
	end_child(&other);
}

/* Closes the device, and leaves all that the process made there as it is. */
static uint32_t close_context(struct peer *p, const struct message *m)
{
	return ibv_close_device(p->ctx);
}

/* A closed device leaves its targets to the domain at once, whatever else was left behind there. */
static void device_closed(struct domains *self)
{
	struct child maker = start(self), other = start(self);
	uint32_t made, by_number;
	struct client c;

	make_client(&self->on, &c);
	made = tell(&self->on, &maker, make_view, 0);
	by_number = tell(&self->on, &maker, create, c.qp->qp_num);
	tell(&self->on, &maker, make_srq, DEPTH);
	CHECK(shown(made, 1, 0) == 1 && shown(by_number, 0, 1) == 1);
	CHECK(tell(&self->on, &maker, close_context, 0) == 0);
	CHECK(shown(made, 0, 0) == 1 && targets() == 1);
	CHECK(tell(&self->on, &other, state, made) == IBV_QPS_RESET);
	/* The last one's close ends the domain. */
	tell(&self->on, &other, make_srq, DEPTH);
	CHECK(tell(&self->on, &other, close_context, 0) == 0);
	CHECK(targets() == 0);
	end_child(&maker);
	end_child(&other);
}

/* Who is registered cannot close the domain, and nothing changes. */
static void domain_busy(struct domains *self)
{
	struct child maker = start(self), other = start(self);
	struct client c;
	uint32_t qpn;

	make_client(&self->on, &c);
	qpn = tell(&self->on, &maker, create, c.qp->qp_num);
	CHECK(tell(&self->on, &maker, close_domain, 0) == EBUSY);
	CHECK(tell(&self->on, &maker, state, qpn) == IBV_QPS_RTR);
	CHECK(tell(&self->on, &other, close_domain, 0) == 0);
	CHECK(tell(&self->on, &maker, close_domain, 0) == EBUSY);
	CHECK(tell(&self->on, &maker, unreg, qpn) == 0);
	CHECK(tell(&self->on, &maker, close_domain, 0) == 0);
	CHECK(targets() == 0);
	end_child(&maker);
	end_child(&other);
}

/* Registration is a state, not a count; of each context. */
static void registered_once(struct domains *self)
{
	struct child maker = start(self), other = start(self);
	struct client c;
	uint32_t qpn;

	make_client(&self->on, &c);
	qpn = tell(&self->on, &maker, create, c.qp->qp_num);
	CHECK(tell(&self->on, &maker, reg, qpn) == 0);
	CHECK(tell(&self->on, &other, reg, qpn) == 0);
	CHECK(tell(&self->on, &other, reg, qpn) == 0);
	CHECK(shown(qpn, 0, 2) == 1);
	CHECK(tell(&self->on, &other, unreg, qpn) == 0);
	CHECK(tell(&self->on, &other, unreg, qpn) == EINVAL);
	CHECK(shown(qpn, 0, 1) == 1);
	CHECK(tell(&self->on, &other, reg, qpn) == 0);
	CHECK(tell(&self->on, &maker, unreg, qpn) == 0);
	CHECK(shown(qpn, 0, 1) == 1);
	CHECK(tell(&self->on, &other, unreg, qpn) == 0);
	CHECK(targets() == 0);
	CHECK(tell(&self->on, &other, reg, qpn) == EINVAL);
	end_child(&maker);
	end_child(&other);
}

/* A view holds it as well: ibv_open_qp() of a QP that was made by number. */
static void held_by_view(struct domains *self)
{
	struct child maker = start(self), other = start(self);
	struct client c;
	uint32_t qpn;

	make_client(&self->on, &c);
	qpn = tell(&self->on, &maker, create, c.qp->qp_num);
	CHECK(tell(&self->on, &other, open_view, qpn) == 0);
	CHECK(shown(qpn, 1, 1) == 1);
	CHECK(tell(&self->on, &maker, unreg, qpn) == 0);
	CHECK(shown(qpn, 1, 0) == 1);
	CHECK(tell(&self->on, &maker, state, qpn) == IBV_QPS_RTR);
	kill_child(&other);
	CHECK(targets() == 0);

	/* The other way round: destroyed while somebody is registered. */
	other = start(self);
	qpn = tell(&self->on, &maker, create, c.qp->qp_num);
	CHECK(tell(&self->on, &other, open_view, qpn) == 0);
	CHECK(tell(&self->on, &other, destroy_view, 0) == 0);
	CHECK(shown(qpn, 0, 1) == 1);
	CHECK(tell(&self->on, &maker, unreg, qpn) == 0);
	CHECK(targets() == 0);
	end_child(&maker);
	end_child(&other);
}

/* A target that was made with an object belongs to its domain: it goes neither
 * with its maker nor with its last registration, but with the domain. */
static void with_domain(struct domains *self)
{
	struct child maker = start(self), other = start(self);
	uint32_t qpn = tell(&self->on, &maker, make_view, 0);

	CHECK(tell(&self->on, &other, reg, qpn) == 0);
	CHECK(shown(qpn, 1, 1) == 1);
	kill_child(&maker);
	CHECK(shown(qpn, 0, 1) == 1);
	CHECK(tell(&self->on, &other, unreg, qpn) == 0);
	CHECK(shown(qpn, 0, 0) == 1);
	CHECK(tell(&self->on, &other, state, qpn) == IBV_QPS_RESET);
	CHECK(tell(&self->on, &other, close_domain, 0) == 0);
	CHECK(targets() == 0);

	/* Destroyed by its maker, it lives on for who is registered. */
	maker = start(self);
	end_child(&other);
	other = start(self);
	qpn = tell(&self->on, &maker, make_view, 0);
	CHECK(tell(&self->on, &other, reg, qpn) == 0);
	CHECK(tell(&self->on, &maker, destroy_view, 0) == 0);
	CHECK(shown(qpn, 0, 1) == 1);
	CHECK(tell(&self->on, &other, unreg, qpn) == 0);
	CHECK(targets() == 0);
	end_child(&maker);
	end_child(&other);
}

/* Who is not registered modifies; the connection breaks and comes back. */
static void modified_by_other(struct domains *self)
{
	struct child maker = start(self), other = start(self);
	uint32_t qpn, srqn;
	struct client c;

	make_client(&self->on, &c);
	qpn = tell(&self->on, &maker, create, c.qp->qp_num);
	connect_client(&self->on, &c, qpn);
	srqn = tell(&self->on, &maker, make_srq, DEPTH);
	CHECK(send_to(&c, srqn, 1) == IBV_WC_SUCCESS);
	CHECK(tell(&self->on, &maker, receive, qpn) == 1);
	CHECK(tell(&self->on, &other, to_error, qpn) == 0);
	CHECK(tell(&self->on, &maker, state, qpn) == IBV_QPS_ERR);
	unanswered(&c, srqn);
	tell2(&self->on, &other, revive, qpn, c.qp->qp_num);
	CHECK(tell(&self->on, &maker, as_made, qpn) == c.qp->qp_num);
	connect_client(&self->on, &c, qpn);
	CHECK(send_to(&c, srqn, 3) == IBV_WC_SUCCESS);
	CHECK(tell(&self->on, &maker, receive, qpn) == 3);
	end_child(&other);
	end_child(&maker);
	CHECK(targets() == 0);
}

/* Everyone who is registered hears of an event, and nobody else. */
static void events(struct domains *self)
{
	struct child maker = start(self), other = start(self);
	struct child third = start(self);
	struct client c;
	uint32_t qpn;

	make_client(&self->on, &c);
	qpn = tell(&self->on, &maker, create, c.qp->qp_num);
	connect_client(&self->on, &c, qpn);
	CHECK(tell(&self->on, &other, reg, qpn) == 0);
	CHECK(tell(&self->on, &third, reg, qpn) == 0);
	CHECK(tell(&self->on, &third, unreg, qpn) == 0);
	CHECK(send_to(&c, 0xfffff0, 1) == IBV_WC_REM_INV_REQ_ERR);
	CHECK(tell(&self->on, &maker, await_event, qpn) == IBV_EVENT_COMM_EST);
	CHECK(tell(&self->on, &maker, await_event, qpn) == IBV_EVENT_QP_ACCESS_ERR);
	CHECK(tell(&self->on, &maker, await_event, qpn) == IBV_EVENT_QP_LAST_WQE_REACHED);
	CHECK(tell(&self->on, &other, await_event, qpn) == IBV_EVENT_COMM_EST);
	CHECK(tell(&self->on, &other, await_event, qpn) == IBV_EVENT_QP_ACCESS_ERR);
	CHECK(tell(&self->on, &other, await_event, qpn) == IBV_EVENT_QP_LAST_WQE_REACHED);
	CHECK(!tell(&self->on, &third, has_event, 0) && !tell(&self->on, &maker, has_event, 0));
	CHECK(tell(&self->on, &third, state, qpn) == IBV_QPS_ERR);
	kill_child(&maker);
	end_child(&third);
	end_child(&other);
	CHECK(targets() == 0);
}

/* Of two opens of a domain, the one that the registration was made through stays. */
static void two_opens(struct domains *self)
{
	struct ibv_context *ctx = open_device(self->on.name[SERVER]);
	struct ibv_xrcd *first = open_domain(ctx, self->domain_file);
	struct ibv_xrcd *second = open_domain(ctx, self->domain_file);
	struct ibv_qp_attr attr;
	struct client c;
	uint32_t qpn;

	make_client(&self->on, &c);
	attr = connected_to(c.qp->qp_num, &c.server, self->on.gid_index[SERVER]);
	attr.qp_state = IBV_QPS_RTR;
	CHECK(!xroce_dv_create_xrc_rcv_qp(first, &attr, USUAL, &qpn));
	CHECK(!xroce_dv_reg_xrc_rcv_qp(second, qpn));
	CHECK(ibv_close_xrcd(first) == EBUSY);
	CHECK(!ibv_close_xrcd(second));
	CHECK(targets() == 1);
	CHECK(!xroce_dv_unreg_xrc_rcv_qp(first, qpn));
	CHECK(!ibv_close_xrcd(first));
	CHECK(targets() == 0);
}

/* Many at once, from several processes, all killed. */
static void many(struct domains *self)
{
	struct child makers[4];
	struct client c;
	uint32_t i, j;

	make_client(&self->on, &c);
	for (i = 0; i < 4; i++)
		makers[i] = start(self);
	for (j = 0; j < 25; j++)
		for (i = 0; i < 4; i++) {
			uint32_t qpn = tell(&self->on, &makers[i], create, c.qp->qp_num);

			CHECK(tell(&self->on, &makers[(i + 1) % 4], reg, qpn) == 0);
		}
	CHECK(targets() == 100);
	for (i = 0; i < 4; i++)
		CHECK(!kill(makers[i].pid, SIGKILL));
	for (i = 0; i < 4; i++)
		CHECK(waitpid(makers[i].pid, NULL, 0) == makers[i].pid);
	CHECK(targets() == 0);
}

/* Not a case of its own: registered until the device is gone or stdin ends. */
static void until_removed(struct domains *self)
{
	struct ibv_context *ctx = open_device(self->on.name[SERVER]);
	struct ibv_xrcd *xrcd = open_domain(ctx, self->domain_file);
	struct ibv_async_event ev;
	struct ibv_qp_attr attr;
	struct client c;
	uint32_t qpn;

	make_client(&self->on, &c);
	attr = connected_to(c.qp->qp_num, &c.server, self->on.gid_index[SERVER]);
	CHECK(!xroce_dv_create_xrc_rcv_qp(xrcd, &attr, USUAL, &qpn));
	printf("ready %u\n", qpn);
	CHECK(next_event(ctx, IBV_EVENT_DEVICE_FATAL, &ev));
	CHECK(xroce_dv_query_xrc_rcv_qp(xrcd, qpn, &attr, 0, NULL) == EIO);
	CHECK(xroce_dv_reg_xrc_rcv_qp(xrcd, qpn) == EIO);
	CHECK(xroce_dv_unreg_xrc_rcv_qp(xrcd, qpn) == EIO);
	printf("closed\n");
}

/* Does process C sleep in system call NUMBER? */
static int sleeps_in(const struct child *c, int number)
{
	char path[64], word[16] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/syscall", c->pid);
	f = fopen(path, "r");
	CHECK(f && fscanf(f, "%15s", word) == 1);
	fclose(f);
	/* Else the word is "running". */
	return word[0] >= '0' && word[0] <= '9' && atoi(word) == number;
}

/*
 * It ends while another process' call on it sleeps, for an address that never
 * answers: nobody is shown it any more. False when the call ended too soon.
 */
static int ended_during_call(struct domains *self, struct child *maker, struct child *other,
			     uint32_t peer)
{
	struct message m = { .run = to_nobody, .arg = tell(&self->on, maker, create, peer) };
	struct pollfd answered = { .fd = other->fd, .events = POLLIN };
	uint32_t answer;
	int slept, left;

	memset(m.client.raw + 10, 0xff, 2);
	memcpy(m.client.raw + 12, "\x0a\x07\0\0", 4);
	CHECK(write(other->fd, &m, sizeof(m)) == sizeof(m));
	while (!sleeps_in(other, SYS_ioctl) && poll(&answered, 1, 1) == 0)
		;
	CHECK(tell(&self->on, maker, unreg, m.arg) == 0);
	left = targets();
	slept = sleeps_in(other, SYS_ioctl);
	CHECK(read(other->fd, &answer, sizeof(answer)) == sizeof(answer));
	CHECK(answer);
	CHECK(!slept || left == 0);
	CHECK(targets() == 0);
	return slept;
}

static void not_shown_after(struct domains *self)
{
	struct child maker = start(self), other = start(self);
	struct client c;
	int i;

	make_client(&self->on, &c);
	for (i = 0; i < 5 && !ended_during_call(self, &maker, &other, c.qp->qp_num); i++)
		;
	if (i == 5)
		printf("# no call was still asleep\n");
	end_child(&maker);
	end_child(&other);
}

static const CASES(struct domains) cases[] = {
	{ "traffic", traffic },
	{ "maker_killed", maker_killed },
	{ "persistent", persistent },
	{ "maker_alone", maker_alone },
	{ "device_closed", device_closed },
	{ "domain_busy", domain_busy },
	{ "registered_once", registered_once },
	{ "held_by_view", held_by_view },
	{ "with_domain", with_domain },
	{ "modified_by_other", modified_by_other },
	{ "events", events },
	{ "two_opens", two_opens },
	{ "many", many },
	{ "not_shown_after", not_shown_after },
	{ NULL, NULL },
};

static const CASES(struct domains) removal[] = {
	{ "until_removed", until_removed },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	static struct domains self;

	if (argc > 1 && !strcmp(argv[1], removal->name))
		return RUN_CASES_AROUND(&self, removal, make_files, remove_files, argc, argv);
	return RUN_CASES_AROUND(&self, cases, make_files, remove_files, argc, argv);
}
