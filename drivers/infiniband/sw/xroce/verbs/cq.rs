// SPDX-License-Identifier: GPL-2.0

//! Completion queues: creation, resizing, moderation and destruction.

use crate::prelude::*;
use crate::verbs::provider::Xroce;
use datapath::cq::{
    ensure_alarm,
    new_ring,
    start_adapting, //
};
use datapath::limits::{
    self,
    Charge,
    Kind, //
};
use rdma::cq::{
    Cq,
    CqInitAttr,
    CreatedCq, //
};
use rdma::device::Device;
use rdma::restrack::ResEntry;
use rdma::uverbs::{
    mmap::RingMapping,
    udata::Udata, //
};
use roce::event::Moderation;

/// What ib_core's CQ holds.
pub(crate) struct CqData {
    pub(crate) wire: Ref<WireCq>,
    mapping: Arc<MappingCell>,
}

/// The present mapping of a user's ring; a resize replaces it.
#[pin_data]
struct MappingCell {
    #[pin]
    mapping: kernel::sync::Mutex<Option<RingMapping>>,
}

impl MappingCell {
    fn new(mapping: Option<RingMapping>) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(MappingCell { mapping <- kernel::new_mutex!(mapping) }),
            GFP_ACCOUNT,
        )
    }
}

/// `IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION`.
const TIMESTAMP_COMPLETION: u32 = 1 << 0;

fn ring_response(ring: &RingMem, mapping: &RingMapping, entries: u32) -> abi::xroce_create_cq_resp {
    abi::xroce_create_cq_resp {
        ring: abi::xroce_ring_info {
            offset: mapping.offset(),
            size: ring.len() as u32,
            entries,
            stride: abi::CQE_SIZE as u32,
            reserved: 0,
        },
    }
}

/// `ibv_create_cq`: EINVAL for a size beyond what query_device says. (A vector that does not exist
/// never comes here.)
pub(crate) fn create(
    device: &Device<Xroce>,
    init: &CqInitAttr,
    handle: CqHandle,
    udata: Option<&mut Udata<'_, Xroce>>,
) -> Result<CreatedCq<CqData>> {
    let wire_device = &device.data().wire;
    // Timestamps are in every completion of a user; other flags are not known.
    if init.flags & !TIMESTAMP_COMPLETION != 0 {
        return Err(eopnotsupp());
    }
    let entries = entries_for(init.cqe)?;
    let charge = Charge::new(wire_device, Kind::Cq)?;
    let mut user = None;
    let mut ring = None;
    if let Some(udata) = udata {
        let request: abi::xroce_create_cq_req = udata.read()?;
        if request.flags != 0 || request.reserved != 0 {
            return Err(EINVAL);
        }
        let mem = new_ring(entries)?;
        let mapping = udata.ucontext()?.map_ring(mem.clone())?;
        udata.write(&ring_response(&mem, &mapping, entries))?;
        user = Some(mapping);
        ring = Some(mem);
    }
    let is_user = user.is_some();
    let data = CqData {
        wire: WireCq::new(wire_device, ring, entries, handle, charge)?,
        mapping: MappingCell::new(user)?,
    };
    // ib_core sees to the queues of kernel users.
    let adaptive = is_user && device.is_adaptive();
    if adaptive {
        start_adapting(&data.wire).inspect_err(|_| data.wire.stop_alarm())?;
    }
    Ok(CreatedCq {
        data,
        cqe: entries,
        adaptive,
    })
}

/// Queue pairs are gone; what is in flight finds a dead queue.
pub(crate) fn destroy(cq: &Cq<Xroce>) {
    cq.data().wire.end();
}

/// Slots for `cqe` completions.
fn entries_for(cqe: u32) -> Result<u32> {
    if cqe == 0 || cqe > limits::MAX_CQE {
        return Err(EINVAL);
    }
    cqe.checked_next_power_of_two().ok_or(EINVAL)
}

/// `ibv_modify_cq`: an event for `count` completions, or `period` microseconds after the first of
/// them, or when half of the queue is full. A count below 2 or a period of 0 ends moderation.
/// EINVAL for what query_device does not offer. Ends adaptive moderation. Process context.
pub(crate) fn modify(cq: &Cq<Xroce>, count: u16, period: u16) -> Result {
    if count > limits::MAX_CQ_MODERATION_COUNT || period > limits::MAX_CQ_MODERATION_PERIOD {
        return Err(EINVAL);
    }
    let data = cq.data();
    let new = Moderation::new(u32::from(count), u32::from(period));
    // One change at a time.
    let _changing = data.mapping.mapping.lock();
    if new.is_on() {
        ensure_alarm(&data.wire)?;
    }
    data.wire.stop_adapting();
    cq.show_not_adaptive();
    data.wire.set_moderation(new);
    Ok(())
}

/// `ibv_resize_cq`: the completions that wait move to the start of a new ring. EINVAL when they do
/// not fit.
pub(crate) fn resize(cq: &Cq<Xroce>, cqe: u32, udata: &mut Udata<'_, Xroce>) -> Result<u32> {
    let data = cq.data();
    let entries = entries_for(cqe)?;
    let ring = new_ring(entries)?;
    let mapping = udata.ucontext()?.map_ring(ring.clone())?;
    udata.write(&ring_response(&ring, &mapping, entries))?;
    // One resize at a time.
    let mut current = data.mapping.mapping.lock();
    data.wire.move_to(&ring, entries)?;
    // Mappings of the old ring stay until they are unmapped.
    let previous = current.replace(mapping);
    drop(current);
    drop(previous);
    Ok(entries)
}

/// What `rdma -dd resource show cq` says besides what ib_core does: the moderation of the queue,
/// and if that is adaptive its level.
pub(crate) fn show(cq: &Cq<Xroce>, entry: &mut ResEntry) -> Result {
    let (moderation, level) = cq.data().wire.moderation();
    let count = (c"cq_count", u64::from(moderation.count()));
    let period = (c"cq_period", moderation.period_us());
    match level {
        Some(level) => entry.driver_numbers(&[count, period, (c"level", u64::from(level))]),
        None => entry.driver_numbers(&[count, period]),
    }
}
