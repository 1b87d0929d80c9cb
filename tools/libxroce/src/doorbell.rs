// SPDX-License-Identifier: GPL-2.0
//! The doorbell: a POST_SEND command without work requests or, for a tag-matching SRQ, a
//! POST_SRQ_RECV command without work requests.
//!
//! The command is written to the device file. The kernel refuses a `write()` by a process that
//! changed its credentials after it had opened the file. In this case the same command goes through
//! the ioctl that wraps it.

use core::ffi::c_int;
use core::mem::size_of;

use crate::ioctl::{
    self,
    Attr, //
};
use crate::sys::{
    write_all,
    Result,
    EACCES,
    ENOMEM, //
};

/// Whose doorbell: the number of the command.
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum Bell {
    /// A QP's: `IB_USER_VERBS_CMD_POST_SEND`
    Qp = 28,
    /// An SRQ's: `IB_USER_VERBS_CMD_POST_SRQ_RECV`
    Srq = 36,
}

/// At least the size of `struct ib_uverbs_send_wr`, which the kernel checks
/// although none follows.
const WQE_SIZE: u32 = 64;

#[repr(C)]
struct Header {
    command: u32,
    in_words: u16,
    out_words: u16,
}

/// `struct ib_uverbs_post_send` and `struct ib_uverbs_post_srq_recv`
#[repr(C)]
struct Post {
    response: u64,
    handle: u32,
    wr_count: u32,
    sge_count: u32,
    wqe_size: u32,
}

#[repr(C)]
struct Command {
    header: Header,
    body: Post,
}

/// `struct ib_uverbs_ioctl_hdr` with three attributes.
const UVERBS_OBJECT_DEVICE: u16 = 0;
const UVERBS_METHOD_INVOKE_WRITE: u16 = 0;
const UVERBS_ATTR_CORE_IN: u16 = 0;
const UVERBS_ATTR_CORE_OUT: u16 = 1;
const UVERBS_ATTR_WRITE_CMD: u16 = 2;

const _: () = {
    assert!(size_of::<Command>() == 32);
};

/// How often a doorbell is rung while the kernel has no memory for its copy of
/// the command.
const TRIES: u32 = 64;

/// Wakes the send queue of a QP (and, in the error state, has both queues
/// flushed), or has the operations on a matching list executed. May run the
/// queue before it returns.
///
/// Memory that is short for a moment is no error: the requests are in the ring,
/// where whoever was told that they are not would post them once more.
///
/// # Errors
///
/// The error of `write()` or `ioctl()`: EIO when the device is gone, ENOMEM when memory stays
/// short.
pub fn ring(fd: c_int, bell: Bell, handle: u32) -> Result {
    let mut rung = ring_once(fd, bell, handle);
    for _ in 1..TRIES {
        if rung != Err(ENOMEM) {
            break;
        }
        // To ring twice does no harm, should it have been heard.
        rung = ring_once(fd, bell, handle);
    }
    rung
}

fn ring_once(fd: c_int, bell: Bell, handle: u32) -> Result {
    let mut response = 0u32;
    let command = Command {
        header: Header {
            command: bell as u32,
            in_words: (size_of::<Command>() / 4) as u16,
            out_words: (size_of::<u32>() / 4) as u16,
        },
        body: Post {
            response: core::ptr::addr_of_mut!(response) as u64,
            handle,
            wr_count: 0,
            sge_count: 0,
            wqe_size: WQE_SIZE,
        },
    };
    // SAFETY: integers without padding.
    let bytes = unsafe {
        core::slice::from_raw_parts(
            core::ptr::from_ref(&command).cast::<u8>(),
            size_of::<Command>(),
        )
    };
    match write_all(fd, bytes) {
        Err(EACCES) => through_ioctl(fd, bell, &command.body, &mut response),
        r => r,
    }
}

/// Ends the posting of a list, all of which is in its ring if `posted` says so:
/// rings, if need be. If that fails, `bad` names the first request, for the
/// kernel has looked at none: the device is gone.
///
/// # Errors
///
/// The error of `posted`, else that of `ring`.
///
/// # Safety
///
/// `bad` must be NULL or valid.
pub unsafe fn after<T>(
    posted: Result,
    first: *mut T,
    bad: *mut *mut T,
    ring: impl FnOnce() -> Result,
) -> Result {
    let rung = ring();
    if posted.is_ok() && rung.is_err() && !bad.is_null() {
        // SAFETY: the caller's place for it.
        unsafe { *bad = first };
    }
    posted.and(rung)
}

#[cold]
fn through_ioctl(fd: c_int, bell: Bell, body: &Post, response: &mut u32) -> Result {
    // SAFETY: the attributes of the method; what they point to outlives the
    // call, and the command is larger than 8 bytes.
    unsafe {
        ioctl::call(
            fd,
            UVERBS_OBJECT_DEVICE,
            UVERBS_METHOD_INVOKE_WRITE,
            [
                Attr::input(UVERBS_ATTR_CORE_IN, body),
                Attr::output(UVERBS_ATTR_CORE_OUT, response),
                Attr::constant(UVERBS_ATTR_WRITE_CMD, bell as u64),
            ],
        )
    }
}
