// SPDX-License-Identifier: GPL-2.0

//! `rdma link add` and `rdma link del`.
//!
//! C header: `include/rdma/rdma_netlink.h`. A module that `rdma link add … type NAME` is to load
//! has the alias `rdma-link-NAME`.

use crate::{
    bindings,
    device::Device,
    net::NetDev,
    provider::Provider, //
};
use core::{
    marker::PhantomData,
    ptr::{
        self,
        NonNull, //
    },
    slice, //
};
use kernel::{
    error::{
        from_err_ptr,
        from_result, //
    },
    prelude::*, //
};

/// Leave to register devices of provider `P`: there is a [`Registration`] of `P`'s, which
/// unregisters them when it ends.
///
/// # Invariants
///
/// `ops` is that of a registration of `P`'s, whose end waits for `'a`.
pub struct Leave<'a, P: Provider> {
    ops: *const bindings::rdma_link_ops,
    _registration: PhantomData<&'a ()>,
    _provider: PhantomData<fn() -> P>,
}

impl<P: Provider> Leave<'_, P> {
    /// What a new device gets as `link_ops`.
    pub(crate) fn ops(&self) -> *const bindings::rdma_link_ops {
        self.ops
    }
}

/// What happens on `rdma link` commands.
pub trait LinkOps<P: Provider>: 'static {
    /// `rdma link add NAME type … netdev NETDEV`.
    ///
    /// Process context, the caller has CAP_NET_ADMIN; the RTNL is not held. The name is free of
    /// `%` and shorter than `IFNAMSIZ`, but not otherwise checked.
    fn newlink(leave: &Leave<'_, P>, name: &CStr, netdev: &NetDev) -> Result;

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

/// A second name of a link type, which is that of another module.
pub struct Also {
    /// The name.
    pub name: &'static CStr,
    /// The module whose link type it is.
    pub module: &'static CStr,
}

/// The registration of a link type.
///
/// While it exists, users may add devices. When it is dropped, or leaked and the
/// [`Services`](crate::work::Services) end, they no longer may, every device of the provider is
/// unregistered, and it is certain that none of the provider's operations runs or will run. There
/// can be one at a time.
///
/// # Invariants
///
/// `ptr` is a registered link type with [`Self::newlink`] and [`Self::dellink`], owned by this
/// value.
pub struct Registration<P: Provider, L: LinkOps<P>> {
    ptr: NonNull<bindings::xrdma_link>,
    _ops: PhantomData<fn() -> (P, L)>,
}

// SAFETY: Nothing in it is used but by its drop, which may run in any thread.
unsafe impl<P: Provider, L: LinkOps<P>> Send for Registration<P, L> {}

// SAFETY: A reference gives access to nothing.
unsafe impl<P: Provider, L: LinkOps<P>> Sync for Registration<P, L> {}

impl<P: Provider, L: LinkOps<P>> Registration<P, L> {
    /// Registers link type `name`, under a second name as well if `also` says so. Process context.
    ///
    /// # Errors
    ///
    /// `EBUSY` when this module has a registration already, or when the module of `also` is loaded
    /// or its name taken; `EEXIST`, and a warning in the log,
    /// when another one has a link type of that name; `ENOMEM`; `ENODEV` without
    /// [`Services`](crate::work::Services).
    pub fn new(name: &'static CStr, also: Option<Also>) -> Result<Self> {
        let (also, not_with) = also.map_or((ptr::null(), ptr::null()), |also| {
            (also.name.as_char_ptr(), also.module.as_char_ptr())
        });
        // SAFETY: The functions are those of a link type of `P`'s; its devices have `P`'s driver
        // id, and all devices with that have a `dealloc_driver` operation. The names are static;
        // `not_with` is a string if `also` is one.
        let ptr = from_err_ptr(unsafe {
            bindings::xrdma_link_register(
                name.as_char_ptr(),
                also,
                not_with,
                P::DRIVER_ID,
                Some(Self::newlink),
                Some(Self::dellink),
            )
        })?;
        // INVARIANT: Just registered.
        Ok(Self {
            ptr: NonNull::new(ptr).ok_or(ENOMEM)?,
            _ops: PhantomData,
        })
    }

    /// # Safety
    ///
    /// Called by the core with a name and a net device that exist for the time of the call, while
    /// the registration exists: its end waits for the call (the lock of the core's list).
    unsafe extern "C" fn newlink(
        name: *const kernel::ffi::c_char,
        netdev: *mut kernel::bindings::net_device,
    ) -> kernel::ffi::c_int {
        // SAFETY: The caller holds a reference on the net device (contract).
        let netdev = unsafe { NetDev::from_raw(netdev.cast()) };
        from_result(|| {
            // SAFETY: A string that stays for the time of the call (contract).
            let name = unsafe { string(name) }?;
            // INVARIANT: There is one registration, whose function this is, and which stays for the
            // time of the call (contract).
            let leave = Leave {
                // SAFETY: As above.
                ops: unsafe { bindings::xrdma_link_ops() },
                _registration: PhantomData,
                _provider: PhantomData,
            };
            L::newlink(&leave, name, netdev).map(|()| 0)
        })
    }

    /// # Safety
    ///
    /// Called by the core with a registered device on which it holds a reference, and whose
    /// `link_ops` these are.
    unsafe extern "C" fn dellink(device: *mut bindings::ib_device) -> kernel::ffi::c_int {
        // SAFETY: Only `UnregisteredDevice::register` sets `link_ops`, to those of the device's own
        // provider; the reference of the caller keeps the device from going.
        L::dellink(unsafe { Device::from_raw(device) });
        0
    }
}

impl<P: Provider, L: LinkOps<P>> Drop for Registration<P, L> {
    /// Process context; neither from a [`LinkOps`] function nor from an operation of a device.
    fn drop(&mut self) {
        // SAFETY: By the invariant.
        unsafe { bindings::xrdma_link_unregister(self.ptr.as_ptr()) };
    }
}
