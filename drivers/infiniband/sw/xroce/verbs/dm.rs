// SPDX-License-Identifier: GPL-2.0

//! Device memory: pages of the kernel that a process maps and registers.

use crate::prelude::*;
use crate::verbs::provider::Xroce;
use datapath::limits::{
    self,
    Charge,
    Kind, //
};
use rdma::device::Device;
use rdma::dm::{
    CreatedDm,
    DmAlloc, //
};
use rdma::uverbs::mmap::RingMapping;

/// What ib_core's device memory holds.
pub(crate) struct DmData {
    /// The pages. Regions keep them as well.
    pub(crate) mem: Arc<RingMem>,
    _mapping: RingMapping,
    _charge: Charge,
}

/// `ibv_alloc_dm`. EINVAL for no bytes or more than the device has for one, ENOMEM.
pub(crate) fn alloc(
    device: &Device<Xroce>,
    alloc: &DmAlloc<'_, Xroce>,
) -> Result<CreatedDm<DmData>> {
    // Pages are aligned to more than anybody asks for in vain: 4 KiB.
    if alloc.length == 0 || alloc.length > limits::MAX_DM_SIZE || alloc.log_alignment > 12 {
        return Err(EINVAL);
    }
    let charge = Charge::new(&device.data().wire, Kind::Dm)?;
    let size = usize::try_from(alloc.length).map_err(|_| EINVAL)?;
    let mem = Arc::new(RingMem::new(size)?, GFP_ACCOUNT)?;
    let offset = u64::from(alloc.handle)
        .checked_mul(limits::MAX_DM_SIZE)
        .and_then(|at| at.checked_add(abi::XROCE_DM_MMAP_BASE))
        .ok_or(ENOSPC)?;
    let mapping = alloc.context.map_ring_at(mem.clone(), offset)?;
    Ok(CreatedDm {
        data: DmData {
            mem,
            _mapping: mapping,
            _charge: charge,
        },
    })
}
