// SPDX-License-Identifier: GPL-2.0
// selftest: timeout=90 debug=long xroce
/*
 * Lengths, addresses, offsets and rights that are refused for regions and for device
 * memory, and domains of another context or none. Errors that memory.c and objects.c
 * cause are not repeated. See devices.h for the arguments.
 */
#define _GNU_SOURCE
#include <rdma/ib_user_verbs.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "both.h"
#include "guard.h"
#include "rawioctl.h"

#define LOCAL IBV_ACCESS_LOCAL_WRITE

/* What ibv_rereg_mr() says, and errno with it. */
static void not_changed(struct both *self, int flags, struct ibv_pd *pd, void *addr, size_t length,
			int access, int ret, int err)
{
	char what[96];
	int got;

	snprintf(what, sizeof(what), "rereg, flags %#x, length %zx, access %#x", flags, length, access);
	errno = 0;
	got = ibv_rereg_mr(self->owned.ours.mr, flags, pd, addr, length, access);
	expect_errno(what, errno, err);
	if (got != ret)
		printf("%s: code %d\n", what, got);
	CHECK(got == ret);
}

static void regions(struct both *self)
{
	const int change = IBV_REREG_MR_CHANGE_ACCESS, move = IBV_REREG_MR_CHANGE_TRANSLATION;
	uint8_t *buf = self->owned.ours.buf;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	int bit;

	begin_owned(&self->owned);
	pd = self->owned.ours.pd;
	/* Nothing, more than there can be, more than there are addresses. */
	REFUSED(EINVAL, ibv_reg_mr(pd, buf, 0, LOCAL));
	REFUSED(EINVAL, ibv_reg_mr(pd, buf, (1ull << 40) + 1, LOCAL));
	REFUSED(EINVAL, ibv_reg_mr(pd, buf, SIZE_MAX, LOCAL));
	REFUSED(EINVAL, ibv_reg_mr(pd, buf, SIZE_MAX - (uintptr_t)buf + 1, LOCAL));
	REFUSED(EFAULT, ibv_reg_mr(pd, NULL, 4096, LOCAL));
	REFUSED(EFAULT, ibv_reg_mr(pd, (void *)(1ull << 47), 4096, LOCAL));
	/* Addresses for peers: another place in the page, and numbers that wrap. */
	REFUSED(EINVAL, ibv_reg_mr_iova(pd, buf, 4096, 1, LOCAL));
	REFUSED(EINVAL, ibv_reg_mr_iova(pd, buf + 1, 4095, 0x1000, LOCAL));
	REFUSED(EINVAL, ibv_reg_mr_iova(pd, buf, 8192, UINT64_MAX - 4095, LOCAL));
	CHECK((mr = ibv_reg_mr_iova(pd, buf, 4096, UINT64_MAX - 8191, LOCAL)) && !ibv_dereg_mr(mr));
	/* Rights that there are not; those that may be ignored are bits 20 to 29. */
	for (bit = 10; bit < 32; bit++) {
		if (bit >= 20 && bit < 30) {
			CHECK((mr = ibv_reg_mr(pd, buf, 4096, LOCAL | 1 << bit)));
			CHECK(!ibv_dereg_mr(mr));
			continue;
		}
		REFUSED(EINVAL, ibv_reg_mr(pd, buf, 4096, LOCAL | 1u << bit));
		REFUSED(EINVAL, ibv_reg_dm_mr(pd, self->owned.ours.dm, 0, 64,
					      LOCAL | IBV_ACCESS_ZERO_BASED | 1u << bit));
		not_changed(self, change, NULL, NULL, 0, LOCAL | 1u << bit, IBV_REREG_MR_ERR_CMD,
			    EINVAL);
	}
	/* None of this is persistent. */
	REFUSED(EINVAL, ibv_reg_dm_mr(pd, self->owned.ours.dm, 0, 64,
				      LOCAL | IBV_ACCESS_ZERO_BASED | IBV_ACCESS_FLUSH_PERSISTENT));
	not_changed(self, change, NULL, NULL, 0, IBV_ACCESS_FLUSH_PERSISTENT, IBV_REREG_MR_ERR_CMD,
		    EINVAL);
	not_changed(self, change, NULL, NULL, 0, IBV_ACCESS_REMOTE_ATOMIC, IBV_REREG_MR_ERR_CMD,
		    EINVAL);
	not_changed(self, 0, NULL, NULL, 0, 0, IBV_REREG_MR_ERR_CMD, EINVAL);
	not_changed(self, 1 << 3, NULL, NULL, 0, 0, IBV_REREG_MR_ERR_INPUT, EINVAL);
	not_changed(self, move, NULL, buf, 0, 0, IBV_REREG_MR_ERR_INPUT, EINVAL);
	not_changed(self, move, NULL, buf, (1ull << 40) + 1, 0, IBV_REREG_MR_ERR_CMD, EINVAL);
	not_changed(self, IBV_REREG_MR_CHANGE_PD, self->owned.theirs.pd, NULL, 0, 0,
		    IBV_REREG_MR_ERR_CMD, ENOENT);
	/* No files of memory, no memory of nobody. */
	REFUSED(EOPNOTSUPP, ibv_reg_dmabuf_mr(pd, 0, 4096, 0, self->owned.ours.ctx->cmd_fd, LOCAL));
	REFUSED(EOPNOTSUPP, ibv_alloc_null_mr(pd));
	end_owned(&self->owned);
}

/* REREG_MR as a command; the library looks at flags, and has one address where this has two. */
static int rereg(struct both *self, uint32_t flags, uint64_t start, uint64_t hca_va,
		 uint64_t length)
{
	struct ib_uverbs_rereg_mr request = {
		.mr_handle = self->owned.ours.handle[MR],
		.pd_handle = self->owned.ours.handle[PD], .flags = flags,
		.start = start, .length = length, .hca_va = hca_va, .access_flags = LOCAL,
	};
	uint64_t number = IB_USER_VERBS_CMD_REREG_MR;
	struct ib_uverbs_rereg_mr_resp answer;
	struct raw raw;

	raw_begin_on(&raw, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	raw_in(&raw, UVERBS_ATTR_WRITE_CMD, &number, 8);
	raw_in(&raw, UVERBS_ATTR_CORE_IN, &request, sizeof(request));
	raw_attr(&raw, UVERBS_ATTR_CORE_OUT, sizeof(answer), (uintptr_t)&answer);
	return raw_call(self->owned.ours.ctx, &raw);
}

/* ib_uverbs_rereg_mr() */
static void rereg_commands(struct both *self)
{
	const uint64_t at = (uintptr_t)self->owned.ours.buf;
	int bit;

	begin_owned(&self->owned);
	RETURNS(EINVAL, rereg(self, 0, at, at, 4096));
	for (bit = 3; bit < 32; bit++)
		RETURNS(EOPNOTSUPP, rereg(self, 1u << bit, at, at, 4096));
	/* The two addresses are at the same place in a page. */
	RETURNS(EINVAL, rereg(self, IBV_REREG_MR_CHANGE_TRANSLATION, at, at + 1, 4096));
	RETURNS(EINVAL, rereg(self, IBV_REREG_MR_CHANGE_TRANSLATION, at + 64, at, 4096));
	RETURNS(EINVAL, rereg(self, IBV_REREG_MR_CHANGE_TRANSLATION, at, at, 0));
	RETURNS(EINVAL, rereg(self, IBV_REREG_MR_CHANGE_TRANSLATION, at, UINT64_MAX - 4095, 8192));
	RETURNS(EFAULT, rereg(self, IBV_REREG_MR_CHANGE_TRANSLATION, 0, 0, 4096));
	RETURNS(0, rereg(self, IBV_REREG_MR_CHANGE_TRANSLATION, at, at + 8192, 4096));
	free_all(&self->owned.ours);
	free_all(&self->owned.theirs);
}

/* Sends the first bytes of A's buffer to B's, by A's region. */
static void sends_on(struct both *self)
{
	struct ibv_wc wc;

	memset(self->pair.a.buf, 0x5c, 64);
	memset(self->pair.b.buf + PAIR_SIZE, 0, 64);
	CHECK(!post_receive(&self->pair.b, 1) && !post_send(&self->pair.a, 2, 64));
	CHECK(next_wc(self->pair.a.cq, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	CHECK(next_wc(self->pair.b.cq, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	CHECK(!memcmp(self->pair.a.buf, self->pair.b.buf + PAIR_SIZE, 64));
}

/* More than RLIMIT_MEMLOCK is ENOMEM, of a new region and of an old one, which is as it was. */
static void beyond_the_limit(struct both *self)
{
	struct rlimit little = { 1 << 16, 1 << 16 };
	const int move = IBV_REREG_MR_CHANGE_TRANSLATION;
	size_t large = 1 << 20;
	struct ibv_mr *mr;
	void *more;
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		make_pair(&self->pair);
		CHECK((more = aligned_alloc(4096, large)));
		CHECK((mr = ibv_reg_mr(self->pair.a.pd, more, 4096, LOCAL)));
		/* CAP_IPC_LOCK, which goes with the user, would make the limit void. */
		CHECK(!setrlimit(RLIMIT_MEMLOCK, &little));
		CHECK(!setresgid(65534, 65534, 65534) && !setresuid(65534, 65534, 65534));
		REFUSED(ENOMEM, ibv_reg_mr(self->pair.a.pd, more, large, LOCAL));
		errno = 0;
		CHECK(ibv_rereg_mr(self->pair.a.mr, move, NULL, more, large,
				   0) == IBV_REREG_MR_ERR_CMD);
		expect_errno("rereg", errno, ENOMEM);
		CHECK(ibv_rereg_mr(self->pair.a.mr, move | IBV_REREG_MR_CHANGE_ACCESS, NULL, more,
				   large, 0) ==
		      IBV_REREG_MR_ERR_CMD);
		expect_errno("rereg with access", errno, ENOMEM);
		sends_on(self);
		/* What was refused is not counted. */
		CHECK(!ibv_rereg_mr(mr, move, NULL, more, 8192, 0));
		CHECK(!ibv_dereg_mr(mr));
		free_pair(&self->pair);
		fflush(stdout);
		_exit(0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
}

static void device_memory(struct both *self)
{
	const int access = LOCAL | IBV_ACCESS_ZERO_BASED;
	uint64_t word = 1, was = 0;
	struct ibv_sge sge;
	struct ibv_mr *mr;
	struct ibv_pd *pd;
	struct ibv_dm *dm;

	begin_owned(&self->owned);
	pd = self->owned.ours.pd;
	dm = self->owned.ours.dm;
	/* Of no bytes: rdma-core's tests make such. */
	mr = ibv_reg_dm_mr(pd, dm, 0, 0, access);
	CHECK(mr && !ibv_dereg_mr(mr));
	REFUSED(EINVAL, ibv_reg_dm_mr(pd, dm, 4096, 1, access));
	REFUSED(EINVAL, ibv_reg_dm_mr(pd, dm, 4092, 8, access));
	REFUSED(EINVAL, ibv_reg_dm_mr(pd, dm, UINT64_MAX - 7, 16, access));
	REFUSED(EINVAL, ibv_reg_dm_mr(pd, dm, 8, UINT64_MAX - 7, access));
	/* It is always there. */
	REFUSED(EOPNOTSUPP, ibv_reg_dm_mr(pd, dm, 0, 64, access | IBV_ACCESS_ON_DEMAND));
	REFUSED(ENOENT, ibv_reg_dm_mr(pd, self->owned.theirs.dm, 0, 64, access));
	/* There its number is a domain's. */
	REFUSED(EINVAL, ibv_reg_dm_mr(self->owned.theirs.pd, dm, 0, 64, access));
	RETURNS(EINVAL, ibv_memcpy_to_dm(dm, 4096, &word, 4));
	RETURNS(EINVAL, ibv_memcpy_to_dm(dm, 0, &word, 6));
	RETURNS(EINVAL, ibv_memcpy_to_dm(dm, 1, &word, 4));
	RETURNS(EINVAL, ibv_memcpy_to_dm(dm, 0, &word, SIZE_MAX - 3));
	RETURNS(EINVAL, ibv_memcpy_from_dm(&was, dm, 4, UINT64_MAX - 3));
	RETURNS(EINVAL, ibv_memcpy_from_dm(&was, dm, UINT64_MAX - 3, 4));
	RETURNS(0, ibv_memcpy_from_dm(&was, dm, 0, 8));
	CHECK(!was);
	REFUSED(EOPNOTSUPP, ibv_import_dm(self->owned.ours.ctx, self->owned.ours.handle[DM]));
	/* Advice for keys of others, and for none: ibv_advise_mr(3). */
	sge = (struct ibv_sge){
		(uintptr_t)self->owned.theirs.buf, 4096, self->owned.theirs.mr->lkey
	};
	RETURNS(EPERM, ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1));
	sge.lkey = 0;
	RETURNS(ENOENT, ibv_advise_mr(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1));
	end_owned(&self->owned);
}

static void domains(struct both *self)
{
	struct ibv_parent_domain_init_attr attr = {};
	struct ibv_td_init_attr none = {};
	struct ibv_pd *parent, *pd, *no_pd;
	struct ibv_context *again;
	struct ibv_td *td, *foreign;
	int fd[2], own;

	begin_owned(&self->owned);
	CHECK((td = ibv_alloc_td(self->owned.ours.ctx, &none)) &&
	      (foreign = ibv_alloc_td(self->owned.theirs.ctx, &none)));
	attr.pd = self->owned.theirs.pd;
	REFUSED(EINVAL, ibv_alloc_parent_domain(self->owned.ours.ctx, &attr));
	attr.td = td;
	REFUSED(EINVAL, ibv_alloc_parent_domain(self->owned.theirs.ctx, &attr));
	attr.pd = self->owned.ours.pd;
	CHECK((parent = ibv_alloc_parent_domain(self->owned.ours.ctx, &attr)));
	attr.pd = parent;
	REFUSED(EINVAL, ibv_alloc_parent_domain(self->owned.ours.ctx, &attr));
	attr.pd = self->owned.ours.pd;
	attr.td = foreign;
	REFUSED(EINVAL, ibv_alloc_parent_domain(self->owned.ours.ctx, &attr));
	/* None of what was refused uses them. */
	RETURNS(0, ibv_dealloc_td(foreign));
	RETURNS(EBUSY, ibv_dealloc_td(td));
	RETURNS(0, ibv_dealloc_pd(parent));
	RETURNS(0, ibv_dealloc_td(td));

	CHECK((again = ibv_import_device(dup(self->owned.ours.ctx->cmd_fd))));
	CHECK((pd = ibv_import_pd(again, self->owned.ours.pd->handle)));
	REFUSED(ENOENT, ibv_import_mr(pd, 1000));
	REFUSED(EINVAL, ibv_import_mr(pd, self->owned.ours.handle[CQ]));
	REFUSED(ENOENT, ibv_import_mr(pd, self->owned.theirs.handle[MR]));
	/* Of a PD it is seen when it is used. */
	CHECK((no_pd = ibv_import_pd(again, self->owned.theirs.pd->handle)));
	REFUSED(ENOENT, ibv_reg_mr(no_pd, self->owned.ours.buf, 4096, LOCAL));
	ibv_unimport_pd(no_pd);
	CHECK((no_pd = ibv_import_pd(again, self->owned.ours.handle[QP])));
	REFUSED(EINVAL, ibv_reg_mr(no_pd, self->owned.ours.buf, 4096, LOCAL));
	ibv_unimport_pd(no_pd);
	ibv_unimport_pd(pd);
	CHECK(!ibv_close_device(again));
	/* Files on which nobody has opened a device. */
	CHECK(!pipe(fd));
	REFUSED(EINVAL, ibv_import_device(fd[0]));
	close(fd[1]);
	own = open("/dev/null", O_RDWR);
	CHECK(own >= 0 && !ibv_import_device(own));
	CHECK(!ibv_import_device(-1));
	end_owned(&self->owned);
}

/* A call in another thread that waits for memory. */
struct waiting {
	pthread_t thread;
	uint8_t *memory;
	int guard;
	struct ibv_pd *pd;
	/* Registered anew, or made. */
	struct ibv_mr *mr;
};

static void *register_it(void *arg)
{
	struct waiting *w = arg;

	if (w->mr)
		CHECK(!ibv_rereg_mr(w->mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, w->memory, 4096, 0));
	else
		CHECK((w->mr = ibv_reg_mr(w->pd, w->memory, 4096, LOCAL)));
	return NULL;
}

static void start_waiting(struct waiting *w)
{
	w->memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(w->memory != MAP_FAILED);
	w->guard = guard(w->memory, 1);
	CHECK(!pthread_create(&w->thread, NULL, register_it, w));
	await_touch(w->guard);
}

static void end_waiting(struct waiting *w)
{
	give(w->guard, w->memory, 1);
	CHECK(!pthread_join(w->thread, NULL));
	CHECK(!ibv_dereg_mr(w->mr));
	CHECK(!close(w->guard) && !munmap(w->memory, 4096));
}

/* What a call of another thread is using cannot go, nor change, until it is done. */
static void meanwhile(struct both *self)
{
	struct waiting w = {};

	begin_owned(&self->owned);
	CHECK((w.pd = ibv_alloc_pd(self->owned.ours.ctx)));
	start_waiting(&w);
	RETURNS(EBUSY, ibv_dealloc_pd(w.pd));
	end_waiting(&w);
	RETURNS(0, ibv_dealloc_pd(w.pd));

	w.mr = ibv_reg_mr(self->owned.ours.pd, self->owned.ours.buf, 4096, LOCAL);
	CHECK(w.mr);
	start_waiting(&w);
	RETURNS(EBUSY, ibv_dereg_mr(w.mr));
	errno = 0;
	CHECK(ibv_rereg_mr(w.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0));
	expect_errno("ibv_rereg_mr", errno, EBUSY);
	end_waiting(&w);
	end_owned(&self->owned);
}

/* A process that is killed while it registers memory; what it had is gone with it. */
static void killed(struct both *self)
{
	struct waiting w = {};
	int fd[2], left;
	char go;
	pid_t pid;

	begin_owned(&self->owned);
	CHECK(!pipe(fd));
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		w.pd = ibv_alloc_pd(open_device(self->owned.on.name[0]));
		CHECK(w.pd);
		start_waiting(&w);
		CHECK(write(fd[1], "x", 1) == 1);
		pause();
		_exit(0);
	}
	close(fd[1]);
	CHECK(read(fd[0], &go, 1) == 1);
	close(fd[0]);
	CHECK(!kill(pid, SIGKILL) && waitpid(pid, &left, 0) == pid && WIFSIGNALED(left));
	end_owned(&self->owned);
}

static const CASES(struct both) cases[] = {
	{ "regions_refused", regions },
	{ "rereg_commands", rereg_commands },
	{ "beyond_the_limit", beyond_the_limit },
	{ "device_memory_refused", device_memory },
	{ "domains_refused", domains },
	{ "meanwhile", meanwhile },
	{ "killed", killed },
	{}
};

int main(int argc, char **argv)
{
	static struct both self;

	return RUN_CASES_AROUND(&self, cases, share_devices, (void), argc, argv);
}
