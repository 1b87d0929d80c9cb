// SPDX-License-Identifier: GPL-2.0

//! Memory regions: registration, re-registration and deregistration.

use crate::prelude::*;
use crate::verbs::provider::Xroce;
use datapath::limits::{
    self,
    Charge,
    Kind, //
};
use datapath::mr::{
    first_key,
    Fixed,
    Region,
    WireMr,
    PERSISTENT,
    SLOW,
    SUPPORTED, //
};
use datapath::tables;
use rdma::dm::{
    Dm,
    DmRegion, //
};
use rdma::mem::{
    OnDemand,
    PageList,
    RingSlice, //
};
use rdma::mr::{
    AccessFlag,
    AccessFlags,
    CreatedMr,
    Mr,
    Rereg,
    SgList,
    UserRegion, //
};
use rdma::pd::Pd;

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

/// Enters a region into the table. `kind` makes it of its key.
fn publish(
    device: &Arc<WireDevice>,
    pd: PdId,
    kind: impl FnOnce(Key) -> Region,
) -> Result<CreatedMr<MrData>> {
    let charge = Charge::new(device, Kind::Mr)?;
    let reservation = tables::tables()?.mrs.reserve()?;
    let number = reservation.id();
    let key = first_key(number);
    reservation.publish(WireMr::new(pd, kind(key))?);
    Ok(CreatedMr {
        data: MrData {
            number,
            _charge: charge,
        },
        lkey: key.get(),
        rkey: key.get(),
    })
}

/// Checks a range and rights that a process asks for; the rights that count, and the address of the
/// first byte.
fn check_user(region: &UserRegion) -> Result<(AccessFlags, u64)> {
    let flags = check_access(region.access)?;
    // The whole address space: only on-demand memory can be so large.
    let is_implicit =
        flags.contains(AccessFlag::OnDemand) && region.start == 0 && region.length == u64::MAX;
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
    let iova = match flags.contains(AccessFlag::ZeroBased) {
        true => 0,
        false => region.iova,
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
fn user_memory(pd: &Pd<Xroce>, region: &UserRegion, access: AccessFlags) -> Result<Arc<Memory>> {
    let memory = if access.contains(AccessFlag::OnDemand) {
        let writable = access.is_writing();
        Memory::OnDemand(OnDemand::new(region.start, region.length, writable)?)
    } else {
        Memory::User(region.pin(pd)?)
    };
    if access.contains_any(PERSISTENT) && !memory.may_persist() {
        return Err(EINVAL);
    }
    prepare(pd, access);
    Ok(Arc::new(memory, GFP_ACCOUNT)?)
}

/// A region with this access is about to be used in a protection domain. Process context, sleeps.
fn prepare(pd: &Pd<Xroce>, access: AccessFlags) {
    if access.contains_any(SLOW) {
        pd.data().wire().prepare_to_sleep(&pd.device().data().wire);
    }
}

/// The flags that count. Remote writes and atomics write, so they want local write as well
/// (IBTA 10.6.3.1).
fn check_access(raw: u32) -> Result<AccessFlags> {
    let flags = AccessFlags::parse(raw, SUPPORTED).ok_or_else(eopnotsupp)?;
    if flags.contains_any(AccessFlag::RemoteWrite | AccessFlag::RemoteAtomic)
        && !flags.contains(AccessFlag::LocalWrite)
    {
        return Err(EINVAL);
    }
    Ok(flags)
}

/// `ibv_rereg_mr`: other memory, rights, protection domain, or several of them. The keys stay.
/// EBUSY while windows are bound; EINVAL for a change between pinned and on-demand memory, and for
/// memory that is to be persistent and is not; errors of [`reg_user`]. The region is as before
/// then. Otherwise an access to on-demand memory that is under way ends with a fault, whatever
/// changes.
pub(crate) fn rereg(mr: &Mr<Xroce>, change: &Rereg<'_, Xroce>) -> Result {
    let tables = tables::tables()?;
    let number = mr.data().number();
    let old = tables.mrs.get_if(number, |_| true).ok_or(EINVAL)?;
    let Region::Fixed(fixed) = old.kind() else {
        return Err(EINVAL);
    };
    let access = changed_access(fixed, change)?;
    let renewed = match changed_memory(fixed, change, access)? {
        Some((region, iova)) => Fixed {
            key: fixed.key,
            iova,
            length: region.length,
            access,
            memory: user_memory(change.owner, &region, access)?,
            start: region.start,
        },
        None => Fixed {
            key: fixed.key,
            iova: fixed.iova,
            length: fixed.length,
            access,
            memory: same_memory(fixed, access)?,
            start: fixed.start,
        },
    };
    let pd = match change.pd {
        Some(pd) => pd.data().id(),
        None => old.pd(),
    };
    let new = WireMr::new(pd, Region::Fixed(renewed))?;
    old.close_windows()?;
    prepare(change.owner, access);
    drop(tables.mrs.replace(number, new));
    old.revoke();
    Ok(())
}

/// The rights of a region after a change. EINVAL for a change between pinned and on-demand memory:
/// a queue pair asks whether the use of a key may sleep before it uses it, so the answer must not
/// change.
fn changed_access(fixed: &Fixed, change: &Rereg<'_, Xroce>) -> Result<AccessFlags> {
    let access = match change.access {
        Some(flags) => check_access(flags)?,
        None => fixed.access,
    };
    if access.contains(AccessFlag::OnDemand) != fixed.access.contains(AccessFlag::OnDemand) {
        return Err(EINVAL);
    }
    Ok(access)
}

/// The memory to register for a region that gets the rights `access`, and the address of its first
/// byte; `None` if the region keeps its memory. EINVAL for a bad range, and for memory that is to
/// be persistent and is not.
fn changed_memory(
    fixed: &Fixed,
    change: &Rereg<'_, Xroce>,
    access: AccessFlags,
) -> Result<Option<(UserRegion, u64)>> {
    if let Some(region) = &change.memory {
        let region = UserRegion {
            access: access.bits(),
            ..*region
        };
        let (_, iova) = check_user(&region)?;
        return Ok(Some((region, iova)));
    }
    // What was pinned to be read must be pinned again to be written.
    let is_on_demand = access.contains(AccessFlag::OnDemand);
    if access.is_writing() && !fixed.memory.is_writable() && !is_on_demand {
        let region = UserRegion {
            start: fixed.start,
            length: fixed.length,
            iova: fixed.iova,
            access: access.bits(),
        };
        return Ok(Some((region, fixed.iova)));
    }
    if (access & !fixed.access).contains_any(PERSISTENT) && !fixed.memory.may_persist() {
        return Err(EINVAL);
    }
    Ok(None)
}

/// The memory of a region that keeps it. An access that the old rights allowed may be waiting for
/// its pages, for long. It must not happen after the change, so on-demand memory is made again: the
/// two do not share what ends an access.
fn same_memory(fixed: &Fixed, access: AccessFlags) -> Result<Arc<Memory>> {
    let Memory::OnDemand(memory) = &*fixed.memory else {
        return Ok(fixed.memory.clone());
    };
    let again = memory.again(access.is_writing())?;
    Ok(Arc::new(Memory::OnDemand(again), GFP_ACCOUNT)?)
}

/// `ibv_reg_dm_mr`: addresses count from 0. EINVAL for bytes that are outside and for persistence,
/// which this memory has not; EOPNOTSUPP for access that the device has not: device memory is
/// there, so it is not to be faulted in. No bytes at all are a region, too: rdma-core's tests make
/// such.
pub(crate) fn reg_dm(
    pd: &Pd<Xroce>,
    dm: &Dm<Xroce>,
    region: &DmRegion,
) -> Result<CreatedMr<MrData>> {
    let access = check_access(region.access)?;
    if access.contains(AccessFlag::OnDemand) {
        return Err(eopnotsupp());
    }
    if access.contains_any(PERSISTENT) {
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
    let access = check_access(flags | AccessFlag::LocalWrite as u32)? & !SLOW;
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
        Region::fast(key, memory)
    })
}

/// `ib_map_mr_sg`: the region is not valid until it is registered again.
pub(crate) fn map(mr: &Mr<Xroce>, sg: SgList<'_, Xroce>) -> Result<u32> {
    tables::tables()?
        .mrs
        .with(mr.data().number(), |wire| {
            wire.map(|memory| match memory {
                Memory::Pages(pages) => sg.collect(pages),
                _ => Err(EINVAL),
            })
        })
        .unwrap_or(Err(EINVAL))
}

/// `ibv_dereg_mr`: the key is refused from now on, and when it returns nobody reads or writes the
/// memory any more, and its pages are not charged to the process. EBUSY while memory windows are
/// bound to it. Process context, sleeps.
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
    }
    Ok(())
}
