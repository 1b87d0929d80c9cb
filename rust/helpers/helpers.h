/* SPDX-License-Identifier: GPL-2.0 */
/*
 * One-line helpers: Rust cannot call inline functions and macros of the kernel.
 * What takes more than a line stands beside its Rust half in crate rdma. bindgen
 * reads this file and the headers there: they name kernel types only behind
 * pointers.
 */
#ifndef XROCE_HELPERS_H
#define XROCE_HELPERS_H

#include <linux/types.h>

struct net;
struct net_device;
struct rcu_work;
struct refcount_struct;
struct rwlock;
struct spinlock;
struct work_struct;

/* crc.c */
__u32 xrdma_crc32_le(__u32 seed, const void *data, size_t len);

/* netdev.c */
void xrdma_netdev_hold(struct net_device *dev);
void xrdma_netdev_put(struct net_device *dev);
__u32 xrdma_netdev_mtu(const struct net_device *dev);
__u32 xrdma_netdev_ifindex(const struct net_device *dev);
bool xrdma_netdev_is_up(const struct net_device *dev);
bool xrdma_netdev_has_carrier(const struct net_device *dev);
void xrdma_netdev_mac(const struct net_device *dev, __u8 mac[6]);
__u64 xrdma_net_cookie(const struct net *net);
struct net *xrdma_net_get(struct net *net);
void xrdma_net_put(struct net *net);

/* random.c */
u64 xrdma_random_u64(void);

/* rcu.c */
bool xrdma_refcount_inc_not_zero(struct refcount_struct *ref);
void xrdma_rcu_work_init(struct rcu_work *rwork,
			 void (*fn)(struct work_struct *work));
struct rcu_work *xrdma_to_rcu_work(struct work_struct *work);
void xrdma_wait_for_readers(void);

/* sync.c */
void xrdma_spin_lock_bh(struct spinlock *lock);
void xrdma_spin_unlock_bh(struct spinlock *lock);
bool xrdma_spin_trylock_bh(struct spinlock *lock);
unsigned long xrdma_spin_lock_irqsave(struct spinlock *lock);
void xrdma_spin_unlock_irqrestore(struct spinlock *lock, unsigned long flags);
bool xrdma_spin_trylock_irqsave(struct spinlock *lock, unsigned long *flags);
void xrdma_wait_bits_clear(__u32 *word, __u32 mask);
void xrdma_wake_waiters(__u32 *word);
void xrdma_gate_lock_init(struct rwlock *lock);
bool xrdma_gate_read_trylock(struct rwlock *lock);
void xrdma_gate_read_unlock(struct rwlock *lock);
void xrdma_gate_write_lock(struct rwlock *lock);
void xrdma_gate_write_unlock(struct rwlock *lock);
void xrdma_preempt_disable(void);
void xrdma_preempt_enable(void);
void xrdma_bh_disable(void);
void xrdma_bh_enable(void);
bool xrdma_in_softirq(void);
bool xrdma_may_sleep(void);

#endif /* XROCE_HELPERS_H */
