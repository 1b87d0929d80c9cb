/* SPDX-License-Identifier: GPL-2.0 */
/*
 * C helpers of the kernel services in crate rdma.
 *
 * Rust cannot call inline functions and macros of the kernel, and a call per
 * field or per atomic operation is too slow for a data path; so each helper
 * here does one whole step. bindgen reads this file: it names kernel types only
 * behind pointers.
 */
#ifndef XRDMA_SERVICES_H
#define XRDMA_SERVICES_H

#include <linux/types.h>

struct ib_device;
struct ib_umem;
struct net;
struct net_device;
struct page;
struct rcu_work;
struct refcount_struct;
struct sk_buff;
struct sk_buff_head;
struct spinlock;
struct vm_area_struct;
struct work_struct;
struct workqueue_struct;
struct xarray;
struct xrdma_dst;

/* ends.c */

/**
 * enum xrdma_ends - by what the kernel calls this module, in the order in which it ends
 * @XRDMA_END_LINKS: `rdma link`, and the devices.
 * @XRDMA_END_NOTIFIERS: notifiers of net devices.
 * @XRDMA_END_VECTORS: interrupts.
 * @XRDMA_END_CALLS: timers and work items.
 * @XRDMA_ENDS: how many kinds.
 */
enum xrdma_ends {
	XRDMA_END_LINKS,
	XRDMA_END_NOTIFIERS,
	XRDMA_END_VECTORS,
	XRDMA_END_CALLS,
	XRDMA_ENDS,
};

int xrdma_ends_begin(void);
void xrdma_ends_all(enum xrdma_ends kind);
void xrdma_ends_finish(void);

/* random.c */
u64 xrdma_random_u64(void);

/* rcu.c */
bool xrdma_refcount_inc_not_zero(struct refcount_struct *ref);
void xrdma_rcu_work_init(struct rcu_work *rwork,
			 void (*fn)(struct work_struct *work));
struct rcu_work *xrdma_to_rcu_work(struct work_struct *work);
void xrdma_xa_init(struct xarray *xa);
int xrdma_xa_reserve(struct xarray *xa, __u32 *id, __u32 min, __u32 max,
		     __u32 *next, bool may_sleep);
int xrdma_xa_reserve_at(struct xarray *xa, __u32 id);
void xrdma_xa_publish(struct xarray *xa, __u32 id, void *entry);
void xrdma_xa_release(struct xarray *xa, __u32 id);
void *xrdma_xa_replace(struct xarray *xa, __u32 id, void *entry);
void *xrdma_xa_remove(struct xarray *xa, __u32 id);
void *xrdma_xa_next(struct xarray *xa, unsigned long *id);
void xrdma_wait_for_readers(void);

/* held.c */
void *xrdma_held_enter(struct xarray *xa, __u32 id);
void xrdma_held_leave(void);
void xrdma_held_wait(__u32 id);

/* sync.c */
void xrdma_spin_lock_bh(struct spinlock *lock);
void xrdma_spin_unlock_bh(struct spinlock *lock);
bool xrdma_spin_trylock_bh(struct spinlock *lock);
unsigned long xrdma_spin_lock_irqsave(struct spinlock *lock);
void xrdma_spin_unlock_irqrestore(struct spinlock *lock, unsigned long flags);
bool xrdma_spin_trylock_irqsave(struct spinlock *lock, unsigned long *flags);
void xrdma_wait_bits_clear(__u32 *word, __u32 mask);
void xrdma_wake_waiters(__u32 *word);
void xrdma_bh_disable(void);
void xrdma_bh_enable(void);

/* on_demand.c */
struct mm_struct;
struct page;

struct mm_struct *xrdma_mm_grab(void);
void xrdma_mm_drop(struct mm_struct *mm);
int xrdma_mm_hold(struct mm_struct *mm, __u64 addr, size_t n, bool write,
		  struct page **pages);
void xrdma_mm_wait(__u32 tries);
void xrdma_mm_release(struct page **pages, size_t n, bool dirty);
bool xrdma_in_softirq(void);
bool xrdma_may_sleep(void);

/* process.c */
struct xrdma_process;

struct xrdma_process *xrdma_process_get(bool kernel);
void xrdma_process_put(struct xrdma_process *p);

/* work.c */
struct xrdma_work;

/* @fn is a Rust function that only Rust can call; @cookie is its argument. */
typedef void (*xrdma_call_fn)(void *fn, __u64 cookie);

/**
 * enum xrdma_queue - the work queues of the module
 * @XRDMA_QUEUE_BH: in softirq.
 * @XRDMA_QUEUE_RUN: in threads; runs, which may wait for memory.
 * @XRDMA_QUEUE_FREE: in threads; drops of objects.
 */
enum xrdma_queue {
	XRDMA_QUEUE_BH,
	XRDMA_QUEUE_RUN,
	XRDMA_QUEUE_FREE,
};

struct workqueue_struct *xrdma_workqueue_create(enum xrdma_queue queue);
void xrdma_workqueue_destroy(struct workqueue_struct *wq);
void xrdma_workqueue_flush(struct workqueue_struct *wq);
struct xrdma_work *xrdma_work_alloc(struct workqueue_struct *bh,
				    struct workqueue_struct *run,
				    struct xrdma_process *p, xrdma_call_fn call,
				    void *fn, __u64 cookie);
bool xrdma_work_schedule(struct xrdma_work *w);
bool xrdma_work_schedule_thread(struct xrdma_work *w);
void xrdma_work_stop(struct xrdma_work *w);
void xrdma_work_free(struct xrdma_work *w);

/**
 * struct xrdma_step - what the present task does that may wait for memory; part of a Rust structure
 * @node: place in the table of work.c.
 * @task: whose it is.
 * @outer: what it is part of, or NULL.
 */
struct xrdma_step {
	struct hlist_node node;
	const void *task;
	struct xrdma_step *outer;
};

void xrdma_step_begin(struct xrdma_step *s);
void xrdma_step_end(struct xrdma_step *s);
struct xrdma_step *xrdma_step_current(void);
bool xrdma_signal_pending(void);
void xrdma_cond_resched(void);

/* dim.c */
struct xrdma_dim;

struct xrdma_dim *xrdma_dim_alloc(xrdma_call_fn call, void *fn, __u64 cookie);
void xrdma_dim_event(struct xrdma_dim *d, __u64 completions);
__u8 xrdma_dim_level(struct xrdma_dim *d);
void xrdma_dim_free(struct xrdma_dim *d);

/* timer.c */
struct xrdma_timer;

struct xrdma_timer *xrdma_timer_alloc(xrdma_call_fn call, void *fn,
				      __u64 cookie);
void xrdma_timer_start(struct xrdma_timer *t, __u64 ns);
void xrdma_timer_cancel(struct xrdma_timer *t);
void xrdma_timer_free(struct xrdma_timer *t);
__u64 xrdma_now_ns(void);
__u64 xrdma_now_raw_ns(void);

/* irq.c */
struct xrdma_vector;
struct xrdma_vectors;

/* The handler of an interrupt; hard interrupt context or a forced thread. */
typedef void (*xrdma_vector_fn)(void *data);

int xrdma_vectors_init(void);
void xrdma_vectors_exit(void);
struct xrdma_vectors *xrdma_vectors_alloc(__u32 count, xrdma_vector_fn handler);
int xrdma_vectors_start(struct xrdma_vectors *set, const char *prefix,
			void *const *data);
struct xrdma_vector *xrdma_vectors_at(struct xrdma_vectors *set, __u32 index);
void xrdma_vectors_free(struct xrdma_vectors *set);
void xrdma_vector_raise(struct xrdma_vector *v);
void xrdma_vector_raise_later(struct xrdma_vector *v);

/* percpu.c */
unsigned long xrdma_percpu_alloc(size_t words);
void xrdma_percpu_free(unsigned long counters);
void xrdma_percpu_add(unsigned long counters, size_t word, __u64 n);
__u64 xrdma_percpu_sum(unsigned long counters, size_t word);
__u32 xrdma_possible_cpus(void);

/* crc.c */
__u32 xrdma_crc32_le(__u32 seed, const void *data, size_t len);

/* mem.c */

/**
 * struct xrdma_mem - memory that a key names, ready for the CPU to touch
 * @pages: array of order-0 pages, or NULL when @va says where the bytes are.
 * @va: kernel address of byte 0, when @pages is NULL.
 * @first: offset of byte 0 in pages[0].
 * @length: bytes.
 */
struct xrdma_mem {
	struct page **pages;
	__u8 *va;
	__u64 first;
	__u64 length;
};

void xrdma_mem_read(const struct xrdma_mem *m, __u64 off, void *to, size_t len);
void xrdma_mem_write(const struct xrdma_mem *m, __u64 off, const void *from,
		     size_t len);
void xrdma_mem_copy(const struct xrdma_mem *from, __u64 from_off,
		    const struct xrdma_mem *to, __u64 to_off, size_t len);
int xrdma_mem_cmpxchg64(const struct xrdma_mem *m, __u64 off, __u64 compare,
			__u64 swap, __u64 *original);
int xrdma_mem_fetch_add64(const struct xrdma_mem *m, __u64 off, __u64 add,
			  __u64 *original);
int xrdma_mem_store64(const struct xrdma_mem *m, __u64 off, __u64 value);
struct page **xrdma_page_array_alloc(size_t n);
void xrdma_page_array_free(struct page **pages);
struct page *xrdma_kernel_page(__u64 addr);

/* persistent.c */
bool xrdma_mem_is_persistent(const struct xrdma_mem *m);
void xrdma_mem_write_back(const struct xrdma_mem *m, __u64 off, size_t len);

/* umem.c */
struct ib_umem *xrdma_umem_pin(struct ib_device *dev, __u64 addr, __u64 length,
			       int access, struct xrdma_mem *mem);
void xrdma_umem_unpin(struct ib_umem *umem, struct xrdma_mem *mem);
bool xrdma_umem_writable(const struct ib_umem *umem);

/* ring.c */
void *xrdma_ring_alloc(size_t npages, struct page ***pages);
void xrdma_ring_free(void *va, struct page **pages, size_t npages);
int xrdma_ring_map(struct vm_area_struct *vma, struct page **pages,
		   size_t npages);

/* netdev.c */
enum xrdma_netdev_event {
	XRDMA_NETDEV_OTHER,
	XRDMA_NETDEV_UP,
	XRDMA_NETDEV_DOWN,
	XRDMA_NETDEV_CHANGE,
	XRDMA_NETDEV_REGISTER,
	XRDMA_NETDEV_UNREGISTER,
	XRDMA_NETDEV_CHANGEMTU,
	XRDMA_NETDEV_CHANGEADDR,
	XRDMA_NETDEV_CHANGENAME,
};

typedef void (*xrdma_netdev_fn)(enum xrdma_netdev_event event,
				struct net_device *dev);
struct xrdma_notifier;

void xrdma_netdev_hold(struct net_device *dev);
void xrdma_netdev_put(struct net_device *dev);
__u32 xrdma_netdev_mtu(const struct net_device *dev);
__u32 xrdma_netdev_ifindex(const struct net_device *dev);
bool xrdma_netdev_is_up(const struct net_device *dev);
bool xrdma_netdev_has_carrier(const struct net_device *dev);
void xrdma_netdev_mac(const struct net_device *dev, __u8 mac[6]);
struct net *xrdma_netdev_net_get(const struct net_device *dev);
bool xrdma_netdev_is_in(struct net_device *dev, __u64 cookie);
__u64 xrdma_net_cookie(const struct net *net);
struct net *xrdma_net_get(struct net *net);
void xrdma_net_put(struct net *net);
struct xrdma_notifier *xrdma_notifier_register(xrdma_netdev_fn fn);
void xrdma_notifier_unregister(struct xrdma_notifier *n);

/* udp.c */

/**
 * struct xrdma_rx_info - what the receive side wants to know of one packet
 * @src: source address; IPv4 as ::ffff:a.b.c.d.
 * @dst: destination address, likewise.
 * @ip: first byte of the IP header; the UDP header follows it directly.
 * @payload: first byte of the UDP payload; linear.
 * @payload_len: bytes of UDP payload.
 * @ip_len: 20 or 40.
 * @tos: IPv4 type of service or IPv6 traffic class.
 */
struct xrdma_rx_info {
	__u8 src[16];
	__u8 dst[16];
	const __u8 *ip;
	const __u8 *payload;
	__u32 payload_len;
	__u8 ip_len;
	__u8 tos;
};

/**
 * struct xrdma_link_info - the link layer of one received packet
 * @smac: source MAC address; zero when the packet has none.
 * @vlan: VLAN identifier, 0xffff when there is none.
 */
struct xrdma_link_info {
	__u8 smac[6];
	__u16 vlan;
};

/* Takes a packet; or, without @skb, hears that one for @info->dst was refused. */
typedef void (*xrdma_receive_fn)(__u64 net_cookie, struct sk_buff *skb,
				 const struct xrdma_rx_info *info);
struct xrdma_tunnel;

int xrdma_udp_init(void);
void xrdma_udp_exit(void);
struct xrdma_tunnel *xrdma_tunnel_open(struct net *net, xrdma_receive_fn receive,
				       int *error);
void xrdma_tunnel_close(struct xrdma_tunnel *t);
void xrdma_tunnel_put(struct xrdma_tunnel *t);
__u64 xrdma_tunnel_cookie(const struct xrdma_tunnel *t);

/* sender.c */
struct xrdma_sender;

struct xrdma_sender *xrdma_sender_get(struct xrdma_tunnel *t,
				      const struct xrdma_process *p, __u64 group);
void xrdma_sender_put(struct xrdma_tunnel *t, struct xrdma_sender *s);
__u64 xrdma_sender_bytes(const struct xrdma_sender *s);

/* skb.c */

/*
 * The longest packet, from the UDP header on: BTH, XRCETH, RETH, immediate data, a
 * payload of the largest MTU and the ICRC (IBTA 9.2, 9.3).
 */
#define XRDMA_RX_MAX (8 + 12 + 4 + 16 + 4 + 4096 + 4)

bool xrdma_rx_parse(struct sk_buff *skb, struct xrdma_rx_info *info);
void xrdma_rx_detach(struct sk_buff *skb);
void xrdma_rx_link(const struct sk_buff *skb, struct xrdma_link_info *info);
void xrdma_skb_consume(struct sk_buff *skb);
void xrdma_skb_drop(struct sk_buff *skb);
struct sk_buff *xrdma_skb_share(struct sk_buff *skb);
void xrdma_skb_queue_init(struct sk_buff_head *q);
bool xrdma_skb_queue_push(struct sk_buff_head *q, __u32 *bytes,
			  struct sk_buff *skb, __u32 limit, __u32 max_bytes,
			  struct xrdma_process *p);
struct sk_buff *xrdma_skb_queue_pop(struct sk_buff_head *q, __u32 *bytes,
				    struct xrdma_process *p);
__u32 xrdma_skb_queue_len(const struct sk_buff_head *q);
void xrdma_skb_queue_purge(struct sk_buff_head *q, __u32 *bytes,
			   struct xrdma_process *p);

/* route.c */

/**
 * struct xrdma_flow - what decides the route of a packet
 * @src: source address; IPv4 as ::ffff:a.b.c.d.
 * @dst: destination address, of the same family.
 * @oif: index of the interface that packets leave by; 0: any.
 * @flow_label: IPv6 flow label, 20 bits.
 * @sport: UDP source port, host order.
 * @tos: IPv4 type of service or IPv6 traffic class.
 * @sl: service level of the verbs; 0: none.
 * @hop_limit: IPv4 time to live or IPv6 hop limit; 0: the route's default.
 */
struct xrdma_flow {
	__u8 src[16];
	__u8 dst[16];
	__u32 oif;
	__u32 flow_label;
	__u16 sport;
	__u8 tos;
	__u8 sl;
	__u8 hop_limit;
};

/**
 * struct xrdma_route - a flow, and the route that it takes at this time
 * @flow: the flow.
 * @hold: where its destination is, or NULL.
 * @ip_id: identification of the next IPv4 packet.
 * @v6: the flow is IPv6.
 * @local: it leads to this host.
 * @hop_limit: the value in force.
 * @priority: that of the packets.
 */
struct xrdma_route {
	struct xrdma_flow flow;
	struct xrdma_dst *hold;
	__u16 ip_id;
	bool v6;
	bool local;
	__u8 hop_limit;
	__u8 priority;
};

/**
 * struct xrdma_tx - one packet being built
 * @skb: the packet.
 * @headers: IP header and UDP header, final.
 * @payload: UDP payload, to be filled.
 * @headers_len: 28 or 48.
 */
struct xrdma_tx {
	struct sk_buff *skb;
	const __u8 *headers;
	__u8 *payload;
	__u32 headers_len;
};

/**
 * struct xrdma_tx_list - packets ready to go
 * @head: first packet, chained through sk_buff.next.
 * @tail: last packet.
 * @count: number of packets.
 */
struct xrdma_tx_list {
	struct sk_buff *head;
	struct sk_buff *tail;
	__u32 count;
};

int xrdma_route_resolve(struct xrdma_tunnel *t, struct xrdma_route *r);
void xrdma_route_release(struct xrdma_tunnel *t, struct xrdma_route *r);
bool xrdma_route_valid(struct xrdma_tunnel *t, const struct xrdma_route *r);
bool xrdma_tx_alloc(struct xrdma_tunnel *t, struct xrdma_route *r,
		    const struct xrdma_sender *s, __u32 len, struct xrdma_tx *tx);
void xrdma_tx_push(struct xrdma_tx_list *list, struct sk_buff *skb);
__u32 xrdma_tx_flush(struct xrdma_tx_list *list);
void xrdma_tx_drop(struct sk_buff *skb);
void xrdma_tx_purge(struct xrdma_tx_list *list);

#endif /* XRDMA_SERVICES_H */
