// SPDX-License-Identifier: GPL-2.0
#include "check.h"

void check_failed(const char *file, int line, const char *what)
{
	printf("%s:%d: %s is not so (errno %d, %s)\n", file, line, what, errno,
	       strerror(errno));
	fflush(stdout);
	_exit(1);
}

int on_debug_kernel(void)
{
	const char *debug = getenv("SELFTEST_DEBUG");

	return debug && *debug;
}

double deadline(double seconds)
{
	const char *slow = getenv("SELFTEST_SLOW");

	return now() + seconds * (slow ? atoi(slow) : 1);
}

int is_past(double end)
{
	return now() > end;
}

int next_wc(struct ibv_cq *cq, struct ibv_wc *wc)
{
	double end = deadline(20);
	int n;

	while (!(n = ibv_poll_cq(cq, 1, wc)) && !is_past(end))
		usleep(10);
	return n;
}

int readable(int fd, double seconds)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	double end = deadline(seconds);

	while (poll(&p, 1, 100) != 1)
		if (is_past(end))
			return 0;
	return 1;
}

int next_event(struct ibv_context *ctx, int type,
	       struct ibv_async_event *ev)
{
	while (readable(ctx->async_fd, 20)) {
		if (ibv_get_async_event(ctx, ev))
			return 0;
		ibv_ack_async_event(ev);
		if ((int)ev->event_type == type)
			return 1;
	}
	return 0;
}

enum ibv_qp_state state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(!ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
	CHECK(attr.qp_state == attr.cur_qp_state);
	return attr.qp_state;
}

void gets_to(struct ibv_qp *qp, enum ibv_qp_state state)
{
	double end = deadline(20);

	while (state_of(qp) != state)
		CHECK(!is_past(end));
}

int count(const char *command)
{
	FILE *f = popen(command, "r");
	int n = -1;

	CHECK(f && fscanf(f, "%d", &n) == 1);
	pclose(f);
	return n;
}

int lines_with(const char *word, const char *command)
{
	FILE *f = popen(command, "r");
	size_t size = 0;
	char *line = NULL;
	int n = 0, status;

	CHECK(f);
	while (getline(&line, &size, f) > 0)
		n += !!strstr(line, word);
	free(line);
	status = pclose(f);
	CHECK(status == 0);
	return n;
}
