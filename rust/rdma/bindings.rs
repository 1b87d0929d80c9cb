// SPDX-License-Identifier: GPL-2.0

//! Bindings of the RDMA headers, made by bindgen at build time.
//!
//! Private to the crate: everything outside goes through the safe types.

// First: it speaks of the names in the list that follows.
#![allow(unknown_lints)]
#![allow(
    clippy::all,
    clippy::cast_lossless,
    clippy::ptr_as_ptr,
    clippy::ref_as_ptr,
    clippy::undocumented_unsafe_blocks,
    dead_code,
    improper_ctypes,
    missing_docs,
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    unreachable_pub,
    unsafe_op_in_unsafe_fn,
    unnecessary_transmutes,
    unused_imports
)]

use kernel::{
    bindings::*,
    ffi, //
};
use pin_init::{
    MaybeZeroable,
    Zeroable, //
};
use zerocopy_derive::{
    FromBytes,
    Immutable,
    IntoBytes,
    KnownLayout, //
};

// SAFETY: A bit field unit is an array of integers, for which zero bytes are a value, whenever its
// storage is. The same statement is made by the `bindings` crate for its own copy of the type.
unsafe impl<Storage: Zeroable> Zeroable for __BindgenBitfieldUnit<Storage> {}

include!(concat!(
    env!("XROCE_OBJTREE"),
    "/rust/rdma/bindings_generated.rs"
));
