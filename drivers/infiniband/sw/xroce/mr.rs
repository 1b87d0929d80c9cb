// SPDX-License-Identifier: GPL-2.0

//! Memory regions: from a key and an address to memory.
//!
//! A key is the number of the region in the upper 24 bits and a variant in the lower 8, so that a key
//! of a region that is gone seldom fits the next one with its number. Look-ups run under RCU and take
//! no reference: a region that is deregistered leaves the table at once, and its pages are unpinned
//! when the last look-up that found it has ended.

use crate::limits::{
    self,
    Charge,
    Kind, //
};
use crate::prelude::*;
use crate::provider::Xroce;
use crate::tables;
use rdma::mr::{
    access,
    CreatedMr,
    Mr,
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

/// Access flags that a region may have, besides the optional ones, which are ignored.
const SUPPORTED: u32 =
    access::LOCAL_WRITE | access::REMOTE_WRITE | access::REMOTE_READ | access::REMOTE_ATOMIC;

/// A memory region, as work requests and packets see it.
pub(crate) struct WireMr {
    key: u32,
    pd: u64,
    iova: u64,
    length: u64,
    access: u32,
    memory: Memory,
    _charge: Charge,
}

impl WireMr {
    /// Offset of `addr` in the region, if the key fits and `len` bytes from there are inside and may
    /// be used so. A length of 0 touches nothing and is inside anywhere in or at the end of it.
    fn offset(&self, key: u32, pd: u64, addr: u64, len: u64, needed: u32) -> Option<u64> {
        if self.key != key || self.pd != pd || self.access & needed != needed {
            return None;
        }
        let offset = addr.checked_sub(self.iova)?;
        let end = offset.checked_add(len)?;
        (end <= self.length).then_some(offset)
    }
}

/// Runs `f` on the memory that a local key names, with the offset of `addr` in it. Any context, under
/// RCU: `f` must not sleep.
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

/// As [`with_local`], for the remote key in a packet that came to queue pair `_qpn`; `needed` is made
/// of [`REMOTE_WRITE`], [`REMOTE_READ`], [`REMOTE_ATOMIC`].
pub(crate) fn with_remote<R>(
    rkey: u32,
    pd: u64,
    _qpn: u32,
    addr: u64,
    len: u64,
    needed: u32,
    f: impl FnOnce(&Memory, u64) -> Result<R, Fault>,
) -> Result<R, Fault> {
    if needed == 0 {
        return Err(Fault);
    }
    with(rkey, pd, addr, len, needed, f)
}

fn with<R>(
    key: u32,
    pd: u64,
    addr: u64,
    len: u64,
    needed: u32,
    f: impl FnOnce(&Memory, u64) -> Result<R, Fault>,
) -> Result<R, Fault> {
    let tables = tables::get().ok_or(Fault)?;
    tables
        .mrs
        .with(key >> 8, |mr| {
            let offset = mr.offset(key, pd, addr, len, needed).ok_or(Fault)?;
            f(&mr.memory, offset)
        })
        .unwrap_or(Err(Fault))
}

/// The access flag that a remote operation needs.
pub(crate) fn access_of(kind: AccessKind) -> u32 {
    match kind {
        AccessKind::Write => REMOTE_WRITE,
        AccessKind::Read => REMOTE_READ,
        AccessKind::Flush { .. } => access::FLUSH_GLOBAL,
    }
}

/// A peer's SEND with invalidate. Only windows of type 2 and fast registered regions can be
/// invalidated, and the device has neither.
pub(crate) fn remote_invalidate(_qp: &WireQp, _rkey: u32) -> Result<(), Fault> {
    Err(Fault)
}

/// What ib_core's MR holds.
pub(crate) struct MrData {
    number: u32,
}

/// The variant of the next key, so that keys of successive regions differ even with one number.
static VARIANT: Atomic<u32> = Atomic::new(1);

/// Enters a region into the table.
fn publish(
    device: &Arc<WireDevice>,
    pd: u64,
    iova: u64,
    length: u64,
    access: u32,
    memory: Memory,
) -> Result<CreatedMr<MrData>> {
    let charge = Charge::new(device, Kind::Mr)?;
    let reservation = tables::tables()?.mrs.reserve()?;
    let number = reservation.id();
    let key = number << 8 | VARIANT.fetch_add(1, Relaxed) & 0xff;
    reservation.publish(Ref::new(
        WireMr {
            key,
            pd,
            iova,
            length,
            access,
            memory,
            _charge: charge,
        },
        GFP_ACCOUNT,
    )?);
    Ok(CreatedMr {
        data: MrData { number },
        lkey: key,
        rkey: key,
    })
}

/// `ibv_reg_mr`. EINVAL for a bad range or access, EOPNOTSUPP for access that the device has not,
/// ENOMEM beyond RLIMIT_MEMLOCK, EFAULT for memory that is not there.
pub(crate) fn reg_user(pd: &Pd<Xroce>, region: &UserRegion) -> Result<CreatedMr<MrData>> {
    let flags = region.access & !access::OPTIONAL;
    if flags & !SUPPORTED != 0 {
        return Err(eopnotsupp());
    }
    check_access(flags)?;
    if region.length == 0 || region.length > limits::MAX_MR_SIZE {
        return Err(EINVAL);
    }
    if region.iova.checked_add(region.length).is_none()
        || region.start.checked_add(region.length).is_none()
    {
        return Err(EINVAL);
    }
    let umem = region.pin(pd)?;
    publish(
        &pd.device().data().wire,
        pd.data().id(),
        region.iova,
        region.length,
        flags,
        Memory::User(umem),
    )
}

/// Remote writes and atomics write, so they want local write as well (IBTA 10.6.3.1).
fn check_access(flags: u32) -> Result {
    if flags & (access::REMOTE_WRITE | access::REMOTE_ATOMIC) != 0
        && flags & access::LOCAL_WRITE == 0
    {
        return Err(EINVAL);
    }
    Ok(())
}

/// The region that covers all kernel memory, for kernel users.
pub(crate) fn get_dma(pd: &Pd<Xroce>, flags: u32, memory: KernelAddr) -> Result<CreatedMr<MrData>> {
    let flags = flags & !access::OPTIONAL;
    if flags & !SUPPORTED != 0 {
        return Err(eopnotsupp());
    }
    check_access(flags)?;
    publish(
        &pd.device().data().wire,
        pd.data().id(),
        0,
        u64::MAX,
        flags,
        Memory::Kernel(memory),
    )
}

/// `ibv_dereg_mr`: the key is refused from now on, and when it returns nobody reads or writes the
/// memory any more, and its pages are not charged to the process. Process context, sleeps.
pub(crate) fn dereg(mr: &Mr<Xroce>) -> Result {
    if let Some(region) = tables::get().and_then(|tables| tables.mrs.remove(mr.data().number)) {
        Ref::retire(region);
    }
    Ok(())
}
