// SPDX-License-Identifier: GPL-2.0

//! `rdma link add` and `rdma link del`.
//!
//! C header: `include/rdma/rdma_netlink.h`. A module that is to be loaded by
//! `rdma link add … type NAME` has the alias `rdma-link-NAME`.

use crate::{
    bindings,
    device::Device,
    net::NetDev,
    provider::Provider, //
};
use core::{
    marker::PhantomData,
    ptr,
    slice, //
};
use kernel::{
    error::from_result,
    prelude::*,
    sync::atomic::{
        ordering,
        Atomic, //
    },
    types::Opaque, //
};

/// The operations of the one registration of this module; devices point to them.
static CURRENT: Atomic<*mut bindings::rdma_link_ops> = Atomic::new(ptr::null_mut());

/// What a new device gets as `link_ops`.
pub(crate) fn current_ops() -> *const bindings::rdma_link_ops {
    CURRENT.load(ordering::Acquire)
}

/// What happens on `rdma link` commands.
pub trait LinkOps<P: Provider>: 'static {
    /// `rdma link add NAME type … netdev NETDEV`.
    ///
    /// Process context, the caller has CAP_NET_ADMIN; the RTNL is not held. The name is free of
    /// `%` and shorter than `IFNAMSIZ`, but not otherwise checked.
    fn newlink(name: &CStr, netdev: &NetDev) -> Result;

    /// `rdma link del NAME`: the device is unregistered right after.
    fn dellink(_device: &Device<P>) {}
}

/// The string at `at`. `EINVAL` when it is longer than the name of a device can be.
///
/// `CStr::from_char_ptr` would add one to a length without a bound, which is a way to panic.
///
/// # Safety
///
/// `at` is a string that stays as it is during `'a`.
unsafe fn string<'a>(at: *const kernel::ffi::c_char) -> Result<&'a CStr> {
    let mut len = 0;
    // SAFETY: No byte before this one was the end of the string (contract).
    while unsafe { at.add(len).read() } != 0 {
        if len >= bindings::IB_DEVICE_NAME_MAX as usize {
            return Err(EINVAL);
        }
        len = len.wrapping_add(1);
    }
    // SAFETY: The bytes up to the end of the string, with it (contract).
    let bytes = unsafe { slice::from_raw_parts(at.cast(), len.wrapping_add(1)) };
    CStr::from_bytes_with_nul(bytes).map_err(|_| EINVAL)
}

/// The registration of a link type.
///
/// While it exists, users may add devices. When it is dropped they no longer may, every device of
/// the provider is unregistered, and it is certain that none of the provider's operations runs or
/// will run. There can be one at a time.
///
/// # Invariants
///
/// `ops` is registered, and in [`CURRENT`].
#[pin_data(PinnedDrop)]
pub struct Registration<P: Provider, L: LinkOps<P>> {
    #[pin]
    ops: Opaque<bindings::rdma_link_ops>,
    _ops: PhantomData<fn() -> (P, L)>,
}

// SAFETY: Nothing in it is used but by its drop, which may run in any thread.
unsafe impl<P: Provider, L: LinkOps<P>> Send for Registration<P, L> {}

// SAFETY: A reference gives access to nothing.
unsafe impl<P: Provider, L: LinkOps<P>> Sync for Registration<P, L> {}

impl<P: Provider, L: LinkOps<P>> Registration<P, L> {
    /// Registers link type `name`, which no other module may have registered. `EBUSY` when this
    /// module has a registration already.
    pub fn new(name: &'static CStr) -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            // INVARIANT: Registered here.
            ops <- Opaque::try_ffi_init(move |ops: *mut bindings::rdma_link_ops| {
                if CURRENT
                    .cmpxchg(ptr::null_mut(), ops, ordering::Full)
                    .is_err()
                {
                    return Err(EBUSY);
                }
                // SAFETY: `ops` is ours, pinned, and stays until our drop has unregistered it.
                unsafe {
                    ops.write(bindings::rdma_link_ops {
                        type_: name.as_char_ptr(),
                        newlink: Some(Self::newlink),
                        dellink: Some(Self::dellink),
                        ..Default::default()
                    });
                    bindings::rdma_link_register(ops);
                }
                Ok(())
            }),
            _ops: PhantomData,
        }? Error)
    }

    /// # Safety
    ///
    /// Called by the core with a name and a net device that exist for the time of the call, while
    /// the registration exists (it holds its list's lock).
    unsafe extern "C" fn newlink(
        name: *const kernel::ffi::c_char,
        netdev: *mut kernel::bindings::net_device,
    ) -> kernel::ffi::c_int {
        // SAFETY: The caller holds a reference on the net device (contract).
        let netdev = unsafe { NetDev::from_raw(netdev.cast()) };
        from_result(|| {
            // SAFETY: A string that stays for the time of the call (contract).
            let name = unsafe { string(name) }?;
            L::newlink(name, netdev).map(|()| 0)
        })
    }

    /// # Safety
    ///
    /// Called by the core with a registered device on which it holds a reference, and whose
    /// `link_ops` these are.
    unsafe extern "C" fn dellink(device: *mut bindings::ib_device) -> kernel::ffi::c_int {
        // SAFETY: Only `UnregisteredDevice::register` sets `link_ops`; the reference of the caller
        // keeps the device from going.
        L::dellink(unsafe { Device::from_raw(device) });
        0
    }
}

#[pinned_drop]
impl<P: Provider, L: LinkOps<P>> PinnedDrop for Registration<P, L> {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: Registered by the invariant. Waits for calls that are running; afterwards no
        // device can be added.
        unsafe { bindings::rdma_link_unregister(self.ops.get()) };
        CURRENT.store(ptr::null_mut(), ordering::Release);
        // SAFETY: Every device with this driver id has a `dealloc_driver` operation. Returns when
        // all of them have gone, and with them the last pointer to `ops`.
        unsafe { bindings::ib_unregister_driver(P::DRIVER_ID) };
    }
}
