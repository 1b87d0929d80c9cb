/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * xroce: the ABI between xroce.ko and its libibverbs provider.
 *
 * Both sides generate or check their definitions against this file. All
 * integers are in host byte order unless a comment says otherwise; all
 * structures have the same layout for 32-bit and 64-bit user space.
 *
 * Rings
 * -----
 * A ring is one mmap of the size and at the offset that the create call
 * returned (but see XROCE_QP_ONE_MAPPING): a header of XROCE_RING_HDR_SIZE
 * bytes, then `entries` slots of `stride` bytes. `entries` is a power of two.
 * Indices run freely over 32 bits and are masked with `entries - 1` to find a
 * slot; a ring is empty when producer equals consumer and full when they differ
 * by `entries`.
 *
 * User space may write anything anywhere in a ring at any time. The kernel
 * keeps its own copy of every index that it owns. It copies the parts of a slot
 * that it examines once, before it examines them, and it relies on nothing that
 * it wrote to the ring. It may read bytes that it does not examine any number of
 * times: inline data each time that they are sent, and the entries of a CQ that
 * is resized, which are moved unchanged.
 */
#ifndef XROCE_ABI_H
#define XROCE_ABI_H

#include <linux/types.h>

/* enum rdma_driver_id value of xroce: "XROC". Never one of mainline's. */
#define XROCE_DRIVER_ID			0x58524f43
/*
 * ib_device_ops.uverbs_abi_ver. librxe accepts 1 and 2 only, so it refuses an
 * xroce device that a user has called rxe0 instead of driving it.
 */
#define XROCE_UVERBS_ABI_VERSION	3

/* Version of this file; alloc_ucontext refuses any other with -EPROTO. */
#define XROCE_ABI_VERSION		1

/**
 * enum xroce_features - what can be negotiated at alloc_ucontext
 * @XROCE_FEATURE_SHARED_ARM: completion queues are armed by a store to the
 *	ring header instead of a system call.
 * @XROCE_FEATURE_AWAKE: the send ring header says when no doorbell is needed.
 * @XROCE_FEATURE_ONE_MAPPING: create_qp knows XROCE_QP_ONE_MAPPING.
 */
enum xroce_features {
	XROCE_FEATURE_SHARED_ARM	= 1 << 0,
	XROCE_FEATURE_AWAKE		= 1 << 1,
	XROCE_FEATURE_ONE_MAPPING	= 1 << 2,
};

/**
 * struct xroce_alloc_ucontext_req - alloc_ucontext, from user space
 * @abi_version: XROCE_ABI_VERSION that the plug-in was built with.
 * @reserved: must be zero.
 * @features: bits of enum xroce_features that the plug-in can use.
 */
struct xroce_alloc_ucontext_req {
	__u32 abi_version;
	__u32 reserved;
	__aligned_u64 features;
};

/**
 * struct xroce_alloc_ucontext_resp - alloc_ucontext, from the kernel
 * @abi_version: XROCE_ABI_VERSION of the module.
 * @max_inline: the largest inline payload of a send queue, bytes.
 * @features: bits of enum xroce_features that are in force.
 */
struct xroce_alloc_ucontext_resp {
	__u32 abi_version;
	__u32 max_inline;
	__aligned_u64 features;
};

/**
 * struct xroce_ring_info - where a ring is and how it is cut
 * @offset: mmap offset on the uverbs file.
 * @size: bytes to map; 0 when the object has no such ring.
 * @entries: number of slots, a power of two.
 * @stride: bytes from slot to slot.
 * @reserved: zero.
 */
struct xroce_ring_info {
	__aligned_u64 offset;
	__u32 size;
	__u32 entries;
	__u32 stride;
	__u32 reserved;
};

#define XROCE_RING_HDR_SIZE		256

/**
 * struct xroce_ring_hdr - the first bytes of every ring
 * @user_index: written by user space: producer of a send, receive or SRQ ring,
 *	consumer of a completion ring.
 * @arm: completion ring, written by user space: one of enum xroce_cq_arm; the
 *	kernel takes it (exchanges it with 0) when it raises the event.
 * @kernel_index: written by the kernel: consumer of a send, receive or SRQ
 *	ring, producer of a completion ring.
 * @kernel_flags: written by the kernel: bits of enum xroce_ring_flags.
 *
 * The three lines are apart so that neither side's stores take the other's
 * cache line away.
 */
struct xroce_ring_hdr {
	__u32 user_index;
	__u32 arm;
	__u32 user_pad[30];
	__u32 kernel_index;
	__u32 kernel_flags;
	__u32 kernel_pad[30];
};

/**
 * enum xroce_ring_flags - xroce_ring_hdr.kernel_flags
 * @XROCE_RING_AWAKE: send ring, ring of operations: the kernel will look at user_index again before
 *	it clears this bit, so no doorbell is needed. User space stores
 *	user_index, issues a full fence, then reads this bit.
 * @XROCE_RING_DEAD: the object behind the ring is gone (device removed).
 * @XROCE_RING_OVERRUN: completion ring: a completion was lost.
 * @XROCE_RING_FLUSH: receive ring of a QP: the QP is in the error state. User
 *	space stores user_index, issues a full fence, then reads this bit; when
 *	it is set, it rings the QP's doorbell so that what was posted is flushed.
 */
enum xroce_ring_flags {
	XROCE_RING_AWAKE	= 1 << 0,
	XROCE_RING_DEAD		= 1 << 1,
	XROCE_RING_OVERRUN	= 1 << 2,
	XROCE_RING_FLUSH	= 1 << 3,
};

/**
 * enum xroce_cq_arm - xroce_ring_hdr.arm of a completion ring
 * @XROCE_ARM_NONE: no event wanted.
 * @XROCE_ARM_SOLICITED: event at the next solicited or failed completion.
 * @XROCE_ARM_NEXT: event at the next completion.
 *
 * A later, stronger arm replaces a weaker one; user space never stores a
 * weaker one over a stronger one.
 */
enum xroce_cq_arm {
	XROCE_ARM_NONE		= 0,
	XROCE_ARM_SOLICITED	= 1,
	XROCE_ARM_NEXT		= 2,
};

/**
 * struct xroce_sge - one scatter/gather element
 * @addr: virtual address.
 * @length: bytes; 0 means 0.
 * @lkey: local key.
 */
struct xroce_sge {
	__aligned_u64 addr;
	__u32 length;
	__u32 lkey;
};

/**
 * enum xroce_send_opcode - xroce_send_slot.opcode
 *
 * The values are those of enum ibv_wr_opcode, given again so that this file
 * stands alone.
 */
enum xroce_send_opcode {
	XROCE_WR_RDMA_WRITE		= 0,
	XROCE_WR_RDMA_WRITE_IMM		= 1,
	XROCE_WR_SEND			= 2,
	XROCE_WR_SEND_IMM		= 3,
	XROCE_WR_RDMA_READ		= 4,
	XROCE_WR_ATOMIC_CMP_SWAP	= 5,
	XROCE_WR_ATOMIC_FETCH_ADD	= 6,
	XROCE_WR_LOCAL_INV		= 7,
	XROCE_WR_BIND_MW		= 8,
	XROCE_WR_SEND_INV		= 9,
	XROCE_WR_FLUSH			= 14,
	XROCE_WR_ATOMIC_WRITE		= 15,
};

/* xroce_send_slot.flags */
#define XROCE_SEND_FENCE		(1 << 0)
#define XROCE_SEND_SIGNALED		(1 << 1)
#define XROCE_SEND_SOLICITED		(1 << 2)
#define XROCE_SEND_INLINE		(1 << 3)

/**
 * struct xroce_send_slot - a send work request: one cache line with one SGE
 * @wr_id: given back in the completion.
 * @opcode: enum xroce_send_opcode.
 * @flags: XROCE_SEND_*.
 * @count: number of SGEs, or bytes of inline data with XROCE_SEND_INLINE.
 * @imm: immediate data (big endian, as the verbs carry it) or the remote key
 *	to invalidate (host order).
 * @rdma: RDMA and atomics. @rdma.srqn: remote XRC SRQ number (also for SEND).
 * @ud: UD and GSI. @ud.ah: number that create_ah returned.
 * @bind: memory window binding.
 * @data: SGEs or inline bytes follow here; the first SGE ends the cache line.
 */
struct xroce_send_slot {
	__aligned_u64 wr_id;
	__u8 opcode;
	__u8 flags;
	__u16 count;
	__u32 imm;
	union {
		struct {
			__aligned_u64 remote_addr;
			__u32 rkey;
			__u32 srqn;
			__aligned_u64 compare_add;
			__aligned_u64 swap;
		} rdma;
		struct {
			__u32 ah;
			__u32 remote_qpn;
			__u32 remote_qkey;
			__u32 pkey_index;
			__aligned_u64 reserved[2];
		} ud;
		struct {
			__aligned_u64 addr;
			__aligned_u64 length;
			__u32 mr_lkey;
			__u32 mw_rkey;
			__u32 access;
			__u32 new_rkey;
		} bind;
		struct {
			__aligned_u64 remote_addr;
			__u32 rkey;
			__u32 srqn;
			__u32 length;
			__u8 type;
			__u8 level;
			__u16 reserved0;
			__aligned_u64 reserved1;
		} flush;
	};
	struct xroce_sge data[];
};

#define XROCE_SEND_SLOT_HDR		48
#define XROCE_SEND_SLOT_ALIGN		64

/**
 * struct xroce_recv_slot - a receive work request
 * @wr_id: given back in the completion.
 * @num_sge: number of elements in @sge.
 * @reserved: zero.
 * @sge: the scatter list.
 */
struct xroce_recv_slot {
	__aligned_u64 wr_id;
	__u32 num_sge;
	__u32 reserved;
	struct xroce_sge sge[];
};

#define XROCE_RECV_SLOT_HDR		16
#define XROCE_RECV_SLOT_ALIGN		32

/**
 * enum xroce_wc_status - xroce_cqe.status
 *
 * The values are those of enum ibv_wc_status, given again so that this file
 * stands alone; those that xroce does not use are left out. So it is with the
 * opcodes and the flags below.
 */
enum xroce_wc_status {
	XROCE_WC_SUCCESS		= 0,
	XROCE_WC_LOC_LEN_ERR		= 1,
	XROCE_WC_LOC_QP_OP_ERR		= 2,
	XROCE_WC_LOC_PROT_ERR		= 4,
	XROCE_WC_WR_FLUSH_ERR		= 5,
	XROCE_WC_MW_BIND_ERR		= 6,
	XROCE_WC_BAD_RESP_ERR		= 7,
	XROCE_WC_LOC_ACCESS_ERR		= 8,
	XROCE_WC_REM_INV_REQ_ERR	= 9,
	XROCE_WC_REM_ACCESS_ERR		= 10,
	XROCE_WC_REM_OP_ERR		= 11,
	XROCE_WC_RETRY_EXC_ERR		= 12,
	XROCE_WC_RNR_RETRY_EXC_ERR	= 13,
	XROCE_WC_REM_ABORT_ERR		= 16,
	XROCE_WC_FATAL_ERR		= 19,
	XROCE_WC_GENERAL_ERR		= 21,
	XROCE_WC_TM_ERR			= 22,
	XROCE_WC_TM_RNDV_INCOMPLETE	= 23,
};

/**
 * enum xroce_wc_opcode - xroce_cqe.opcode: enum ibv_wc_opcode
 */
enum xroce_wc_opcode {
	XROCE_WC_SEND			= 0,
	XROCE_WC_RDMA_WRITE		= 1,
	XROCE_WC_RDMA_READ		= 2,
	XROCE_WC_COMP_SWAP		= 3,
	XROCE_WC_FETCH_ADD		= 4,
	XROCE_WC_BIND_MW		= 5,
	XROCE_WC_LOCAL_INV		= 6,
	XROCE_WC_FLUSH			= 8,
	XROCE_WC_ATOMIC_WRITE		= 9,
	XROCE_WC_RECV			= 128,
	XROCE_WC_RECV_RDMA_WITH_IMM	= 129,
	XROCE_WC_TM_ADD			= 130,
	XROCE_WC_TM_DEL			= 131,
	XROCE_WC_TM_SYNC		= 132,
	XROCE_WC_TM_RECV		= 133,
	XROCE_WC_TM_NO_TAG		= 134,
};

/**
 * enum xroce_wc_flags - xroce_cqe.wc_flags: enum ibv_wc_flags
 */
enum xroce_wc_flags {
	XROCE_WC_GRH			= 1 << 0,
	XROCE_WC_WITH_IMM		= 1 << 1,
	XROCE_WC_WITH_INV		= 1 << 3,
	XROCE_WC_TM_SYNC_REQ		= 1 << 4,
	XROCE_WC_TM_MATCH		= 1 << 5,
	XROCE_WC_TM_DATA_VALID		= 1 << 6,
};

/**
 * struct xroce_cqe - a completion: one cache line
 * @wr_id: of the work request.
 * @status: enum xroce_wc_status.
 * @opcode: enum xroce_wc_opcode.
 * @vendor_err: 0, or a hint for people: enum xroce_tm_error with the status
 *	XROCE_WC_TM_ERR.
 * @byte_len: bytes received or read.
 * @imm: immediate data (big endian) or the invalidated key (host order).
 * @qp_num: local QP number (of the TGT QP for an XRC receive).
 * @src_qp: UD: remote QP number; tag matching: app_ctx of the message.
 * @wc_flags: bits of enum xroce_wc_flags; XROCE_WC_GRH: UD.
 * @pkey_index: UD.
 * @slid: 0 on RoCE.
 * @sl: UD: what came: 10 over IPv4, 9 over IPv6, as with mlx5 (there is no service level).
 * @dlid_path_bits: 0 on RoCE.
 * @flags: reserved, zero.
 * @timestamp: CLOCK_MONOTONIC_RAW ns when the completion was written.
 * @tm_tag: tag matching: the tag of the message.
 */
struct xroce_cqe {
	__aligned_u64 wr_id;
	__u32 status;
	__u32 opcode;
	__u32 vendor_err;
	__u32 byte_len;
	__u32 imm;
	__u32 qp_num;
	__u32 src_qp;
	__u32 wc_flags;
	__u16 pkey_index;
	__u16 slid;
	__u8 sl;
	__u8 dlid_path_bits;
	__u16 flags;
	__aligned_u64 timestamp;
	__aligned_u64 tm_tag;
};

/**
 * struct xroce_create_cq_req - create_cq, from user space
 * @flags: must be zero.
 * @reserved: must be zero.
 */
struct xroce_create_cq_req {
	__u32 flags;
	__u32 reserved;
};

/**
 * struct xroce_create_cq_resp - create_cq and resize_cq, from the kernel
 * @ring: the completion ring. After a resize the unpolled completions stand
 *	at the start of the new ring (consumer 0); the old mapping stays valid
 *	until it is unmapped and receives nothing more. What was armed in the old
 *	ring is armed in the new one: the kernel moves the word.
 */
struct xroce_create_cq_resp {
	struct xroce_ring_info ring;
};

/**
 * struct xroce_create_srq_resp - create_srq, from the kernel
 * @ring: the receive ring.
 * @srqn: SRQ number (24 bits), whatever the type.
 * @reserved: zero.
 */
struct xroce_create_srq_resp {
	struct xroce_ring_info ring;
	__u32 srqn;
	__u32 reserved;
};

/**
 * struct xroce_modify_srq_req - modify_srq, from user space
 * @ring_addr: with IB_SRQ_MAX_WR, address of a struct xroce_ring_info, which the
 *	kernel fills; the command has no response. The receives that were not
 *	taken stand in the new ring under the same indices. User space posts to
 *	neither ring during the command and only to the new one afterwards.
 */
struct xroce_modify_srq_req {
	__aligned_u64 ring_addr;
};

/*
 * Tag matching
 * ------------
 * A shared receive queue of type IB_UVERBS_SRQT_TM has two rings more: one of
 * operations on its matching list, which user space fills, and one of handles
 * that are free again, which the kernel fills.
 *
 * Operations are executed in order, at the latest before the next message is
 * matched. Who waits for the completion of one rings the doorbell (below) unless
 * the ring's kernel_flags show XROCE_RING_AWAKE after user_index was stored.
 */

/* A handle: the entry of the list in the lower bits, below max_num_tags. */
#define XROCE_TM_INDEX_BITS		20

/**
 * struct xroce_create_tm_srq_req - create_srq of a tag-matching queue
 * @max_ops: operations that the ring shall hold.
 * @reserved: must be zero.
 */
struct xroce_create_tm_srq_req {
	__u32 max_ops;
	__u32 reserved;
};

/**
 * struct xroce_create_tm_srq_resp - create_srq of a tag-matching queue
 * @srq: as for every queue.
 * @ops: the ring of operations.
 * @freed: the ring of free handles: XROCE_TM_FREED_SIZE bytes each, of which
 *	the first four are the handle.
 * @max_sge: elements of a tag's scatter list.
 * @max_masks: distinct masks that its tags may have at a time. 0: sixteen; earlier
 *	modules left this field empty.
 */
struct xroce_create_tm_srq_resp {
	struct xroce_create_srq_resp srq;
	struct xroce_ring_info ops;
	struct xroce_ring_info freed;
	__u32 max_sge;
	__u32 max_masks;
};

#define XROCE_TM_FREED_SIZE		8

/* xroce_tm_op_slot.opcode: enum ibv_ops_wr_opcode */
#define XROCE_TM_ADD			0
#define XROCE_TM_DEL			1
#define XROCE_TM_SYNC			2

/* xroce_tm_op_slot.flags: enum ibv_ops_flags */
#define XROCE_TM_SIGNALED		(1 << 0)
#define XROCE_TM_COUNT			(1 << 1)

/**
 * struct xroce_tm_op_slot - an operation on the matching list
 * @wr_id: given back in the operation's completion.
 * @opcode: XROCE_TM_*.
 * @flags: XROCE_TM_SIGNALED; XROCE_TM_COUNT: @unexpected_cnt counts (it always
 *	does for XROCE_TM_SYNC).
 * @num_sge: elements in @sge.
 * @unexpected_cnt: unexpected messages that the application has handled.
 * @handle: of the tag. User space chooses one with a free index to add it; the
 *	upper bits tell tags apart that have the same index one after the other.
 * @reserved: zero.
 * @recv_wr_id: given back in completions of the message that takes the tag.
 * @tag: what a message's tag must be, seen through @mask.
 * @mask: bits of the tag that matter.
 * @sge: where the message goes.
 */
struct xroce_tm_op_slot {
	__aligned_u64 wr_id;
	__u8 opcode;
	__u8 flags;
	__u16 num_sge;
	__u32 unexpected_cnt;
	__u32 handle;
	__u32 reserved;
	__aligned_u64 recv_wr_id;
	__aligned_u64 tag;
	__aligned_u64 mask;
	struct xroce_sge sge[4];
};

/**
 * enum xroce_tm_error - xroce_cqe.vendor_err when an operation failed
 * @XROCE_TM_ERR_OPCODE: the opcode or a flag is not known.
 * @XROCE_TM_ERR_SGE: too many elements.
 * @XROCE_TM_ERR_HANDLE: no such tag (a message took it, or it never was); or,
 *	to add one: not a free index.
 * @XROCE_TM_ERR_MASKS: as many other masks are in use as there may be.
 * @XROCE_TM_ERR_COUNT: there have not been so many unexpected messages.
 */
enum xroce_tm_error {
	XROCE_TM_ERR_OPCODE	= 1,
	XROCE_TM_ERR_SGE	= 2,
	XROCE_TM_ERR_HANDLE	= 3,
	XROCE_TM_ERR_MASKS	= 4,
	XROCE_TM_ERR_COUNT	= 5,
};

/**
 * enum xroce_qp_flags - xroce_create_qp_req.flags
 * @XROCE_QP_ONE_MAPPING: both rings lie in one mapping: that of the send ring
 *	is as long as both, and the receive ring begins so many bytes after the
 *	send ring as their offsets differ. Only with XROCE_FEATURE_ONE_MAPPING.
 */
enum xroce_qp_flags {
	XROCE_QP_ONE_MAPPING	= 1 << 0,
};

/**
 * struct xroce_create_qp_req - create_qp, from user space (never for XRC_TGT)
 * @flags: bits of enum xroce_qp_flags; the others must be zero.
 * @reserved: must be zero.
 */
struct xroce_create_qp_req {
	__u32 flags;
	__u32 reserved;
};

/**
 * struct xroce_create_qp_resp - create_qp, from the kernel (never for XRC_TGT)
 * @sq: the send ring.
 * @rq: the receive ring; size 0 with an SRQ and for XRC_INI.
 * @max_inline: bytes of inline data that a send slot holds.
 * @reserved: zero.
 */
struct xroce_create_qp_resp {
	struct xroce_ring_info sq;
	struct xroce_ring_info rq;
	__u32 max_inline;
	__u32 reserved;
};

/**
 * struct xroce_create_ah_resp - create_ah, from the kernel
 * @ah: number for xroce_send_slot.ud.ah.
 * @reserved: zero.
 */
struct xroce_create_ah_resp {
	__u32 ah;
	__u32 reserved;
};

/*
 * Opening an existing TGT QP: CREATE_QP of type XRC_TGT carries no driver data,
 * so the plug-in names the QP in ib_qp_cap: cap.max_send_wr holds
 * XROCE_TGT_OPEN and cap.max_recv_wr the QP number. To create a new one, the
 * plug-in passes zero in all of ib_qp_cap.
 */
#define XROCE_TGT_OPEN			0x00544754

/*
 * Receive QPs by number
 * ---------------------
 * A receive QP by number is an XRC target that no process has an object for:
 * processes register for it, and it goes with its last registration (unless it
 * is persistent) or with its domain. The methods below are driver methods of UVERBS_OBJECT_XRCD. A
 * registration is an object of type XROCE_OBJECT_RCV_QP; a program needs not
 * remember its handle, since XROCE_METHOD_RCV_QP_QUERY tells it.
 *
 * Ids are in the drivers' part of the number space: 1 << UVERBS_ID_NS_SHIFT.
 */
#define XROCE_ID_DRIVER_NS		(1 << 12)

enum xroce_objects {
	XROCE_OBJECT_RCV_QP = XROCE_ID_DRIVER_NS,
};

/**
 * enum xroce_xrcd_methods - driver methods of an XRC domain
 * @XROCE_METHOD_RCV_QP_CREATE: make a target, take it to RTR, register for it.
 *	With an empty attr_mask it stays in RESET.
 * @XROCE_METHOD_RCV_QP_REG: register for a target of the domain.
 * @XROCE_METHOD_RCV_QP_UNREG: end a registration.
 * @XROCE_METHOD_RCV_QP_MODIFY: change attributes of a target of the domain.
 * @XROCE_METHOD_RCV_QP_QUERY: read them.
 */
enum xroce_xrcd_methods {
	XROCE_METHOD_RCV_QP_CREATE = XROCE_ID_DRIVER_NS,
	XROCE_METHOD_RCV_QP_REG,
	XROCE_METHOD_RCV_QP_UNREG,
	XROCE_METHOD_RCV_QP_MODIFY,
	XROCE_METHOD_RCV_QP_QUERY,
};

/**
 * enum xroce_rcv_qp_flags - how a target is made by number
 * @XROCE_RCV_QP_PERSISTENT: it goes with its domain, and not with its last
 *	registration.
 */
enum xroce_rcv_qp_flags {
	XROCE_RCV_QP_PERSISTENT = 1 << 0,
};

/**
 * enum xroce_rcv_qp_attrs - attributes of these methods
 * @XROCE_ATTR_RCV_QP_XRCD: the domain; all methods but UNREG.
 * @XROCE_ATTR_RCV_QP_HANDLE: the registration: new (CREATE, REG), destroyed
 *	(UNREG). QUERY: __u32, optional, written; fails with EINVAL when the
 *	file has no registration for the target.
 * @XROCE_ATTR_RCV_QP_QPN: __u32, the number of the target; CREATE writes it.
 * @XROCE_ATTR_RCV_QP_ATTR: struct xroce_rcv_qp_attr; QUERY writes it, where it
 *	is optional.
 * @XROCE_ATTR_RCV_QP_FLAGS: bits of enum xroce_rcv_qp_flags; CREATE only,
 *	optional.
 */
enum xroce_rcv_qp_attrs {
	XROCE_ATTR_RCV_QP_XRCD = XROCE_ID_DRIVER_NS,
	XROCE_ATTR_RCV_QP_HANDLE,
	XROCE_ATTR_RCV_QP_QPN,
	XROCE_ATTR_RCV_QP_ATTR,
	XROCE_ATTR_RCV_QP_FLAGS,
};

/**
 * struct xroce_rcv_qp_dest - where the packets of a target go
 * @dgid: destination GID.
 * @flow_label: IPv6 flow label.
 * @sgid_index: entry of the source in the GID table.
 * @hop_limit: IPv4 TTL or IPv6 hop limit.
 * @traffic_class: IPv4 TOS or IPv6 traffic class.
 * @sl: service level.
 * @is_global: has a GRH; always on RoCE.
 * @static_rate: enum ibv_rate.
 * @port_num: port.
 * @reserved: must be zero.
 */
struct xroce_rcv_qp_dest {
	__u8 dgid[16];
	__u32 flow_label;
	__u8 sgid_index;
	__u8 hop_limit;
	__u8 traffic_class;
	__u8 sl;
	__u8 is_global;
	__u8 static_rate;
	__u8 port_num;
	__u8 reserved;
};

/**
 * struct xroce_rcv_qp_attr - attributes of a target
 * @attr_mask: bits of enum ibv_qp_attr_mask: which of the others mean
 *	something. QUERY writes all that a target has.
 * @dest_qp_num: QP number of the sender.
 * @rq_psn: first PSN expected.
 * @sq_psn: first PSN to send; a target sends none.
 * @qkey: a target has none.
 * @qp_access_flags: what the sender may do, enum ibv_access_flags.
 * @pkey_index: 0.
 * @qp_state: enum ibv_qp_state.
 * @cur_qp_state: the same: the state that it is believed to be in.
 * @path_mtu: enum ibv_mtu.
 * @path_mig_state: enum ibv_mig_state.
 * @max_dest_rd_atomic: READs and atomics that the sender may have under way.
 * @min_rnr_timer: RNR timer code, 0 to 31.
 * @timeout: ACK timeout, as in enum ibv_qp_attr_mask's other users.
 * @retry_cnt: not of a target.
 * @rnr_retry: not of a target.
 * @max_rd_atomic: not of a target.
 * @en_sqd_async_notify: 0 or 1.
 * @port_num: port.
 * @reserved: must be zero.
 * @dest: where its answers go.
 *
 * It can grow: what is added comes after @dest, where zero means nothing.
 */
struct xroce_rcv_qp_attr {
	__u32 attr_mask;
	__u32 dest_qp_num;
	__u32 rq_psn;
	__u32 sq_psn;
	__u32 qkey;
	__u32 qp_access_flags;
	__u16 pkey_index;
	__u8 qp_state;
	__u8 cur_qp_state;
	__u8 path_mtu;
	__u8 path_mig_state;
	__u8 max_dest_rd_atomic;
	__u8 min_rnr_timer;
	__u8 timeout;
	__u8 retry_cnt;
	__u8 rnr_retry;
	__u8 max_rd_atomic;
	__u8 en_sqd_async_notify;
	__u8 port_num;
	__u8 reserved[2];
	struct xroce_rcv_qp_dest dest;
};

/*
 * An event of a target comes to each file that is registered for it as
 * struct ib_uverbs_async_event_desc with this bit in event_type, besides the
 * type of the event, and the number of the target as element. A file gets them
 * by its first asynchronous event file, and none if it has not made one.
 */
#define XROCE_EVENT_RCV_QP		0x80000000

/*
 * Device memory is mapped at an offset that follows from the handle of its
 * uobject: XROCE_DM_MMAP_BASE + handle * XROCE_DM_MAX_SIZE, with the length that
 * was allocated.
 */
#define XROCE_DM_MMAP_BASE		(1ULL << 43)
#define XROCE_DM_MAX_SIZE		(1ULL << 20)

/*
 * Doorbell: the POST_SEND write() command with wr_count 0 and the QP handle; of
 * a tag-matching queue, POST_SRQ_RECV with wr_count 0 and the SRQ handle.
 */

#endif /* XROCE_ABI_H */
