// SPDX-License-Identifier: GPL-2.0
/* The account of a process for the packets that it sends in a network namespace. */
#include <linux/in.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/net.h>
#include <linux/rcupdate.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <net/sock.h>

#include "services/net/sender.h"
#include "services/net/tunnel.h"

/*
 * Memory of packets that a sender has in the queues of the host, at most: five
 * windows of 384 packets with the largest MTU. More than that is dropped, as a
 * queueing discipline that is full does. Packets without data, which are short, have
 * a little more: answers are not to be lost because of what is sent beside them.
 */
#define XRDMA_TX_MAX SZ_16M
#define XRDMA_TX_MAX_SHORT (SZ_16M + SZ_1M)
#define XRDMA_TX_SHORT 64

/**
 * struct xrdma_sender - a process in a namespace, and what it sends by
 * @sk: a UDP socket that is bound to nothing, NULL when the tunnel is closed or
 *	the namespace was dying when the sender came.
 * @closing: that socket while the tunnel is being closed.
 * @process: whose it is; told by its address only.
 * @group: tells several senders of a process apart.
 * @users: handles.
 * @link: in &xrdma_tunnel.senders as long as the tunnel is open.
 *
 * All is under &xrdma_tunnel.senders_lock; @sk is also read in RCU read sections.
 */
struct xrdma_sender {
	struct sock __rcu *sk;
	struct sock *closing;
	const struct xrdma_process *process;
	__u64 group;
	unsigned int users;
	struct list_head link;
};

/* The caller has the lock. */
static struct xrdma_sender *xrdma_sender_find(struct xrdma_tunnel *t,
					      const struct xrdma_process *p,
					      __u64 group)
{
	struct xrdma_sender *s;

	list_for_each_entry(s, &t->senders, link)
		if (s->process == p && s->group == group) {
			s->users++;
			return s;
		}
	return NULL;
}

/*
 * A socket in the namespace of @t; @sock is NULL when the tunnel is closed, and when it
 * is about to be, because the namespace is dying.
 */
static int xrdma_sender_socket(struct xrdma_tunnel *t, struct socket **sock)
{
	struct net *net = NULL;
	struct sock *sk;
	int ret;

	*sock = NULL;
	rcu_read_lock();
	sk = rcu_dereference(t->sk4);
	if (sk)
		net = maybe_get_net(sock_net(sk));
	rcu_read_unlock();
	if (!net)
		return 0;
	ret = sock_create_kern(net, AF_INET, SOCK_DGRAM, IPPROTO_UDP, sock);
	/* As bound sockets have it: cheaper, and it outlives those who saw it. */
	if (!ret)
		sock_set_flag((*sock)->sk, SOCK_RCU_FREE);
	put_net(net);
	return ret;
}

/* Without the lock: to allocate may take long, for the sake of one process. */
static struct xrdma_sender *xrdma_sender_alloc(struct xrdma_tunnel *t)
{
	struct xrdma_sender *s = kzalloc_obj(*s, GFP_KERNEL_ACCOUNT);
	struct socket *sock;

	if (!s)
		return NULL;
	if (xrdma_sender_socket(t, &sock)) {
		kfree(s);
		return NULL;
	}
	INIT_LIST_HEAD(&s->link);
	RCU_INIT_POINTER(s->sk, sock ? sock->sk : NULL);
	s->users = 1;
	return s;
}

/* Nobody has a handle, and it is in no list. */
static void xrdma_sender_free(struct xrdma_sender *s)
{
	struct sock *sk = rcu_dereference_protected(s->sk, true);

	if (sk)
		sock_release(sk->sk_socket);
	kfree(s);
}

/*
 * A handle of the sender of @p and @group in the tunnel's namespace. The caller
 * keeps @p and @t until it puts the handle. Process context, sleeps. NULL: no
 * memory. Sockets are C structures.
 */
struct xrdma_sender *xrdma_sender_get(struct xrdma_tunnel *t,
				      const struct xrdma_process *p, __u64 group)
{
	struct xrdma_sender *s, *new;
	struct sock *late = NULL;

	mutex_lock(&t->senders_lock);
	s = xrdma_sender_find(t, p, group);
	mutex_unlock(&t->senders_lock);
	if (s)
		return s;
	new = xrdma_sender_alloc(t);
	if (!new)
		return NULL;
	new->process = p;
	new->group = group;
	mutex_lock(&t->senders_lock);
	s = xrdma_sender_find(t, p, group);
	if (!s && rcu_access_pointer(t->sk4))
		list_add(&new->link, &t->senders);
	else if (!s)
		/* The tunnel was closed meanwhile: nothing can be sent any more. */
		late = rcu_replace_pointer(new->sk, NULL,
					   lockdep_is_held(&t->senders_lock));
	mutex_unlock(&t->senders_lock);
	if (late)
		sock_release(late->sk_socket);
	if (!s)
		return new;
	xrdma_sender_free(new);
	return s;
}

/*
 * Gives a handle back. Packets under way keep the memory of the socket. Process
 * context, sleeps.
 */
void xrdma_sender_put(struct xrdma_tunnel *t, struct xrdma_sender *s)
{
	bool last;

	mutex_lock(&t->senders_lock);
	last = !--s->users;
	if (last)
		list_del(&s->link);
	mutex_unlock(&t->senders_lock);
	/* Whoever sends has a handle, so nobody is about to charge a packet. */
	if (last)
		xrdma_sender_free(s);
}

/* What the packets of @s that are in the queues of the host take, bytes. Any context. */
__u64 xrdma_sender_bytes(const struct xrdma_sender *s)
{
	struct sock *sk;
	u64 bytes;

	rcu_read_lock();
	sk = rcu_dereference(s->sk);
	bytes = sk ? sk_wmem_alloc_get(sk) : 0;
	rcu_read_unlock();
	return bytes;
}

/*
 * What a new packet with @len bytes of UDP payload is charged to; NULL: it is not to
 * be sent. The caller is in an RCU read section.
 */
struct sock *xrdma_sender_sock(const struct xrdma_sender *s, u32 len)
{
	struct sock *sk = rcu_dereference(s->sk);
	int most = len <= XRDMA_TX_SHORT ? XRDMA_TX_MAX_SHORT : XRDMA_TX_MAX;

	return sk && sk_wmem_alloc_get(sk) < most ? sk : NULL;
}

/*
 * The tunnel closes: after a grace period no packet is charged to its senders any
 * more. The caller has the lock, and keeps it until xrdma_senders_release().
 */
void xrdma_senders_close(struct xrdma_tunnel *t)
{
	struct xrdma_sender *s;

	list_for_each_entry(s, &t->senders, link)
		s->closing = rcu_replace_pointer(s->sk, NULL,
						 lockdep_is_held(&t->senders_lock));
}

/* That grace period has passed. The caller has the lock. */
void xrdma_senders_release(struct xrdma_tunnel *t)
{
	struct xrdma_sender *s, *next;

	list_for_each_entry_safe(s, next, &t->senders, link) {
		list_del_init(&s->link);
		/* One that came while the namespace was dying has none. */
		if (s->closing)
			sock_release(s->closing->sk_socket);
		s->closing = NULL;
	}
}
