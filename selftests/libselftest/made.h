/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One object of each kind in a context, with the kernel's handles: the program's own
 * objects, and those of another context. Also checks of refused calls, which must
 * neither create nor change anything.
 */
#ifndef SELFTEST_MADE_H
#define SELFTEST_MADE_H

#include <fcntl.h>

#include "devices.h"

enum kind { PD, MR, MW, CQ, QP, SRQ, AH, XRCD, DM, KINDS, NONE = KINDS };

extern const char *const kind_names[KINDS];

#define FILLERS 64

struct made {
	struct ibv_context *ctx;
	struct ibv_pd *pd, *filler[FILLERS];
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_srq *srq;
	struct ibv_ah *ah;
	struct ibv_xrcd *xrcd;
	struct ibv_dm *dm;
	union ibv_gid gid;
	uint32_t handle[KINDS];
	uint8_t buf[8192] __attribute__((aligned(4096)));
};

struct ibv_ah_attr address_of(const struct devices *on, const union ibv_gid *gid);

/* One of each kind in context CTX. */
void make_in(const struct devices *on, struct made *m, struct ibv_context *ctx);

/* The same in a context of their own, with handles from FIRST on, up to FILLERS. */
void make_all(const struct devices *on, struct made *m, int first);

/* Nothing is in use by what was refused, or one of these is EBUSY. */
void unmake(struct made *m);

void free_all(struct made *m);

/* What the kernel has of queues, regions and so on, of all processes, in a line. */
void census(char *line, size_t size);

/* What GOT is must be WANTED; WHAT says of what. */
void expect_errno(const char *what, int got, int wanted);

/* MAKE gives nothing, and ERR. */
#define REFUSED(err, make)						\
	do {								\
		errno = 0;						\
		expect_errno(#make, (make) ? 0 : errno, err);		\
	} while (0)

/* CALL returns ERR. */
#define RETURNS(err, call) expect_errno(#call, call, err)

struct owned {
	struct devices on;
	struct made ours, theirs;
	/* What the kernel had when a case began. */
	char at_first[4096];
};

/* Around what is refused: there is as much as before, and all of it can go. */
void begin_owned(struct owned *self);

void end_owned(struct owned *self);

#endif /* SELFTEST_MADE_H */
