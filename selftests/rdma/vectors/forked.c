// SPDX-License-Identifier: GPL-2.0
// selftest: timeout=120 debug xroce left
/*
 * Completion channels and fork.
 *
 *   forked                      list the cases
 *   forked CASE DEVICE GID      run one
 *
 * A child has its parent's files and a copy of its memory, and must not use the
 * parent's verbs objects (ibv_fork_init(3)). Everything else that the child does must
 * not affect the parent.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "armed.h"
#include "devices.h"


/* Ends child PID with CODE expected. */
static void reap(pid_t pid, int code)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == code);
}

/* A child: 0 in it. */
static pid_t child(void)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	return pid;
}

/* Children come and end in every way while the parent waits for events. */
static void children_end(const struct devices *on)
{
	struct armed a;
	int i, status;

	CHECK(!ibv_fork_init());
	make_armed(&a, on->name[0], on->gid_index[0], 64, 0);
	for (i = 0; i < 24; i++) {
		pid_t pid;

		arm(&a);
		/* With the event before, or after, the child. */
		if (i & 1)
			complete(&a, 2);
		pid = child();
		if (!pid) {
			if (i % 4 < 2)
				_exit(7);
			if (i % 8 < 4)
				execl("/bin/sh", "sh", "-c", "exit 7", NULL);
			for (;;)
				pause();
		}
		if (i % 8 >= 6) {
			CHECK(!kill(pid, SIGKILL) && waitpid(pid, &status, 0) == pid);
			CHECK(WIFSIGNALED(status));
		} else {
			reap(pid, 7);
		}
		if (!(i & 1))
			complete(&a, 2);
		take_event(&a, 2);
	}
	end_armed(&a);
}

/* A child that looks whether there is an event leaves it to the parent. */
static void child_looks(const struct devices *on)
{
	struct armed a;
	pid_t pid;

	CHECK(!ibv_fork_init());
	make_armed(&a, on->name[0], on->gid_index[0], 64, 1);
	arm(&a);
	pid = child();
	if (!pid)
		_exit(readable(a.channel->fd, 20) ? 7 : 1);
	complete(&a, 1);
	reap(pid, 7);
	take_event(&a, 1);
	end_armed(&a);
}

/*
 * The channel's file is one: an event that the child reads is gone. The parent
 * has to acknowledge it, or it could not destroy the queue.
 */
static void child_takes(const struct devices *on)
{
	struct ibv_cq *got;
	struct armed a;
	void *context;
	pid_t pid;

	make_armed(&a, on->name[0], on->gid_index[0], 64, 0);
	CHECK(!fcntl(a.channel->fd, F_SETFL, O_NONBLOCK));
	arm(&a);
	complete(&a, 1);
	pid = child();
	if (!pid) {
		CHECK(readable(a.channel->fd, 20));
		CHECK(!ibv_get_cq_event(a.channel, &got, &context) && got == a.cq);
		_exit(7);
	}
	reap(pid, 7);
	CHECK(ibv_get_cq_event(a.channel, &got, &context) == -1 && errno == EAGAIN);
	ibv_ack_cq_events(a.cq, 1);
	drain_armed(&a, 1);
	arm(&a);
	complete(&a, 1);
	take_event(&a, 1);
	end_armed(&a);
}

static void many_events(const struct devices *on, int vector)
{
	struct armed a;
	int i;

	make_armed(&a, on->name[0], on->gid_index[0], 64, vector);
	for (i = 0; i < 200; i++) {
		arm(&a);
		complete(&a, 1);
		take_event(&a, 1);
	}
	end_armed(&a);
}

/* Parent and child with a context each, one opened before and one after. */
static void both_at_once(const struct devices *on)
{
	struct armed a;
	pid_t pid;

	CHECK(!ibv_fork_init());
	make_armed(&a, on->name[0], on->gid_index[0], 64, 0);
	pid = child();
	if (!pid) {
		many_events(on, 1);
		_exit(7);
	}
	many_events(on, 0);
	arm(&a);
	complete(&a, 1);
	take_event(&a, 1);
	reap(pid, 7);
	end_armed(&a);
}

/* Data that the device writes after a fork is the parent's, whatever the child does. */
static void data_is_the_parents(const struct devices *on)
{
	size_t page = sysconf(_SC_PAGESIZE);
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_WRITE, .num_sge = 1,
				  .send_flags = IBV_SEND_SIGNALED }, *bad;
	struct ibv_sge sge;
	struct ibv_mr *mr;
	struct ibv_wc wc;
	struct armed a;
	int go[2];
	pid_t pid;
	char *buf, c;

	CHECK(!ibv_fork_init() && !pipe(go));
	make_armed(&a, on->name[0], on->gid_index[0], 64, 0);
	buf = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(buf != MAP_FAILED);
	memset(buf, 'o', 2 * page);
	mr = ibv_reg_mr(a.pd, buf, 2 * page, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	CHECK(mr);
	arm(&a);
	pid = child();
	if (!pid) {
		close(go[1]);
		/* Without copies at fork the pages are not there at all. */
		if (ibv_is_fork_initialized() == IBV_FORK_UNNEEDED)
			memset(buf, 'c', 2 * page);
		CHECK(read(go[0], &c, 1) == 0);
		if (ibv_is_fork_initialized() == IBV_FORK_UNNEEDED)
			CHECK(buf[0] == 'c' && buf[page] == 'c');
		_exit(7);
	}
	/* Were the pages shared, this would take them away from the device. */
	memset(buf, 'p', page);
	memset(buf + page, 'q', page);
	sge = (struct ibv_sge){ (uintptr_t)buf, page, mr->lkey };
	wr.sg_list = &sge;
	wr.wr.rdma.remote_addr = (uintptr_t)buf + page;
	wr.wr.rdma.rkey = mr->rkey;
	CHECK(!ibv_post_send(a.e[0].qp, &wr, &bad));
	CHECK(next_wc(a.sink, &wc) == 1 && wc.status == IBV_WC_SUCCESS);
	complete(&a, 1);
	take_event(&a, 1);
	CHECK(buf[page] == 'p' && !memcmp(buf, buf + page, page));
	close(go[1]);
	reap(pid, 7);
	CHECK(!ibv_dereg_mr(mr));
	munmap(buf, 2 * page);
	end_armed(&a);
}

/* The parent is killed with events queued; its child keeps its files, and then not. */
static void parent_is_killed(const struct devices *on)
{
	int tell[2], go[2], status;
	pid_t pid;
	char c;

	CHECK(!pipe(tell) && !pipe(go));
	pid = child();
	if (!pid) {
		struct armed a;

		make_armed(&a, on->name[0], on->gid_index[0], 64, 0);
		arm(&a);
		complete(&a, 4);
		CHECK(readable(a.channel->fd, 20));
		if (!child()) {
			uint64_t cookie;

			close(go[1]);
			CHECK(write(tell[1], "r", 1) == 1);
			CHECK(read(go[0], &c, 1) == 0);
			/* What the parent left is there to be read, and only that. */
			CHECK(readable(a.channel->fd, 20));
			CHECK(read(a.channel->fd, &cookie, sizeof(cookie)) == sizeof(cookie));
			CHECK(fcntl(a.channel->fd, F_SETFL, O_NONBLOCK) == 0);
			CHECK(read(a.channel->fd, &cookie, sizeof(cookie)) == -1 &&
			      errno == EAGAIN);
			CHECK(write(tell[1], "d", 1) == 1);
			_exit(7);
		}
		for (;;)
			pause();
	}
	close(tell[1]);
	CHECK(read(tell[0], &c, 1) == 1 && c == 'r');
	CHECK(!kill(pid, SIGKILL) && waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
	close(go[0]);
	close(go[1]);
	CHECK(read(tell[0], &c, 1) == 1 && c == 'd');
	CHECK(read(tell[0], &c, 1) == 0);
	many_events(on, 0);
}

static const CASES(const struct devices) cases[] = {
	{ "children end in every way", children_end },
	{ "a child looks at the channel", child_looks },
	{ "a child takes an event", child_takes },
	{ "parent and child have events at once", both_at_once },
	{ "data after a fork is the parent's", data_is_the_parents },
	{ "the parent is killed with events queued", parent_is_killed },
	{ NULL, NULL }
};

int main(int argc, char **argv)
{
	static struct devices on;

	return RUN_CASES(&on, cases, argc, argv);
}
