// SPDX-License-Identifier: GPL-2.0

//! Memory regions: from a key and an address to memory.
//!
//! A key is the number of the region in the upper 24 bits and a variant in the lower 8, so that a key
//! of a region that is gone seldom fits the next one with its number. Look-ups run under RCU and take
//! no reference: a region that is deregistered leaves the table at once, and its pages are unpinned
//! when the last look-up that found it has ended. A re-registration puts another region in its place.
//! Regions for fast registration change by work requests, behind a gate of their own.

mod advise;
mod flush;

pub(crate) use self::{
    advise::advise,
    flush::flush, //
};

use crate::limits::{
    self,
    Charge,
    Kind, //
};
use crate::mw;
use crate::prelude::*;
use crate::provider::Xroce;
use crate::qp::request::RegPart;
use crate::tables;
use rdma::dm::{
    Dm,
    DmRegion, //
};
use rdma::gated::Gated;
use rdma::mem::{
    self,
    OnDemand,
    PageList,
    RingSlice, //
};
use rdma::mr::{
    access,
    CreatedMr,
    Mr,
    Rereg,
    SgList,
    UserRegion, //
};
use rdma::pd::Pd;
use roce::responder::AccessKind;

/// The key of kernel users that stands for all kernel memory. Its number, 0, is in no table.
pub(crate) const LOCAL_DMA_LKEY: u32 = 0;

/// A peer may write.
pub(crate) const REMOTE_WRITE: u32 = access::REMOTE_WRITE;
/// A peer may read.
pub(crate) const REMOTE_READ: u32 = access::REMOTE_READ;
/// A peer may do atomics.
pub(crate) const REMOTE_ATOMIC: u32 = access::REMOTE_ATOMIC;

/// The access flag for memory that is persistent, on architectures that can make use of it.
pub(crate) const PERSISTENT: u32 = match mem::HAS_WRITE_BACK {
    true => access::FLUSH_PERSISTENT,
    false => 0,
};

/// Flags of regions that take their time: who may meet them must be able to sleep.
const SLOW: u32 = access::ON_DEMAND | PERSISTENT;

/// Access flags that a region may have, besides the optional ones, which are ignored. Huge pages are
/// nothing special here.
const SUPPORTED: u32 = access::LOCAL_WRITE
    | access::REMOTE_WRITE
    | access::REMOTE_READ
    | access::REMOTE_ATOMIC
    | access::MW_BIND
    | access::FLUSH_GLOBAL
    | PERSISTENT
    | access::ZERO_BASED
    | access::ON_DEMAND
    | access::HUGETLB;

/// Of [`WireMr::windows`]: no window can be bound any more.
const NO_WINDOWS: u32 = 1 << 31;

/// A memory region, as work requests and packets see it.
pub(crate) struct WireMr {
    pd: u64,
    kind: Region,
    /// Windows that are bound to it, or [`NO_WINDOWS`].
    windows: Atomic<u32>,
}

/// What the key of a region leads to.
enum Region {
    /// Memory that is the same as long as the region lives.
    Fixed(Fixed),
    /// Fast registration: open while it is valid.
    Fast(Gated<Fast>),
}

/// A plain region.
struct Fixed {
    key: u32,
    iova: u64,
    length: u64,
    access: u32,
    memory: Arc<Memory>,
    /// Address of the first byte in the process.
    start: u64,
}

/// A region for fast registration.
struct Fast {
    key: u32,
    iova: u64,
    access: u32,
    /// The pages that were mapped last.
    memory: Memory,
}

/// Offset of `len` bytes at `addr` in `length` bytes at `iova`. A length of 0 touches nothing and is
/// inside anywhere in or at the end of it.
fn offset(iova: u64, length: u64, addr: u64, len: u64) -> Option<u64> {
    let offset = addr.checked_sub(iova)?;
    let end = offset.checked_add(len)?;
    (end <= length).then_some(offset)
}

impl WireMr {
    /// Its memory is not pinned: it is used in process context, outside of RCU read sections.
    fn sleeps(&self) -> bool {
        match &self.kind {
            Region::Fixed(r) => matches!(*r.memory, Memory::OnDemand(_)),
            Region::Fast(_) => false,
        }
    }

    /// Runs `f` on the memory with the offset of `addr`, if the key fits and `len` bytes from there
    /// are inside and may be used so.
    fn with<R>(
        &self,
        key: u32,
        pd: u64,
        addr: u64,
        len: u64,
        needed: u32,
        f: impl FnOnce(&Memory, u64) -> Result<R, Fault>,
    ) -> Result<R, Fault> {
        if self.pd != pd {
            return Err(Fault);
        }
        match &self.kind {
            Region::Fixed(r) => {
                if r.key != key || r.access & needed != needed {
                    return Err(Fault);
                }
                let at = offset(r.iova, r.length, addr, len).ok_or(Fault)?;
                f(&r.memory, at)
            }
            Region::Fast(fast) => fast
                .read(|r| {
                    if r.key != key || r.access & needed != needed {
                        return Err(Fault);
                    }
                    let at = offset(r.iova, r.memory.len(), addr, len).ok_or(Fault)?;
                    f(&r.memory, at)
                })
                .unwrap_or(Err(Fault)),
        }
    }

    /// Counts a window of `len` bytes at `addr` that gives `rights`, if the region admits that.
    pub(crate) fn bind(&self, key: u32, pd: u64, addr: u64, len: u64, rights: u32) -> Result<()> {
        // A window cannot make memory persistent, only a region can: its memory was looked at.
        let mut needed = access::MW_BIND | rights & access::FLUSH_PERSISTENT;
        if rights & (REMOTE_WRITE | REMOTE_ATOMIC) != 0 {
            needed |= access::LOCAL_WRITE;
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

    /// Waits for the use of memory that is not pinned, and ends it. Sleeps.
    fn revoke(&self) {
        if let Region::Fixed(r) = &self.kind {
            if let Memory::OnDemand(memory) = &*r.memory {
                memory.revoke();
            }
        }
    }

    /// Keeps windows away from now on. EBUSY when there are some.
    fn close_windows(&self) -> Result {
        match self.windows.cmpxchg(0, NO_WINDOWS, Full) {
            Ok(_) => Ok(()),
            Err(_) => Err(EBUSY),
        }
    }
}

/// Runs `f` on the memory that a local key names, with the offset of `addr` in it. Any context but
/// hard interrupt, under RCU: `f` must not sleep.
pub(crate) fn with_local<R>(
    lkey: u32,
    pd: u64,
    addr: u64,
    len: u64,
    write: bool,
    f: impl FnOnce(&Memory, u64) -> Result<R, Fault>,
) -> Result<R, Fault> {
    let needed = if write { access::LOCAL_WRITE } else { 0 };
    with(lkey, pd, addr, len, needed, f)
}

/// As [`with_local`], for the remote key in a packet that came to queue pair `qpn`; `needed` is made
/// of [`REMOTE_WRITE`], [`REMOTE_READ`], [`REMOTE_ATOMIC`] and the like.
pub(crate) fn with_remote<R>(
    rkey: u32,
    pd: u64,
    qpn: u32,
    addr: u64,
    len: u64,
    needed: u32,
    f: impl FnOnce(&Memory, u64) -> Result<R, Fault>,
) -> Result<R, Fault> {
    if needed == 0 {
        return Err(Fault);
    }
    if mw::is_window(rkey) {
        return mw::with(rkey, pd, qpn, addr, len, needed, f);
    }
    with(rkey, pd, addr, len, needed, f)
}

/// As [`with_local`], for rights of `needed`.
pub(crate) fn with<R>(
    key: u32,
    pd: u64,
    addr: u64,
    len: u64,
    needed: u32,
    f: impl FnOnce(&Memory, u64) -> Result<R, Fault>,
) -> Result<R, Fault> {
    /// What a look under RCU gives.
    enum Found<R, F> {
        Done(Result<R, Fault>),
        Sleeps(F),
    }
    let mrs = &tables::get().ok_or(Fault)?.mrs;
    let found = mrs.with(key >> 8, |mr| {
        if mr.sleeps() {
            Found::Sleeps(f)
        } else {
            Found::Done(mr.with(key, pd, addr, len, needed, f))
        }
    });
    match found {
        Some(Found::Done(result)) => result,
        // By reference, since RCU readers must not sleep.
        Some(Found::Sleeps(f)) => {
            let mr = mrs.get_if(key >> 8, WireMr::sleeps).ok_or(Fault)?;
            mr.with(key, pd, addr, len, needed, f)
        }
        None => Err(Fault),
    }
}

/// Whether the memory that a key leads to is not pinned. Windows are not bound to such memory.
pub(crate) fn sleeps(key: u32) -> bool {
    tables::get()
        .and_then(|tables| tables.mrs.with(key >> 8, |mr| mr.sleeps()))
        .unwrap_or(false)
}

/// The access flag that a remote operation needs.
pub(crate) fn access_of(kind: AccessKind) -> u32 {
    match kind {
        AccessKind::Write => REMOTE_WRITE,
        AccessKind::Read => REMOTE_READ,
    }
}

/// Closes the fast registered region `key` of protection domain `pd`: nobody uses it any more. It may
/// be closed already. A wrong key is looked at only, since closing disturbs those who have the right
/// one. By a peer's request, `by_peer`, only what peers have a right to: no other region has a key for
/// them, so they could have guessed it only.
fn invalidate_fast(key: u32, pd: u64, by_peer: bool) -> Result<(), Fault> {
    const REMOTE: u32 = REMOTE_WRITE | REMOTE_READ | REMOTE_ATOMIC | access::FLUSH_GLOBAL;
    let fits = |r: &Fast| r.key == key && (!by_peer || r.access & REMOTE != 0);
    tables::get()
        .and_then(|tables| {
            tables.mrs.with(key >> 8, |mr| match &mr.kind {
                Region::Fast(fast) if mr.pd == pd && fast.read(fits) != Some(false) => {
                    fast.write(|r, open| {
                        if fits(r) {
                            (false, Ok(()))
                        } else {
                            (open, Err(Fault))
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
pub(crate) fn local_invalidate(qp: &WireQp, key: u32) -> Result<(), WcStatus> {
    if mw::is_window(key) {
        mw::invalidate(qp, key)
    } else {
        invalidate_fast(key, qp.pd, false)
    }
    .map_err(|_| WcStatus::MwBindErr)
}

/// A peer's SEND with invalidate, as [`local_invalidate`].
pub(crate) fn remote_invalidate(qp: &WireQp, rkey: u32) -> Result<(), Fault> {
    if mw::is_window(rkey) {
        mw::invalidate(qp, rkey)
    } else {
        invalidate_fast(rkey, qp.pd, true)
    }
}

/// A REG_MR work request: the pages that were mapped get a key, an address and rights.
pub(crate) fn fast_register(qp: &WireQp, reg: &RegPart) -> Result<(), WcStatus> {
    let flags = reg.access & !access::OPTIONAL;
    if flags & !SUPPORTED != 0 || flags & SLOW != 0 {
        return Err(WcStatus::MwBindErr);
    }
    tables::get()
        .and_then(|tables| {
            tables.mrs.with(reg.key >> 8, |mr| match &mr.kind {
                // As for `invalidate_fast`: closed only when that may be right.
                Region::Fast(fast) if mr.pd == qp.pd && fast.read(|_| ()).is_none() => {
                    fast.write(|r, open| {
                        if open {
                            // It was not invalidated before.
                            return (true, Err(WcStatus::MwBindErr));
                        }
                        r.key = reg.key;
                        r.iova = reg.iova;
                        r.access = flags;
                        (true, Ok(()))
                    })
                }
                _ => Err(WcStatus::MwBindErr),
            })
        })
        .unwrap_or(Err(WcStatus::MwBindErr))
}

/// What ib_core's MR holds.
pub(crate) struct MrData {
    number: u32,
    _charge: Charge,
}

impl MrData {
    /// Number of the region.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }
}

/// The variant of the next key, so that keys of successive regions differ even with one number.
static VARIANT: Atomic<u32> = Atomic::new(1);

/// The first key of the object with a number.
pub(crate) fn first_key(number: u32) -> u32 {
    number << 8 | VARIANT.fetch_add(1, Relaxed) & 0xff
}

/// Enters a region into the table. `kind` makes it of its key.
fn publish(
    device: &Arc<WireDevice>,
    pd: u64,
    kind: impl FnOnce(u32) -> Region,
) -> Result<CreatedMr<MrData>> {
    let charge = Charge::new(device, Kind::Mr)?;
    let reservation = tables::tables()?.mrs.reserve()?;
    let number = reservation.id();
    let key = first_key(number);
    reservation.publish(Ref::new(
        WireMr {
            pd,
            kind: kind(key),
            windows: Atomic::new(0),
        },
        GFP_ACCOUNT,
    )?);
    Ok(CreatedMr {
        data: MrData {
            number,
            _charge: charge,
        },
        lkey: key,
        rkey: key,
    })
}

/// Checks a range and rights that a process asks for; the rights that count, and the address of the
/// first byte.
fn check_user(region: &UserRegion) -> Result<(u32, u64)> {
    let flags = check_access(region.access)?;
    // The whole address space: only memory that is not pinned can be so large.
    let is_implicit =
        flags & access::ON_DEMAND != 0 && region.start == 0 && region.length == u64::MAX;
    if is_implicit {
        return Ok((flags, 0));
    }
    if region.length == 0 || region.length > limits::MAX_MR_SIZE {
        return Err(EINVAL);
    }
    if region.iova.checked_add(region.length).is_none()
        || region.start.checked_add(region.length).is_none()
    {
        return Err(EINVAL);
    }
    let iova = match flags & access::ZERO_BASED {
        0 => region.iova,
        _ => 0,
    };
    Ok((flags, iova))
}

/// `ibv_reg_mr`. EINVAL for a bad range or access, or memory that is not persistent and should be,
/// EOPNOTSUPP for access that the device has not,
/// ENOMEM beyond RLIMIT_MEMLOCK, EFAULT for memory that is not there.
pub(crate) fn reg_user(pd: &Pd<Xroce>, region: &UserRegion) -> Result<CreatedMr<MrData>> {
    let (access, iova) = check_user(region)?;
    let memory = user_memory(pd, region, access)?;
    publish(&pd.device().data().wire, pd.data().id(), |key| {
        Region::Fixed(Fixed {
            key,
            iova,
            length: region.length,
            access,
            memory,
            start: region.start,
        })
    })
}

/// The memory of a region: pinned, or to be faulted in when it is used.
fn user_memory(pd: &Pd<Xroce>, region: &UserRegion, access: u32) -> Result<Arc<Memory>> {
    let memory = if access & access::ON_DEMAND != 0 {
        let writable = access::is_writing(access);
        Memory::OnDemand(OnDemand::new(region.start, region.length, writable)?)
    } else {
        Memory::User(region.pin(pd)?)
    };
    if access & PERSISTENT != 0 && !memory.may_persist() {
        return Err(EINVAL);
    }
    prepare(pd, access);
    Ok(Arc::new(memory, GFP_ACCOUNT)?)
}

/// A region with this access is about to be used in a protection domain. Process context, sleeps.
fn prepare(pd: &Pd<Xroce>, access: u32) {
    if access & SLOW != 0 {
        pd.data().prepare_to_sleep(&pd.device().data().wire);
    }
}

/// The flags that count. Remote writes and atomics write, so they want local write as well
/// (IBTA 10.6.3.1).
fn check_access(flags: u32) -> Result<u32> {
    let flags = flags & !access::OPTIONAL;
    if flags & !SUPPORTED != 0 {
        return Err(eopnotsupp());
    }
    if flags & (access::REMOTE_WRITE | access::REMOTE_ATOMIC) != 0
        && flags & access::LOCAL_WRITE == 0
    {
        return Err(EINVAL);
    }
    Ok(flags)
}

/// `ibv_rereg_mr`: other memory, rights, protection domain, or several of them. The keys stay. EBUSY
/// while windows are bound; EINVAL for a change between pinned and on-demand memory, and for memory
/// that is to be persistent and is not; errors of [`reg_user`]. The region is as before then.
/// Otherwise an access to on-demand memory that is under way ends with a fault, whatever changes.
pub(crate) fn rereg(mr: &Mr<Xroce>, change: &Rereg<'_, Xroce>) -> Result {
    let tables = tables::tables()?;
    let number = mr.data().number();
    let old = tables.mrs.get(number).ok_or(EINVAL)?;
    let Region::Fixed(fixed) = &old.kind else {
        return Err(EINVAL);
    };
    let access = match change.access {
        Some(flags) => check_access(flags)?,
        None => fixed.access,
    };
    // Whether its use sleeps is asked before it is used: a key stays with the answer.
    if access & access::ON_DEMAND != fixed.access & access::ON_DEMAND {
        return Err(EINVAL);
    }
    let gets_writable = access::is_writing(access) && !fixed.memory.is_writable();
    let other = match &change.memory {
        Some(region) => {
            let region = UserRegion { access, ..*region };
            let (_, iova) = check_user(&region)?;
            Some((region, iova))
        }
        // What was pinned to be read must be pinned again to be written.
        None if gets_writable && access & access::ON_DEMAND == 0 => Some((
            UserRegion {
                start: fixed.start,
                length: fixed.length,
                iova: fixed.iova,
                access,
            },
            fixed.iova,
        )),
        None if access & !fixed.access & PERSISTENT != 0 && !fixed.memory.may_persist() => {
            return Err(EINVAL);
        }
        None => None,
    };
    let (memory, start, length, iova) = match other {
        Some((region, iova)) => (
            user_memory(change.owner, &region, access)?,
            region.start,
            region.length,
            iova,
        ),
        None => {
            let memory = match &*fixed.memory {
                // An access that the old rights allowed may be waiting for its pages, for long: it is
                // not to happen after this, so the two do not share what ends it.
                Memory::OnDemand(memory) => {
                    let again = memory.again(access::is_writing(access))?;
                    Arc::new(Memory::OnDemand(again), GFP_ACCOUNT)?
                }
                _ => fixed.memory.clone(),
            };
            (memory, fixed.start, fixed.length, fixed.iova)
        }
    };
    let new = Ref::new(
        WireMr {
            pd: match change.pd {
                Some(pd) => pd.data().id(),
                None => old.pd,
            },
            kind: Region::Fixed(Fixed {
                key: fixed.key,
                iova,
                length,
                access,
                memory,
                start,
            }),
            windows: Atomic::new(0),
        },
        GFP_ACCOUNT,
    )?;
    old.close_windows()?;
    prepare(change.owner, access);
    let replaced = tables.mrs.replace(number, new);
    old.revoke();
    drop(old);
    if let Some(old) = replaced {
        Ref::retire(old);
    }
    Ok(())
}

/// `ibv_reg_dm_mr`: addresses count from 0. EINVAL for bytes that are outside and for persistence, which
/// this memory has not; EOPNOTSUPP for access that the device has not: device memory is there, so it is
/// not to be faulted in. No bytes at all are a region, too: rdma-core's tests make such.
pub(crate) fn reg_dm(
    pd: &Pd<Xroce>,
    dm: &Dm<Xroce>,
    region: &DmRegion,
) -> Result<CreatedMr<MrData>> {
    let access = check_access(region.access)?;
    if access & access::ON_DEMAND != 0 {
        return Err(eopnotsupp());
    }
    if access & PERSISTENT != 0 {
        return Err(EINVAL);
    }
    let slice = RingSlice::new(dm.data().mem.clone(), region.offset, region.length)?;
    let memory = Arc::new(Memory::Device(slice), GFP_ACCOUNT)?;
    publish(&pd.device().data().wire, pd.data().id(), |key| {
        Region::Fixed(Fixed {
            key,
            iova: 0,
            length: region.length,
            access,
            memory,
            start: 0,
        })
    })
}

/// The region that covers all kernel memory, for kernel users. ib_core asks for the rights of peers
/// (`IB_PD_UNSAFE_GLOBAL_RKEY`) without that of the device itself, which goes without saying here.
/// Rights that depend on what the memory is are left out.
pub(crate) fn get_dma(pd: &Pd<Xroce>, flags: u32, memory: KernelAddr) -> Result<CreatedMr<MrData>> {
    let access = check_access(flags | access::LOCAL_WRITE)? & !SLOW;
    let memory = Arc::new(Memory::Kernel(memory), GFP_KERNEL)?;
    publish(&pd.device().data().wire, pd.data().id(), |key| {
        Region::Fixed(Fixed {
            key,
            iova: 0,
            length: u64::MAX,
            access,
            memory,
            start: 0,
        })
    })
}

/// `ib_alloc_mr`: a region for fast registration. EINVAL for no pages or too many.
pub(crate) fn alloc_fast(pd: &Pd<Xroce>, max_pages: u32) -> Result<CreatedMr<MrData>> {
    if max_pages > limits::MAX_FAST_PAGES {
        return Err(EINVAL);
    }
    let memory = Memory::Pages(PageList::new(max_pages as usize)?);
    publish(&pd.device().data().wire, pd.data().id(), |key| {
        Region::Fast(Gated::new(Fast {
            key,
            iova: 0,
            access: 0,
            memory,
        }))
    })
}

/// `ib_map_mr_sg`: the region is not valid until it is registered again.
pub(crate) fn map(mr: &Mr<Xroce>, sg: SgList<'_, Xroce>) -> Result<u32> {
    tables::tables()?
        .mrs
        .with(mr.data().number(), |wire| match &wire.kind {
            Region::Fast(fast) => fast.write(|r, _| {
                let mapped = match &mut r.memory {
                    Memory::Pages(pages) => sg.collect(pages),
                    _ => Err(EINVAL),
                };
                (false, mapped)
            }),
            Region::Fixed(_) => Err(EINVAL),
        })
        .unwrap_or(Err(EINVAL))
}

/// `ibv_dereg_mr`: the key is refused from now on, and when it returns nobody reads or writes the
/// memory any more, and its pages are not charged to the process. EBUSY while memory windows are bound
/// to it. Process context, sleeps.
pub(crate) fn dereg(mr: &Mr<Xroce>) -> Result {
    let Some(tables) = tables::get() else {
        return Ok(());
    };
    let number = mr.data().number();
    tables
        .mrs
        .with(number, |region| region.close_windows())
        .unwrap_or(Ok(()))?;
    if let Some(region) = tables.mrs.remove(number) {
        region.revoke();
        Ref::retire(region);
    }
    Ok(())
}
