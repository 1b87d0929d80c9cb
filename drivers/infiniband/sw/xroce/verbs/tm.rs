// SPDX-License-Identifier: GPL-2.0

//! Tag matching: creating the list of a shared receive queue.

use crate::prelude::*;
use crate::verbs::provider::Xroce;
use crate::verbs::ring_info;
use datapath::tm::Tm;
use datapath::{
    limits,
    wr, //
};
use rdma::uverbs::{
    mmap::RingMapping,
    udata::Udata, //
};

/// A new tag-matching part, and what its user is told.
pub(crate) struct Created {
    pub(crate) tm: Arc<Tm>,
    pub(crate) mappings: [RingMapping; 2],
    pub(crate) ops: abi::xroce_ring_info,
    pub(crate) freed: abi::xroce_ring_info,
}

/// Makes the list of a new queue. EINVAL for sizes beyond the device's. Process context.
pub(crate) fn create(
    max_num_tags: u32,
    cq: Ref<WireCq>,
    udata: &mut Udata<'_, Xroce>,
) -> Result<Created> {
    let request: abi::xroce_create_tm_srq_req = udata.read()?;
    if request.reserved != 0
        || max_num_tags == 0
        || max_num_tags > limits::MAX_TM_TAGS
        || request.max_ops == 0
        || request.max_ops > limits::MAX_TM_OPS
    {
        return Err(EINVAL);
    }
    let entries = request.max_ops.checked_next_power_of_two().ok_or(EINVAL)?;
    let ops = wr::new_ring(entries, abi::TM_OP_STRIDE)?;
    let freed_entries = max_num_tags.checked_next_power_of_two().ok_or(EINVAL)?;
    let freed = wr::new_ring(freed_entries, abi::TM_FREED_SIZE as u32)?;
    let ops_map = udata.ucontext()?.map_ring(ops.clone())?;
    let freed_map = udata.ucontext()?.map_ring(freed.clone())?;
    let ops_info = ring_info(&ops, &ops_map, entries, abi::TM_OP_STRIDE);
    let freed_info = ring_info(&freed, &freed_map, freed_entries, abi::TM_FREED_SIZE as u32);
    let tm = Tm::new(max_num_tags, cq, (ops, entries), (freed, freed_entries))?;
    Ok(Created {
        tm,
        mappings: [ops_map, freed_map],
        ops: ops_info,
        freed: freed_info,
    })
}
