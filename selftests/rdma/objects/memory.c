// SPDX-License-Identifier: GPL-2.0
// selftest: timeout=120 debug xroce on=both
/*
 * Memory behind keys: memory windows, re-registration, device memory, on-demand paging,
 * FLUSH and atomic write; and what is refused.
 *
 *   memory                                     lists the cases
 *   memory CASE DEVICE GID-INDEX [DEVICE GID-INDEX]
 *
 * End b, on the second device, has the memory; end a uses it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "datagrams.h"
#include "guard.h"
#include "remote.h"
#include "xrcpair.h"

/* A write that must not succeed, and what it may not change. */
static void refused(struct pair *self, volatile uint8_t *at, uint64_t addr, uint32_t key,
		    uint32_t length)
{
	uint8_t before = at ? *at : 0;

	self->a.buf[0] = before + 1;
	CHECK(write_by(self, addr, key, length) == IBV_WC_REM_ACCESS_ERR);
	if (at)
		CHECK(*at == before);
	renew(self);
}

static int bind2(struct pair *self, struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mr *mr,
		 void *addr, uint64_t length, unsigned int access, uint32_t key)
{
	struct ibv_send_wr wr = {
		.wr_id = 3, .opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
		.bind_mw = {
			.mw = mw, .rkey = key,
			.bind_info = { mr, (uintptr_t)addr, length, access },
		},
	};
	struct ibv_send_wr *bad;

	CHECK(!ibv_post_send(qp, &wr, &bad));
	return status(self->b.cq);
}

static struct ibv_mr *bindable(struct pair *self)
{
	struct ibv_mr *mr = ibv_reg_mr(self->b.pd, self->b.buf, 2 * PAIR_SIZE,
				       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);

	CHECK(mr);
	return mr;
}

static void window_type_1(struct pair *self)
{
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	uint32_t old;

	make_pair(self);
	mr = bindable(self);
	mw = ibv_alloc_mw(self->b.pd, IBV_MW_TYPE_1);
	CHECK(mw);
	refused(self, self->b.buf, (uintptr_t)self->b.buf, mw->rkey, 8);
	/* The region itself is closed to peers. */
	refused(self, self->b.buf, (uintptr_t)self->b.buf, mr->rkey, 8);
	CHECK(bind1(self, mw, mr, self->b.buf + 100, 1000,
		    IBV_ACCESS_REMOTE_WRITE) == IBV_WC_SUCCESS);
	memset(self->a.buf, 0x5a, 1000);
	CHECK(write_by(self, (uintptr_t)self->b.buf + 100, mw->rkey, 1000) == IBV_WC_SUCCESS);
	CHECK(!memcmp(self->b.buf + 100, self->a.buf, 1000) && !self->b.buf[99] &&
	      !self->b.buf[1100]);
	refused(self, self->b.buf + 99, (uintptr_t)self->b.buf + 99, mw->rkey, 8);
	refused(self, self->b.buf + 1100, (uintptr_t)self->b.buf + 1093, mw->rkey, 8);
	CHECK(remote(self, IBV_WR_RDMA_READ, (uintptr_t)self->b.buf + 100, mw->rkey, 8) ==
	      IBV_WC_REM_ACCESS_ERR);
	renew(self);
	/* The region cannot go, nor change, before its windows. */
	CHECK(ibv_dereg_mr(mr) == EBUSY);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			   IBV_ACCESS_LOCAL_WRITE) && errno == EBUSY);
	/* Bound anew at once, and the old key is void. */
	old = mw->rkey;
	CHECK(bind1(self, mw, mr, self->b.buf + PAGE, 64,
		    IBV_ACCESS_REMOTE_READ) == IBV_WC_SUCCESS);
	CHECK(mw->rkey != old);
	refused(self, self->b.buf + 100, (uintptr_t)self->b.buf + 100, old, 8);
	CHECK(remote(self, IBV_WR_RDMA_READ, (uintptr_t)self->b.buf + PAGE, mw->rkey, 64) ==
	      IBV_WC_SUCCESS);
	/* Length 0 unbinds. */
	CHECK(bind1(self, mw, mr, self->b.buf, 0, 0) == IBV_WC_SUCCESS);
	CHECK(remote(self, IBV_WR_RDMA_READ, (uintptr_t)self->b.buf + PAGE, mw->rkey, 64) ==
	      IBV_WC_REM_ACCESS_ERR);
	renew(self);
	CHECK(bind1(self, mw, mr, self->b.buf, 64, IBV_ACCESS_REMOTE_READ) == IBV_WC_SUCCESS);
	/* Bound when it goes: the key leads nowhere, and the region is free. */
	old = mw->rkey;
	CHECK(remote(self, IBV_WR_RDMA_READ, (uintptr_t)self->b.buf, old, 64) == IBV_WC_SUCCESS);
	CHECK(!ibv_dealloc_mw(mw));
	CHECK(remote(self, IBV_WR_RDMA_READ, (uintptr_t)self->b.buf, old,
		     64) == IBV_WC_REM_ACCESS_ERR);
	renew(self);
	CHECK(!ibv_dereg_mr(mr));
	free_pair(self);
}

static int local_inv(struct end *e, uint32_t key)
{
	struct ibv_send_wr wr = {
		.wr_id = 4, .opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED,
		.invalidate_rkey = key,
	};
	struct ibv_send_wr *bad;

	CHECK(!ibv_post_send(e->qp, &wr, &bad));
	return status(e->cq);
}

/* End a sends with invalidate; the two statuses, and the key in the receive. */
static int send_inv(struct pair *self, uint32_t key, int *received)
{
	struct ibv_sge sge = { (uintptr_t)self->a.buf, 16, self->a.mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = 5, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND_WITH_INV,
		.send_flags = IBV_SEND_SIGNALED, .invalidate_rkey = key,
	};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;

	CHECK(!post_receive(&self->b, 6));
	CHECK(!ibv_post_send(self->a.qp, &wr, &bad));
	CHECK(next_wc(self->b.cq, &wc) == 1);
	*received = wc.status;
	if (wc.status == IBV_WC_SUCCESS)
		CHECK(wc.wc_flags & IBV_WC_WITH_INV && wc.invalidated_rkey == key);
	return status(self->a.cq);
}

/* A window of type 2 on 300 bytes of MR from AT on, bound to b's queue pair. */
static struct ibv_mw *bound_window(struct pair *self, struct ibv_mr *mr, uint8_t *at)
{
	struct ibv_mw *mw = ibv_alloc_mw(self->b.pd, IBV_MW_TYPE_2);
	uint32_t key;

	CHECK(mw);
	key = ibv_inc_rkey(mw->rkey);
	CHECK(bind2(self, self->b.qp, mw, mr, at, 300, IBV_ACCESS_REMOTE_WRITE,
		    key) == IBV_WC_SUCCESS);
	mw->rkey = key;
	return mw;
}

/* Far more requests without a packet at once than the device takes up at a time. */
#define AT_ONCE 300

/* A window is bound and invalidated again and again, in one post. */
static void windows_at_once(struct pair *self)
{
	static struct ibv_send_wr wr[AT_ONCE];
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .cap = { 2 * AT_ONCE, 1, 1, 1, 0 },
	};
	struct ibv_send_wr *bad;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	int i;

	make_pair(self);
	CHECK(!ibv_destroy_qp(self->a.qp) && !ibv_destroy_qp(self->b.qp));
	init.send_cq = init.recv_cq = self->a.cq;
	CHECK((self->a.qp = ibv_create_qp(self->a.pd, &init)));
	init.send_cq = init.recv_cq = self->b.cq;
	CHECK((self->b.qp = ibv_create_qp(self->b.pd, &init)));
	connect_end(&self->a, &self->b);
	connect_end(&self->b, &self->a);
	mr = bindable(self);
	CHECK((mw = ibv_alloc_mw(self->b.pd, IBV_MW_TYPE_2)));
	for (i = 0; i < AT_ONCE; i += 2) {
		wr[i] = (struct ibv_send_wr) {
			.wr_id = i, .opcode = IBV_WR_BIND_MW, .next = &wr[i + 1],
			.bind_mw = {
				/* No other: all of them are posted with the window's first key. */
				.mw = mw, .rkey = mw->rkey,
				.bind_info = { mr, (uintptr_t)self->b.buf, 300,
					       IBV_ACCESS_REMOTE_WRITE },
			},
		};
		wr[i + 1] = (struct ibv_send_wr) {
			.wr_id = i + 1, .opcode = IBV_WR_LOCAL_INV, .next = &wr[i + 2],
			.invalidate_rkey = mw->rkey,
		};
	}
	/* Only the last tells of itself. */
	wr[AT_ONCE - 1].next = NULL;
	wr[AT_ONCE - 1].send_flags = IBV_SEND_SIGNALED;
	CHECK(!ibv_post_send(self->b.qp, wr, &bad));
	CHECK(status(self->b.cq) == IBV_WC_SUCCESS);
	/* The same behind a message, which takes its way first. */
	CHECK(!post_receive(&self->a, 7));
	CHECK(!post_send(&self->b, 8, 64));
	CHECK(!ibv_post_send(self->b.qp, wr, &bad));
	CHECK(status(self->b.cq) == IBV_WC_SUCCESS && status(self->b.cq) == IBV_WC_SUCCESS);
	CHECK(status(self->a.cq) == IBV_WC_SUCCESS);
	CHECK(!ibv_dealloc_mw(mw) && !ibv_dereg_mr(mr));
	free_pair(self);
}

static void window_type_2(struct pair *self)
{
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	uint64_t at;
	uint32_t key;
	int received;

	make_pair(self);
	mr = bindable(self);
	mw = bound_window(self, mr, self->b.buf + 200);
	at = (uintptr_t)self->b.buf + 200;
	key = mw->rkey;
	memset(self->a.buf, 0x77, 300);
	CHECK(write_by(self, at, key, 300) == IBV_WC_SUCCESS && self->b.buf[499] == 0x77);
	refused(self, self->b.buf + 500, at + 293, key, 8);
	/* Not before it is invalidated, and not on the wrong queue pair. */
	CHECK(bind2(self, self->b.qp, mw, mr, self->b.buf, 64, IBV_ACCESS_REMOTE_WRITE,
		    ibv_inc_rkey(key)) ==
	      IBV_WC_MW_BIND_ERR);
	renew(self);
	CHECK(local_inv(&self->a, key) == IBV_WC_MW_BIND_ERR);
	renew(self);
	CHECK(write_by(self, at, key, 300) == IBV_WC_SUCCESS);
	CHECK(local_inv(&self->b, key) == IBV_WC_SUCCESS);
	refused(self, self->b.buf + 200, at, key, 8);
	CHECK(local_inv(&self->b, key) == IBV_WC_MW_BIND_ERR);
	renew(self);
	/* Zero based, and taken back by the peer. */
	key = ibv_inc_rkey(key);
	CHECK(bind2(self, self->b.qp, mw, mr, self->b.buf + 200, 300,
		    IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_ZERO_BASED, key) == IBV_WC_SUCCESS);
	mw->rkey = key;
	self->a.buf[0] = 0x11;
	CHECK(write_by(self, 299, key, 1) == IBV_WC_SUCCESS && self->b.buf[499] == 0x11);
	CHECK(send_inv(self, key, &received) == IBV_WC_SUCCESS && received == IBV_WC_SUCCESS);
	refused(self, self->b.buf + 200, 0, key, 8);
	/* Nothing to take back: refused, as for a plain region. */
	CHECK(send_inv(self, key, &received) != IBV_WC_SUCCESS && received != IBV_WC_SUCCESS);
	renew(self);
	CHECK(send_inv(self, self->b.mr->rkey, &received) != IBV_WC_SUCCESS &&
	      received != IBV_WC_SUCCESS);
	renew(self);
	CHECK(!ibv_dealloc_mw(mw) && !ibv_dereg_mr(mr));
	free_pair(self);
}

/*
 * A window of type 2 is its queue pair's, and an XRC target can have none, as it
 * sends nothing: whatever key a SEND over XRC wants to take back is refused, and
 * stays what it is.
 */
static void window_kept_from_xrc(struct pair *self)
{
	uint32_t key, keys[3], i;
	struct xrc_pair xrc;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	int sent, received;
	uint64_t at;

	make_pair(self);
	mr = bindable(self);
	mw = bound_window(self, mr, self->b.buf + 200);
	at = (uintptr_t)self->b.buf + 200;
	key = mw->rkey;
	keys[0] = key;
	keys[1] = self->b.mr->rkey;
	keys[2] = 0x7fffff00;
	for (i = 0; i < 3; i++) {
		struct ibv_sge sge = { (uintptr_t)self->a.buf, 16, self->a.mr->lkey };
		struct ibv_send_wr *bad, wr = {
			.wr_id = 7, .sg_list = &sge, .num_sge = 1,
			.opcode = IBV_WR_SEND_WITH_INV, .send_flags = IBV_SEND_SIGNALED,
			.invalidate_rkey = keys[i],
		};

		make_xrc_pair(&xrc, &self->a, &self->b);
		wr.qp_type.xrc.remote_srqn = xrc.ini.srqn;
		CHECK(!post_receive(&xrc.tgt, 8));
		CHECK(!ibv_post_send(xrc.ini.qp, &wr, &bad));
		received = status(self->b.cq);
		sent = status(self->a.cq);
		printf("# %s, %s\n", ibv_wc_status_str(sent), ibv_wc_status_str(received));
		CHECK(sent == IBV_WC_REM_ACCESS_ERR && received != IBV_WC_SUCCESS);
		gets_to(xrc.tgt.qp, IBV_QPS_ERR);
		free_xrc_pair(&xrc);
		memset(self->a.buf, 0x70 + i, 300);
		CHECK(write_by(self, at, key, 300) == IBV_WC_SUCCESS &&
		      self->b.buf[499] == 0x70 + i);
	}
	/* It is the queue pair's that it was bound on. */
	CHECK(send_inv(self, key, &received) == IBV_WC_SUCCESS && received == IBV_WC_SUCCESS);
	refused(self, self->b.buf + 200, at, key, 8);
	CHECK(!ibv_dealloc_mw(mw) && !ibv_dereg_mr(mr));
	free_pair(self);
}

static void bind_error(struct pair *self, struct ibv_mw *mw, struct ibv_mr *mr, void *addr,
		       uint64_t length, unsigned int access, uint32_t key)
{
	CHECK(bind2(self, self->b.qp, mw, mr, addr, length, access, key) == IBV_WC_MW_BIND_ERR);
	renew(self);
}

static void window_refused(struct pair *self)
{
	struct ibv_pd *pd;
	struct ibv_mr *mr, *foreign, *readable;
	struct ibv_mw *mw, *one, *other;
	uint32_t key;

	make_pair(self);
	pd = ibv_alloc_pd(self->b.ctx);
	mr = bindable(self);
	foreign = ibv_reg_mr(pd, self->b.buf, PAIR_SIZE,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	readable = ibv_reg_mr(self->b.pd, self->b.buf, PAIR_SIZE, IBV_ACCESS_MW_BIND);
	mw = ibv_alloc_mw(self->b.pd, IBV_MW_TYPE_2);
	one = ibv_alloc_mw(self->b.pd, IBV_MW_TYPE_1);
	other = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	CHECK(pd && mr && foreign && readable && mw && one && other);
	CHECK(!ibv_alloc_mw(self->b.pd, (enum ibv_mw_type)3) && errno == EINVAL);
	key = ibv_inc_rkey(mw->rkey);
	/* No right to bind, another domain, outside, wrapping, nothing, rights. */
	bind_error(self, mw, self->b.mr, self->b.buf, 64, IBV_ACCESS_REMOTE_READ, key);
	bind_error(self, mw, foreign, self->b.buf, 64, IBV_ACCESS_REMOTE_READ, key);
	bind_error(self, other, mr, self->b.buf, 64, IBV_ACCESS_REMOTE_READ,
		   ibv_inc_rkey(other->rkey));
	bind_error(self, mw, mr, self->b.buf, 2 * PAIR_SIZE + 1, IBV_ACCESS_REMOTE_READ, key);
	bind_error(self, mw, mr, self->b.buf - 1, 64, IBV_ACCESS_REMOTE_READ, key);
	bind_error(self, mw, mr, self->b.buf, UINT64_MAX, IBV_ACCESS_REMOTE_READ, key);
	bind_error(self, mw, mr, self->b.buf, 0, IBV_ACCESS_REMOTE_READ, key);
	bind_error(self, mw, readable, self->b.buf, 64, IBV_ACCESS_REMOTE_WRITE, key);
	bind_error(self, mw, mr, self->b.buf, 64, IBV_ACCESS_ON_DEMAND, key);
	/* Somebody else's key. */
	bind_error(self, mw, mr, self->b.buf, 64, IBV_ACCESS_REMOTE_READ, self->b.mr->rkey);
	bind_error(self, mw, mr, self->b.buf, 64, IBV_ACCESS_REMOTE_READ, one->rkey);
	/* A window of type 1 is not invalidated. */
	CHECK(bind1(self, one, mr, self->b.buf, 64, IBV_ACCESS_REMOTE_READ) == IBV_WC_SUCCESS);
	CHECK(local_inv(&self->b, one->rkey) == IBV_WC_MW_BIND_ERR);
	renew(self);
	CHECK(local_inv(&self->b, self->b.mr->rkey) == IBV_WC_MW_BIND_ERR);
	renew(self);
	CHECK(local_inv(&self->b, 0xffffff00) == IBV_WC_MW_BIND_ERR);
	renew(self);
	CHECK(local_inv(&self->b, 0) == IBV_WC_MW_BIND_ERR);
	renew(self);
	CHECK(bind2(self, self->b.qp, mw, readable, self->b.buf, 64, IBV_ACCESS_REMOTE_READ, key) ==
	      IBV_WC_SUCCESS);
	CHECK(!ibv_dealloc_mw(mw) && !ibv_dealloc_mw(one) && !ibv_dealloc_mw(other));
	CHECK(!ibv_dereg_mr(mr) && !ibv_dereg_mr(foreign) && !ibv_dereg_mr(readable));
	CHECK(!ibv_dealloc_pd(pd));
	free_pair(self);
}

static void reregister(struct pair *self)
{
	uint8_t *other = aligned_alloc(PAGE, 4 * PAGE), *fixed;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	uint32_t lkey, rkey;

	make_pair(self);
	memset(other, 0, 4 * PAGE);
	pd = ibv_alloc_pd(self->b.ctx);
	mr = ibv_reg_mr(self->b.pd, self->b.buf, PAGE, ALL);
	CHECK(pd && mr);
	lkey = mr->lkey;
	rkey = mr->rkey;
	/* Other memory, of another size. */
	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, other + 16, 3 * PAGE, 0));
	CHECK(mr->lkey == lkey && mr->rkey == rkey);
	refused(self, self->b.buf, (uintptr_t)self->b.buf, rkey, 8);
	self->a.buf[0] = 0x42;
	CHECK(write_by(self, (uintptr_t)other + 15 + 3 * PAGE, rkey, 1) == IBV_WC_SUCCESS);
	CHECK(other[15 + 3 * PAGE] == 0x42);
	refused(self, other + 16 + 3 * PAGE, (uintptr_t)other + 16 + 3 * PAGE, rkey, 1);
	/* Fewer rights, and back. */
	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0));
	refused(self, other + 16, (uintptr_t)other + 16, rkey, 1);
	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL));
	CHECK(write_by(self, (uintptr_t)other + 16, rkey, 1) == IBV_WC_SUCCESS);
	/* Another domain, and back with all else. */
	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0));
	refused(self, other + 16, (uintptr_t)other + 16, rkey, 1);
	CHECK(ibv_dealloc_pd(pd) == EBUSY);
	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS |
			    IBV_REREG_MR_CHANGE_TRANSLATION, self->b.pd, self->b.buf, PAGE,
			    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
	CHECK(!ibv_dealloc_pd(pd));
	CHECK(write_by(self, (uintptr_t)self->b.buf, rkey, 1) == IBV_WC_SUCCESS);
	/* Refused, and as it was before. */
	CHECK(ibv_rereg_mr(mr, 0, NULL, NULL, 0, 0) && ibv_rereg_mr(mr, 64, NULL, NULL, 0, 0));
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			   IBV_ACCESS_REMOTE_WRITE) && errno == EINVAL);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, other, 0, 0));
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
			   (void *)0xffffffffffff0000, 0x20000, 0));
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_ACCESS,
			   NULL, other, PAGE, ALL | IBV_ACCESS_ON_DEMAND) && errno == EINVAL);
	fixed = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(fixed != MAP_FAILED);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, fixed, PAGE, 0) &&
	      errno == EFAULT);
	CHECK(write_by(self, (uintptr_t)self->b.buf + 1, rkey, 1) == IBV_WC_SUCCESS);
	/* What was pinned to be read is pinned to be written. */
	CHECK(!ibv_dereg_mr(mr));
	mr = ibv_reg_mr(self->b.pd, self->b.buf, PAGE, IBV_ACCESS_REMOTE_READ);
	CHECK(mr);
	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL));
	CHECK(write_by(self, (uintptr_t)self->b.buf + 2, mr->rkey, 1) == IBV_WC_SUCCESS);
	CHECK(!ibv_dereg_mr(mr));
	munmap(fixed, PAGE);
	free(other);
	free_pair(self);
}

static void device_memory(struct pair *self)
{
	struct ibv_alloc_dm_attr attr = { .length = 10000 };
	struct ibv_device_attr_ex caps;
	struct ibv_dm *dm, *other;
	uint8_t out[64], in[64];
	struct ibv_mr *mr;
	uint64_t number = 41;

	make_pair(self);
	CHECK(!ibv_query_device_ex(self->b.ctx, NULL, &caps) && caps.max_dm_size);
	dm = ibv_alloc_dm(self->b.ctx, &attr);
	other = ibv_alloc_dm(self->b.ctx, &attr);
	CHECK(dm && other);
	mr = ibv_reg_dm_mr(self->b.pd, dm, 96, 5000, ALL | IBV_ACCESS_ZERO_BASED);
	CHECK(mr);
	memset(self->a.buf, 0x39, 64);
	CHECK(write_by(self, 4900, mr->rkey, 64) == IBV_WC_SUCCESS);
	CHECK(!ibv_memcpy_from_dm(in, dm, 96 + 4900, 64) && !memcmp(in, self->a.buf, 64));
	CHECK(!ibv_memcpy_from_dm(in, other, 96 + 4900, 64) && !in[0]);
	memset(out, 0x21, 64);
	CHECK(!ibv_memcpy_to_dm(dm, 96, out, 64));
	CHECK(remote(self, IBV_WR_RDMA_READ, 0, mr->rkey, 64) == IBV_WC_SUCCESS);
	CHECK(!memcmp(self->a.buf, out, 64));
	CHECK(!ibv_memcpy_to_dm(dm, 96 + 8, &number, 8));
	CHECK(remote(self, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, mr->rkey, 8) == IBV_WC_SUCCESS);
	CHECK(!ibv_memcpy_from_dm(&number, dm, 96 + 8, 8) && number == 42);
	/* Outside, or not in words. */
	refused(self, NULL, 4993, mr->rkey, 8);
	CHECK(ibv_memcpy_to_dm(dm, 9996, out, 8) && ibv_memcpy_to_dm(dm, 2, out, 8));
	CHECK(ibv_memcpy_from_dm(in, dm, UINT64_MAX - 3, 8));
	CHECK(!ibv_reg_dm_mr(self->b.pd, dm, 0, 10001, ALL | IBV_ACCESS_ZERO_BASED) &&
	      errno == EINVAL);
	CHECK(!ibv_reg_dm_mr(self->b.pd, dm, 0, 64, ALL) && errno == EINVAL);
	CHECK(!ibv_reg_dm_mr(self->b.pd, dm, 0, 64,
			     IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_WRITE) && errno == EINVAL);
	CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, ALL));
	CHECK(ibv_free_dm(dm) == EBUSY);
	CHECK(!ibv_dereg_mr(mr) && !ibv_free_dm(dm) && !ibv_free_dm(other));
	attr.length = caps.max_dm_size + 1;
	CHECK(!ibv_alloc_dm(self->b.ctx, &attr) && errno == EINVAL);
	attr.length = 0;
	CHECK(!ibv_alloc_dm(self->b.ctx, &attr) && errno == EINVAL);
	attr.length = 64;
	attr.log_align_req = 40;
	CHECK(!ibv_alloc_dm(self->b.ctx, &attr) && errno == EINVAL);
	attr.log_align_req = 0;
	attr.comp_mask = 1;
	CHECK(!ibv_alloc_dm(self->b.ctx, &attr) && errno == EINVAL);
	free_pair(self);
}

static int atomic_write_by(struct pair *self, struct ibv_qp_ex *qp, uint64_t addr, uint32_t key,
			   uint64_t value)
{
	ibv_wr_start(qp);
	qp->wr_id = 8;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_write(qp, key, addr, &value);
	CHECK(!ibv_wr_complete(qp));
	return status(self->a.cq);
}

static void flush_and_atomic_write(struct pair *self)
{
	const uint64_t value = 0x1122334455667788;
	struct ibv_qp_ex *qp;
	struct ibv_mr *mr;
	uint64_t at;

	make_ends(self);
	qp = extended(&self->a);
	join(self);
	mr = ibv_reg_mr(self->b.pd, self->b.buf, PAGE, ALL | IBV_ACCESS_FLUSH_GLOBAL);
	CHECK(mr);
	/* This memory is not persistent. */
	CHECK(!ibv_reg_mr(self->b.pd, self->b.buf, PAGE, ALL | IBV_ACCESS_FLUSH_PERSISTENT) &&
	      errno == EINVAL);
	at = (uintptr_t)self->b.buf;
	/* Not before the queue pair admits it. */
	CHECK(flush_by(self, qp, at, mr->rkey, 64, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE) ==
	      IBV_WC_REM_INV_REQ_ERR);
	renew(self);
	allow_flush(self, IBV_ACCESS_FLUSH_GLOBAL);
	CHECK(write_by(self, at, mr->rkey, 64) == IBV_WC_SUCCESS);
	CHECK(flush_by(self, qp, at, mr->rkey, 64, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE) ==
	      IBV_WC_SUCCESS);
	/* The whole region, whatever the range. */
	CHECK(flush_by(self, qp, 5, mr->rkey, 1 << 30, IBV_FLUSH_GLOBAL, IBV_FLUSH_MR) ==
	      IBV_WC_SUCCESS);
	CHECK(atomic_write_by(self, qp, at + 16, mr->rkey, value) == IBV_WC_SUCCESS);
	CHECK(!memcmp(self->b.buf + 16, &value, 8) && !self->b.buf[24]);
	/* Outside, a kind that the region has not, no such right. */
	CHECK(flush_by(self, qp, at, mr->rkey, PAGE + 1, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE) ==
	      IBV_WC_REM_ACCESS_ERR);
	renew(self);
	allow_flush(self, IBV_ACCESS_FLUSH_GLOBAL | IBV_ACCESS_FLUSH_PERSISTENT);
	CHECK(flush_by(self, qp, at, mr->rkey, 8, IBV_FLUSH_PERSISTENT, IBV_FLUSH_RANGE) ==
	      IBV_WC_REM_ACCESS_ERR);
	renew(self);
	allow_flush(self, IBV_ACCESS_FLUSH_GLOBAL);
	CHECK(flush_by(self, qp, at, self->b.mr->rkey, 8, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE) ==
	      IBV_WC_REM_ACCESS_ERR);
	renew(self);
	CHECK(atomic_write_by(self, qp, at + 4, mr->rkey, value) == IBV_WC_REM_INV_REQ_ERR);
	renew(self);
	CHECK(!ibv_dereg_mr(mr));
	free_pair(self);
}

static struct ibv_mr *unpinned(struct end *e, void *addr, size_t length)
{
	struct ibv_mr *mr = ibv_reg_mr(e->pd, addr, length, ALL | IBV_ACCESS_ON_DEMAND);

	CHECK(mr);
	return mr;
}

static uint8_t *pages(size_t n, int flags)
{
	uint8_t *p = mmap(NULL, n * PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

static void on_demand(struct pair *self)
{
	uint8_t *p = pages(64, 0), *q = pages(64, 0);
	struct rlimit none = { 0, 0 };
	struct ibv_mr *there, *here;
	int i;

	make_pair(self);
	/* Nothing of it counts as locked. */
	CHECK(!setrlimit(RLIMIT_MEMLOCK, &none));
	there = unpinned(&self->b, p, 64 * PAGE);
	here = unpinned(&self->a, q, 64 * PAGE);
	for (i = 0; i < 20; i++) {
		struct ibv_sge sge = { (uintptr_t)q + 10, 63 * PAGE, here->lkey };
		struct ibv_send_wr wr = {
			.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.rdma = { (uintptr_t)p + 20, there->rkey },
		};
		struct ibv_send_wr *bad;

		memset(q, i + 1, 64 * PAGE);
		/* Gone, to be faulted in: zeroes, then what is written. */
		CHECK(!madvise(p, 64 * PAGE, MADV_DONTNEED));
		CHECK(!ibv_post_send(self->a.qp, &wr, &bad));
		CHECK(status(self->a.cq) == IBV_WC_SUCCESS);
		CHECK(p[19] == 0 && p[20] == i + 1 && !memcmp(p + 20, q + 10, 63 * PAGE) &&
		      p[20 + 63 * PAGE] == 0);
		/* And back: the reader's pages are gone this time. */
		p[20] = 0x80 + i;
		CHECK(!madvise(q, 64 * PAGE, MADV_DONTNEED));
		wr.opcode = IBV_WR_RDMA_READ;
		CHECK(!ibv_post_send(self->a.qp, &wr, &bad));
		CHECK(status(self->a.cq) == IBV_WC_SUCCESS);
		CHECK(q[9] == 0 && !memcmp(p + 20, q + 10, 63 * PAGE));
	}
	/* Other memory at the same place. */
	CHECK(mmap(p, PAGE, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS,
		   -1, 0) == p);
	self->a.buf[0] = 0x17;
	CHECK(write_by(self, (uintptr_t)p, there->rkey, 1) == IBV_WC_SUCCESS && p[0] == 0x17);
	p[8] = 1;
	CHECK(remote(self, IBV_WR_ATOMIC_FETCH_AND_ADD, (uintptr_t)p + 8, there->rkey, 8) ==
	      IBV_WC_SUCCESS && p[8] == 2);
	/* To be read only, and not there at all. */
	CHECK(!mprotect(p, PAGE, PROT_READ));
	refused(self, p, (uintptr_t)p, there->rkey, 1);
	CHECK(remote(self, IBV_WR_RDMA_READ, (uintptr_t)p, there->rkey, 1) == IBV_WC_SUCCESS);
	CHECK(!munmap(p, PAGE));
	refused(self, NULL, (uintptr_t)p, there->rkey, 1);
	CHECK(remote(self, IBV_WR_RDMA_READ, (uintptr_t)p, there->rkey,
		     1) == IBV_WC_REM_ACCESS_ERR);
	renew(self);
	/* Outside, although there is memory. */
	refused(self, NULL, (uintptr_t)p + 64 * PAGE - 1, there->rkey, 2);
	CHECK(!ibv_dereg_mr(there));
	refused(self, p + PAGE, (uintptr_t)p + PAGE, there->rkey, 1);
	CHECK(!ibv_dereg_mr(here));
	munmap(q, 64 * PAGE);
	munmap(p + PAGE, 63 * PAGE);
	free_pair(self);
}

/*
 * End a's write to page P and, behind it, one that is not there: b's receive side waits
 * for it. Returns when it does, with what give() wants.
 */
static int stall(struct pair *self, uint8_t *p, struct ibv_mr *mr)
{
	struct ibv_sge sge = { (uintptr_t)self->a.buf, 1024 + 16, self->a.mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)p + PAGE - 1024, mr->rkey },
	};
	volatile uint8_t *first = p + PAGE - 1;
	double end = deadline(20);
	int fd;

	memset(self->a.buf, 0x61, sge.length);
	*first = 0;
	fd = guard(p + PAGE, 1);
	CHECK(!ibv_post_send(self->a.qp, &wr, &bad));
	while (!*first)
		CHECK(!is_past(end));
	return fd;
}

/*
 * A write whose first packet is there and whose second waits for its page, when the
 * region changes as FLAGS say, so that it would not be allowed any more: it is not
 * done when the page comes.
 */
static void changed_meanwhile(struct pair *self, int flags, struct ibv_pd *pd)
{
	uint8_t *p = pages(2, 0);
	struct ibv_mr *mr = unpinned(&self->b, p, 2 * PAGE);
	int fd, result, access = 0;

	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND;
	fd = stall(self, p, mr);
	CHECK(!ibv_rereg_mr(mr, flags, pd, NULL, 0, access));
	give(fd, p + PAGE, 1);
	result = status(self->a.cq);
	CHECK(result == IBV_WC_REM_ACCESS_ERR || result == IBV_WC_RETRY_EXC_ERR);
	CHECK(p[PAGE] == 0);
	renew(self);
	/* The rest is as before. */
	if (flags & IBV_REREG_MR_CHANGE_ACCESS)
		CHECK(remote(self, IBV_WR_RDMA_READ, (uintptr_t)p, mr->rkey, 8) == IBV_WC_SUCCESS);
	CHECK(!ibv_dereg_mr(mr) && !close(fd) && !munmap(p, 2 * PAGE));
}

static void on_demand_reregister(struct pair *self)
{
	const int reading = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND;
	uint8_t *p = pages(1, 0);
	struct ibv_pd *pd;
	struct ibv_mr *mr;

	make_pair(self);
	pd = ibv_alloc_pd(self->b.ctx);
	mr = ibv_reg_mr(self->b.pd, p, PAGE, reading);
	CHECK(pd && mr);
	/* More rights, fewer, another domain. */
	refused(self, p, (uintptr_t)p, mr->rkey, 1);
	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			    ALL | IBV_ACCESS_ON_DEMAND));
	self->a.buf[0] = 0x18;
	CHECK(write_by(self, (uintptr_t)p, mr->rkey, 1) == IBV_WC_SUCCESS && p[0] == 0x18);
	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, reading));
	refused(self, p, (uintptr_t)p, mr->rkey, 1);
	CHECK(remote(self, IBV_WR_RDMA_READ, (uintptr_t)p, mr->rkey, 1) == IBV_WC_SUCCESS);
	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0));
	CHECK(remote(self, IBV_WR_RDMA_READ, (uintptr_t)p, mr->rkey, 1) == IBV_WC_REM_ACCESS_ERR);
	renew(self);
	CHECK(!ibv_dereg_mr(mr) && !munmap(p, PAGE));
	changed_meanwhile(self, IBV_REREG_MR_CHANGE_ACCESS, NULL);
	changed_meanwhile(self, IBV_REREG_MR_CHANGE_PD, pd);
	CHECK(!ibv_dealloc_pd(pd));
	free_pair(self);
}

/*
 * A queue pair that names b's as its peer, which is connected to a's, while b's receive
 * side waits for memory: it is not among those who wait for that side, but gives up like
 * anybody who gets no answer. The wait for memory ends by itself after seconds: then it
 * shows nothing.
 */
static void on_demand_stranger(struct pair *self)
{
	struct ibv_qp_attr reset = { .qp_state = IBV_QPS_RESET };
	uint8_t *p = pages(2, 0);
	int i, is_first = 0;
	struct ibv_mr *mr;
	struct end other;

	make_pair(self);
	make_end(&other, self->on.name[0], self->on.gid_index[0]);
	mr = unpinned(&self->b, p, 2 * PAGE);
	for (i = 0; !is_first && i < 5; i++) {
		int fd = stall(self, p, mr);
		struct ibv_wc wc;

		ready_end(&other, &self->b);
		start_end(&other, HASTY);
		CHECK(!post_send(&other, 1, 8));
		CHECK(status(other.cq) == IBV_WC_RETRY_EXC_ERR);
		is_first = !ibv_poll_cq(self->a.cq, 1, &wc);
		give(fd, p + PAGE, 1);
		if (is_first)
			CHECK(status(self->a.cq) == IBV_WC_SUCCESS && p[PAGE + 15] == 0x61);
		else
			renew(self);
		CHECK(!ibv_modify_qp(other.qp, &reset, IBV_QP_STATE));
		CHECK(!close(fd) && !madvise(p + PAGE, PAGE, MADV_DONTNEED));
	}
	CHECK(is_first);
	free_end(&other);
	CHECK(!ibv_dereg_mr(mr) && !munmap(p, 2 * PAGE));
	free_pair(self);
}

/*
 * Datagrams whose receives wait for pages that do not come, each for seconds: those
 * that wait for their turn do not wait for memory when the queue pair is in error.
 */
static void on_demand_datagrams(struct pair *self)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	uint8_t *p = pages(DATAGRAMS, 0);
	struct ibv_ah_attr to = { .is_global = 1, .port_num = 1 };
	int fd = guard(p, DATAGRAMS), i, waited = 1, flushed = 0;
	struct ibv_qp *from, *qp;
	struct ibv_ah *ah;
	struct ibv_mr *mr;

	if (fd < 0) {
		munmap(p, DATAGRAMS * PAGE);
		return;
	}
	make_pair(self);
	mr = unpinned(&self->b, p, DATAGRAMS * PAGE);
	from = datagram_qp(self->a.pd, self->a.cq);
	qp = datagram_qp(self->b.pd, self->b.cq);
	to.grh.dgid = self->b.gid;
	to.grh.sgid_index = self->a.gid_index;
	to.grh.hop_limit = 8;
	ah = ibv_create_ah(self->a.pd, &to);
	CHECK(ah);
	for (i = 0; i < DATAGRAMS; i++) {
		struct ibv_sge sge = { (uintptr_t)p + i * PAGE, PAGE, mr->lkey };
		struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

		CHECK(!ibv_post_recv(qp, &wr, &bad));
	}
	for (i = 0; i < DATAGRAMS; i++) {
		struct ibv_sge sge = { (uintptr_t)self->a.buf, 16, self->a.mr->lkey };
		struct ibv_send_wr wr = {
			.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_SIGNALED,
			.wr.ud = { .ah = ah, .remote_qpn = qp->qp_num, .remote_qkey = QKEY },
		}, *bad;

		CHECK(!ibv_post_send(from, &wr, &bad));
		CHECK(status(self->a.cq) == IBV_WC_SUCCESS);
	}
	CHECK(status(self->b.cq) == IBV_WC_LOC_PROT_ERR);
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	for (i = 1; i < DATAGRAMS; i++) {
		if (status(self->b.cq) == IBV_WC_WR_FLUSH_ERR)
			flushed++;
		else
			waited++;
	}
	CHECK(flushed > 0 && waited + flushed == DATAGRAMS);
	CHECK(!ibv_destroy_ah(ah) && !ibv_destroy_qp(from) && !ibv_destroy_qp(qp));
	CHECK(!ibv_dereg_mr(mr) && !close(fd));
	munmap(p, DATAGRAMS * PAGE);
	free_pair(self);
}

static void on_demand_implicit(struct pair *self)
{
	struct ibv_mr *mr;
	uint8_t *p;

	make_pair(self);
	mr = ibv_reg_mr(self->b.pd, NULL, SIZE_MAX, ALL | IBV_ACCESS_ON_DEMAND);
	CHECK(mr);
	/* Memory that did not exist then. */
	p = pages(2, 0);
	memset(self->a.buf, 0x66, PAGE);
	CHECK(write_by(self, (uintptr_t)p + 100, mr->rkey, PAGE) == IBV_WC_SUCCESS);
	CHECK(!p[99] && p[100] == 0x66 && p[99 + PAGE] == 0x66 && !p[100 + PAGE]);
	munmap(p, 2 * PAGE);
	refused(self, NULL, (uintptr_t)p, mr->rkey, 1);
	refused(self, NULL, 0, mr->rkey, 1);
	refused(self, NULL, 0xffff888000000000, mr->rkey, 8);
	refused(self, NULL, 0xffffffffffffffff, mr->rkey, 1);
	CHECK(!ibv_dereg_mr(mr));
	/* Only on-demand memory can be the whole address space. */
	CHECK(!ibv_reg_mr(self->b.pd, NULL, SIZE_MAX, ALL));
	free_pair(self);
}

static int advise(struct ibv_pd *pd, int advice, void *addr, uint32_t length, uint32_t lkey)
{
	struct ibv_sge sge = { (uintptr_t)addr, length, lkey };

	return ibv_advise_mr(pd, advice, IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1);
}

static void on_demand_advice(struct pair *self)
{
	uint8_t *p = pages(8, 0);
	unsigned char in[8];
	struct ibv_mr *mr, *readable;
	struct ibv_sge sge = { (uintptr_t)p, PAGE, 0 };
	struct ibv_mw *mw;
	struct ibv_pd *pd;

	make_pair(self);
	pd = ibv_alloc_pd(self->b.ctx);
	mw = ibv_alloc_mw(self->b.pd, IBV_MW_TYPE_1);
	CHECK(mw);
	mr = unpinned(&self->b, p, 8 * PAGE);
	readable = ibv_reg_mr(self->b.pd, p, 8 * PAGE,
			      IBV_ACCESS_REMOTE_READ | IBV_ACCESS_ON_DEMAND);
	CHECK(pd && readable);
	CHECK(!mincore(p, 8 * PAGE, in) && !(in[2] & 1));
	CHECK(!advise(self->b.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, p + 2 * PAGE, 2 * PAGE,
		      mr->lkey));
	CHECK(!mincore(p, 8 * PAGE, in) && !(in[1] & 1) && (in[2] & 1) && (in[3] & 1) &&
	      !(in[4] & 1));
	CHECK(!advise(self->b.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, p, 8 * PAGE, readable->lkey));
	CHECK(!advise(self->b.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT, p, 8 * PAGE, mr->lkey));
	/* Not writable, outside, no such key, of another domain, pinned. */
	CHECK(advise(self->b.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE, p, PAGE,
		     readable->lkey) == EPERM);
	CHECK(advise(self->b.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, p + 1, 8 * PAGE,
		     mr->lkey) == EFAULT);
	CHECK(advise(self->b.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, p, PAGE, mr->lkey + 1) == ENOENT);
	CHECK(advise(pd, IBV_ADVISE_MR_ADVICE_PREFETCH, p, PAGE, mr->lkey) == EPERM);
	CHECK(advise(self->b.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, self->b.buf, PAGE,
		     self->b.mr->lkey) == ENOENT);
	CHECK(advise(self->b.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, p, PAGE, mw->rkey) == EINVAL);
	CHECK(advise(self->b.pd, 77, p, PAGE, mr->lkey) == EOPNOTSUPP);
	CHECK(ibv_advise_mr(self->b.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 2, &sge, 1) == EINVAL);
	munmap(p + PAGE, PAGE);
	CHECK(advise(self->b.pd, IBV_ADVISE_MR_ADVICE_PREFETCH, p, 8 * PAGE, mr->lkey) == EFAULT);
	CHECK(!ibv_dealloc_mw(mw));
	CHECK(!ibv_dereg_mr(mr) && !ibv_dereg_mr(readable) && !ibv_dealloc_pd(pd));
	munmap(p, 8 * PAGE);
	free_pair(self);
}

/* How often CPUs were interrupted for the sake of other CPUs. */
static long calls_between_cpus(void)
{
	return count("awk '/^ *CAL:/ { for (i = 2; i <= NF; i++) if ($i ~ /^[0-9]+$/) n += $i } "
		     "END { print n }' /proc/interrupts");
}

static int is_over;

static void *spin(void *none)
{
	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED))
		;
	return none;
}

/* A process that takes memory away again and again interrupts nobody: here those who compute. */
static void deregister_quietly(struct pair *self)
{
	const int times = 200;
	pthread_t busy[2];
	uint8_t *p = pages(1, 0);
	long calls = times;
	int i, tries = on_debug_kernel() ? 1 : 5;

	memset(p, 1, PAGE);
	make_pair(self);
	for (i = 0; i < 2; i++)
		CHECK(!pthread_create(&busy[i], NULL, spin, NULL));
	/* On a slow machine others interrupt CPUs for as long as this takes. */
	while (tries-- && calls >= times / 2) {
		calls = calls_between_cpus();
		for (i = 0; i < times; i++) {
			struct ibv_mr *mr = ibv_reg_mr(self->b.pd, p, PAGE, IBV_ACCESS_LOCAL_WRITE);

			CHECK(mr && !ibv_dereg_mr(mr));
		}
		calls = calls_between_cpus() - calls;
		printf("%ld interrupts for %d\n", calls, times);
	}
	is_over = 1;
	for (i = 0; i < 2; i++)
		CHECK(!pthread_join(busy[i], NULL));
	/* The debug kernel interrupts CPUs for its own purposes: about twice for each registration. */
	if (!on_debug_kernel())
		CHECK(calls < times / 2);
	CHECK(!munmap(p, PAGE));
	free_pair(self);
}

static const CASES(struct pair) cases[] = {
	{ "window_type_1", window_type_1 },
	{ "window_type_2", window_type_2 },
	{ "windows_at_once", windows_at_once },
	{ "window_kept_from_xrc", window_kept_from_xrc },
	{ "window_refused", window_refused },
	{ "reregister", reregister },
	{ "device_memory", device_memory },
	{ "flush_and_atomic_write", flush_and_atomic_write },
	{ "on_demand", on_demand },
	{ "on_demand_reregister", on_demand_reregister },
	{ "on_demand_stranger", on_demand_stranger },
	{ "on_demand_datagrams", on_demand_datagrams },
	{ "on_demand_implicit", on_demand_implicit },
	{ "on_demand_advice", on_demand_advice },
	{ "deregister_quietly", deregister_quietly },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	static struct pair self;

	return RUN_CASES(&self, cases, argc, argv);
}
