/* SPDX-License-Identifier: GPL-2.0 */
/*
 * How long a sender waits for a response, for the programs in C. The time is 4.096 us
 * << timeout, and the sender tries retry_cnt times more.
 */
#ifndef SELFTEST_PATIENCE_H
#define SELFTEST_PATIENCE_H

#include <infiniband/verbs.h>

enum {
	/* 1 s, eight times: who gets an answer gets it, however busy the machine is. */
	PATIENT = 18,
	/*
	 * 4 s, eight times: for memory of the receiver that comes late, or is given up. That
	 * takes some seconds, and more on a busy machine.
	 */
	ENDURING = 20,
	/* 67 ms, eight times: what a bad wire loses is soon sent again. */
	LOSSY = 14,
	RETRIES = 7,
	/* 4 ms, three times: for who gets none. */
	HASTY = 10,
	HASTY_RETRIES = 2,
};

/*
 * Has a sender that waits for nothing at the moment give up soon from now on, by way
 * of SQD. An errno value.
 */
int make_hasty(struct ibv_qp *qp);

#endif /* SELFTEST_PATIENCE_H */
