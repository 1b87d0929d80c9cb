// SPDX-License-Identifier: GPL-2.0

//! The UDP sockets on which RoCEv2 packets arrive.
//!
//! C header: `include/net/udp_tunnel.h`.

use core::{
    ptr::NonNull,
    sync::atomic::{
        AtomicBool,
        Ordering, //
    },
};
use kernel::{
    error::Error,
    prelude::*, //
};

use super::{
    Arrival,
    GidAddr,
    Namespace,
    NamespaceId,
    Peek,
    RxSkb, //
};
use crate::{
    bindings,
    rcu::{
        Ref,
        GFP_ACCOUNT, //
    }, //
};

/// Takes packets in.
pub trait Receiver: 'static {
    /// A packet came to UDP port 4791 in namespace `ns`. Softirq, in an RCU read section; several
    /// CPUs at a time.
    fn receive(ns: NamespaceId, skb: RxSkb);

    /// A super-packet came, or a packet while others wait in an [`Arrivals`](super::Arrivals), that
    /// nobody has looked at. Whoever keeps it has it received later
    /// ([`Due::receive`](super::Due::receive)). Context as above.
    ///
    /// # Errors
    ///
    /// The packet, which is to be received here and now.
    fn steer(ns: NamespaceId, packet: Arrival, peek: &Peek<'_>) -> Result<(), Arrival>;

    /// A packet for `dst` came that RoCEv2 does not allow, with IP options or extension headers or
    /// too long, and was dropped. Context as above.
    fn refused(ns: NamespaceId, dst: &GidAddr);
}

/// UDP port 4791 of a network namespace, for IPv4 and, where there is IPv6, for that.
///
/// Clones, and tunnels that are opened in the same namespace for the same receiver, share the
/// sockets. They do not hold the namespace: when it goes, the tunnel is dead, receives nothing and
/// sends nothing.
#[derive(Clone)]
pub struct Tunnel(Ref<Inner>);

/// # Invariants
///
/// `ptr` is a tunnel of which this value owns a reference and, unless `closed`, a user.
struct Inner {
    ptr: NonNull<bindings::xrdma_tunnel>,
    closed: AtomicBool,
}

// SAFETY: The C structure is not tied to a thread.
unsafe impl Send for Inner {}

// SAFETY: C locks what shared references change.
unsafe impl Sync for Inner {}

impl Tunnel {
    /// Opens the sockets, or joins those who have them open. Process context, sleeps.
    ///
    /// # Errors
    ///
    /// `EADDRINUSE` when another driver (rxe) or a program has the port; `EBUSY` when it is open
    /// for another receiver; `ENOMEM`; `ENODEV` without [`Services`](crate::work::Services).
    pub fn open<H: Receiver>(ns: &Namespace) -> Result<Self> {
        let mut error = 0;
        // SAFETY: The namespace is held during the call; `receive` and `steer` are what the sockets
        // call.
        let ptr = unsafe {
            bindings::xrdma_tunnel_open(
                ns.as_raw(),
                Some(receive::<H>),
                Some(steer::<H>),
                &mut error,
            )
        };
        let ptr = NonNull::new(ptr).ok_or_else(|| Error::from_errno(error))?;
        // INVARIANT: The call gave us a user and a reference.
        let inner = Inner {
            ptr,
            closed: AtomicBool::new(false),
        };
        Ok(Self(Ref::new(inner, GFP_ACCOUNT)?))
    }

    /// Gives it up, for all clones of this opening. When nobody else has it open in the namespace,
    /// the sockets are closed, the port is free, and no packet is being received when this returns.
    /// Process context, sleeps. Otherwise this happens some time after the last clone is dropped.
    pub fn close(&self) {
        self.0.close();
    }

    /// The namespace.
    pub fn id(&self) -> NamespaceId {
        // SAFETY: By the type invariant of `Inner`.
        NamespaceId(unsafe { bindings::xrdma_tunnel_cookie(self.as_raw()) })
    }

    pub(super) fn as_raw(&self) -> *mut bindings::xrdma_tunnel {
        self.0.ptr.as_ptr()
    }
}

impl Inner {
    fn close(&self) {
        if !self.closed.swap(true, Ordering::AcqRel) {
            // SAFETY: By the type invariant we had a user, and have given it up only now.
            unsafe { bindings::xrdma_tunnel_close(self.ptr.as_ptr()) };
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.close();
        // SAFETY: By the type invariant. `close` has waited for everybody who saw the sockets, if
        // they were closed with ours.
        unsafe { bindings::xrdma_tunnel_put(self.ptr.as_ptr()) };
    }
}

/// # Safety
///
/// `skb` is a packet that was parsed and detached, which the callee gets; or it is null, and
/// `refused` is the destination address of a packet that was refused.
unsafe extern "C" fn receive<H: Receiver>(
    cookie: u64,
    skb: *mut kernel::bindings::sk_buff,
    refused: *const [u8; 16],
) {
    // SAFETY: By the safety requirement.
    match unsafe { RxSkb::from_raw(skb) } {
        Some(skb) => H::receive(NamespaceId(cookie), skb),
        None => {
            // SAFETY: By the safety requirement.
            let dst = GidAddr(unsafe { refused.read() });
            H::refused(NamespaceId(cookie), &dst);
        }
    }
}

/// # Safety
///
/// `skb` is a packet as [`Arrival`] has it, which the callee gets if it returns true, and `peek` is
/// valid during the call.
unsafe extern "C" fn steer<H: Receiver>(
    cookie: u64,
    skb: *mut kernel::bindings::sk_buff,
    peek: *const bindings::xrdma_peek,
) -> bool {
    let Some(skb) = NonNull::new(skb) else {
        return false;
    };
    // SAFETY: By the safety requirement.
    let (packet, peek) = unsafe { (Arrival::from_raw(skb), Peek(&*peek)) };
    match H::steer(NamespaceId(cookie), packet, &peek) {
        Ok(()) => true,
        // The caller's again, unless it is another one.
        Err(packet) if packet.is_of(skb) => {
            let _ = packet.into_raw();
            false
        }
        Err(_) => true,
    }
}
