// SPDX-License-Identifier: GPL-2.0
/*
 * rdma-echo serve|ask|both ADDRESS: messages that come back, over any RDMA device.
 *
 * The example of Documentation/infiniband/xroce-ci.rst: a project of its own that knows nothing
 * of xroce. The client asks until somebody serves; "both" does both in two processes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/wait.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#define PORT "7471"
#define SIZE 4096
#define ROUNDS 100
/* A tenth of a second each. */
#define TRIES 600

static char in[SIZE], out[SIZE];

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static struct rdma_cm_id *endpoint(const char *address, int flags)
{
	struct rdma_addrinfo hints = { .ai_flags = flags, .ai_port_space = RDMA_PS_TCP }, *info;
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 2, .max_recv_wr = 2, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct rdma_cm_id *id;

	if (rdma_getaddrinfo(address, PORT, &hints, &info))
		die(address);
	if (rdma_create_ep(&id, info, NULL, &attr))
		die("rdma_create_ep");
	rdma_freeaddrinfo(info);
	return id;
}

static struct ibv_mr *memory(struct rdma_cm_id *id, char *buffer)
{
	struct ibv_mr *mr = rdma_reg_msgs(id, buffer, SIZE);

	if (!mr)
		die("rdma_reg_msgs");
	return mr;
}

/* Wait for a completion; its length. */
static unsigned int done(int (*get)(struct rdma_cm_id *id, struct ibv_wc *wc),
			 struct rdma_cm_id *id)
{
	struct ibv_wc wc;

	if (get(id, &wc) != 1)
		die("no completion");
	if (wc.status != IBV_WC_SUCCESS) {
		fprintf(stderr, "completion: %s\n", ibv_wc_status_str(wc.status));
		exit(1);
	}
	return wc.byte_len;
}

static void serve(const char *address)
{
	struct rdma_cm_id *listener = endpoint(address, RAI_PASSIVE), *id;
	struct ibv_mr *in_mr, *out_mr;
	unsigned int n, length;

	if (rdma_listen(listener, 1) || rdma_get_request(listener, &id))
		die("rdma_listen");
	in_mr = memory(id, in);
	out_mr = memory(id, out);
	if (rdma_post_recv(id, NULL, in, SIZE, in_mr) || rdma_accept(id, NULL))
		die("rdma_accept");
	for (n = 0; n < ROUNDS; n++) {
		length = done(rdma_get_recv_comp, id);
		memcpy(out, in, length);
		if (rdma_post_recv(id, NULL, in, SIZE, in_mr) ||
		    rdma_post_send(id, NULL, out, length, out_mr, 0))
			die("rdma_post_send");
		done(rdma_get_send_comp, id);
	}
}

static void ask(const char *address)
{
	struct rdma_cm_id *id = endpoint(address, 0);
	struct ibv_mr *in_mr, *out_mr;
	unsigned int n, length;

	for (n = 0; rdma_connect(id, NULL); n++) {
		if (errno != ECONNREFUSED || n == TRIES)
			die("rdma_connect");
		rdma_destroy_ep(id);
		usleep(100000);
		id = endpoint(address, 0);
	}
	in_mr = memory(id, in);
	out_mr = memory(id, out);
	for (n = 0; n < ROUNDS; n++) {
		length = n * 41 % SIZE + 1;
		memset(out, n, length);
		memset(in, 0xff, SIZE);
		if (rdma_post_recv(id, NULL, in, SIZE, in_mr) ||
		    rdma_post_send(id, NULL, out, length, out_mr, 0))
			die("rdma_post_send");
		done(rdma_get_send_comp, id);
		if (done(rdma_get_recv_comp, id) != length || memcmp(in, out, length)) {
			fprintf(stderr, "message %u came back changed\n", n);
			exit(1);
		}
	}
	printf("%d messages came back from %s through %s\n", ROUNDS, address,
	       ibv_get_device_name(id->verbs->device));
}

int main(int argc, char **argv)
{
	pid_t server;
	int status;

	if (argc == 3 && !strcmp(argv[1], "serve")) {
		serve(argv[2]);
	} else if (argc == 3 && !strcmp(argv[1], "ask")) {
		ask(argv[2]);
	} else if (argc == 3 && !strcmp(argv[1], "both")) {
		server = fork();
		if (!server) {
			serve(argv[2]);
			return 0;
		}
		ask(argv[2]);
		if (waitpid(server, &status, 0) != server || status)
			die("the server failed");
	} else {
		fprintf(stderr, "usage: rdma-echo serve|ask|both ADDRESS\n");
		return 2;
	}
	return 0;
}
