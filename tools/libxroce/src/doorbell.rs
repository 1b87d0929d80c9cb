// SPDX-License-Identifier: GPL-2.0
//! The doorbell: a POST_SEND command without work requests; of a tag-matching
//! SRQ, POST_SRQ_RECV.
//!
//! It is written to the device file. The kernel refuses a `write()` by a
//! process that changed its credentials since it opened the file; then the
//! same command goes through the ioctl that wraps it.

use core::ffi::{c_int, c_ulong};
use core::mem::size_of;

use crate::abi;
use crate::sys::{ioctl_ptr, write_all, Result, EACCES};

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
#[repr(C)]
struct Ioctl {
    length: u16,
    object_id: u16,
    method_id: u16,
    num_attrs: u16,
    reserved1: u64,
    driver_id: u32,
    reserved2: u32,
    attrs: [Attr; 3],
}

#[repr(C)]
struct Attr {
    id: u16,
    len: u16,
    flags: u16,
    reserved: u16,
    data: u64,
}

const UVERBS_OBJECT_DEVICE: u16 = 0;
const UVERBS_METHOD_INVOKE_WRITE: u16 = 0;
const UVERBS_ATTR_CORE_IN: u16 = 0;
const UVERBS_ATTR_CORE_OUT: u16 = 1;
const UVERBS_ATTR_WRITE_CMD: u16 = 2;
const UVERBS_ATTR_F_MANDATORY: u16 = 1;
/// `_IOWR(0x1b, 1, struct ib_uverbs_ioctl_hdr)`
const RDMA_VERBS_IOCTL: c_ulong = 0xc018_1b01;

const _: () = {
    assert!(size_of::<Command>() == 32);
    assert!(size_of::<Attr>() == 16);
    assert!(size_of::<Ioctl>() == 24 + 3 * 16);
};

/// Wakes the send queue of a QP (and, in the error state, has both queues
/// flushed), or has the operations on a matching list executed. May run the
/// queue before it returns.
pub fn ring(fd: c_int, bell: Bell, handle: u32) -> Result {
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

#[cold]
fn through_ioctl(fd: c_int, bell: Bell, body: &Post, response: &mut u32) -> Result {
    let attr = |id, len, data| Attr {
        id,
        len,
        flags: UVERBS_ATTR_F_MANDATORY,
        reserved: 0,
        data,
    };
    let mut ioctl = Ioctl {
        length: size_of::<Ioctl>() as u16,
        object_id: UVERBS_OBJECT_DEVICE,
        method_id: UVERBS_METHOD_INVOKE_WRITE,
        num_attrs: 3,
        reserved1: 0,
        driver_id: abi::DRIVER_ID,
        reserved2: 0,
        attrs: [
            attr(
                UVERBS_ATTR_CORE_IN,
                size_of::<Post>() as u16,
                core::ptr::from_ref(body) as u64,
            ),
            attr(
                UVERBS_ATTR_CORE_OUT,
                size_of::<u32>() as u16,
                core::ptr::from_mut(response) as u64,
            ),
            attr(UVERBS_ATTR_WRITE_CMD, size_of::<u64>() as u16, bell as u64),
        ],
    };
    // SAFETY: a well-formed command whose buffers outlive the call.
    unsafe { ioctl_ptr(fd, RDMA_VERBS_IOCTL, core::ptr::from_mut(&mut ioctl).cast()) }
}
