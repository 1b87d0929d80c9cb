// SPDX-License-Identifier: GPL-2.0

//! Operations on the device and its port.

use super::Ops;
use crate::{
    bindings,
    cq::Cq,
    device::Device,
    errno::eopnotsupp,
    gid::Gid,
    pma,
    provider::Provider,
    qp::Qp,
    restrack::ResEntry, //
};
use core::{
    ffi::c_void,
    slice, //
};
use kernel::{
    error::from_result,
    ffi::{
        c_char,
        c_int, //
    },
    prelude::*, //
};

/// Bytes of a MAD.
const MAD_SIZE: u32 = 256;

/// Bytes that ib_core has for a firmware version, terminator included.
const FW_VERSION_LEN: usize = 32;

/// For how many milliseconds ib_core shows what it has read before: to read counters costs little,
/// and who reads one wants to know what has happened since.
const LIFESPAN_MS: usize = 0;

impl<P: Provider> Ops<P> {
    /// # Safety
    ///
    /// See the module. `attr` is zeroed and lent for writing.
    pub(super) unsafe extern "C" fn query_device(
        ib: *mut bindings::ib_device,
        attr: *mut bindings::ib_device_attr,
        udata: *mut bindings::ib_udata,
    ) -> c_int {
        from_result(|| {
            // SAFETY: Null, or valid for the time of the command.
            if let Some(udata) = unsafe { udata.as_ref() } {
                if udata.inlen != 0 || udata.outlen != 0 {
                    return Err(eopnotsupp());
                }
            }
            // SAFETY: A device of ours that is registered or about to be.
            let device = unsafe { Device::<P>::from_raw(ib) };
            // SAFETY: Lent by the caller.
            P::query_device(device)?.to_raw(unsafe { &mut *attr });
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// See the module. `attr` is zeroed and lent for writing.
    pub(super) unsafe extern "C" fn query_port(
        ib: *mut bindings::ib_device,
        port: u32,
        attr: *mut bindings::ib_port_attr,
    ) -> c_int {
        from_result(|| {
            // SAFETY: A device of ours that is registered or about to be.
            let device = unsafe { Device::<P>::from_raw(ib) };
            // SAFETY: Lent by the caller.
            P::query_port(device, port)?.to_raw(unsafe { &mut *attr });
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// See the module. `immutable` is lent for writing.
    pub(super) unsafe extern "C" fn get_port_immutable(
        ib: *mut bindings::ib_device,
        port: u32,
        immutable: *mut bindings::ib_port_immutable,
    ) -> c_int {
        from_result(|| {
            // SAFETY: A device of ours that is about to be registered.
            let attr = P::query_port(unsafe { Device::<P>::from_raw(ib) }, port)?;
            // SAFETY: Lent by the caller.
            let immutable = unsafe { &mut *immutable };
            immutable.gid_tbl_len = i32::try_from(attr.gid_table_len)?;
            immutable.pkey_tbl_len = i32::from(attr.pkey_table_len);
            immutable.core_cap_flags = bindings::RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
            immutable.max_mad_size = MAD_SIZE;
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// None: touches nothing.
    pub(super) unsafe extern "C" fn get_link_layer(
        _ib: *mut bindings::ib_device,
        _port: u32,
    ) -> bindings::rdma_link_layer {
        bindings::rdma_link_layer_IB_LINK_LAYER_ETHERNET
    }

    /// # Safety
    ///
    /// See the module. `speed` is lent for writing.
    pub(super) unsafe extern "C" fn query_port_speed(
        ib: *mut bindings::ib_device,
        port: u32,
        speed: *mut u64,
    ) -> c_int {
        // SAFETY: A device that exists; `speed` by contract.
        unsafe { bindings::xrdma_ib_port_speed(ib, port, speed) }
    }

    /// # Safety
    ///
    /// See the module. `pkey` is lent for writing.
    pub(super) unsafe extern "C" fn query_pkey(
        ib: *mut bindings::ib_device,
        port: u32,
        index: u16,
        pkey: *mut u16,
    ) -> c_int {
        from_result(|| {
            // SAFETY: A device of ours that is registered or about to be.
            let value = P::query_pkey(unsafe { Device::<P>::from_raw(ib) }, port, index)?;
            // SAFETY: Lent by the caller.
            unsafe { pkey.write(value) };
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// See the module. `attr` is a GID attribute that ib_core is entering; its mutex is held.
    pub(super) unsafe extern "C" fn add_gid(
        attr: *const bindings::ib_gid_attr,
        _context: *mut *mut c_void,
    ) -> c_int {
        from_result(|| {
            // SAFETY: Valid for the time of the call.
            let (device, gid) =
                unsafe { (Device::<P>::from_raw((*attr).device), Gid::from_raw(attr)) };
            P::add_gid(device, &gid).map(|()| 0)
        })
    }

    /// # Safety
    ///
    /// See the module. `attr` is a GID attribute that ib_core is removing; its mutex is held.
    pub(super) unsafe extern "C" fn del_gid(
        attr: *const bindings::ib_gid_attr,
        _context: *mut *mut c_void,
    ) -> c_int {
        if P::HAS_DEL_GID {
            // SAFETY: Valid for the time of the call.
            let (device, gid) =
                unsafe { (Device::<P>::from_raw((*attr).device), Gid::from_raw(attr)) };
            P::del_gid(device, &gid);
        }
        0
    }

    /// # Safety
    ///
    /// None: touches nothing. ib_core frees what it gets.
    pub(super) unsafe extern "C" fn alloc_hw_port_stats(
        _ib: *mut bindings::ib_device,
        _port: u32,
    ) -> *mut bindings::rdma_hw_stats {
        let Ok(count) = i32::try_from(P::COUNTERS.len()) else {
            return core::ptr::null_mut();
        };
        // CAST: `CounterDesc` is a transparent wrapper.
        // SAFETY: A static array of that many descriptors.
        unsafe {
            bindings::rdma_alloc_hw_stats_struct(P::COUNTERS.as_ptr().cast(), count, LIFESPAN_MS)
        }
    }

    /// # Safety
    ///
    /// See the module. `stats` was made by [`Self::alloc_hw_port_stats`]; its lock is held.
    ///
    /// All are filled in, but if one is asked for, only that is promised. ib_core would otherwise
    /// show what it has for all until the next jiffy, as it still does when the first one was read:
    /// it also stands for all of them, when netlink asks.
    pub(super) unsafe extern "C" fn get_hw_stats(
        ib: *mut bindings::ib_device,
        stats: *mut bindings::rdma_hw_stats,
        port: u32,
        index: c_int,
    ) -> c_int {
        from_result(|| {
            if port == 0 || stats.is_null() {
                return Err(EINVAL);
            }
            // SAFETY: A registered device of ours.
            let device = unsafe { Device::<P>::from_raw(ib) };
            // SAFETY: Allocated with one value for each counter, and locked.
            let values = unsafe {
                slice::from_raw_parts_mut((*stats).value.as_mut_ptr(), P::COUNTERS.len())
            };
            P::hw_stats(device, port, values);
            let count = i32::try_from(P::COUNTERS.len())?;
            Ok(match index {
                1.. => index.min(count),
                _ => count,
            })
        })
    }

    /// # Safety
    ///
    /// See the module. `request` and `reply` are datagrams of [`pma::MAD_LEN`] bytes, the second
    /// lent for writing.
    pub(super) unsafe extern "C" fn process_mad(
        ib: *mut bindings::ib_device,
        _flags: c_int,
        port: u32,
        _wc: *const bindings::ib_wc,
        _grh: *const bindings::ib_grh,
        request: *const bindings::ib_mad,
        reply: *mut bindings::ib_mad,
        _reply_len: *mut usize,
        _pkey_index: *mut u16,
    ) -> c_int {
        // SAFETY: A registered device of ours, or one that is being registered.
        let device = unsafe { Device::<P>::from_raw(ib) };
        // SAFETY: Lent by the caller; bytes of any value are valid, and need no alignment.
        let (request, reply) = unsafe { (&*request.cast(), &mut *reply.cast()) };
        *reply = [0; pma::MAD_LEN];
        let success = bindings::ib_mad_result_IB_MAD_RESULT_SUCCESS;
        let result = match pma::answer(request, reply, || P::port_counters(device, port)) {
            pma::Answer::Reply => success | bindings::ib_mad_result_IB_MAD_RESULT_REPLY,
            pma::Answer::Unsupported => success,
        };
        c_int::try_from(result).unwrap_or(0)
    }

    /// # Safety
    ///
    /// See the module. `text` has room for `IB_FW_VERSION_NAME_MAX` bytes.
    pub(super) unsafe extern "C" fn get_dev_fw_str(
        ib: *mut bindings::ib_device,
        text: *mut c_char,
    ) {
        // SAFETY: A registered device; `attrs` was filled during registration.
        let version = unsafe { (*ib).attrs.fw_ver };
        // SAFETY: Lent by the caller with that much room.
        unsafe { bindings::xrdma_ib_fw_version(text, FW_VERSION_LEN, version) };
    }

    /// # Safety
    ///
    /// See the module. `msg` is a message that is being written.
    pub(super) unsafe extern "C" fn fill_res_qp_entry(
        msg: *mut kernel::bindings::sk_buff,
        qp: *mut bindings::ib_qp,
    ) -> c_int {
        from_result(|| {
            // SAFETY: By contract.
            let mut entry = unsafe { ResEntry::new(msg) };
            // SAFETY: Created, and kept from being destroyed by its restrack reference.
            P::show_qp(unsafe { Qp::from_raw(qp) }, &mut entry)?;
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// See the module. `msg` is a message that is being written.
    pub(super) unsafe extern "C" fn fill_res_cq_entry(
        msg: *mut kernel::bindings::sk_buff,
        cq: *mut bindings::ib_cq,
    ) -> c_int {
        from_result(|| {
            // SAFETY: By contract.
            let mut entry = unsafe { ResEntry::new(msg) };
            // SAFETY: Created, and kept from being destroyed by its restrack reference.
            P::show_cq(unsafe { Cq::from_raw(cq) }, &mut entry)?;
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// See the module.
    pub(super) unsafe extern "C" fn enable_driver(ib: *mut bindings::ib_device) -> c_int {
        // SAFETY: A device of ours that is being registered.
        from_result(|| P::enable(unsafe { Device::<P>::from_raw(ib) }).map(|()| 0))
    }

    /// # Safety
    ///
    /// See the module. ib_core calls it once, when no other operation runs or can begin.
    pub(super) unsafe extern "C" fn dealloc_driver(ib: *mut bindings::ib_device) {
        // SAFETY: By contract.
        unsafe { Device::<P>::unplace(ib) };
    }
}
