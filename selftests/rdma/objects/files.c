// SPDX-License-Identifier: GPL-2.0
// selftest: timeout=90 debug=long xroce
/*
 * The uverbs file itself: a file without a context, mappings that do not exist, and no
 * descriptors left for another file. See devices.h for the arguments.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <sys/resource.h>

#include "bare_commands.h"

#define PAGE 4096

/* A file of the device, in which nobody asked for a context. */
static int open_file(struct owned *self)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/dev/infiniband/%s", self->ours.ctx->device->dev_name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	CHECK(fd >= 0);
	return fd;
}

/* Runs F with our commands going to FD. */
static void in_file(struct owned *self, int fd, void (*f)(struct owned *self))
{
	struct ibv_context *real = self->ours.ctx;
	struct ibv_context *other = malloc(sizeof(*other));

	CHECK(other);
	memcpy(other, real, sizeof(*other));
	other->cmd_fd = fd;
	self->ours.ctx = other;
	f(self);
	self->ours.ctx = real;
	free(other);
}

static struct request one;

/*
 * ib_uverbs_get_ucontext_file(): what makes something is EINVAL; no handle names anything,
 * and a command that looks one up first is ENOENT.
 */
static void refuse_all(struct owned *self)
{
	const struct command *c;
	struct request *r = &one;
	unsigned int way;
	char what[64];

	for (way = 0; way < 2; way++) {
		for (c = commands; c < commands + command_count; c++) {
			int makes = (c->makes != NONE && c->fill) ||
				    c->number == IB_USER_VERBS_CMD_OPEN_QP;

			snprintf(what, sizeof(what), "%s, way %u", c->name, way);
			begin_request(self, c, r);
			expect_errno(what, ways[way](self, c, r), makes ? EINVAL : ENOENT);
		}
		expect_of_bare(self, way, EINVAL);
	}
	CHECK(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, self->ours.ctx->cmd_fd, PAGE) == MAP_FAILED);
	expect_errno("mmap", errno, EINVAL);
}

static int attributes(struct owned *self, uint16_t object, uint16_t method,
		      int (*fill)(struct owned *self, struct raw *raw))
{
	struct raw raw;

	raw_begin_on(&raw, object, method);
	if (fill)
		fill(self, &raw);
	return raw_call(self->ours.ctx, &raw);
}

static int name_pd(struct owned *self, struct raw *raw)
{
	raw_attr(raw, UVERBS_ATTR_DESTROY_PD_HANDLE, 0, self->ours.handle[PD]);
	return 0;
}

static int ask_context(struct owned *self, struct raw *raw)
{
	static uint32_t vectors;

	raw_attr(raw, UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, 4, (uintptr_t)&vectors);
	return 0;
}

static int make_events(struct owned *self, struct raw *raw)
{
	raw_attr(raw, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, 0, 0);
	return 0;
}

static int make_dm(struct owned *self, struct raw *raw)
{
	static uint64_t length = 4096;
	static uint32_t alignment;

	raw_attr(raw, UVERBS_ATTR_ALLOC_DM_HANDLE, 0, 0);
	raw_in(raw, UVERBS_ATTR_ALLOC_DM_LENGTH, &length, 8);
	raw_in(raw, UVERBS_ATTR_ALLOC_DM_ALIGNMENT, &alignment, 4);
	return 0;
}

static void refuse_methods(struct owned *self)
{
	expect_errno("PD_DESTROY",
		     attributes(self, UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, name_pd), ENOENT);
	expect_errno("QUERY_CONTEXT",
		     attributes(self, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT,
				ask_context), EINVAL);
	expect_errno("ASYNC_EVENT_ALLOC", attributes(self, UVERBS_OBJECT_ASYNC_EVENT,
						     UVERBS_METHOD_ASYNC_EVENT_ALLOC, make_events),
		     EINVAL);
	expect_errno("DM_ALLOC",
		     attributes(self, UVERBS_OBJECT_DM, UVERBS_METHOD_DM_ALLOC, make_dm), EINVAL);
}

static void no_context(struct owned *self)
{
	int fd;

	begin_owned(self);
	fd = open_file(self);
	in_file(self, fd, refuse_all);
	in_file(self, fd, refuse_methods);
	CHECK(!close(fd));
	end_owned(self);
}

/* ---- mappings ---- */

static int no_map(int fd, size_t length, int flags, uint64_t offset)
{
	void *p = mmap(NULL, length, PROT_READ | PROT_WRITE, flags, fd, offset);

	if (p != MAP_FAILED) {
		CHECK(!munmap(p, length));
		return 0;
	}
	return errno;
}

#define NO_MAP(fd, length, flags, offset) \
	expect_errno("mmap " #length " " #flags " " #offset, no_map(fd, length, flags, offset), EINVAL)

/* rdma_user_mmap_entry_get(): shared, at a ring's beginning, and as long as the ring. */
static void mappings(struct owned *self)
{
	struct {
		struct ib_uverbs_create_cq_resp core;
		struct xroce_create_cq_resp driver;
	} answer;
	struct ib_uverbs_destroy_cq_resp gone;
	struct xroce_ring_info *ring = &answer.driver.ring;
	struct request *r = &one;
	struct raw raw;
	size_t length;
	int fd, other;
	void *p;

	begin_owned(self);
	fd = self->ours.ctx->cmd_fd;
	memset(&one, 0, sizeof(one));
	fill_cq(self, r->body);
	/* More than a page of completions. */
	((struct ib_uverbs_create_cq *)r->body)->cqe = 128;
	expect_errno("CREATE_CQ", by_write(self, &bare[1], r), 0);
	memcpy(&answer, r->answer, sizeof(answer));
	length = (ring->size + PAGE - 1) / PAGE * PAGE;
	CHECK(ring->offset && ring->offset % PAGE == 0 && length >= 2 * PAGE);
	p = mmap(NULL, ring->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, ring->offset);
	CHECK(p != MAP_FAILED && !munmap(p, length));
	NO_MAP(fd, length, MAP_PRIVATE, ring->offset);
	NO_MAP(fd, length - PAGE, MAP_SHARED, ring->offset);
	NO_MAP(fd, length + PAGE, MAP_SHARED, ring->offset);
	NO_MAP(fd, PAGE, MAP_SHARED, ring->offset);
	NO_MAP(fd, length, MAP_SHARED, 0);
	NO_MAP(fd, length, MAP_SHARED, ring->offset + PAGE);
	NO_MAP(fd, length - PAGE, MAP_SHARED, ring->offset + PAGE);
	NO_MAP(fd, length, MAP_SHARED, ring->offset + (1ull << 40));
	NO_MAP(fd, length, MAP_SHARED, (uint64_t)UINT32_MAX * PAGE);
	NO_MAP(fd, length, MAP_SHARED, ((uint64_t)UINT32_MAX + 1) * PAGE);
	/* The number is kept in 32 bits of pages: it must not be taken for the ring's. */
	NO_MAP(fd, length, MAP_SHARED, ((uint64_t)UINT32_MAX + 1) * PAGE + ring->offset);
	/* Device memory is at an offset of its own, of whole pages and no more than there are. */
	NO_MAP(fd, 2 * PAGE, MAP_SHARED,
	       XROCE_DM_MMAP_BASE + self->ours.handle[DM] * XROCE_DM_MAX_SIZE);
	NO_MAP(fd, PAGE, MAP_SHARED, XROCE_DM_MMAP_BASE + 1000 * XROCE_DM_MAX_SIZE);
	/* What is of this file is not of another, with a context or without. */
	other = open_file(self);
	NO_MAP(other, length, MAP_SHARED, ring->offset);
	CHECK(!close(other));
	struct ibv_context *fresh = open_device(self->on.name[0]);
	NO_MAP(fresh->cmd_fd, length, MAP_SHARED, ring->offset);
	CHECK(!ibv_close_device(fresh));
	/* The offset ends with the object. */
	raw_begin_on(&raw, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY);
	raw_attr(&raw, UVERBS_ATTR_DESTROY_CQ_HANDLE, 0, answer.core.cq_handle);
	raw_attr(&raw, UVERBS_ATTR_DESTROY_CQ_RESP, sizeof(gone), (uintptr_t)&gone);
	expect_errno("CQ_DESTROY", raw_call(self->ours.ctx, &raw), 0);
	NO_MAP(fd, length, MAP_SHARED, ring->offset);
	end_owned(self);
}

/* ---- descriptors ---- */

/* No descriptor beyond those that are open: ibv_open_device(3), ibv_create_comp_channel(3). */
static void no_descriptors(struct owned *self)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_comp_channel *channel;
	struct rlimit had, few;
	int i, next;

	begin_owned(self);
	CHECK(list);
	for (i = 0; list[i] && strcmp(ibv_get_device_name(list[i]), self->on.name[0]); i++)
		;
	CHECK(list[i]);
	CHECK(!getrlimit(RLIMIT_NOFILE, &had));
	next = dup(0);
	CHECK(next >= 0 && !close(next));
	few = had;
	few.rlim_cur = next;
	CHECK(!setrlimit(RLIMIT_NOFILE, &few));
	REFUSED(EMFILE, ibv_create_comp_channel(self->ours.ctx));
	REFUSED(EMFILE, ibv_open_device(list[i]));
	/* One is enough for a channel, and not for a device and its events. */
	few.rlim_cur = next + 1;
	CHECK(!setrlimit(RLIMIT_NOFILE, &few));
	REFUSED(EMFILE, ibv_open_device(list[i]));
	CHECK((channel = ibv_create_comp_channel(self->ours.ctx)));
	CHECK(!setrlimit(RLIMIT_NOFILE, &had));
	CHECK(!ibv_destroy_comp_channel(channel));
	ibv_free_device_list(list);
	end_owned(self);
}

static const CASES(struct owned) cases[] = {
	{ "no_context", no_context },
	{ "mappings", mappings },
	{ "no_descriptors", no_descriptors },
	{}
};

int main(int argc, char **argv)
{
	static struct owned self;

	return RUN_CASES(&self, cases, argc, argv);
}
