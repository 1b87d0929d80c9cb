// SPDX-License-Identifier: GPL-2.0
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "check.h"
#include "children.h"

struct child start_child(void (*run)(int fd, void *arg), void *arg)
{
	struct child c;
	int fds[2];

	CHECK(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds));
	fflush(stdout);
	c.pid = fork();
	CHECK(c.pid >= 0);
	if (!c.pid) {
		close(fds[0]);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run(fds[1], arg);
		_exit(0);
	}
	close(fds[1]);
	c.fd = fds[0];
	return c;
}

void kill_child(struct child *c)
{
	CHECK(!kill(c->pid, SIGKILL));
	CHECK(waitpid(c->pid, NULL, 0) == c->pid);
	close(c->fd);
}

void end_child(struct child *c)
{
	int status;

	/* Children that were made later have this end as well. */
	CHECK(!shutdown(c->fd, SHUT_RDWR));
	close(c->fd);
	CHECK(waitpid(c->pid, &status, 0) == c->pid && status == 0);
}
