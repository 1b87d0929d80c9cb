// SPDX-License-Identifier: GPL-2.0
// selftest: timeout=90 debug xroce on=both needs=/dev/fuse
/*
 * On-demand memory of a file system that a process serves (FUSE) and that does not
 * answer: nobody may wait for it.
 *
 *   served                                     lists the cases
 *   served CASE DEVICE GID-INDEX [DEVICE GID-INDEX]
 *
 * End b, on the second device, has the memory; end a uses it. The file system is one
 * regular file, its root.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "ends.h"

#define PAGE 4096
#define PAGES 8

/* What the server and the user of the file share. */
struct shared {
	/* Whether reads are answered, and how many were not. */
	atomic_int answers, unanswered;
};

static struct shared *shared;
static int fuse, file;
static pid_t server;
static char path[] = "/tmp/served-XXXXXX";

static void answer(uint64_t unique, int error, const void *data, size_t len)
{
	static char out[sizeof(struct fuse_out_header) + PAGES * PAGE];
	struct fuse_out_header *head = (struct fuse_out_header *)out;

	*head = (struct fuse_out_header){ sizeof(*head) + len, error, unique };
	if (len)
		memcpy(head + 1, data, len);
	/* ENOENT: the file system is unmounted, and nobody waits for the answer. */
	error = write(fuse, out, head->len) == (ssize_t)head->len ? 0 : errno;
	CHECK(!error || error == ENOENT);
}

static void serve_one(const struct fuse_in_header *in)
{
	static const char content[PAGES * PAGE] = "served";
	struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = PAGE,
	};
	struct fuse_attr_out attr = {
		.attr_valid = 1 << 20,
		.attr = { .ino = 1, .size = PAGES * PAGE, .mode = S_IFREG | 0644, .nlink = 1 },
	};
	struct fuse_open_out open = { .fh = 1, .open_flags = FOPEN_KEEP_CACHE };
	const struct fuse_read_in *read = (const void *)(in + 1);
	struct fuse_write_out written = { .size = read->size };

	switch (in->opcode) {
	case FUSE_INIT:
		return answer(in->unique, 0, &init, sizeof(init));
	case FUSE_GETATTR:
	case FUSE_SETATTR:
		return answer(in->unique, 0, &attr, sizeof(attr));
	case FUSE_OPEN:
		return answer(in->unique, 0, &open, sizeof(open));
	case FUSE_READ:
		if (!shared->answers) {
			shared->unanswered++;
			/* Whoever waits is let go by the end of the server. */
			alarm(30);
			return;
		}
		return answer(in->unique, 0, content + read->offset, read->size);
	case FUSE_WRITE:
		return answer(in->unique, 0, &written, sizeof(written));
	case FUSE_FLUSH:
	case FUSE_RELEASE:
		return answer(in->unique, 0, NULL, 0);
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		return;
	default:
		return answer(in->unique, -ENOSYS, NULL, 0);
	}
}

/* Another process: the user of the file may end while it waits for it. */
static void serve(void)
{
	static char request[1 << 17] __attribute__((aligned(8)));

	CHECK(!prctl(PR_SET_PDEATHSIG, SIGKILL));
	while (read(fuse, request, sizeof(request)) > 0)
		serve_one((const struct fuse_in_header *)request);
	_exit(0);
}

/* The file in memory, without read-ahead. */
static uint8_t *map_served(int flags)
{
	char options[100];
	struct stat st;
	uint8_t *p;

	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	shared->answers = 1;
	CHECK((file = mkstemp(path)) >= 0 && !close(file));
	CHECK((fuse = open("/dev/fuse", O_RDWR)) >= 0);
	snprintf(options, sizeof(options), "fd=%d,rootmode=100644,user_id=0,group_id=0", fuse);
	CHECK(!mount("selftest", path, "fuse", MS_NOSUID | MS_NODEV, options));
	server = fork();
	if (!server)
		serve();
	CHECK(server > 0 && !close(fuse));
	CHECK((file = open(path, O_RDWR)) >= 0);
	CHECK(!fstat(file, &st) && st.st_size == PAGES * PAGE);
	p = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, flags, file, 0);
	CHECK(p != MAP_FAILED && !madvise(p, PAGES * PAGE, MADV_RANDOM));
	return p;
}

static void unmap_served(uint8_t *p)
{
	int status;

	CHECK(!munmap(p, PAGES * PAGE) && !close(file) && !umount(path) && !unlink(path));
	CHECK(waitpid(server, &status, 0) == server && status == 0);
	munmap(shared, PAGE);
}

/* A new pair for one request of a's on 64 bytes at ADDR: its status. */
static int once(struct pair *self, enum ibv_wr_opcode opcode, uint8_t *addr)
{
	struct ibv_wc wc;
	struct ibv_mr *mr;

	make_pair(self);
	mr = ibv_reg_mr(self->b.pd, addr, PAGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND);
	CHECK(mr);
	struct ibv_sge sge = { (uintptr_t)self->a.buf, 64, self->a.mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = (uintptr_t)addr, .rkey = mr->rkey },
	};
	CHECK(!ibv_post_send(self->a.qp, &wr, &bad));
	CHECK(next_wc(self->a.cq, &wc) == 1);
	CHECK(!ibv_dereg_mr(mr));
	free_end(&self->a);
	free_end(&self->b);
	return wc.status;
}

static void served_shared(struct pair *self)
{
	uint8_t *p = map_served(MAP_SHARED);

	/* The first two pages are there, the first to be written. */
	CHECK(!strcmp((char *)p, "served") && p[PAGE] == 0);
	p[10] = 1;
	shared->answers = 0;
	CHECK(once(self, IBV_WR_RDMA_READ, p) == IBV_WC_SUCCESS);
	CHECK(once(self, IBV_WR_RDMA_READ, p + PAGE) == IBV_WC_SUCCESS);
	CHECK(once(self, IBV_WR_RDMA_READ, p + 2 * PAGE) == IBV_WC_REM_ACCESS_ERR);
	CHECK(once(self, IBV_WR_RDMA_WRITE, p) == IBV_WC_REM_ACCESS_ERR);
	CHECK(once(self, IBV_WR_RDMA_WRITE, p + 2 * PAGE) == IBV_WC_REM_ACCESS_ERR);
	CHECK(!shared->unanswered);
	unmap_served(p);
}

static void served_private(struct pair *self)
{
	uint8_t *p = map_served(MAP_PRIVATE);

	/* The first page is the process' own by now. */
	p[10] = 1;
	shared->answers = 0;
	CHECK(once(self, IBV_WR_RDMA_WRITE, p) == IBV_WC_SUCCESS);
	CHECK(once(self, IBV_WR_RDMA_READ, p) == IBV_WC_SUCCESS);
	CHECK(once(self, IBV_WR_RDMA_READ, p + 2 * PAGE) == IBV_WC_REM_ACCESS_ERR);
	CHECK(once(self, IBV_WR_RDMA_WRITE, p + 2 * PAGE) == IBV_WC_REM_ACCESS_ERR);
	CHECK(!shared->unanswered);
	unmap_served(p);
}

static const CASES(struct pair) cases[] = {
	{ "served_shared", served_shared },
	{ "served_private", served_private },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	static struct pair self;

	return RUN_CASES(&self, cases, argc, argv);
}
