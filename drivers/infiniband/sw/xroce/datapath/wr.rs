// SPDX-License-Identifier: GPL-2.0

//! Work requests and completions in the formats of their users.
//!
//! Only this module knows the format of a ring slot. It turns bytes that were copied out of a ring
//! into the module's own work request, and refuses requests that are invalid for the queue pair.
//! The result is safe to use; keys are checked when memory is accessed.

mod recv_slot;
mod send_slot;
mod slot;
mod wc;

pub use self::recv_slot::recv_stride;
pub(crate) use self::recv_slot::{
    copy_recv,
    MAX_RECV_SLOT, //
};
pub(crate) use self::send_slot::copy_send;
pub use self::send_slot::{
    check_length,
    inline_room,
    is_allowed,
    send_stride, //
};
pub use self::slot::{
    new_ring,
    new_ring_pair, //
};
pub(crate) use self::slot::{
    u16_at,
    u32_at,
    u64_at,
    u8_at, //
};
pub(crate) use self::wc::*;
