// SPDX-License-Identifier: GPL-2.0
/*
 * A datagram endpoint of libfabric that answers, or one that asks several.
 *
 *   fabric serve DOMAIN ADDRESS		prints "name HEX", answers until
 *						it is killed
 *   fabric ask DOMAIN ADDRESS HEX...		asks each in turn, prints
 *						"answered N" and waits for a
 *						line; the number in it is that
 *						of the next to ask
 */
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct message {
	unsigned int name_len;
	unsigned int token;
	char name[64];
};

static struct fid_ep *ep;
static struct fid_av *av;
static struct fid_cq *cq;
static struct message in, out;

static void die(const char *what, long ret)
{
	printf("%s: %ld %s\n", what, ret, fi_strerror(-ret));
	exit(1);
}

#define FI(call)							\
	do {								\
		long fi_ret = (call);					\
									\
		if (fi_ret < 0)						\
			die(#call, fi_ret);				\
	} while (0)

static time_t deadline(int seconds)
{
	const char *slow = getenv("SELFTEST_SLOW");

	return time(NULL) + seconds * (slow ? atoi(slow) : 1);
}

static void open_endpoint(const char *domain, const char *address)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fi_cq_attr cq_attr = { .format = FI_CQ_FORMAT_CONTEXT, .size = 64 };
	struct fi_av_attr av_attr = { .type = FI_AV_TABLE };
	struct fid_fabric *fabric;
	struct fid_domain *dom;
	size_t len = sizeof(out.name);

	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG;
	hints->fabric_attr->prov_name = strdup("verbs;ofi_rxm");
	hints->domain_attr->name = strdup(domain);
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	FI(fi_getinfo(FI_VERSION(1, 9), address, NULL, FI_SOURCE, hints, &info));
	FI(fi_fabric(info->fabric_attr, &fabric, NULL));
	FI(fi_domain(fabric, info, &dom, NULL));
	FI(fi_cq_open(dom, &cq_attr, &cq, NULL));
	FI(fi_av_open(dom, &av_attr, &av, NULL));
	FI(fi_endpoint(dom, info, &ep, NULL));
	FI(fi_ep_bind(ep, &av->fid, 0));
	FI(fi_ep_bind(ep, &cq->fid, FI_SEND | FI_RECV));
	FI(fi_enable(ep));
	FI(fi_getname(&ep->fid, out.name, &len));
	out.name_len = len;
}

/* Waits for COUNT completions; FOREVER waits without end for the first. */
static void completions(int count, int forever)
{
	time_t end = deadline(20);
	struct fi_cq_entry entry;
	ssize_t n;

	while (count) {
		n = fi_cq_read(cq, &entry, 1);
		if (n == 1)
			count--;
		else if (n != -FI_EAGAIN)
			die("fi_cq_read", n);
		else if (!forever && time(NULL) > end)
			die("no completion", -FI_ETIMEDOUT);
		else
			usleep(100);
	}
}

static void post_receive(void)
{
	FI(fi_recv(ep, &in, sizeof(in), NULL, FI_ADDR_UNSPEC, NULL));
}

static void transmit(fi_addr_t to)
{
	time_t end = deadline(20);
	ssize_t ret;

	while ((ret = fi_send(ep, &out, sizeof(out), NULL, to, NULL)) == -FI_EAGAIN) {
		if (time(NULL) > end)
			die("fi_send", ret);
		/* Nothing of ours is under way: this makes the connection advance. */
		fi_cq_read(cq, NULL, 0);
		usleep(100);
	}
	if (ret)
		die("fi_send", ret);
}

static fi_addr_t peer(const void *name)
{
	fi_addr_t addr;

	if (fi_av_insert(av, name, 1, &addr, 0, NULL) != 1)
		die("fi_av_insert", -FI_EINVAL);
	return addr;
}

static void serve(void)
{
	unsigned int i;

	printf("name ");
	for (i = 0; i < out.name_len; i++)
		printf("%02x", (unsigned char)out.name[i]);
	printf("\n");
	for (;;) {
		post_receive();
		completions(1, 1);
		out.token = in.token + 1;
		transmit(peer(in.name));
		completions(1, 0);
	}
}

static void ask(int number, fi_addr_t addr)
{
	static unsigned int token;

	post_receive();
	out.token = token += 10;
	transmit(addr);
	completions(2, 0);
	if (in.token != token + 1)
		die("wrong answer", -FI_EIO);
	printf("answered %d\n", number);
}

int main(int argc, char **argv)
{
	fi_addr_t addr[8];
	char name[64];
	int n = argc - 4, i;
	unsigned int j;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (n < 0 || n > 8)
		return 2;
	open_endpoint(argv[2], argv[3]);
	if (!strcmp(argv[1], "serve"))
		serve();
	for (i = 0; i < n; i++) {
		for (j = 0; j < sizeof(name) && sscanf(argv[4 + i] + 2 * j, "%2hhx", &name[j]) == 1; j++)
			;
		addr[i] = peer(name);
		ask(i, addr[i]);
	}
	while (scanf("%d", &i) == 1 && i >= 0 && i < n)
		ask(i, addr[i]);
	return 0;
}
