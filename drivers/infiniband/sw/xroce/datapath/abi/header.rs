// SPDX-License-Identifier: GPL-2.0

//! The user ABI of xroce, as bindgen reads it from `include/uapi/rdma/xroce-abi.h`.
//!
//! Names are those of the header. The structures of commands and the completion have no padding,
//! and any bytes are a valid value of them (checked by the derives of crate `zerocopy`), so they
//! can be copied to and from user space as bytes. Of the slots, only offsets are used; `parameters`
//! (flags of bindgen) says why.

// First: it speaks of the names in the list that follows.
#![allow(unknown_lints)]
#![allow(
    clippy::all,
    clippy::undocumented_unsafe_blocks,
    dead_code,
    missing_docs,
    non_camel_case_types,
    unreachable_pub
)]

use kernel::ffi;
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout, //
};

/// The parts of a send slot that differ from opcode to opcode. Their types have no names in the
/// header, and bindgen counts them: rdma, ud, bind, flush.
pub use self::{
    xroce_send_slot__bindgen_ty_1__bindgen_ty_1 as xroce_send_rdma,
    xroce_send_slot__bindgen_ty_1__bindgen_ty_2 as xroce_send_ud,
    xroce_send_slot__bindgen_ty_1__bindgen_ty_3 as xroce_send_bind,
    xroce_send_slot__bindgen_ty_1__bindgen_ty_4 as xroce_send_flush, //
};

include!(concat!(
    env!("XROCE_OBJTREE"),
    "/drivers/infiniband/sw/xroce/datapath/abi/generated.rs"
));
