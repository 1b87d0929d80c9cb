// SPDX-License-Identifier: GPL-2.0
/*
 * Measures messages over TCP, as the other programs do over RDMA.
 *
 *   bench-tcp serve PORT CONNECTIONS
 *   bench-tcp stream ADDRESS PORT PROCESSES MS SIZE...
 *   bench-tcp latency ADDRESS PORT COUNT
 *
 * stream: each process has a connection, on which it sends messages of SIZE, each by a call
 * of its own and without waiting for more (TCP_NODELAY). Prints a line for each SIZE:
 * messages per second that arrived, of all processes together; the server has the clock,
 * which runs from its first byte to its last. latency: COUNT times, 8
 * bytes go there and back; prints the median, the 99th and the 99.9th percentile of half of
 * that time, in microseconds. The server ends after so many connections.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <signal.h>

#include "check.h"

enum { STREAM, LATENCY };
#define LARGEST (4 << 20)

/* What a server tells at the end of a stream: what came after its first byte, and for how long. */
struct received {
	double bytes, seconds;
};

static char *buf;

static struct sockaddr_in address(const char *host, const char *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(atoi(port)) };

	CHECK(inet_pton(AF_INET, host, &a.sin_addr) == 1);
	return a;
}

static void no_delay(int fd)
{
	int one = 1;

	CHECK(!setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)));
}

/* All of it; 0 at the end of the connection. */
static int get(int fd, void *data, size_t size)
{
	return recv(fd, data, size, MSG_WAITALL) == (ssize_t)size;
}

static void put(int fd, const void *data, size_t size)
{
	while (size) {
		ssize_t n = send(fd, data, size, MSG_NOSIGNAL);

		CHECK(n > 0);
		data = (const char *)data + n;
		size -= n;
	}
}

/* One connection of a client, which has said what it wants. */
static void serve_one(int fd)
{
	struct received got = { 0 };
	uint64_t what;
	double first;
	ssize_t n;

	no_delay(fd);
	CHECK(get(fd, &what, sizeof(what)));
	if (what == LATENCY) {
		while (get(fd, buf, 8))
			put(fd, buf, 8);
		return;
	}
	if (!get(fd, buf, 1))
		return;
	for (first = now(); (n = recv(fd, buf, 1 << 18, 0)) > 0; got.seconds = now() - first)
		got.bytes += n;
	put(fd, &got, sizeof(got));
}

static int serve(const char *port, int connections)
{
	struct sockaddr_in a = address("0.0.0.0", port);
	int one = 1, fd, n, status, bad = 0, listener = socket(AF_INET, SOCK_STREAM, 0);

	CHECK(listener >= 0);
	CHECK(!setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)));
	CHECK(!bind(listener, (struct sockaddr *)&a, sizeof(a)) && !listen(listener, 64));
	for (n = 0; n < connections; n++) {
		CHECK((fd = accept(listener, NULL, NULL)) >= 0);
		if (!fork()) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			serve_one(fd);
			_exit(0);
		}
		close(fd);
	}
	while (n--)
		bad |= wait(&status) < 0 || status;
	return bad;
}

static int dial(const struct sockaddr_in *a, uint64_t what)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	CHECK(fd >= 0 && !connect(fd, (const struct sockaddr *)a, sizeof(*a)));
	no_delay(fd);
	put(fd, &what, sizeof(what));
	return fd;
}

/* Messages per second of one connection. */
static double stream_one(const struct sockaddr_in *a, size_t size, double seconds)
{
	int fd = dial(a, STREAM), i;
	double start = now();
	struct received got;

	do
		for (i = 0; i < 16; i++)
			put(fd, buf, size);
	while (now() < start + seconds);
	CHECK(!shutdown(fd, SHUT_WR) && get(fd, &got, sizeof(got)) && got.seconds > 0);
	close(fd);
	return got.bytes / size / got.seconds;
}

static int stream(const struct sockaddr_in *a, int processes, double seconds, char **sizes)
{
	for (; *sizes; sizes++) {
		double rate, sum = 0;
		int i, status, fds[2];

		CHECK(!pipe(fds));
		for (i = 0; i < processes; i++) {
			if (fork())
				continue;
			rate = stream_one(a, atoi(*sizes), seconds);
			_exit(write(fds[1], &rate, sizeof(rate)) != sizeof(rate));
		}
		for (i = 0; i < processes; i++) {
			CHECK(wait(&status) > 0 && !status);
			CHECK(read(fds[0], &rate, sizeof(rate)) == sizeof(rate));
			sum += rate;
		}
		close(fds[0]);
		close(fds[1]);
		printf("%.2f\n", sum);
		fflush(stdout);
	}
	return 0;
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int latency(const struct sockaddr_in *a, int count)
{
	double *took = calloc(count, sizeof(*took)), start;
	int fd = dial(a, LATENCY), i;

	CHECK(took);
	for (i = 0; i < count; i++) {
		start = now();
		put(fd, buf, 8);
		CHECK(get(fd, buf, 8));
		took[i] = (now() - start) / 2 * 1e6;
	}
	close(fd);
	qsort(took, count, sizeof(*took), by_value);
	printf("%.2f %.2f %.2f\n", took[count / 2], took[count - 1 - count / 100],
	       took[count - 1 - count / 1000]);
	return 0;
}

int main(int argc, char **argv)
{
	struct sockaddr_in a;
	int i;

	CHECK(buf = calloc(1, LARGEST));
	if (argc == 4 && !strcmp(argv[1], "serve"))
		return serve(argv[2], atoi(argv[3]));
	if (argc < 5)
		return 2;
	a = address(argv[2], argv[3]);
	if (!strcmp(argv[1], "latency") && atoi(argv[4]) > 0)
		return latency(&a, atoi(argv[4]));
	if (strcmp(argv[1], "stream") || argc < 7 || atoi(argv[4]) < 1)
		return 2;
	for (i = 6; argv[i]; i++)
		if (atoi(argv[i]) < 1 || atoi(argv[i]) > LARGEST)
			return 2;
	return stream(&a, atoi(argv[4]), atof(argv[5]) / 1000, argv + 6);
}
