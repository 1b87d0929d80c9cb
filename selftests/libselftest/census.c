// SPDX-License-Identifier: GPL-2.0
#include "census.h"

static int rdma_socket(void)
{
	static int fd = -1;

	if (fd < 0)
		fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	CHECK(fd >= 0);
	return fd;
}

void rdma_begin(struct rdma_request *r, uint16_t op, uint16_t flags)
{
	memset(r, 0, sizeof(*r));
	r->hdr.nlmsg_len = sizeof(r->hdr);
	r->hdr.nlmsg_type = op;
	r->hdr.nlmsg_flags = NLM_F_REQUEST | flags;
}

void rdma_attr(struct rdma_request *r, uint16_t type, const void *data, size_t len)
{
	struct nlattr *attr = (void *)r + r->hdr.nlmsg_len;

	CHECK(r->hdr.nlmsg_len + NLA_HDRLEN + NLA_ALIGN(len) <= sizeof(*r));
	attr->nla_type = type;
	attr->nla_len = NLA_HDRLEN + len;
	memcpy((void *)attr + NLA_HDRLEN, data, len);
	r->hdr.nlmsg_len += NLA_HDRLEN + NLA_ALIGN(len);
}

void rdma_send(struct rdma_request *r)
{
	CHECK(send(rdma_socket(), r, r->hdr.nlmsg_len, 0) == (ssize_t)r->hdr.nlmsg_len);
}

int rdma_ack(void)
{
	struct {
		struct nlmsghdr hdr;
		struct nlmsgerr err;
		uint8_t rest[1024];
	} answer;

	CHECK(recv(rdma_socket(), &answer, sizeof(answer), 0) >= 0);
	CHECK(answer.hdr.nlmsg_type == NLMSG_ERROR);
	return -answer.err.error;
}

static void take_objects(struct census *c)
{
	static uint8_t buf[1 << 16];
	struct rdma_request r;

	rdma_begin(&r, RDMA_OP(RES_GET), NLM_F_DUMP);
	rdma_send(&r);
	c->len = 0;
	for (;;) {
		ssize_t len = recv(rdma_socket(), buf, sizeof(buf), 0);
		struct nlmsghdr *hdr = (void *)buf;

		CHECK(len > 0);
		for (; NLMSG_OK(hdr, len); hdr = NLMSG_NEXT(hdr, len)) {
			size_t n = hdr->nlmsg_len - NLMSG_HDRLEN;

			if (hdr->nlmsg_type == NLMSG_DONE)
				return;
			CHECK(hdr->nlmsg_type == RDMA_OP(RES_GET));
			CHECK(c->len + n <= sizeof(c->objects));
			memcpy(c->objects + c->len, NLMSG_DATA(hdr), n);
			c->len += n;
		}
	}
}

void take_census(struct census *c)
{
	FILE *f = fopen("/proc/self/status", "r");
	DIR *dir = opendir("/proc/self/fd");
	char line[256];

	memset(c, 0, sizeof(*c));
	take_objects(c);
	CHECK(f && dir);
	while (fgets(line, sizeof(line), f))
		sscanf(line, "VmPin: %d", &c->pinned);
	while (readdir(dir))
		c->files++;
	fclose(f);
	closedir(dir);
}

int is_census(const struct census *before)
{
	static struct census now;

	take_census(&now);
	if (now.len != before->len || memcmp(now.objects, before->objects, now.len)) {
		printf("other objects than before:\n");
		fflush(stdout);
		if (system("rdma res show"))
			printf("?\n");
		return 0;
	}
	if (now.pinned != before->pinned || now.files != before->files) {
		printf("%d kB pinned and %d files, not %d and %d\n", now.pinned, now.files,
		       before->pinned, before->files);
		return 0;
	}
	return 1;
}
