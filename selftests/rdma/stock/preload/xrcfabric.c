// SPDX-License-Identifier: GPL-2.0
/*
 * A library to preload that completes libfabric's connection set-up over XRC.
 *
 * Up to 1.20, libfabric's verbs provider connects over XRC by itself. Since then it
 * resolves addresses in the background, but not for XRC: nobody resolves the peer's
 * address, so the identifier has no device when rdma_create_qp_ex() needs it. In
 * addition, once the route is resolved, the provider skips a header in front of the
 * private data that only RC puts there. This library corrects both where the calls
 * enter librdmacm. Everything else is libfabric's own code.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/rdma_cma.h>

#define REAL(name)							\
	static __typeof__(&name) real;					\
									\
	if (!real)							\
		real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

/* libfabric's private data of a request over XRC, in network order. */
struct xrc_data {
	uint8_t version;
	uint8_t reciprocal;
	uint16_t port;
	uint32_t rest[3];
};

enum { VERSION = 2, MAX_LEN = 56, SKIPPED = 36 };

/* Where this thread is about to connect from and to. */
static __thread struct sockaddr_storage src, dst;

/*
 * Who asked for a connection, and at which port the way back begins. The way back may
 * have to wait until another one to the same host is there. It is known by its endpoint
 * then, which is the context of both identifiers.
 */
struct request {
	struct request *next;
	struct rdma_cm_id *id;
	void *endpoint;
	struct sockaddr_storage from, to;
	uint16_t port;
};

static struct request *requests;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void keep(struct sockaddr_storage *to, const struct sockaddr *from, uint16_t port)
{
	int v6 = from && from->sa_family == AF_INET6;

	memset(to, 0, sizeof(*to));
	if (!from)
		return;
	memcpy(to, from, v6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
	if (v6)
		((struct sockaddr_in6 *)to)->sin6_port = port;
	else
		((struct sockaddr_in *)to)->sin_port = port;
}

/* The active side tells its addresses to this before it makes an identifier. */
int rdma_getaddrinfo(const char *node, const char *service,
		     const struct rdma_addrinfo *hints, struct rdma_addrinfo **res)
{
	REAL(rdma_getaddrinfo);
	int ret = real(node, service, hints, res);
	struct sockaddr *to = ret ? NULL : (*res)->ai_dst_addr;

	keep(&src, ret ? NULL : (*res)->ai_src_addr, 0);
	keep(&dst, to, to ? ((struct sockaddr_in *)to)->sin_port : 0);
	return ret;
}

static void remember(struct rdma_cm_id *id, uint16_t port)
{
	struct request *r;

	pthread_mutex_lock(&lock);
	for (r = requests; r && r->id != id; r = r->next)
		;
	if (!r) {
		r = malloc(sizeof(*r));
		if (!r)
			abort();
		r->id = id;
		r->next = requests;
		requests = r;
	}
	r->endpoint = NULL;
	r->port = port;
	pthread_mutex_unlock(&lock);
}

/* The passive side connects back as soon as the way to it is there. */
static void turn_round(struct rdma_cm_id *id)
{
	struct request *r;

	pthread_mutex_lock(&lock);
	for (r = requests; r && r->id != id; r = r->next)
		;
	if (r) {
		keep(&src, rdma_get_local_addr(id), 0);
		keep(&dst, rdma_get_peer_addr(id), r->port);
		r->endpoint = id->context;
		r->from = src;
		r->to = dst;
	}
	pthread_mutex_unlock(&lock);
}

/* Both ways are there, or the endpoint goes. */
int rdma_destroy_id(struct rdma_cm_id *id)
{
	REAL(rdma_destroy_id);
	struct request **at, *r;

	pthread_mutex_lock(&lock);
	for (at = &requests; (r = *at) && r->id != id; at = &r->next)
		;
	if (r)
		*at = r->next;
	pthread_mutex_unlock(&lock);
	free(r);
	return real(id);
}

/* The way back of an endpoint that has waited. */
static void turn_back(void *endpoint)
{
	struct request *r;

	pthread_mutex_lock(&lock);
	for (r = requests; r && (!endpoint || r->endpoint != endpoint); r = r->next)
		;
	if (r) {
		src = r->from;
		dst = r->to;
	}
	pthread_mutex_unlock(&lock);
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	REAL(rdma_get_cm_event);
	int ret = real(channel, event);
	const struct rdma_conn_param *param;
	struct xrc_data data;

	if (ret)
		return ret;
	param = &(*event)->param.conn;
	if ((*event)->event == RDMA_CM_EVENT_ESTABLISHED) {
		turn_round((*event)->id);
	} else if ((*event)->event == RDMA_CM_EVENT_CONNECT_REQUEST &&
		   param->private_data_len >= sizeof(data)) {
		memcpy(&data, param->private_data, sizeof(data));
		if (data.version == VERSION)
			remember((*event)->id, data.port);
	}
	return ret;
}

int rdma_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	REAL(rdma_accept);
	int ret = real(id, param);

	turn_round(id);
	return ret;
}

/* The missing step. An identifier without a channel is resolved in the call. */
static int resolve(struct rdma_cm_id *id)
{
	if (id->verbs || !dst.ss_family)
		return 0;
	return rdma_resolve_addr(id, src.ss_family ? (void *)&src : NULL, (void *)&dst, 2000);
}

/* The first connection to a host makes a queue pair ... */
int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	REAL(rdma_create_qp_ex);

	if (attr->qp_type == IBV_QPT_XRC_SEND && resolve(id))
		return -1;
	return real(id, attr);
}

/* ... and further ones ask by datagram for a share of its target. */
int rdma_migrate_id(struct rdma_cm_id *id, struct rdma_event_channel *channel)
{
	REAL(rdma_migrate_id);

	if (id->ps == RDMA_PS_UDP && !id->verbs) {
		turn_back(id->context);
		if (resolve(id))
			return -1;
	}
	return real(id, channel);
}

/* Only requests that go back have nothing behind what is XRC's. */
static int is_xrc_data(const void *p, size_t len)
{
	struct xrc_data data;

	if (!p || len < sizeof(data) || len > MAX_LEN)
		return 0;
	memcpy(&data, p, sizeof(data));
	return data.version == VERSION && data.reciprocal == (len == sizeof(data));
}

int rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	REAL(rdma_connect);
	struct rdma_conn_param mended;
	size_t len;

	if (!param || is_xrc_data(param->private_data, param->private_data_len))
		return real(id, param);
	/* The length was taken for a size_t, so its neighbours may have changed. */
	mended = *param;
	memcpy(&len, &mended.private_data_len, sizeof(len));
	len += SKIPPED;
	memcpy(&mended.private_data_len, &len, sizeof(len));
	mended.private_data = (const char *)mended.private_data - SKIPPED;
	if (!is_xrc_data(mended.private_data, mended.private_data_len))
		return real(id, param);
	return real(id, &mended);
}
