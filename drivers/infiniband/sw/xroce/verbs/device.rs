// SPDX-License-Identifier: GPL-2.0

//! The device: its data, and the attributes that it has.

use crate::prelude::*;
use crate::verbs::provider::Xroce;
use datapath::{
    limits,
    mcast as groups, //
};
use kernel::page::PAGE_SIZE;
use rdma::{
    device::{
        device_cap,
        kernel_cap,
        odp_cap,
        Device,
        DeviceAttr,
        OnDemandCaps,
        TmCaps, //
    },
    mem, //
};

/// Version that `ibv_devinfo` shows: major.minor.patch.
const VERSION: u64 = 1 << 16;
/// Shown as the vendor: locally administered, nobody's.
const VENDOR_ID: u32 = 0x02_5852;
/// The part: "xr".
const VENDOR_PART_ID: u32 = 0x7872;

/// The operations of one transport that support on-demand paging: all of its operations.
const DATAGRAM: u32 = odp_cap::SEND | odp_cap::RECV | odp_cap::SRQ_RECV;
const CONNECTED: u32 = DATAGRAM | odp_cap::WRITE;
const RELIABLE: u32 =
    CONNECTED | odp_cap::READ | odp_cap::ATOMIC | odp_cap::FLUSH | odp_cap::ATOMIC_WRITE;

/// On-demand paging.
const ON_DEMAND: OnDemandCaps = OnDemandCaps {
    general: odp_cap::SUPPORT | odp_cap::IMPLICIT,
    rc: RELIABLE,
    uc: CONNECTED,
    ud: DATAGRAM,
    xrc: RELIABLE & !odp_cap::RECV,
};

/// FLUSH to persistence, on architectures that can write their caches back.
const PERSISTENCE: u64 = match mem::HAS_WRITE_BACK {
    true => device_cap::FLUSH_PERSISTENT,
    false => 0,
};

/// What ib_core's device holds.
pub(crate) struct DeviceData {
    pub(crate) wire: Arc<WireDevice>,
}

impl Drop for DeviceData {
    /// The device is gone: frees the UDP port at once, whatever still holds the shared part.
    fn drop(&mut self) {
        self.wire.tunnel().close();
    }
}

/// `ibv_query_device`, `ibv_query_device_ex`.
pub(crate) fn query(device: &Device<Xroce>) -> DeviceAttr {
    let wire = &device.data().wire;
    DeviceAttr {
        fw_ver: VERSION,
        sys_image_guid: wire.guid().to_be_bytes(),
        max_mr_size: limits::MAX_MR_SIZE,
        page_size_cap: !(PAGE_SIZE as u64 - 1),
        vendor_id: VENDOR_ID,
        vendor_part_id: VENDOR_PART_ID,
        hw_ver: 1,
        max_qp: limits::MAX_QP,
        max_qp_wr: limits::MAX_QP_WR,
        device_cap_flags: device_cap::XRC
            | device_cap::CURR_QP_STATE_MOD
            | device_cap::PORT_ACTIVE_EVENT
            | device_cap::SYS_IMAGE_GUID
            | device_cap::RC_RNR_NAK_GEN
            | device_cap::SRQ_RESIZE
            | device_cap::MEM_WINDOW
            | device_cap::MEM_WINDOW_TYPE_2B
            | device_cap::MEM_MGT_EXTENSIONS
            | device_cap::FLUSH_GLOBAL
            | PERSISTENCE
            | device_cap::ATOMIC_WRITE,
        kernel_cap_flags: kernel_cap::LOCAL_DMA_LKEY
            | kernel_cap::ALLOW_USER_UNREG
            | kernel_cap::ON_DEMAND_PAGING,
        on_demand: ON_DEMAND,
        max_send_sge: limits::MAX_SGE,
        max_recv_sge: limits::MAX_SGE,
        max_sge_rd: limits::MAX_SGE,
        max_cq: limits::MAX_CQ,
        max_cqe: limits::MAX_CQE,
        max_mr: limits::MAX_MR,
        max_mw: limits::MAX_MW,
        max_dm_size: limits::MAX_DM_SIZE,
        max_fast_reg_page_list_len: limits::MAX_FAST_PAGES,
        max_pd: limits::MAX_PD,
        max_qp_rd_atom: u32::from(limits::MAX_RD_ATOMIC),
        max_res_rd_atom: limits::MAX_QP.saturating_mul(u32::from(limits::MAX_RD_ATOMIC)),
        max_qp_init_rd_atom: u32::from(limits::MAX_INIT_RD_ATOMIC),
        atomic_hca: true,
        max_mcast_grp: groups::MAX_GROUPS,
        max_mcast_qp_attach: groups::MAX_QPS as u32,
        max_total_mcast_qp_attach: groups::MAX_MEMBERS as u32,
        max_ah: limits::MAX_AH,
        max_srq: limits::MAX_SRQ,
        max_srq_wr: limits::MAX_SRQ_WR,
        max_srq_sge: limits::MAX_SGE,
        max_pkeys: 1,
        // 4.096 µs << 15 = 134 ms: the receiver may sit behind a busy softirq.
        local_ca_ack_delay: 15,
        timestamp_mask: u64::MAX,
        // kHz; the time stamps count nanoseconds.
        hca_core_clock: 1_000_000,
        max_cq_moderation_count: limits::MAX_CQ_MODERATION_COUNT,
        max_cq_moderation_period: limits::MAX_CQ_MODERATION_PERIOD,
        tm: TmCaps {
            max_rndv_hdr_size: limits::MAX_RNDV_HDR,
            max_num_tags: limits::MAX_TM_TAGS,
            max_ops: limits::MAX_TM_OPS,
            max_sge: limits::MAX_TM_SGE,
        },
    }
}
