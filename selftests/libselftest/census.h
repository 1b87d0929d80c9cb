/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Counts objects in the kernel: objects of all RDMA devices as `rdma res` counts them,
 * memory that this process has pinned, and its open files. Also creates and removes
 * links as `rdma link` does.
 */
#ifndef SELFTEST_CENSUS_H
#define SELFTEST_CENSUS_H

#include <dirent.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <sys/socket.h>

#include "check.h"

struct census {
	uint8_t objects[8192];
	size_t len;
	int pinned, files;
};

struct rdma_request {
	struct nlmsghdr hdr;
	uint8_t attrs[256];
};

/* The number of an operation in requests and answers. */
#define RDMA_OP(op) RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_##op)

void rdma_begin(struct rdma_request *r, uint16_t op, uint16_t flags);

void rdma_attr(struct rdma_request *r, uint16_t type, const void *data, size_t len);

void rdma_send(struct rdma_request *r);

/* The value of errno that the kernel answers with, or 0. */
int rdma_ack(void);

void take_census(struct census *c);

/* Is all as it was? */
int is_census(const struct census *before);

#endif /* SELFTEST_CENSUS_H */
