// SPDX-License-Identifier: GPL-2.0
// selftest: timeout=90 debug=long xroce
/*
 * Operations for which a process has no permission: raw queue pairs without CAP_NET_RAW
 * (with it, they do not exist either), commands by write() after its credentials have
 * changed since it opened the file, and more objects than its control group may have.
 * See devices.h for the arguments.
 */
#define _GNU_SOURCE
#include <linux/capability.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "commands.h"

/* Takes CAP_NET_RAW from this process. */
static void lose_net_raw(void)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct caps[2];

	CHECK(!syscall(SYS_capget, &head, caps));
	CHECK(caps[0].effective & 1u << CAP_NET_RAW);
	caps[0].effective &= ~(1u << CAP_NET_RAW);
	CHECK(!syscall(SYS_capset, &head, caps));
}

static void fill_raw_pair(struct owned *self, void *request)
{
	struct ib_uverbs_create_qp *r = request;

	fill_pair(self, request);
	r->qp_type = IBV_QPT_RAW_PACKET;
}

static const struct command raw_pair = {
	CMD(CREATE_QP), fill_raw_pair, IN(create_qp), OUT(create_qp), 8, 56,
	{ HANDLE(create_qp, pd_handle, PD), HANDLE(create_qp, send_cq_handle, CQ),
	  HANDLE(create_qp, recv_cq_handle, CQ), HANDLE(create_qp, srq_handle, SRQ) }, QP, 0
};

/* The extended command, with a number of another for its own packets. */
static int with_source_number(struct owned *self)
{
	struct ib_uverbs_ex_create_qp request = {
		.qp_type = IBV_QPT_UD, .create_flags = 1 << 10, .source_qpn = 77,
		.pd_handle = self->ours.handle[PD], .send_cq_handle = self->ours.handle[CQ],
		.recv_cq_handle = self->ours.handle[CQ],
	};
	uint64_t number = IB_USER_VERBS_EX_CMD_CREATE_QP | IB_USER_VERBS_CMD_FLAG_EXTENDED;
	struct ib_uverbs_ex_create_qp_resp answer;
	struct xroce_create_qp_resp driver_answer;
	struct xroce_create_qp_req driver = {};
	struct raw raw;

	raw_begin_on(&raw, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	raw_in(&raw, UVERBS_ATTR_WRITE_CMD, &number, 8);
	raw_in(&raw, UVERBS_ATTR_CORE_IN, &request, sizeof(request));
	raw_attr(&raw, UVERBS_ATTR_CORE_OUT, sizeof(answer), (uintptr_t)&answer);
	raw_in(&raw, UVERBS_ATTR_UHW_IN, &driver, sizeof(driver));
	raw_attr(&raw, UVERBS_ATTR_UHW_OUT, sizeof(driver_answer), (uintptr_t)&driver_answer);
	return raw_call(self->ours.ctx, &raw);
}

/* The ioctl's own method. */
static int raw_pair_by_method(struct owned *self)
{
	struct ib_uverbs_qp_cap cap = { 1, 1, 1, 1, 0 };
	uint32_t type = IBV_QPT_RAW_PACKET, qpn;
	struct xroce_create_qp_resp driver_answer;
	struct xroce_create_qp_req driver = {};
	uint64_t user = 1, wide = type;
	struct raw raw;

	raw_begin_on(&raw, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE);
	raw_attr(&raw, UVERBS_ATTR_CREATE_QP_HANDLE, 0, 0);
	raw_attr(&raw, UVERBS_ATTR_CREATE_QP_PD_HANDLE, 0, self->ours.handle[PD]);
	raw_attr(&raw, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, 0, self->ours.handle[CQ]);
	raw_attr(&raw, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, 0, self->ours.handle[CQ]);
	raw_in(&raw, UVERBS_ATTR_CREATE_QP_USER_HANDLE, &user, 8);
	raw_in(&raw, UVERBS_ATTR_CREATE_QP_CAP, &cap, sizeof(cap));
	raw_in(&raw, UVERBS_ATTR_CREATE_QP_TYPE, &wide, 8);
	raw_attr(&raw, UVERBS_ATTR_CREATE_QP_RESP_CAP, sizeof(cap), (uintptr_t)&cap);
	raw_attr(&raw, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, 4, (uintptr_t)&qpn);
	raw_in(&raw, UVERBS_ATTR_UHW_IN, &driver, sizeof(driver));
	raw_attr(&raw, UVERBS_ATTR_UHW_OUT, sizeof(driver_answer), (uintptr_t)&driver_answer);
	return raw_call(self->ours.ctx, &raw);
}

/* What wants CAP_NET_RAW (rdma_uattrs_has_raw_cap()) gives ERR. */
static void raw_gives(struct owned *self, int err)
{
	struct request r;
	int way;

	begin_owned(self);
	for (way = 0; way < 2; way++) {
		begin_request(self, &raw_pair, &r);
		expect_errno("CREATE_QP, RAW_PACKET", ways[way](self, &raw_pair, &r), err);
	}
	expect_errno("QP_CREATE, RAW_PACKET", raw_pair_by_method(self), err);
	expect_errno("EX_CREATE_QP, SOURCE_QPN", with_source_number(self), err);
	end_owned(self);
}

/* Runs F in a process of its own, which must end well. */
static void in_child(struct owned *self, void (*f)(struct owned *self))
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		f(self);
		fflush(stdout);
		_exit(0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

static void without(struct owned *self)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RAW_PACKET, .cap = { 1, 1, 1, 1, 0 } };

	lose_net_raw();
	raw_gives(self, EPERM);
	/* The library's own word comes first. */
	begin_owned(self);
	init.send_cq = init.recv_cq = self->ours.cq;
	REFUSED(EOPNOTSUPP, ibv_create_qp(self->ours.pd, &init));
	end_owned(self);
}

static void with(struct owned *self)
{
	raw_gives(self, EOPNOTSUPP);
}

static void raw_packets(struct owned *self)
{
	in_child(self, without);
	in_child(self, with);
}

/* ib_safe_file_access(): not by write() any more; the ioctl has no such rule. */
static void after_a_change(struct owned *self)
{
	const struct command *c;
	struct request r;

	begin_owned(self);
	lose_net_raw();
	for (c = commands; c < commands + command_count; c++) {
		begin_request(self, c, &r);
		expect_errno(c->name, by_write(self, c, &r), EACCES);
	}
	for (c = commands; c < commands + command_count; c++) {
		if (c->number != IB_USER_VERBS_CMD_QUERY_QP)
			continue;
		begin_request(self, c, &r);
		expect_errno(c->name, by_ioctl(self, c, &r), 0);
	}
	end_owned(self);
}

static void credentials(struct owned *self)
{
	in_child(self, after_a_change);
}

/* ---- a control group ---- */

static char group[] = "/tmp/selftest-group-XXXXXX";

static void write_to(const char *dir, const char *file, const char *text)
{
	char path[96];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_WRONLY);
	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && !close(fd));
}

/* In a group that may have one context and three objects of the device. */
static void limited(struct owned *self)
{
	struct ibv_alloc_dm_attr dm = { .length = 64 };
	struct ibv_device **list;
	struct ibv_context *ctx;
	struct ibv_pd *pd, *more;
	struct ibv_cq *cq;
	char text[64], sub[64];
	int i;

	snprintf(sub, sizeof(sub), "%s/some", group);
	snprintf(text, sizeof(text), "%s hca_handle=1 hca_object=3", self->on.name[0]);
	write_to(sub, "rdma.max", text);
	write_to(sub, "cgroup.procs", "0");
	CHECK((list = ibv_get_device_list(NULL)));
	for (i = 0; list[i] && strcmp(ibv_get_device_name(list[i]), self->on.name[0]); i++)
		;
	CHECK(list[i] && (ctx = ibv_open_device(list[i])));
	/* rdmacg_try_charge() */
	REFUSED(EAGAIN, ibv_open_device(list[i]));
	CHECK((pd = ibv_alloc_pd(ctx)) && (more = ibv_alloc_pd(ctx)));
	CHECK((cq = ibv_create_cq(ctx, 4, NULL, NULL, 0)));
	REFUSED(EAGAIN, ibv_alloc_pd(ctx));
	REFUSED(EAGAIN, ibv_create_cq(ctx, 4, NULL, NULL, 0));
	REFUSED(EAGAIN, ibv_reg_mr(pd, group, sizeof(group), 0));
	REFUSED(EAGAIN, ibv_alloc_mw(pd, IBV_MW_TYPE_2));
	REFUSED(EAGAIN, ibv_alloc_dm(ctx, &dm));
	/* What goes makes room, for one. */
	CHECK(!ibv_dealloc_pd(more) && (more = ibv_alloc_pd(ctx)));
	REFUSED(EAGAIN, ibv_alloc_pd(ctx));
	CHECK(!ibv_destroy_cq(cq) && !ibv_dealloc_pd(more) && !ibv_dealloc_pd(pd));
	CHECK(!ibv_close_device(ctx) && (ctx = ibv_open_device(list[i])) && !ibv_close_device(ctx));
	ibv_free_device_list(list);
}

static void control_group(struct owned *self)
{
	char sub[64];

	CHECK(mkdtemp(group) && !mount("selftest", group, "cgroup2", 0, NULL));
	write_to(group, "cgroup.subtree_control", "+rdma");
	snprintf(sub, sizeof(sub), "%s/some", group);
	CHECK(!mkdir(sub, 0700));
	in_child(self, limited);
	CHECK(!rmdir(sub));
	write_to(group, "cgroup.subtree_control", "-rdma");
	CHECK(!umount(group) && !rmdir(group));
}

static const CASES(struct owned) cases[] = {
	{ "raw_packets", raw_packets },
	{ "credentials", credentials },
	{ "control_group", control_group },
	{}
};

int main(int argc, char **argv)
{
	static struct owned self;

	return RUN_CASES(&self, cases, argc, argv);
}
