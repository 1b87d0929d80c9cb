// SPDX-License-Identifier: GPL-2.0

//! Network devices, and notifications about their changes.
//!
//! C header: `include/linux/netdevice.h`.

use core::ptr::NonNull;
use kernel::{
    error::from_err_ptr,
    prelude::*,
    sync::aref::AlwaysRefCounted,
    types::Opaque, //
};

use super::{
    Namespace,
    NamespaceId, //
};
use crate::bindings;

/// A network device, `struct net_device`.
///
/// An [`ARef`](kernel::sync::aref::ARef) to it delays the end of the device's unregistration: who
/// keeps one drops it when [`NetdevEvent::Unregister`] comes.
///
/// Values may change at any time unless the caller holds RTNL.
#[repr(transparent)]
pub struct NetDev(Opaque<kernel::bindings::net_device>);

// SAFETY: A device is counted in C and not tied to a thread.
unsafe impl Send for NetDev {}

// SAFETY: A shared reference reads fields that C reads without lock as well.
unsafe impl Sync for NetDev {}

// SAFETY: dev_hold() keeps the device until dev_put(), and all devices are so counted.
unsafe impl AlwaysRefCounted for NetDev {
    fn inc_ref(&self) {
        // SAFETY: `self` is a device that somebody holds.
        unsafe { bindings::xrdma_netdev_hold(self.as_raw()) };
    }

    unsafe fn dec_ref(obj: NonNull<Self>) {
        // SAFETY: By the trait's requirement the caller gives a count up.
        unsafe { bindings::xrdma_netdev_put(obj.as_ptr().cast()) };
    }
}

impl NetDev {
    /// Looks at a device that C holds.
    ///
    /// # Safety
    ///
    /// `dev` is a valid device during `'a`.
    pub unsafe fn from_raw<'a>(dev: *mut kernel::bindings::net_device) -> &'a Self {
        // SAFETY: By the safety requirement, and the type is transparent.
        unsafe { &*dev.cast() }
    }

    /// The C structure.
    pub fn as_raw(&self) -> *mut kernel::bindings::net_device {
        self.0.get()
    }

    /// Bytes of an IP packet.
    pub fn mtu(&self) -> u32 {
        // SAFETY: `self` is a valid device.
        unsafe { bindings::xrdma_netdev_mtu(self.as_raw()) }
    }

    /// Number of the interface in its namespace.
    pub fn ifindex(&self) -> u32 {
        // SAFETY: `self` is a valid device.
        unsafe { bindings::xrdma_netdev_ifindex(self.as_raw()) }
    }

    /// Whether it is administratively up.
    pub fn is_up(&self) -> bool {
        // SAFETY: `self` is a valid device.
        unsafe { bindings::xrdma_netdev_is_up(self.as_raw()) }
    }

    /// Whether it has a link.
    pub fn has_carrier(&self) -> bool {
        // SAFETY: `self` is a valid device.
        unsafe { bindings::xrdma_netdev_has_carrier(self.as_raw()) }
    }

    /// Whether packets can pass: it is up and has a link.
    pub fn has_link(&self) -> bool {
        self.is_up() && self.has_carrier()
    }

    /// The MAC address; zeroes when it has none.
    pub fn mac(&self) -> [u8; 6] {
        let mut mac = [0; 6];
        // SAFETY: `self` is a valid device; six bytes are written.
        unsafe { bindings::xrdma_netdev_mac(self.as_raw(), mac.as_mut_ptr()) };
        mac
    }

    /// The namespace it is in at this moment; `None` when that is going away.
    pub fn namespace(&self) -> Option<Namespace> {
        // SAFETY: `self` is a valid device; the call returns a reference that is ours, or null.
        unsafe { Namespace::from_owned(bindings::xrdma_netdev_net_get(self.as_raw())) }
    }

    /// Whether it is registered and in namespace `ns`: who is found by the notifier by now hears of
    /// its end. Process context, sleeps; takes RTNL.
    pub fn is_in(&self, ns: NamespaceId) -> bool {
        // SAFETY: `self` is a valid device; process context, by contract.
        unsafe { bindings::xrdma_netdev_is_in(self.as_raw(), ns.0) }
    }
}

impl PartialEq for NetDev {
    fn eq(&self, other: &Self) -> bool {
        core::ptr::eq(self, other)
    }
}

/// What happened to a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NetdevEvent {
    /// It was set up.
    Up,
    /// It was set down.
    Down,
    /// Its flags or its carrier changed.
    Change,
    /// It was registered, or came from another namespace.
    Register,
    /// It goes away, or to another namespace: references must be dropped.
    Unregister,
    /// Its MTU changed.
    ChangeMtu,
    /// Its MAC address changed.
    ChangeAddr,
    /// Its name changed.
    ChangeName,
}

/// Hears of network devices.
pub trait NetdevEvents: 'static {
    /// Something happened to `dev`, in any namespace. Process context, under RTNL, which the callee
    /// therefore must not wait for in any way.
    fn netdev_event(event: NetdevEvent, dev: &NetDev);
}

/// Calls a [`NetdevEvents`] as long as it lives, and no longer than the
/// [`Services`](crate::work::Services).
///
/// Registering calls it with `Register` and `Up` for the devices that are there; dropping calls it
/// with `Down` and `Unregister` for those still there. Both in process context, without RTNL held.
///
/// # Invariants
///
/// `ptr` is a registered notifier, owned by this value.
pub struct NetdevNotifier {
    ptr: NonNull<bindings::xrdma_notifier>,
}

// SAFETY: The registration is not tied to a thread.
unsafe impl Send for NetdevNotifier {}

// SAFETY: A shared reference does nothing.
unsafe impl Sync for NetdevNotifier {}

impl NetdevNotifier {
    /// Begins to call `H`.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `ENODEV` without [`Services`](crate::work::Services).
    pub fn register<H: NetdevEvents>() -> Result<Self> {
        // SAFETY: `event` is what the notifier wants to call; process context.
        let ptr =
            from_err_ptr(unsafe { bindings::xrdma_notifier_register(Some(netdev_event::<H>)) })?;
        // INVARIANT: Just registered.
        Ok(Self {
            ptr: NonNull::new(ptr).ok_or(ENOMEM)?,
        })
    }
}

impl Drop for NetdevNotifier {
    fn drop(&mut self) {
        // SAFETY: By the type invariant. It waits for calls under way.
        unsafe { bindings::xrdma_notifier_unregister(self.ptr.as_ptr()) };
    }
}

/// # Safety
///
/// `dev` is a valid device during the call.
unsafe extern "C" fn netdev_event<H: NetdevEvents>(
    event: bindings::xrdma_netdev_event,
    dev: *mut kernel::bindings::net_device,
) {
    let event = match event {
        bindings::xrdma_netdev_event_XRDMA_NETDEV_UP => NetdevEvent::Up,
        bindings::xrdma_netdev_event_XRDMA_NETDEV_DOWN => NetdevEvent::Down,
        bindings::xrdma_netdev_event_XRDMA_NETDEV_CHANGE => NetdevEvent::Change,
        bindings::xrdma_netdev_event_XRDMA_NETDEV_REGISTER => NetdevEvent::Register,
        bindings::xrdma_netdev_event_XRDMA_NETDEV_UNREGISTER => NetdevEvent::Unregister,
        bindings::xrdma_netdev_event_XRDMA_NETDEV_CHANGEMTU => NetdevEvent::ChangeMtu,
        bindings::xrdma_netdev_event_XRDMA_NETDEV_CHANGEADDR => NetdevEvent::ChangeAddr,
        bindings::xrdma_netdev_event_XRDMA_NETDEV_CHANGENAME => NetdevEvent::ChangeName,
        _ => return,
    };
    // SAFETY: By the safety requirement.
    H::netdev_event(event, unsafe { NetDev::from_raw(dev) });
}
