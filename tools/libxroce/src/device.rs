// SPDX-License-Identifier: GPL-2.0
//! The device: its object, its attributes, its ports, its clock.

use core::ffi::c_int;

use crate::sys::{
    self,
    status, //
};
use crate::verbs::cmd::{
    self,
    size,
    Buffer, //
};
use crate::verbs::*;

/// `alloc_device`: an object for libibverbs, which fills it itself.
///
/// # Safety
///
/// Called by libibverbs only.
pub unsafe extern "C" fn alloc_device(_sysfs: *mut VerbsSysfsDev) -> *mut VerbsDevice {
    // SAFETY: integers and byte arrays only: all zero is valid.
    let device: VerbsDevice = unsafe { core::mem::zeroed() };
    Box::into_raw(Box::new(device))
}

/// `uninit_device`: the last reference is gone.
///
/// # Safety
///
/// Called by libibverbs only, with what `alloc_device` gave.
pub unsafe extern "C" fn uninit_device(device: *mut VerbsDevice) {
    // SAFETY: `alloc_device` made it with Box, and libibverbs forgets it.
    drop(unsafe { Box::from_raw(device) });
}

/// Writes "major.minor.sub" of the kernel's packed version.
fn format_version(raw: u64, out: &mut [u8; 64]) {
    let part = |shift: u32| (raw >> shift) & 0xffff;
    let text = format!("{}.{}.{}", part(32), part(16), part(0));
    out.fill(0);
    for (to, from) in out.iter_mut().zip(text.bytes()) {
        *to = from;
    }
}

/// ibv_query_device_ex(3), and ibv_query_device(3) through it.
///
/// # Safety
///
/// Called by libibverbs with valid arguments.
pub unsafe extern "C" fn query_device_ex(
    context: *mut IbvContext,
    input: *const IbvQueryDeviceExInput,
    attr: *mut IbvDeviceAttrEx,
    attr_size: usize,
) -> c_int {
    let mut resp = Buffer::<{ size::EX_QUERY_DEVICE_RESP }, ()>::new(());
    let mut resp_size = 4 * size::EX_QUERY_DEVICE_RESP;
    // SAFETY: the caller's arguments are passed on; `resp` has the size given.
    let ret = unsafe {
        cmd::ibv_cmd_query_device_any(context, input, attr, attr_size, resp.ptr(), &mut resp_size)
    };
    if ret != 0 {
        return ret;
    }
    // fw_ver is the response's first member, a u64 in host order.
    let raw = u64::from(resp.core[0]) | u64::from(resp.core[1]) << 32;
    // SAFETY: the text is at the start of the caller's attributes.
    format_version(raw, unsafe { &mut (*attr).fw_ver });
    0
}

/// ibv_query_port(3)
///
/// # Safety
///
/// Called by libibverbs with valid arguments.
pub unsafe extern "C" fn query_port(
    context: *mut IbvContext,
    port: u8,
    attr: *mut IbvPortAttr,
) -> c_int {
    let mut cmd = Buffer::<{ size::QUERY_PORT }, ()>::new(());
    // SAFETY: the caller's arguments are passed on; `cmd` has the size given.
    unsafe { cmd::ibv_cmd_query_port(context, port, attr, cmd.ptr(), 4 * size::QUERY_PORT) }
}

/// ibv_query_port_speed(3)
///
/// # Safety
///
/// Called by libibverbs with an open context and room for the answer.
pub unsafe extern "C" fn query_port_speed(
    context: *mut IbvContext,
    port: u32,
    speed: *mut u64,
) -> c_int {
    match cmd::query_port_speed() {
        // SAFETY: passed on.
        Some(query) => unsafe { query(context, port, speed) },
        None => status(Err(sys::EOPNOTSUPP)),
    }
}

/// ibv_query_rt_values_ex(3): the clock that stamps completions, as
/// nanoseconds in `tv_nsec` alone, which is how raw clocks are reported.
///
/// # Safety
///
/// Called with valid arguments.
pub unsafe extern "C" fn query_rt_values(
    _context: *mut IbvContext,
    values: *mut IbvValuesEx,
) -> c_int {
    // SAFETY: the caller's structure is valid.
    let values = unsafe { &mut *values };
    if values.comp_mask & !IBV_VALUES_MASK_RAW_CLOCK != 0 {
        return status(Err(sys::EINVAL));
    }
    if values.comp_mask & IBV_VALUES_MASK_RAW_CLOCK != 0 {
        values.raw_clock = sys::Timespec {
            sec: 0,
            nsec: sys::clock_ns(sys::CLOCK_MONOTONIC_RAW) as _,
        };
    }
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_text() {
        let mut out = [1; 64];
        format_version(3 << 32 | 20 << 16 | 1, &mut out);
        assert_eq!(&out[..7], b"3.20.1\0");
        assert!(out[7..].iter().all(|&b| b == 0));
    }
}
