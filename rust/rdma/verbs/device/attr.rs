// SPDX-License-Identifier: GPL-2.0

//! What `ibv_query_device` reports.
//!
//! C header: `include/rdma/ib_verbs.h`.

use crate::bindings;

/// What a device is and can do (`struct ib_device_attr`).
///
/// Numbers above `i32::MAX` are cut to that, as the C structure has `int`s.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeviceAttr {
    /// Version: major in bits 32 to 47, minor in 16 to 31, patch in 0 to 15.
    pub fw_ver: u64,
    /// Identity of the system, big-endian bytes.
    pub sys_image_guid: [u8; 8],
    /// Largest memory region in bytes.
    pub max_mr_size: u64,
    /// Page sizes as bits.
    pub page_size_cap: u64,
    /// IEEE vendor number.
    pub vendor_id: u32,
    /// The vendor's number of the part.
    pub vendor_part_id: u32,
    /// Hardware version.
    pub hw_ver: u32,
    /// Queue pairs.
    pub max_qp: u32,
    /// Work requests of a queue.
    pub max_qp_wr: u32,
    /// `IB_DEVICE_*` flags, see [`device_cap`].
    pub device_cap_flags: u64,
    /// `IBK_*` flags, see [`kernel_cap`].
    pub kernel_cap_flags: u64,
    /// Gather elements of a send.
    pub max_send_sge: u32,
    /// Scatter elements of a receive.
    pub max_recv_sge: u32,
    /// Scatter elements of a READ.
    pub max_sge_rd: u32,
    /// Completion queues.
    pub max_cq: u32,
    /// Completions of a queue.
    pub max_cqe: u32,
    /// Memory regions.
    pub max_mr: u32,
    /// Protection domains.
    pub max_pd: u32,
    /// READs and atomics in flight to a queue pair.
    pub max_qp_rd_atom: u32,
    /// The same for the device.
    pub max_res_rd_atom: u32,
    /// READs and atomics in flight from a queue pair.
    pub max_qp_init_rd_atom: u32,
    /// Atomics are atomic among queue pairs of the device.
    pub atomic_hca: bool,
    /// Memory windows.
    pub max_mw: u32,
    /// Multicast groups.
    pub max_mcast_grp: u32,
    /// Queue pairs of a group.
    pub max_mcast_qp_attach: u32,
    /// Memberships in all groups.
    pub max_total_mcast_qp_attach: u32,
    /// Address handles.
    pub max_ah: u32,
    /// Shared receive queues.
    pub max_srq: u32,
    /// Receives of one.
    pub max_srq_wr: u32,
    /// Scatter elements of those.
    pub max_srq_sge: u32,
    /// Pages of a fast registration.
    pub max_fast_reg_page_list_len: u32,
    /// Bytes of device memory.
    pub max_dm_size: u64,
    /// The operations that support on-demand paging.
    pub on_demand: OnDemandCaps,
    /// Partition keys.
    pub max_pkeys: u16,
    /// ACK delay code: 4.096 µs times two to this power.
    pub local_ca_ack_delay: u8,
    /// Valid bits of completion timestamps; 0: there are none.
    pub timestamp_mask: u64,
    /// Frequency of their clock in kHz.
    pub hca_core_clock: u64,
    /// Completions that moderation can wait for.
    pub max_cq_moderation_count: u16,
    /// Microseconds that it can wait.
    pub max_cq_moderation_period: u16,
    /// Tag matching on shared receive queues.
    pub tm: TmCaps,
}

/// What tag-matching receive queues can do; all zero: there are none.
#[derive(Clone, Copy, Debug, Default)]
pub struct TmCaps {
    /// Bytes of a rendezvous request.
    pub max_rndv_hdr_size: u32,
    /// Tags in a list.
    pub max_num_tags: u32,
    /// Operations outstanding.
    pub max_ops: u32,
    /// Scatter elements of a tag.
    pub max_sge: u32,
}

impl DeviceAttr {
    pub(crate) fn to_raw(self, raw: &mut bindings::ib_device_attr) {
        // `int` in Linux 7.2, `u32` in 7.3: what both can hold.
        fn int<T: TryFrom<u32> + Default>(n: u32) -> T {
            T::try_from(n.min(i32::MAX.unsigned_abs())).unwrap_or_default()
        }
        raw.fw_ver = self.fw_ver;
        raw.sys_image_guid = u64::from_ne_bytes(self.sys_image_guid);
        raw.max_mr_size = self.max_mr_size;
        raw.page_size_cap = self.page_size_cap;
        raw.vendor_id = self.vendor_id;
        raw.vendor_part_id = self.vendor_part_id;
        raw.hw_ver = self.hw_ver;
        raw.max_qp = int(self.max_qp);
        raw.max_qp_wr = int(self.max_qp_wr);
        raw.device_cap_flags = self.device_cap_flags;
        raw.kernel_cap_flags = self.kernel_cap_flags;
        raw.max_send_sge = int(self.max_send_sge);
        raw.max_recv_sge = int(self.max_recv_sge);
        raw.max_sge_rd = int(self.max_sge_rd);
        raw.max_cq = int(self.max_cq);
        raw.max_cqe = int(self.max_cqe);
        raw.max_mr = int(self.max_mr);
        raw.max_pd = int(self.max_pd);
        raw.max_qp_rd_atom = int(self.max_qp_rd_atom);
        raw.max_res_rd_atom = int(self.max_res_rd_atom);
        raw.max_qp_init_rd_atom = int(self.max_qp_init_rd_atom);
        raw.atomic_cap = if self.atomic_hca {
            bindings::ib_atomic_cap_IB_ATOMIC_HCA
        } else {
            bindings::ib_atomic_cap_IB_ATOMIC_NONE
        };
        raw.max_mw = int(self.max_mw);
        raw.max_mcast_grp = int(self.max_mcast_grp);
        raw.max_mcast_qp_attach = int(self.max_mcast_qp_attach);
        raw.max_total_mcast_qp_attach = int(self.max_total_mcast_qp_attach);
        raw.max_ah = int(self.max_ah);
        raw.max_srq = int(self.max_srq);
        raw.max_srq_wr = int(self.max_srq_wr);
        raw.max_srq_sge = int(self.max_srq_sge);
        raw.max_fast_reg_page_list_len = self.max_fast_reg_page_list_len;
        raw.max_dm_size = self.max_dm_size;
        raw.odp_caps.general_caps = self.on_demand.general;
        raw.odp_caps.per_transport_caps.rc_odp_caps = self.on_demand.rc;
        raw.odp_caps.per_transport_caps.uc_odp_caps = self.on_demand.uc;
        raw.odp_caps.per_transport_caps.ud_odp_caps = self.on_demand.ud;
        raw.odp_caps.per_transport_caps.xrc_odp_caps = self.on_demand.xrc;
        raw.max_pkeys = self.max_pkeys;
        raw.local_ca_ack_delay = self.local_ca_ack_delay;
        raw.timestamp_mask = self.timestamp_mask;
        raw.hca_core_clock = self.hca_core_clock;
        raw.cq_caps.max_cq_moderation_count = self.max_cq_moderation_count;
        raw.cq_caps.max_cq_moderation_period = self.max_cq_moderation_period;
        raw.tm_caps.max_rndv_hdr_size = self.tm.max_rndv_hdr_size;
        raw.tm_caps.max_num_tags = self.tm.max_num_tags;
        raw.tm_caps.max_ops = self.tm.max_ops;
        raw.tm_caps.max_sge = self.tm.max_sge;
        if self.tm.max_num_tags != 0 {
            raw.tm_caps.flags = bindings::ib_tm_cap_flags_IB_TM_CAP_RNDV_RC;
        }
    }
}

/// On-demand paging: bits of [`odp_cap`], for the device and by transport.
#[derive(Clone, Copy, Debug, Default)]
pub struct OnDemandCaps {
    /// [`odp_cap::SUPPORT`], [`odp_cap::IMPLICIT`]
    pub general: u64,
    /// Reliable connection.
    pub rc: u32,
    /// Unreliable connection.
    pub uc: u32,
    /// Datagrams.
    pub ud: u32,
    /// Extended reliable connection.
    pub xrc: u32,
}

/// Bits of [`OnDemandCaps`] (`enum ib_odp_general_cap_bits`, `enum ib_odp_transport_cap_bits`).
pub mod odp_cap {
    use crate::bindings as b;

    /// There is on-demand paging.
    pub const SUPPORT: u64 = b::ib_odp_general_cap_bits_IB_ODP_SUPPORT as u64;
    /// Also for whole address spaces.
    pub const IMPLICIT: u64 = b::ib_odp_general_cap_bits_IB_ODP_SUPPORT_IMPLICIT as u64;
    /// To send from.
    pub const SEND: u32 = b::ib_odp_transport_cap_bits_IB_ODP_SUPPORT_SEND;
    /// To receive into.
    pub const RECV: u32 = b::ib_odp_transport_cap_bits_IB_ODP_SUPPORT_RECV;
    /// RDMA WRITE.
    pub const WRITE: u32 = b::ib_odp_transport_cap_bits_IB_ODP_SUPPORT_WRITE;
    /// RDMA READ.
    pub const READ: u32 = b::ib_odp_transport_cap_bits_IB_ODP_SUPPORT_READ;
    /// Atomics.
    pub const ATOMIC: u32 = b::ib_odp_transport_cap_bits_IB_ODP_SUPPORT_ATOMIC;
    /// To receive into by an SRQ.
    pub const SRQ_RECV: u32 = b::ib_odp_transport_cap_bits_IB_ODP_SUPPORT_SRQ_RECV;
    /// FLUSH.
    pub const FLUSH: u32 = b::ib_odp_transport_cap_bits_IB_ODP_SUPPORT_FLUSH;
    /// Atomic write.
    pub const ATOMIC_WRITE: u32 = b::ib_odp_transport_cap_bits_IB_ODP_SUPPORT_ATOMIC_WRITE;
}

/// Bits of [`DeviceAttr::device_cap_flags`] (`enum ib_device_cap_flags`).
pub mod device_cap {
    use crate::bindings as b;

    /// Extended reliable connection.
    pub const XRC: u64 = b::ib_device_cap_flags_IB_DEVICE_XRC as u64;
    /// Packets with wrong partition keys are counted.
    pub const BAD_PKEY_CNTR: u64 = b::ib_device_cap_flags_IB_DEVICE_BAD_PKEY_CNTR as u64;
    /// Packets with wrong queue keys are counted.
    pub const BAD_QKEY_CNTR: u64 = b::ib_device_cap_flags_IB_DEVICE_BAD_QKEY_CNTR as u64;
    /// The port of an address vector is checked.
    pub const UD_AV_PORT_ENFORCE: u64 = b::ib_device_cap_flags_IB_DEVICE_UD_AV_PORT_ENFORCE as u64;
    /// `cur_state` is looked at.
    pub const CURR_QP_STATE_MOD: u64 = b::ib_device_cap_flags_IB_DEVICE_CURR_QP_STATE_MOD as u64;
    /// The port can be shut down.
    pub const SHUTDOWN_PORT: u64 = b::ib_device_cap_flags_IB_DEVICE_SHUTDOWN_PORT as u64;
    /// An event tells that the port is active.
    pub const PORT_ACTIVE_EVENT: u64 = b::ib_device_cap_flags_IB_DEVICE_PORT_ACTIVE_EVENT as u64;
    /// `sys_image_guid` can be set.
    pub const SYS_IMAGE_GUID: u64 = b::ib_device_cap_flags_IB_DEVICE_SYS_IMAGE_GUID as u64;
    /// RNR NAKs are generated.
    pub const RC_RNR_NAK_GEN: u64 = b::ib_device_cap_flags_IB_DEVICE_RC_RNR_NAK_GEN as u64;
    /// SRQs can be resized.
    pub const SRQ_RESIZE: u64 = b::ib_device_cap_flags_IB_DEVICE_SRQ_RESIZE as u64;
    /// Memory windows.
    pub const MEM_WINDOW: u64 = b::ib_device_cap_flags_IB_DEVICE_MEM_WINDOW as u64;
    /// Fast registration, local and remote invalidation.
    pub const MEM_MGT_EXTENSIONS: u64 = b::ib_device_cap_flags_IB_DEVICE_MEM_MGT_EXTENSIONS as u64;
    /// Memory windows of type 2B.
    pub const MEM_WINDOW_TYPE_2B: u64 = b::ib_device_cap_flags_IB_DEVICE_MEM_WINDOW_TYPE_2B as u64;
    /// FLUSH to global visibility.
    pub const FLUSH_GLOBAL: u64 = b::ib_device_cap_flags_IB_DEVICE_FLUSH_GLOBAL as u64;
    /// FLUSH to persistence.
    pub const FLUSH_PERSISTENT: u64 = b::ib_device_cap_flags_IB_DEVICE_FLUSH_PERSISTENT as u64;
    /// Atomic write.
    pub const ATOMIC_WRITE: u64 = b::ib_device_cap_flags_IB_DEVICE_ATOMIC_WRITE as u64;
}

/// Bits of [`DeviceAttr::kernel_cap_flags`] (`enum ib_kernel_cap_flags`).
pub mod kernel_cap {
    use crate::bindings as b;

    /// [`local_dma_lkey`](crate::device::DeviceConfig::local_dma_lkey) stands for all kernel
    /// memory.
    pub const LOCAL_DMA_LKEY: u64 = b::ib_kernel_cap_flags_IBK_LOCAL_DMA_LKEY as u64;
    /// `rdma link del` may remove the device.
    pub const ALLOW_USER_UNREG: u64 = b::ib_kernel_cap_flags_IBK_ALLOW_USER_UNREG as u64;
    /// Regions need not be pinned.
    pub const ON_DEMAND_PAGING: u64 = b::ib_kernel_cap_flags_IBK_ON_DEMAND_PAGING as u64;
}
