// SPDX-License-Identifier: GPL-2.0
//! The constructor and the table that libibverbs gets.

use crate::abi;
use crate::verbs::{
    cmd,
    VerbsDevice,
    VerbsDeviceOps,
    VerbsMatchEnt,
    VERBS_MATCH_DRIVER_ID,
    VERBS_MATCH_SENTINEL, //
};
use crate::{
    context,
    device,
    layout, //
};

/// For tables of pointers that nobody changes.
#[repr(transparent)]
struct Table<T>(T);

// SAFETY: the tables below are constant and point to constants only.
unsafe impl<T> Sync for Table<T> {}

/// The device is known by the kernel's driver id alone.
static MATCH: Table<[VerbsMatchEnt; 2]> = Table([
    VerbsMatchEnt {
        driver_data: 0,
        driver_id: abi::DRIVER_ID as u64,
        vendor: 0,
        device: 0,
        kind: VERBS_MATCH_DRIVER_ID,
    },
    VerbsMatchEnt {
        driver_data: 0,
        driver_id: 0,
        vendor: 0,
        device: 0,
        kind: VERBS_MATCH_SENTINEL,
    },
]);

static OPS: Table<VerbsDeviceOps> = Table(VerbsDeviceOps {
    name: c"xroce".as_ptr(),
    match_min_abi_version: abi::UVERBS_ABI_VERSION,
    match_max_abi_version: abi::UVERBS_ABI_VERSION,
    match_table: MATCH.0.as_ptr(),
    static_providers: 0,
    match_device: None,
    alloc_context: Some(context::alloc_context),
    import_context: Some(context::import_context),
    alloc_device: Some(device::alloc_device),
    uninit_device: Some(device::uninit_device),
});

/// Tells whether a device is one that libibverbs made for this provider.
///
/// # Safety
///
/// `device` must be a live device of a known layout.
pub unsafe fn is_ours(device: *const VerbsDevice) -> bool {
    // SAFETY: written by libibverbs before it showed the device to anybody.
    unsafe { (*device).ops() == core::ptr::from_ref(&OPS.0) }
}

/// Runs when the library is loaded, under the loader's lock: registers and
/// nothing else.
extern "C" fn register() {
    if layout::detect().is_some() {
        // SAFETY: `OPS` lives as long as the library, which libibverbs never
        // unloads.
        unsafe { cmd::verbs_register_driver(&OPS.0) };
    }
}

// A test program is not loaded by libibverbs.
#[cfg(not(test))]
#[used]
#[link_section = ".init_array"]
static CONSTRUCTOR: extern "C" fn() = register;

#[cfg(test)]
const _: extern "C" fn() = register;
