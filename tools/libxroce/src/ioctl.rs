// SPDX-License-Identifier: GPL-2.0
//! uverbs methods called by `ioctl()`.
//!
//! `<rdma/rdma_user_ioctl_cmds.h>` defines the format of a call. libibverbs' own builders for it
//! are private macros.

use core::ffi::{
    c_int,
    c_ulong, //
};
use core::mem::{
    offset_of,
    size_of, //
};

use crate::abi;
use crate::sys::{
    ioctl_ptr,
    Errno,
    Result,
    EOPNOTSUPP, //
};

/// `_IOWR(0x1b, 1, struct ib_uverbs_ioctl_hdr)`
const RDMA_VERBS_IOCTL: c_ulong = 0xc018_1b01;
/// The kernel must know the attribute.
const MANDATORY: u16 = 1;
/// No such method in the kernel.
const EPROTONOSUPPORT: Errno = Errno(93);

/// `struct ib_uverbs_attr`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Attr {
    id: u16,
    len: u16,
    flags: u16,
    reserved: u16,
    data: u64,
}

impl Attr {
    const fn new(id: u16, len: u16, data: u64) -> Self {
        Self {
            id,
            len,
            flags: MANDATORY,
            reserved: 0,
            data,
        }
    }

    /// An object by its handle, or room for the handle of a new one.
    pub const fn handle(id: u16, handle: u32) -> Self {
        Self::new(id, 0, handle as u64)
    }

    /// A number, which lies in the first bytes of the data.
    pub const fn number(id: u16, value: u32) -> Self {
        let v = value.to_ne_bytes();
        let data = u64::from_ne_bytes([v[0], v[1], v[2], v[3], 0, 0, 0, 0]);
        Self::new(id, size_of::<u32>() as u16, data)
    }

    /// One of a set of numbers, as the kernel's `uverbs_get_const()` reads it.
    pub const fn constant(id: u16, value: u64) -> Self {
        Self::new(id, size_of::<u64>() as u16, value)
    }

    /// A structure for the kernel to read. It must live until the call.
    pub fn input<T>(id: u16, value: &T) -> Self {
        Self::structure(id, core::ptr::from_ref(value))
    }

    /// A place for the kernel to write. It must live until the call.
    pub fn output<T>(id: u16, value: &mut T) -> Self {
        Self::structure(id, core::ptr::from_mut(value))
    }

    fn structure<T>(id: u16, value: *const T) -> Self {
        const { assert!(size_of::<T>() <= u16::MAX as usize) };
        Self::new(id, size_of::<T>() as u16, value as usize as u64)
    }
}

/// `struct ib_uverbs_ioctl_hdr` with its attributes.
#[repr(C)]
struct Call<const N: usize> {
    length: u16,
    object: u16,
    method: u16,
    num_attrs: u16,
    reserved1: u64,
    driver_id: u32,
    reserved2: u32,
    attrs: [Attr; N],
}

const _: () = {
    assert!(size_of::<Attr>() == 16);
    assert!(offset_of!(Call<1>, driver_id) == 16);
    assert!(offset_of!(Call<1>, attrs) == 24);
};

/// Calls a method.
///
/// # Errors
///
/// The error of `ioctl()`; EOPNOTSUPP when the kernel does not know the method.
///
/// # Safety
///
/// Each attribute must be what the method has under its id; what inputs and
/// outputs point to must live, outputs be nobody else's, and inputs larger than
/// 8 bytes.
pub unsafe fn call<const N: usize>(
    fd: c_int,
    object: u16,
    method: u16,
    attrs: [Attr; N],
) -> Result {
    let mut call = Call {
        length: size_of::<Call<N>>() as u16,
        object,
        method,
        num_attrs: N as u16,
        reserved1: 0,
        driver_id: abi::DRIVER_ID,
        reserved2: 0,
        attrs,
    };
    // SAFETY: a whole call; its pointers are as the caller says.
    let done = unsafe { ioctl_ptr(fd, RDMA_VERBS_IOCTL, core::ptr::from_mut(&mut call).cast()) };
    match done {
        Err(EPROTONOSUPPORT) => Err(EOPNOTSUPP),
        done => done,
    }
}
