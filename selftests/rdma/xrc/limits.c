// SPDX-License-Identifier: GPL-2.0
// selftest: timeout=300 debug=long xrc
/*
 * Creates as many objects as a device can have: one more is refused with ENOMEM and
 * does no harm, and succeeds as soon as another one is gone.
 *
 *   limits			prints the names of the cases
 *   limits CASE DEVICE GID-INDEX
 */
#include <fcntl.h>

#include "check.h"

/* The user guide's numbers; libibverbs cannot be asked for most of these. */
enum { DOMAINS = 16384, TARGETS = 65536, USERS = 1024, DMS = 4096, MEMBERSHIPS = 4096 };

static struct ibv_context *ctx;
static const char *device;
static int gid_index;
static union ibv_gid gid;
static struct ibv_device_attr attr;
static struct ibv_xrcd *xrcd;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static uint32_t target;

static void *make_domain(void)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = -1,
		.oflags = O_CREAT,
	};

	return ibv_open_xrcd(ctx, &attr);
}

static int drop_domain(void *domain)
{
	return ibv_close_xrcd(domain);
}

static void *make_target(void)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = xrcd,
	};

	return ibv_create_qp_ex(ctx, &attr);
}

static void *make_view(void)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = target,
		.xrcd = xrcd,
		.qp_type = IBV_QPT_XRC_RECV,
	};

	return ibv_open_qp(ctx, &attr);
}

static int drop_qp(void *qp)
{
	return ibv_destroy_qp(qp);
}

/* Each of them has a mapping of its own, of which a process has 65530 by default. */
static void many_mappings(void)
{
	const char *name = "/proc/sys/vm/max_map_count";
	int most;
	FILE *f = fopen(name, "r+");

	CHECK(f && fscanf(f, "%d", &most) == 1);
	rewind(f);
	CHECK(most >= 1 << 18 || fprintf(f, "%d", 1 << 18) > 0);
	CHECK(!fclose(f));
}

static void *make_srq(void)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 1, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_XRCD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_XRC,
		.xrcd = xrcd,
		.cq = cq,
		.pd = pd,
	};

	return ibv_create_srq_ex(ctx, &attr);
}

static int drop_srq(void *srq)
{
	return ibv_destroy_srq(srq);
}

/*
 * A QP, CQ or SRQ that was destroyed counts until its memory is free, which is
 * after a grace period; anything else does not count any more.
 */
static int is_deferred;

static void *make_again(void *(*make)(void))
{
	void *object;
	int tries = is_deferred ? 10000 : 1;

	do {
		object = make();
	} while (!object && errno == ENOMEM && --tries && !usleep(1000));
	return object;
}

static void refused(void *(*make)(void))
{
	CHECK(!make() && errno == ENOMEM);
}

/*
 * As many as LIMIT, less what others have. A few change hands then, and a
 * refusal in between must not have counted. The first stays: it may be a target
 * that others have open, which goes with the last of them.
 */
static void exhaust(void *(*make)(void), int (*drop)(void *), int limit, int others)
{
	void **all = calloc(limit + 1, sizeof(*all));
	int have = 0, i, round, err;

	CHECK(all);
	while (have <= limit && (all[have] = make()))
		have++;
	err = errno;
	printf("%d of %d\n", have, limit);
	CHECK(err == ENOMEM);
	CHECK(have == limit - others);
	for (round = 1; round < 4; round++) {
		refused(make);
		for (i = 0; i < round; i++)
			CHECK(!drop(all[1 + i * 7]));
		for (i = 0; i < round; i++)
			CHECK((all[1 + i * 7] = make_again(make)));
	}
	refused(make);
	while (have--)
		CHECK(!drop(all[have]));
	for (i = 0; i < 8; i++)
		CHECK((all[i] = make_again(make)));
	while (i--)
		CHECK(!drop(all[i]));
	free(all);
}

static void domains(void)
{
	/* One was opened for the other cases. */
	exhaust(make_domain, drop_domain, DOMAINS, 1);
}

static void users(void)
{
	struct ibv_qp *first = make_target();

	CHECK(first);
	target = first->qp_num;
	exhaust(make_view, drop_qp, USERS, 1);
	CHECK(!ibv_destroy_qp(first));
}

static void targets(void)
{
	exhaust(make_target, drop_qp, TARGETS, 0);
}

static void srqs(void)
{
	is_deferred = 1;
	many_mappings();
	exhaust(make_srq, drop_srq, attr.max_srq, 0);
}

/* A target and its views until there are as many QPs as the device has. */
static void *make_users(void)
{
	void *view = target ? make_view() : NULL;
	struct ibv_qp *first;

	if (view)
		return view;
	first = make_target();
	if (first)
		target = first->qp_num;
	return first;
}

static void qps(void)
{
	is_deferred = 1;
	/* QP 1 is one of them. */
	exhaust(make_users, drop_qp, attr.max_qp, 1);
}

/* How many objects of a kind the device has, this program's and the kernel's. */
static int in_use(const char *kind)
{
	char command[128];
	FILE *f;
	int n;

	snprintf(command, sizeof(command),
		 "rdma res show %s | sed -n 's/.* %s \\([0-9]*\\).*/\\1/p'", device, kind);
	f = popen(command, "r");
	CHECK(f && fscanf(f, "%d", &n) == 1);
	pclose(f);
	return n;
}

static void *make_pd(void)
{
	return ibv_alloc_pd(ctx);
}

static int drop_pd(void *any)
{
	return ibv_dealloc_pd(any);
}

static void pds(void)
{
	exhaust(make_pd, drop_pd, attr.max_pd, in_use("pd"));
}

static void *make_cq(void)
{
	return ibv_create_cq(ctx, 1, NULL, NULL, 0);
}

static int drop_cq(void *any)
{
	return ibv_destroy_cq(any);
}

static void cqs(void)
{
	is_deferred = 1;
	many_mappings();
	exhaust(make_cq, drop_cq, attr.max_cq, in_use("cq"));
}

static void *make_ah(void)
{
	struct ibv_ah_attr to = {
		.is_global = 1, .port_num = 1,
		.grh = { .dgid = gid, .sgid_index = gid_index, .hop_limit = 16 },
	};

	return ibv_create_ah(pd, &to);
}

static int drop_ah(void *any)
{
	return ibv_destroy_ah(any);
}

static void ahs(void)
{
	exhaust(make_ah, drop_ah, attr.max_ah, 0);
}

static void *make_dm(void)
{
	struct ibv_alloc_dm_attr of = { .length = 64 };

	return ibv_alloc_dm(ctx, &of);
}

static int drop_dm(void *any)
{
	return ibv_free_dm(any);
}

static void dms(void)
{
	exhaust(make_dm, drop_dm, DMS, 0);
}

static void *make_mr(void)
{
	static char page[4096] __attribute__((aligned(4096)));

	return ibv_reg_mr(pd, page, sizeof(page), 0);
}

static int drop_mr(void *any)
{
	return ibv_dereg_mr(any);
}

static void mrs(void)
{
	exhaust(make_mr, drop_mr, attr.max_mr, 0);
}

static void *make_mw(void)
{
	return ibv_alloc_mw(pd, IBV_MW_TYPE_2);
}

static int drop_mw(void *any)
{
	return ibv_dealloc_mw(any);
}

static void mws(void)
{
	exhaust(make_mw, drop_mw, attr.max_mw, 0);
}

/* One queue pair in ever other groups. */
static struct ibv_qp *member;
static uint8_t joined[MEMBERSHIPS + 1];

static union ibv_gid group(size_t n)
{
	return (union ibv_gid) { .raw = { [10] = 0xff, 0xff, 239, 9, n >> 8, n } };
}

static void *join_group(void)
{
	union ibv_gid to;
	size_t n;
	int err;

	for (n = 0; joined[n]; n++)
		;
	to = group(n);
	err = ibv_attach_mcast(member, &to, 0);
	if (err) {
		errno = err;
		return NULL;
	}
	joined[n] = 1;
	return &joined[n];
}

static int leave_group(void *any)
{
	uint8_t *of = any;
	union ibv_gid from = group(of - joined);

	*of = 0;
	return ibv_detach_mcast(member, &from, 0);
}

static void memberships(void)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD, .send_cq = cq, .recv_cq = cq };

	CHECK(attr.max_total_mcast_qp_attach == MEMBERSHIPS && attr.max_mcast_grp == MEMBERSHIPS);
	CHECK((member = ibv_create_qp(pd, &init)));
	exhaust(join_group, leave_group, MEMBERSHIPS, 0);
	CHECK(!ibv_destroy_qp(member));
}

static const struct {
	const char *name;
	void (*run)(void);
	/* 1: only with --long; 2: and only on the stock kernel. */
	int is_long;
} cases[] = {
	{ "domains", domains, 0 },
	{ "users", users, 0 },
	{ "dms", dms, 0 },
	{ "memberships", memberships, 0 },
	{ "pds", pds, 0 },
	{ "ahs", ahs, 1 },
	{ "targets", targets, 2 },
	{ "srqs", srqs, 2 },
	{ "qps", qps, 2 },
	{ "cqs", cqs, 2 },
	{ "mrs", mrs, 2 },
	{ "mws", mws, 2 },
};

int main(int argc, char **argv)
{
	const char *is_long = getenv("SELFTEST_LONG");
	/* With KASAN and the trackers of objects the large numbers need more memory than a guest has. */
	int most = !is_long || !*is_long ? 0 : on_debug_kernel() ? 1 : 2;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (argc == 1) {
			if (cases[i].is_long <= most)
				printf("%s\n", cases[i].name);
		} else if (argc == 4 && !strcmp(argv[1], cases[i].name)) {
			device = argv[2];
			gid_index = atoi(argv[3]);
			ctx = open_device(device);
			CHECK(!ibv_query_device(ctx, &attr));
			CHECK(!ibv_query_gid(ctx, 1, gid_index, &gid));
			CHECK((xrcd = make_domain()));
			CHECK((pd = ibv_alloc_pd(ctx)));
			CHECK((cq = ibv_create_cq(ctx, 16, NULL, NULL, 0)));
			cases[i].run();
			CHECK(!ibv_destroy_cq(cq));
			CHECK(!ibv_dealloc_pd(pd));
			CHECK(!ibv_close_xrcd(xrcd));
			return 0;
		}
	}
	return argc == 1 ? 0 : 2;
}
