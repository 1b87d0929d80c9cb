// SPDX-License-Identifier: GPL-2.0

//! From `struct ib_device_ops` to [`Provider`]: one function for each operation.
//!
//! ib_core or uverbs calls every function here. Their rules are the safety contract of all of these
//! functions:
//!
//! - The objects passed belong to a device of provider `P`, because only
//!   `UnregisteredDevice<P>::new` sets the table.
//! - An object whose create operation failed is never passed again. Neither is an object whose
//!   destroy operation succeeded.
//! - An object is not destroyed while another operation on it runs. User objects are locked by
//!   their uobject (`usecnt`, shared for use, exclusive for destruction, `hw_destroy_rwsem` for the
//!   whole file). Kernel users guarantee this themselves.
//! - Objects to which an object refers (PD, CQs, SRQ, XRC domain) outlive it (`usecnt` of each).
//! - `udata` is null or the `driver_udata` of the bundle of the command that runs.

mod context;
mod datapath;
mod device;
mod dm;
mod keys;
mod memory;
mod queues;
mod rcv_qp;

use crate::{
    ah::Ah,
    bindings,
    cq::Cq,
    mw::Mw,
    pd::Pd,
    provider::Provider,
    qp::Qp,
    srq::Srq,
    ucontext::UContext,
    xrcd::Xrcd, //
};
use core::marker::PhantomData;

/// The operations of provider `P`.
pub(crate) struct Ops<P: Provider>(PhantomData<P>);

/// `Some(function)` if the provider has the method, else `None`.
macro_rules! op {
    ($has:ident, $function:ident) => {
        if P::$has {
            Some(Self::$function)
        } else {
            None
        }
    };
}

impl<P: Provider> Ops<P> {
    /// The table that ib_core copies into the device.
    pub(crate) const TABLE: bindings::ib_device_ops = bindings::ib_device_ops {
        owner: (&raw const kernel::bindings::__this_module).cast_mut(),
        driver_id: P::DRIVER_ID,
        uverbs_abi_ver: P::UVERBS_ABI_VERSION,
        device_group: &raw const bindings::xrdma_ib_device_group,

        // device.rs
        query_device: Some(Self::query_device),
        query_port: Some(Self::query_port),
        get_port_immutable: Some(Self::get_port_immutable),
        get_link_layer: Some(Self::get_link_layer),
        query_port_speed: Some(Self::query_port_speed),
        query_pkey: Some(Self::query_pkey),
        add_gid: op!(HAS_ADD_GID, add_gid),
        del_gid: op!(HAS_ADD_GID, del_gid),
        alloc_hw_port_stats: op!(HAS_HW_STATS, alloc_hw_port_stats),
        get_hw_stats: op!(HAS_HW_STATS, get_hw_stats),
        process_mad: op!(HAS_PORT_COUNTERS, process_mad),
        get_dev_fw_str: Some(Self::get_dev_fw_str),
        fill_res_qp_entry: op!(HAS_SHOW_QP, fill_res_qp_entry),
        fill_res_cq_entry: op!(HAS_SHOW_CQ, fill_res_cq_entry),
        enable_driver: op!(HAS_ENABLE, enable_driver),
        dealloc_driver: Some(Self::dealloc_driver),

        // context.rs
        alloc_ucontext: Some(Self::alloc_ucontext),
        query_ucontext: Some(Self::query_ucontext),
        dealloc_ucontext: Some(Self::dealloc_ucontext),
        disassociate_ucontext: Some(Self::disassociate_ucontext),
        ufile_hw_cleanup: Some(Self::ufile_hw_cleanup),
        mmap: Some(Self::mmap),
        mmap_free: Some(Self::mmap_free),

        // memory.rs
        alloc_pd: Some(Self::alloc_pd),
        dealloc_pd: Some(Self::dealloc_pd),
        reg_user_mr: Some(Self::reg_user_mr),
        get_dma_mr: Some(Self::get_dma_mr),
        dereg_mr: Some(Self::dereg_mr),
        // dm.rs
        alloc_dm: op!(HAS_ALLOC_DM, alloc_dm),
        dealloc_dm: op!(HAS_ALLOC_DM, dealloc_dm),
        reg_dm_mr: op!(HAS_REG_DM_MR, reg_dm_mr),

        // keys.rs
        advise_mr: op!(HAS_ADVISE_MR, advise_mr),
        rereg_user_mr: op!(HAS_REREG_USER_MR, rereg_user_mr),
        alloc_mr: op!(HAS_ALLOC_MR, alloc_mr),
        map_mr_sg: op!(HAS_MAP_MR_SG, map_mr_sg),
        alloc_mw: op!(HAS_ALLOC_MW, alloc_mw),
        dealloc_mw: op!(HAS_ALLOC_MW, dealloc_mw),

        // memory.rs
        alloc_xrcd: op!(HAS_ALLOC_XRCD, alloc_xrcd),
        dealloc_xrcd: op!(HAS_ALLOC_XRCD, dealloc_xrcd),
        create_ah: op!(HAS_CREATE_AH, create_ah),
        create_user_ah: op!(HAS_CREATE_AH, create_ah),
        modify_ah: op!(HAS_MODIFY_AH, modify_ah),
        query_ah: op!(HAS_QUERY_AH, query_ah),
        destroy_ah: op!(HAS_CREATE_AH, destroy_ah),

        // queues.rs
        create_cq: Some(Self::create_cq),
        modify_cq: op!(HAS_MODIFY_CQ, modify_cq),
        resize_user_cq: op!(HAS_RESIZE_CQ, resize_cq),
        pre_destroy_cq: Some(Self::pre_destroy_cq),
        destroy_cq: Some(Self::destroy_cq),
        create_srq: op!(HAS_CREATE_SRQ, create_srq),
        modify_srq: op!(HAS_MODIFY_SRQ, modify_srq),
        query_srq: op!(HAS_QUERY_SRQ, query_srq),
        destroy_srq: op!(HAS_CREATE_SRQ, destroy_srq),
        create_qp: Some(Self::create_qp),
        modify_qp: Some(Self::modify_qp),
        query_qp: op!(HAS_QUERY_QP, query_qp),
        destroy_qp: Some(Self::destroy_qp),
        attach_mcast: op!(HAS_ATTACH_MCAST, attach_mcast),
        detach_mcast: op!(HAS_DETACH_MCAST, detach_mcast),

        // datapath.rs
        post_send: Some(Self::post_send),
        post_recv: Some(Self::post_recv),
        post_srq_recv: op!(HAS_POST_SRQ_RECV, post_srq_recv),
        poll_cq: Some(Self::poll_cq),
        req_notify_cq: Some(Self::req_notify_cq),

        size_ib_ucontext: UContext::<P>::SIZE,
        size_ib_pd: Pd::<P>::SIZE,
        size_ib_ah: Ah::<P>::SIZE,
        size_ib_cq: Cq::<P>::SIZE,
        size_ib_mw: Mw::<P>::SIZE,
        size_ib_srq: Srq::<P>::SIZE,
        size_ib_qp: Qp::<P>::SIZE,
        size_ib_xrcd: Xrcd::<P>::SIZE,
        ..pin_init::zeroed()
    };

    /// Tells whether the operations of a device are a table of this crate's, of this module's, and
    /// with the driver id of `P`.
    ///
    /// # Safety
    ///
    /// `ib` must exist and be registered.
    pub(crate) unsafe fn are_of(ib: *mut bindings::ib_device) -> bool {
        // SAFETY: Exists (contract); these fields do not change once it is registered.
        let (owner, driver_id) = unsafe { ((*ib).ops.owner, (*ib).ops.driver_id) };
        owner == Self::TABLE.owner && driver_id == P::DRIVER_ID
    }
}
