// SPDX-License-Identifier: GPL-2.0

//! Network namespaces.
//!
//! C header: `include/net/net_namespace.h`.

use core::ptr::NonNull;

use crate::bindings;

/// Names a network namespace. A number is never used again, so it may be kept: it does not hold the
/// namespace.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(transparent)]
pub struct NamespaceId(
    /// `struct net.net_cookie`.
    pub u64,
);

/// A network namespace, held by a reference.
///
/// As long as it is held the namespace lives, even when no process is left in it: do not store it,
/// store its [`id`](Self::id).
///
/// # Invariants
///
/// `ptr` is a `struct net` of which this value owns a reference.
pub struct Namespace {
    ptr: NonNull<kernel::bindings::net>,
}

// SAFETY: A namespace is not tied to a thread, and its reference count is atomic.
unsafe impl Send for Namespace {}

// SAFETY: Everything that a shared reference gives is constant or locked in C.
unsafe impl Sync for Namespace {}

impl Namespace {
    /// Takes a reference, unless the namespace is going away.
    ///
    /// # Safety
    ///
    /// `net` is a `struct net` whose memory is valid during the call.
    pub unsafe fn from_raw(net: *mut kernel::bindings::net) -> Option<Self> {
        // SAFETY: By the safety requirement.
        let net = unsafe { bindings::xrdma_net_get(net) };
        // SAFETY: The reference was taken above.
        unsafe { Self::from_owned(net) }
    }

    /// Takes over a reference; `None` for null.
    ///
    /// # Safety
    ///
    /// If `net` is not null, the caller owns a reference and gives it up.
    pub(super) unsafe fn from_owned(net: *mut kernel::bindings::net) -> Option<Self> {
        // INVARIANT: By the safety requirement.
        NonNull::new(net).map(|ptr| Self { ptr })
    }

    /// Its name for keeping.
    pub fn id(&self) -> NamespaceId {
        // SAFETY: By the type invariant.
        NamespaceId(unsafe { bindings::xrdma_net_cookie(self.ptr.as_ptr()) })
    }

    /// The C structure, valid as long as `self`.
    pub fn as_raw(&self) -> *mut kernel::bindings::net {
        self.ptr.as_ptr()
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        // SAFETY: By the type invariant.
        unsafe { bindings::xrdma_net_put(self.ptr.as_ptr()) };
    }
}
