// SPDX-License-Identifier: GPL-2.0

//! Memory regions: from a key and an address to memory.
//!
//! A key has the number of the region in its upper 24 bits and a variant in its lower 8 bits, so
//! that the key of a destroyed region rarely matches the next region with the same number. Look-ups
//! take no reference. A region that is deregistered leaves the table at once, and its pages are
//! unpinned when the last look-up that found it has ended ([`KeyTable`](rdma::rcu::KeyTable)). A
//! re-registration puts another region in its place. Regions for fast registration are changed by
//! work requests; they are behind a gate of their own.

mod flush;

pub(crate) use self::flush::flush;

use crate::mw;
use crate::prelude::*;
use crate::qp::request::RegPart;
use crate::tables;
use rdma::gated::{
    Entry,
    Gated, //
};
use rdma::mem;
use rdma::mr::{
    AccessFlag,
    AccessFlags, //
};
use rdma::rcu::KeyRef;
use roce::responder::AccessKind;

/// The key of kernel users that stands for all kernel memory. Its number, 0, is in no table.
pub const LOCAL_DMA_LKEY: Key = Key::new(0);

/// A peer may write.
pub(crate) const REMOTE_WRITE: AccessFlags = AccessFlags::empty().with(AccessFlag::RemoteWrite);
/// A peer may read.
pub(crate) const REMOTE_READ: AccessFlags = AccessFlags::empty().with(AccessFlag::RemoteRead);
/// A peer may do atomics.
pub(crate) const REMOTE_ATOMIC: AccessFlags = AccessFlags::empty().with(AccessFlag::RemoteAtomic);

/// The access flag for memory that is persistent, on architectures that can make use of it.
pub const PERSISTENT: AccessFlags = match mem::HAS_WRITE_BACK {
    true => AccessFlags::empty().with(AccessFlag::FlushPersistent),
    false => AccessFlags::empty(),
};

/// Flags of regions that take their time: who may meet them must be able to sleep.
pub const SLOW: AccessFlags = PERSISTENT.with(AccessFlag::OnDemand);

/// Access flags that a region may have, besides the optional ones, which are ignored. Huge pages
/// are nothing special here.
pub const SUPPORTED: AccessFlags = REMOTE_WRITE
    .union(REMOTE_READ)
    .union(REMOTE_ATOMIC)
    .union(PERSISTENT)
    .with(AccessFlag::LocalWrite)
    .with(AccessFlag::MwBind)
    .with(AccessFlag::FlushGlobal)
    .with(AccessFlag::ZeroBased)
    .with(AccessFlag::OnDemand)
    .with(AccessFlag::HugeTlb);

/// Of [`WireMr::windows`]: no window can be bound any more.
const NO_WINDOWS: u32 = 1 << 31;

/// A memory region, as work requests and packets see it.
pub struct WireMr {
    pd: PdId,
    kind: Region,
    /// Windows that are bound to it, or [`NO_WINDOWS`].
    windows: Atomic<u32>,
}

/// What the key of a region leads to.
pub enum Region {
    /// Memory that is the same as long as the region lives.
    Fixed(Fixed),
    /// Fast registration: open while it is valid.
    Fast(Gated<Fast>),
}

/// A plain region.
pub struct Fixed {
    /// Its key, local and remote.
    pub key: Key,
    /// Address of the first byte, as work requests name it.
    pub iova: u64,
    /// Bytes.
    pub length: u64,
    /// Access flags.
    pub access: AccessFlags,
    /// What it consists of.
    pub memory: Arc<Memory>,
    /// Address of the first byte in the process.
    pub start: u64,
}

/// A region for fast registration.
pub struct Fast {
    key: Key,
    iova: u64,
    access: AccessFlags,
    /// The pages that were mapped last.
    memory: Memory,
}

/// Offset of `len` bytes at `addr` in `length` bytes at `iova`. A length of 0 touches nothing and
/// is inside anywhere in or at the end of it.
pub fn offset(iova: u64, length: u64, addr: u64, len: u64) -> Option<u64> {
    let offset = addr.checked_sub(iova)?;
    let end = offset.checked_add(len)?;
    (end <= length).then_some(offset)
}

impl Region {
    /// A region for fast registration with `memory`, closed.
    pub fn fast(key: Key, memory: Memory) -> Self {
        Region::Fast(Gated::new(Fast {
            key,
            iova: 0,
            access: AccessFlags::empty(),
            memory,
        }))
    }
}

impl WireMr {
    /// Makes a region of protection domain `pd`. Process context.
    ///
    /// # Errors
    ///
    /// ENOMEM.
    pub fn new(pd: PdId, kind: Region) -> Result<KeyRef<Self>> {
        let windows = Atomic::new(0);
        KeyRef::new(WireMr { pd, kind, windows }, GFP_ACCOUNT)
    }

    /// Number of its protection domain.
    pub fn pd(&self) -> PdId {
        self.pd
    }

    /// What its key leads to.
    pub fn kind(&self) -> &Region {
        &self.kind
    }

    /// Changes the pages of a region for fast registration, which is closed until it is registered
    /// again. EINVAL for another region. Process context, sleeps.
    ///
    /// # Errors
    ///
    /// EINVAL for a region that is not for fast registration; the errors of `f`.
    pub fn map<R>(&self, f: impl FnOnce(&mut Memory) -> Result<R>) -> Result<R> {
        match &self.kind {
            Region::Fast(fast) => fast.write(|r, _| (Entry::Closed, f(&mut r.memory))),
            Region::Fixed(_) => Err(EINVAL),
        }
    }

    /// On-demand memory: it is used in process context, by reference.
    pub fn sleeps(&self) -> bool {
        match &self.kind {
            Region::Fixed(r) => matches!(*r.memory, Memory::OnDemand(_)),
            Region::Fast(_) => false,
        }
    }

    /// Runs `f` on the memory with the offset of `addr`, if the key fits and `len` bytes from there
    /// are inside and may be used so.
    fn with<R>(
        &self,
        key: Key,
        pd: PdId,
        addr: u64,
        len: u64,
        needed: AccessFlags,
        f: impl FnOnce(&Memory, u64) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        if self.pd != pd {
            return Err(Fault);
        }
        match &self.kind {
            Region::Fixed(r) => {
                if r.key != key || !r.access.contains_all(needed) {
                    return Err(Fault);
                }
                let at = offset(r.iova, r.length, addr, len).ok_or(Fault)?;
                f(&r.memory, at)
            }
            Region::Fast(fast) => fast
                .read(|r| {
                    if r.key != key || !r.access.contains_all(needed) {
                        return Err(Fault);
                    }
                    let at = offset(r.iova, r.memory.len(), addr, len).ok_or(Fault)?;
                    f(&r.memory, at)
                })
                .unwrap_or(Err(Fault)),
        }
    }

    /// Counts a window of `len` bytes at `addr` that gives `rights`, if the region admits that.
    pub(crate) fn bind(
        &self,
        key: Key,
        pd: PdId,
        addr: u64,
        len: u64,
        rights: AccessFlags,
    ) -> Result<()> {
        // A window cannot make memory persistent, only a region can: its memory was looked at.
        let mut needed = rights & AccessFlag::FlushPersistent | AccessFlag::MwBind;
        if rights.contains_any(REMOTE_WRITE | REMOTE_ATOMIC) {
            needed |= AccessFlag::LocalWrite;
        }
        // A window is used where nothing may sleep.
        if self.sleeps() || matches!(self.kind, Region::Fast(_)) {
            return Err(EINVAL);
        }
        self.with(key, pd, addr, len, needed, |_, _| Ok(()))?;
        let mut now = self.windows.load(Relaxed);
        loop {
            if now & NO_WINDOWS != 0 {
                return Err(EINVAL);
            }
            match self.windows.cmpxchg(now, now.wrapping_add(1), Full) {
                Ok(_) => return Ok(()),
                Err(other) => now = other,
            }
        }
    }

    /// Forgets a window that was counted.
    pub(crate) fn unbind(&self) {
        self.windows.fetch_sub(1, Full);
    }

    /// Waits for accesses to on-demand memory, and ends its use. Sleeps.
    pub fn revoke(&self) {
        if let Region::Fixed(r) = &self.kind {
            if let Memory::OnDemand(memory) = &*r.memory {
                memory.revoke();
            }
        }
    }

    /// Keeps windows away from now on. EBUSY when there are some.
    ///
    /// # Errors
    ///
    /// EBUSY when windows are bound to the region.
    pub fn close_windows(&self) -> Result {
        match self.windows.cmpxchg(0, NO_WINDOWS, Full) {
            Ok(_) => Ok(()),
            Err(_) => Err(EBUSY),
        }
    }
}

/// Runs `f` on the memory that a local key names, with the offset of `addr` in it. Any context but
/// hard interrupt; `f` must not sleep.
pub(crate) fn with_local<R>(
    lkey: Key,
    pd: PdId,
    addr: u64,
    len: u64,
    usage: Usage,
    f: impl FnOnce(&Memory, u64) -> Result<R, Fault>,
) -> Result<R, Fault> {
    let needed = match usage {
        Usage::Write => AccessFlag::LocalWrite.into(),
        Usage::Read => AccessFlags::empty(),
    };
    with(lkey, pd, addr, len, needed, f)
}

/// As [`with_local`], for the remote key in a packet that came to queue pair `qpn`; `needed` is
/// made of [`REMOTE_WRITE`], [`REMOTE_READ`], [`REMOTE_ATOMIC`] and the like.
pub(crate) fn with_remote<R>(
    rkey: Key,
    pd: PdId,
    qpn: Qpn,
    addr: u64,
    len: u64,
    needed: AccessFlags,
    f: impl FnOnce(&Memory, u64) -> Result<R, Fault>,
) -> Result<R, Fault> {
    if needed == AccessFlags::empty() {
        return Err(Fault);
    }
    if mw::is_window(rkey) {
        return mw::with(rkey, pd, qpn, addr, len, needed, f);
    }
    with(rkey, pd, addr, len, needed, f)
}

/// As [`with_local`], for rights of `needed`.
pub(crate) fn with<R>(
    key: Key,
    pd: PdId,
    addr: u64,
    len: u64,
    needed: AccessFlags,
    f: impl FnOnce(&Memory, u64) -> Result<R, Fault>,
) -> Result<R, Fault> {
    /// What a look gives.
    enum Found<R, F> {
        Done(Result<R, Fault>),
        Sleeps(F),
    }
    let mrs = &tables::get().ok_or(Fault)?.mrs;
    let found = mrs.with(key.index(), |mr| {
        if mr.sleeps() && mr.pd == pd {
            Found::Sleeps(f)
        } else {
            Found::Done(mr.with(key, pd, addr, len, needed, f))
        }
    });
    match found {
        Some(Found::Done(result)) => result,
        // By reference, since it sleeps.
        Some(Found::Sleeps(f)) => {
            let fits = |mr: &WireMr| mr.sleeps() && mr.pd == pd;
            let mr = mrs.get_if(key.index(), fits).ok_or(Fault)?;
            mr.with(key, pd, addr, len, needed, f)
        }
        None => Err(Fault),
    }
}

/// Whether a key refers to on-demand memory. Windows are not bound to such memory.
pub(crate) fn sleeps(key: Key) -> bool {
    tables::get()
        .and_then(|tables| tables.mrs.with(key.index(), |mr| mr.sleeps()))
        .unwrap_or(false)
}

/// The access flag that a remote operation needs.
pub(crate) fn access_of(kind: AccessKind) -> AccessFlags {
    match kind {
        AccessKind::Write => REMOTE_WRITE,
        AccessKind::Read => REMOTE_READ,
    }
}

/// Who asks for an invalidation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Invalidator {
    /// The user of the queue pair, by a work request.
    User,
    /// Its peer, by a SEND with invalidate.
    Peer,
}

/// Closes the fast registered region `key` of protection domain `pd`: nobody uses it any more. It
/// may be closed already. A wrong key is looked at only, since closing disturbs those who have the
/// right one. A peer closes only what peers have a right to: no other region has a key for them, so
/// they could have guessed it only.
fn invalidate_fast(key: Key, pd: PdId, by: Invalidator) -> Result<(), Fault> {
    const REMOTE: AccessFlags = REMOTE_WRITE
        .union(REMOTE_READ)
        .union(REMOTE_ATOMIC)
        .with(AccessFlag::FlushGlobal);
    let fits =
        |r: &Fast| r.key == key && (by == Invalidator::User || r.access.contains_any(REMOTE));
    tables::get()
        .and_then(|tables| {
            tables.mrs.with(key.index(), |mr| match &mr.kind {
                Region::Fast(fast) if mr.pd == pd && fast.read(fits) != Some(false) => {
                    fast.write(|r, was| {
                        if fits(r) {
                            (Entry::Closed, Ok(()))
                        } else {
                            (was, Err(Fault))
                        }
                    })
                }
                _ => Err(Fault),
            })
        })
        .unwrap_or(Err(Fault))
}

/// A LOCAL_INV work request: of a window of type 2 that is bound to the queue pair, or of a fast
/// registered region.
pub(crate) fn local_invalidate(qp: &WireQp, key: Key) -> Result<(), WcStatus> {
    if mw::is_window(key) {
        mw::invalidate(qp, key)
    } else {
        invalidate_fast(key, qp.pd, Invalidator::User)
    }
    .map_err(|_| WcStatus::MwBindErr)
}

/// A peer's SEND with invalidate, as [`local_invalidate`].
pub(crate) fn remote_invalidate(qp: &WireQp, rkey: Key) -> Result<(), Fault> {
    if mw::is_window(rkey) {
        mw::invalidate(qp, rkey)
    } else {
        invalidate_fast(rkey, qp.pd, Invalidator::Peer)
    }
}

/// A REG_MR work request: the pages that were mapped get a key, an address and rights.
pub(crate) fn fast_register(qp: &WireQp, reg: &RegPart) -> Result<(), WcStatus> {
    let flags = AccessFlags::parse(reg.access, SUPPORTED)
        .filter(|flags| !flags.contains_any(SLOW))
        .ok_or(WcStatus::MwBindErr)?;
    tables::get()
        .and_then(|tables| {
            tables.mrs.with(reg.key.index(), |mr| match &mr.kind {
                // As for `invalidate_fast`: closed only when that may be right.
                Region::Fast(fast) if mr.pd == qp.pd && fast.read(|_| ()).is_none() => {
                    fast.write(|r, was| {
                        if was == Entry::Open {
                            // It was not invalidated before.
                            return (Entry::Open, Err(WcStatus::MwBindErr));
                        }
                        r.key = reg.key;
                        r.iova = reg.iova;
                        r.access = flags;
                        (Entry::Open, Ok(()))
                    })
                }
                _ => Err(WcStatus::MwBindErr),
            })
        })
        .unwrap_or(Err(WcStatus::MwBindErr))
}

/// The variant of the next key, so that keys of successive regions differ even with one number.
static VARIANT: Atomic<u32> = Atomic::new(1);

/// The first key of the object with a number.
pub fn first_key(number: u32) -> Key {
    Key::from_parts(number, VARIANT.fetch_add(1, Relaxed) as u8)
}
