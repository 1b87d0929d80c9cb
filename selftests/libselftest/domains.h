/* SPDX-License-Identifier: GPL-2.0 */
/*
 * XRC between processes. The program is the client, which sends; its children are the
 * processes of a domain, on the first device. The program tells a child to call one of
 * its functions with an argument; the result comes back over a socket.
 */
#ifndef SELFTEST_DOMAINS_H
#define SELFTEST_DOMAINS_H

#include <fcntl.h>
#include "children.h"
#include "devices.h"

/* Of devices and GIDs: the domain's end, and the client's. */
enum { SERVER, CLIENT };

#define DEPTH 64
#define SIZE 256

#define TO_INIT (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS)
#define TO_RTR (IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | \
		IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)

/* Two domains. */
struct domains {
	struct devices on;
	/* Their files, which make_files() makes. */
	char domain_file[64], other_file[64];
};

struct ibv_xrcd *open_domain(struct ibv_context *ctx, const char *path);

/* What an end becomes ready with to receive from QPN at GID. */
struct ibv_qp_attr connected_to(uint32_t qpn, const union ibv_gid *gid,
				int sgid_index);

/* Takes QP from any state to RTR, as ATTR says. */
void to_rtr(struct ibv_qp *qp, struct ibv_qp_attr attr);

/* How many targets there are in the kernel. */
int targets(void);

/* ---- a process of the domain ---- */

struct peer {
	const struct devices *on;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq;
	/* Its object of a target, if it has one. */
	struct ibv_qp *view;
	uint8_t *buf;
};

/* An order: RUN, with ARG, and with EXTRA where that needs a second one. */
struct message {
	uint32_t (*run)(struct peer *p, const struct message *m);
	uint32_t arg, extra;
	union ibv_gid client;
};

/* A receive into the SLOT-th piece of P's memory. */
void post_srq(struct peer *p, uint32_t slot);

/* Makes the SRQ, with ARG receives; its number. */
uint32_t make_srq(struct peer *p, const struct message *m);

/* Makes a target with an object; its number. */
uint32_t make_view(struct peer *p, const struct message *m);

/* Opens target ARG; 0 or an errno value. */
uint32_t open_view(struct peer *p, const struct message *m);

uint32_t destroy_view(struct peer *p, const struct message *m);

uint32_t close_domain(struct peer *p, const struct message *m);

/* ---- the processes, as the program sees them ---- */

/* In the first of the domains. */
struct child start(const struct domains *self);

struct child start_other(const struct domains *self);

uint32_t tell2(const struct devices *on, struct child *c,
	       uint32_t (*run)(struct peer *p, const struct message *m),
	       uint32_t arg, uint32_t extra);

uint32_t tell(const struct devices *on, struct child *c,
	      uint32_t (*run)(struct peer *p, const struct message *m), uint32_t arg);

/* ---- the client ---- */

struct client {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	union ibv_gid server;
	uint8_t *buf;
	uint8_t rnr_retry;
};

void make_client(const struct devices *on, struct client *c);

void connect_client(const struct devices *on, struct client *c, uint32_t target);

/* Sends what is in the client's buffer to SRQ number SRQN; how it completed. */
enum ibv_wc_status send_buffer(struct client *c, uint32_t srqn, uint32_t id,
			       uint32_t imm_data);

/*
 * Sends it to a target that is gone, for whose answer C, to which all has been answered,
 * would wait long.
 */
void unanswered(struct client *c, uint32_t srqn);

void make_files(struct domains *self);

void remove_files(struct domains *self);

#endif /* SELFTEST_DOMAINS_H */
