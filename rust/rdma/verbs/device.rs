// SPDX-License-Identifier: GPL-2.0

//! RDMA devices and their registration.
//!
//! C header: `include/rdma/ib_verbs.h`.
//!
//! ib_core owns a registered device and may unregister it by itself (on `rdma link del`, when the
//! net device goes away, or when the module is unloaded). Therefore no Rust value owns a registered
//! device. [`UnregisteredDevice::register`] consumes an [`UnregisteredDevice`], operations get
//! `&Device`, and [`DeviceRef`] keeps a device registered for a short time.

mod attr;

pub use attr::{
    device_cap,
    kernel_cap,
    odp_cap,
    DeviceAttr,
    OnDemandCaps,
    TmCaps, //
};

use crate::{
    bindings,
    growth::make_room_for,
    link::Leave,
    net::{
        Namespace,
        NamespaceId,
        NetDev, //
    },
    ops::Ops,
    port::PortState,
    provider::Provider,
    restrack::Tracked,
    vector::Vectors, //
};
use core::{
    any::TypeId,
    marker::PhantomData,
    mem::{
        ManuallyDrop,
        MaybeUninit, //
    },
    ops::Deref,
    ptr::{
        self,
        NonNull, //
    },
};
use kernel::{
    error::to_result,
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
    types::{
        Opaque,
        ScopeGuard, //
    },
};

/// Ports of a device.
const PORTS: u32 = 1;

/// A device as ib_core sees it: `struct ib_device`.
#[repr(transparent)]
pub struct IbDevice(Opaque<bindings::ib_device>);

// SAFETY: What can be done with a reference is allowed from any thread.
unsafe impl Send for IbDevice {}

// SAFETY: As above.
unsafe impl Sync for IbDevice {}

/// What the net device of a port is like right now.
#[derive(Clone, Copy, Debug, Default)]
pub struct Link {
    /// State of the port that follows from the net device's.
    pub state: PortState,
    /// MTU of the net device, bytes.
    pub mtu: u32,
    /// `enum ib_port_speed`.
    pub speed: u16,
    /// `enum ib_port_width`.
    pub width: u8,
}

impl IbDevice {
    /// The C structure.
    pub(crate) fn as_raw(&self) -> *mut bindings::ib_device {
        self.0.get()
    }

    /// Looks at the net device of `port`; when that is gone, the port is down and the MTU 0. Takes
    /// the RTNL, so it may sleep and must not run under it.
    ///
    /// # Errors
    ///
    /// Those of `ib_get_eth_speed()`.
    pub fn link(&self, port: u32) -> Result<Link> {
        let mut raw = bindings::xrdma_ib_link::default();
        // SAFETY: `self` is a device that exists.
        to_result(unsafe { bindings::xrdma_ib_link_read(self.as_raw(), port, &mut raw) })?;
        Ok(Link {
            state: if raw.active {
                PortState::Active
            } else {
                PortState::Down
            },
            mtu: raw.mtu,
            speed: raw.speed,
            width: raw.width,
        })
    }

    /// Whether the net device of `port` can carry traffic. Process context: ib_core takes a lock
    /// that softirq must not find held.
    pub fn port_state(&self, port: u32) -> PortState {
        // SAFETY: `self` is a device that exists.
        if unsafe { bindings::xrdma_ib_port_active(self.as_raw(), port) } {
            PortState::Active
        } else {
            PortState::Down
        }
    }

    /// Whether the moderation of new completion queues is to be adaptive: the administrator's
    /// choice (`rdma dev set ... adaptive-moderation`). Any context.
    pub fn is_adaptive(&self) -> bool {
        // SAFETY: `self` is a device that exists.
        unsafe { bindings::xrdma_ib_is_adaptive(self.as_raw()) }
    }

    /// Makes the net device of port 1 a member of the IP multicast group `gid` of namespace `ns`,
    /// once more. Takes the RTNL.
    ///
    /// # Errors
    ///
    /// `ENODEV` when the net device has no addresses of that kind any more, or is in another
    /// namespace; those of the IP stack.
    pub fn join_group(&self, ns: NamespaceId, gid: &[u8; 16]) -> Result {
        // SAFETY: `self` is a device that exists, `gid` 16 readable bytes.
        to_result(unsafe {
            bindings::xrdma_ib_group(self.as_raw(), PORTS, ns.0, gid.as_ptr(), true)
        })
    }

    /// Ends one membership of [`Self::join_group`]. Takes the RTNL.
    pub fn leave_group(&self, ns: NamespaceId, gid: &[u8; 16]) {
        // SAFETY: As above. It fails only when the net device is gone, and the group with it.
        unsafe { bindings::xrdma_ib_group(self.as_raw(), PORTS, ns.0, gid.as_ptr(), false) };
    }
}

/// A user context whose file is being cleaned up, and by which task.
struct Closing {
    context: *mut bindings::ib_ucontext,
    task: *const kernel::task::Task,
}

/// The user contexts of a device. Only those that are being cleaned up are listed: each queue pair
/// that goes looks at the list, and there may be thousands of contexts.
struct Contexts {
    /// How many there are.
    open: usize,
    /// Has room for all of them: a clean-up cannot fail.
    closing: KVec<Closing>,
}

// SAFETY: The pointers are only compared.
unsafe impl Send for Closing {}

/// What lies behind `struct ib_device`.
#[pin_data]
#[repr(C)]
struct Extension<P: Provider> {
    /// Tells that the device is of provider `P`. First, so that it has one place for all.
    provider: TypeId,
    #[pin]
    contexts: Mutex<Contexts>,
    /// Queue pairs that `rdma res` shows besides those of ib_core.
    tracked: Arc<Tracked<P>>,
    /// Driver methods of uverbs; ib_core's device points to it.
    uverbs: Opaque<bindings::xrdma_uverbs>,
    /// Outlives the completion queues: ib_core destroys those before it calls `dealloc_driver`.
    vectors: Vectors,
    #[pin]
    data: P::Data,
}

/// A device of provider `P`: `struct ib_device` and the provider's data.
#[repr(C)]
pub struct Device<P: Provider> {
    ib: IbDevice,
    extension: Extension<P>,
}

// SAFETY: As `IbDevice`; the provider's data is `Send + Sync`.
unsafe impl<P: Provider> Send for Device<P> {}

// SAFETY: As above.
unsafe impl<P: Provider> Sync for Device<P> {}

impl<P: Provider> Deref for Device<P> {
    type Target = IbDevice;

    fn deref(&self) -> &IbDevice {
        &self.ib
    }
}

impl<P: Provider> Device<P> {
    const SIZE: usize = {
        assert!(core::mem::offset_of!(Self, ib) == 0);
        assert!(core::mem::align_of::<Self>() <= core::mem::align_of::<u64>());
        core::mem::size_of::<Self>()
    };

    /// Turns ib_core's pointer into a reference.
    ///
    /// # Safety
    ///
    /// `ib` must be a device that was made by [`UnregisteredDevice::new`] of provider `P` and
    /// whose `dealloc_driver` operation has not begun for all of `'a`.
    pub(crate) unsafe fn from_raw<'a>(ib: *mut bindings::ib_device) -> &'a Self {
        // CAST: `ib` is the first field of a `repr(C)` structure.
        // SAFETY: Valid and initialised by contract.
        unsafe { &*ib.cast::<Self>() }
    }

    /// Ends what [`UnregisteredDevice::new`] placed.
    ///
    /// # Safety
    ///
    /// Called from the `dealloc_driver` operation, which ib_core runs once, when no other
    /// operation runs or can begin.
    pub(crate) unsafe fn unplace(ib: *mut bindings::ib_device) {
        let this = ib.cast::<Self>();
        // SAFETY: Placed; a look at an entry uses the device, which is still whole.
        unsafe { &(*this).extension.tracked }.close();
        // SAFETY: Placed, and not used any more (contract).
        unsafe { ptr::drop_in_place(&raw mut (*this).extension) };
    }

    /// The provider's data.
    pub fn data(&self) -> &P::Data {
        &self.extension.data
    }

    pub(crate) fn tracked(&self) -> &Arc<Tracked<P>> {
        &self.extension.tracked
    }

    /// The completion vectors.
    pub fn vectors(&self) -> &Vectors {
        &self.extension.vectors
    }

    /// Finds the device that sits on a net device. Any context.
    pub fn by_netdev(netdev: &NetDev) -> Option<DeviceRef<P>> {
        // SAFETY: `netdev` is a net device that exists; the look-up runs under RCU and takes a
        // reference.
        let ib = unsafe { bindings::ib_device_get_by_netdev(netdev.as_raw().cast(), P::DRIVER_ID) };
        let ib = NonNull::new(ib)?;
        // SAFETY: The reference just taken becomes the value's.
        unsafe { DeviceRef::from_raw(ib) }
    }

    /// Keeps room for one more user context, see [`Device::is_closing`].
    pub(crate) fn context_opens(&self) -> Result {
        let mut contexts = self.extension.contexts.lock();
        let open = contexts.open.saturating_add(1);
        make_room_for(&mut contexts.closing, open, GFP_KERNEL)?;
        contexts.open = open;
        Ok(())
    }

    /// Notes that the current task has begun to clean up the file of `context`.
    pub(crate) fn context_closes(&self, context: *mut bindings::ib_ucontext) {
        let task = ptr::from_ref::<kernel::task::Task>(current!());
        let mut contexts = self.extension.contexts.lock();
        let closing = &mut contexts.closing;
        // ib_core comes again when some objects did not go at the first attempt.
        match closing.iter_mut().find(|c| c.context == context) {
            Some(c) => c.task = task,
            None => {
                // There is room.
                let _ = closing.push_within_capacity(Closing { context, task });
            }
        }
    }

    /// Forgets a user context.
    pub(crate) fn context_closed(&self, context: *mut bindings::ib_ucontext) {
        let mut contexts = self.extension.contexts.lock();
        contexts.open = contexts.open.saturating_sub(1);
        let closing = &mut contexts.closing;
        if let Some(at) = closing.iter().position(|c| c.context == context) {
            let _ = closing.remove(at);
        }
    }

    /// Tells whether the current task is cleaning up a file of the device.
    ///
    /// ib_core cleans a file up in one go: hook, destroy operations, `dealloc_ucontext`, all in
    /// one task, which does nothing else meanwhile.
    pub(crate) fn is_closing(&self) -> bool {
        let current = ptr::from_ref::<kernel::task::Task>(current!());
        self.extension
            .contexts
            .lock()
            .closing
            .iter()
            .any(|c| ptr::eq(c.task, current))
    }
}

/// Keeps a device registered: whoever unregisters it waits until the reference is gone, so hold
/// it briefly.
///
/// # Invariants
///
/// Owns a reference of `ib_device_try_get` on a device of provider `P`.
pub struct DeviceRef<P: Provider>(NonNull<bindings::ib_device>, PhantomData<P>);

impl<P: Provider> DeviceRef<P> {
    /// Takes over a reference on some device; gives it back when that is not one of `P`'s.
    ///
    /// # Safety
    ///
    /// The caller owns a reference of `ib_device_try_get` on `ib`.
    unsafe fn from_raw(ib: NonNull<bindings::ib_device>) -> Option<Self> {
        // SAFETY: Referenced (contract), and the operations of a registered device stay.
        if !unsafe { Ops::<P>::are_of(ib.as_ptr()) } {
            // SAFETY: The reference was given to us.
            unsafe { bindings::ib_device_put(ib.as_ptr()) };
            return None;
        }
        // SAFETY: The table of operations is one of this crate's, so that `UnregisteredDevice`
        // made the device, with a `TypeId` in this place whatever its provider.
        let provider = unsafe { (*ib.as_ptr().cast::<Device<P>>()).extension.provider };
        if provider != TypeId::of::<P>() {
            // SAFETY: The reference was given to us.
            unsafe { bindings::ib_device_put(ib.as_ptr()) };
            return None;
        }
        // INVARIANT: Given by contract and checked.
        Some(Self(ib, PhantomData))
    }

    /// Begins to unregister the device, in a work item of ib_core's. Any process context,
    /// notifiers of net devices included.
    pub fn unregister_queued(self) {
        // SAFETY: Registered, by the invariant, and `dealloc_driver` is in the table of every
        // device of this crate, as the function wants.
        unsafe { bindings::ib_unregister_device_queued(self.0.as_ptr()) };
    }
}

impl<P: Provider> Deref for DeviceRef<P> {
    type Target = Device<P>;

    fn deref(&self) -> &Device<P> {
        // SAFETY: The reference keeps the device registered, hence its data in place.
        unsafe { Device::from_raw(self.0.as_ptr()) }
    }
}

impl<P: Provider> Drop for DeviceRef<P> {
    fn drop(&mut self) {
        // SAFETY: Owned by the invariant.
        unsafe { bindings::ib_device_put(self.0.as_ptr()) };
    }
}

// SAFETY: The reference may be given back anywhere.
unsafe impl<P: Provider> Send for DeviceRef<P> {}

// SAFETY: Gives access to a `Device`, which is `Sync`.
unsafe impl<P: Provider> Sync for DeviceRef<P> {}

/// A device that is set up but unknown to ib_core's users.
///
/// # Invariants
///
/// `raw` is a device that `_ib_alloc_device` made for `namespace`, with its extension placed, not
/// registered; owned by this value.
pub struct UnregisteredDevice<P: Provider> {
    raw: NonNull<bindings::ib_device>,
    /// ib_core moves devices out of a namespace that goes, but only those it knows.
    namespace: Namespace,
    _provider: PhantomData<P>,
}

/// What a device is registered with, besides its operations.
#[derive(Clone, Copy, Debug)]
pub struct DeviceConfig<'a> {
    /// Name, without `%`.
    pub name: &'a CStr,
    /// What `node_desc` in sysfs says; cut to 63 bytes.
    pub description: &'a CStr,
    /// Local key that stands for all kernel memory; used with
    /// [`kernel_cap::LOCAL_DMA_LKEY`].
    pub local_dma_lkey: u32,
}

impl<P: Provider> UnregisteredDevice<P> {
    /// Allocates a device with these completion vectors for the namespace of `netdev` and places
    /// the provider's data. Process context.
    ///
    /// # Errors
    ///
    /// `ENOMEM`; `ENODEV` when the namespace is going away; what `data` fails with.
    pub fn new(
        netdev: &NetDev,
        vectors: Vectors,
        data: impl PinInit<P::Data, Error>,
    ) -> Result<Self> {
        let namespace = netdev.namespace().ok_or(ENODEV)?;
        // SAFETY: The namespace is held. The size is that of a structure that begins with an
        // `ib_device`; the memory comes back zeroed, that part initialised.
        let ib = unsafe { bindings::xrdma_ib_alloc_device(Device::<P>::SIZE, namespace.as_raw()) };
        let ib = NonNull::new(ib).ok_or(ENOMEM)?;
        let undo = ScopeGuard::new(|| {
            // SAFETY: Made above, nothing placed, and no operations set that it could call.
            unsafe { bindings::ib_dealloc_device(ib.as_ptr()) };
        });
        let this = ib.as_ptr().cast::<Device<P>>();
        let init = try_pin_init!(Extension::<P> {
            provider: TypeId::of::<P>(),
            contexts <- new_mutex!(Contexts {
                open: 0,
                closing: KVec::new(),
            }),
            tracked: Tracked::new()?,
            uverbs: Opaque::uninit(),
            vectors,
            data <- data,
        }? Error);
        // SAFETY: The memory is ours alone and big enough; it never moves. It ends with the device,
        // long after this reference, which is `'static` because `write_pin_init` wants it so; what
        // that returns is not kept. On error nothing stays initialised.
        let slot: &'static mut MaybeUninit<Extension<P>> =
            unsafe { &mut *(&raw mut (*this).extension).cast() };
        slot.write_pin_init(init)?;
        undo.dismiss();
        // SAFETY: Not registered, so nobody reads the table yet. It is copied.
        unsafe { bindings::ib_set_device_ops(ib.as_ptr(), &Ops::<P>::TABLE) };
        if P::HAS_CREATE_RCV_QP {
            // SAFETY: Ours alone, and at its place for as long as the device exists; the methods
            // and the table of functions are static.
            unsafe {
                let uverbs = Opaque::cast_into(&raw const (*this).extension.uverbs);
                let methods = (&raw const bindings::xrdma_driver_methods).cast();
                bindings::xrdma_uverbs_init(uverbs, methods, &Ops::<P>::RCV_QP);
                (*ib.as_ptr()).driver_def = (&raw const (*uverbs).defs).cast();
            }
        }
        // INVARIANT: Just made.
        Ok(Self {
            raw: ib,
            namespace,
            _provider: PhantomData,
        })
    }

    /// The device, to look at before it is registered.
    pub fn device(&self) -> &Device<P> {
        // SAFETY: By the invariant; `dealloc_driver` runs in our `Drop` at the earliest.
        unsafe { Device::from_raw(self.raw.as_ptr()) }
    }

    /// Registers the device on `netdev`. On failure the device is gone.
    ///
    /// Process context, without the RTNL. From the moment that ib_core shows the device, others
    /// may unregister it.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a name with `%`, which ib_core would take for a format; what ib_core says,
    /// `ENFILE` when the name is taken.
    pub fn register(
        self,
        leave: &Leave<'_, P>,
        netdev: &NetDev,
        config: &DeviceConfig<'_>,
    ) -> Result {
        // Not `to_bytes()`, which can panic as far as the compiler can tell.
        if config.name.to_bytes_with_nul().contains(&b'%') {
            return Err(EINVAL);
        }
        let ib = self.raw.as_ptr();
        let vectors = self.device().vectors().count();
        // SAFETY: Not registered: ours alone. `netdev` exists; the helper writes the fields that
        // ib_core wants set before registration.
        unsafe {
            (*ib).phys_port_cnt = PORTS;
            (*ib).node_type = bindings::RDMA_NODE_IB_CA as u8;
            (*ib).num_comp_vectors = i32::try_from(vectors).unwrap_or(1).max(1);
            (*ib).local_dma_lkey = config.local_dma_lkey;
            (*ib).link_ops = leave.ops();
            bindings::xrdma_ib_setup_device(
                ib,
                netdev.as_raw().cast(),
                config.description.as_char_ptr(),
            );
        }
        // SAFETY: Both exist. ib_core takes a reference on the net device and drops it when the
        // device goes.
        to_result(unsafe { bindings::ib_device_set_netdev(ib, netdev.as_raw().cast(), PORTS) })?;
        // SAFETY: Set up completely. The null `dma_device` makes it a virtual one: SGEs of kernel
        // users hold kernel addresses.
        to_result(unsafe {
            bindings::ib_register_device(ib, config.name.as_char_ptr(), ptr::null_mut())
        })?;
        // It is ib_core's now, which ends it by `dealloc_driver`. On the paths above `Drop` does.
        let this = ManuallyDrop::new(self);
        // SAFETY: Not used afterwards, nor dropped.
        drop(unsafe { ptr::read(&this.namespace) });
        Ok(())
    }
}

impl<P: Provider> Drop for UnregisteredDevice<P> {
    fn drop(&mut self) {
        // SAFETY: Ours and not registered, by the invariant. Calls `dealloc_driver`, which drops
        // the extension.
        unsafe { bindings::ib_dealloc_device(self.raw.as_ptr()) };
    }
}
