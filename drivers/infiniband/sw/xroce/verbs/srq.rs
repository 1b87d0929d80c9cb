// SPDX-License-Identifier: GPL-2.0

//! Shared receive queues, basic, XRC and tag matching.

use crate::prelude::*;
use crate::verbs::provider::Xroce;
use crate::verbs::{
    post,
    ring_info,
    tm, //
};
use datapath::limits::{
    self,
    Charge,
    Kind, //
};
use datapath::qp::request::KernelQueue;
use datapath::qp::ring::RingReader;
use datapath::srq::{
    NewSrq,
    Queue, //
};
use datapath::tm::Tm;
use datapath::{
    tables,
    wr, //
};
use kernel::{
    new_mutex,
    sync::Mutex,
    uaccess::{
        UserPtr,
        UserSlice, //
    }, //
};
use rdma::srq::{
    CreatedSrq,
    Srq,
    SrqAttr,
    SrqAttrMask,
    SrqInitAttr,
    SrqType, //
};
use rdma::uverbs::{
    mmap::RingMapping,
    udata::Udata, //
};
use rdma::wr::RecvWr;
use xrc::{
    Member,
    XrcSrq, //
};
use zerocopy::IntoBytes;

/// What ib_core's SRQ holds.
pub(crate) struct SrqData {
    pub(crate) wire: Ref<WireSrq>,
    /// The ring of a user, which a resize replaces.
    ring: Option<Pin<KBox<Mutex<UserRing>>>>,
    _tm_mappings: Option<[RingMapping; 2]>,
}

/// The ring of a user's SRQ.
struct UserRing {
    mem: Arc<RingMem>,
    _mapping: RingMapping,
}

/// The receives of a new queue, and for a process the mappings of its rings.
struct NewQueue {
    queue: Queue,
    ring: Option<Pin<KBox<Mutex<UserRing>>>>,
    tm: Option<Arc<Tm>>,
    tm_mappings: Option<[RingMapping; 2]>,
}

/// `ibv_create_srq`, `ibv_create_srq_ex`. EINVAL for sizes beyond the device's.
pub(crate) fn create(
    init: &mut SrqInitAttr<'_, Xroce>,
    handle: SrqHandle,
    udata: Option<&mut Udata<'_, Xroce>>,
) -> Result<CreatedSrq<SrqData>> {
    let device = &init.pd.device().data().wire;
    let (cq, member) = completions(init)?;
    round_up(&mut init.attr)?;
    let charge = Charge::new(device, Kind::Srq)?;
    let reservation = tables::tables()?.srqs.reserve()?;
    let srqn = reservation.number();
    let new = match udata {
        Some(udata) => user_queue(init, srqn, udata)?,
        // Operations on a matching list have no verb in the kernel.
        None if init.srq_type == SrqType::TagMatching => return Err(eopnotsupp()),
        None => kernel_queue(&init.attr)?,
    };
    let wire = WireSrq::new(NewSrq {
        srqn,
        device,
        pd: init.pd.data().wire(),
        cq,
        member,
        max_wr: init.attr.max_wr,
        max_sge: init.attr.max_sge,
        queue: new.queue,
        tm: new.tm,
        handle,
        charge,
    })?;
    reservation.publish(wire.clone());
    Ok(CreatedSrq {
        data: SrqData {
            wire,
            ring: new.ring,
            _tm_mappings: new.tm_mappings,
        },
        srq_num: srqn.get(),
    })
}

/// Where receives complete and the place in an XRC domain, for the types of queues that have these.
/// EINVAL when one is missing.
fn completions(init: &SrqInitAttr<'_, Xroce>) -> Result<(Option<Ref<WireCq>>, Option<Member>)> {
    let (cq, member) = match XrcSrq::new(init)? {
        Some(XrcSrq { cq, member }) => (Some(cq), Some(member)),
        None if init.srq_type == SrqType::TagMatching => (Some(init.cq.ok_or(EINVAL)?), None),
        None => (None, None),
    };
    Ok((cq.map(|cq| cq.data().wire.clone()), member))
}

/// The size that a queue gets whose user asks for `attr`. EINVAL beyond the device's limits.
fn round_up(attr: &mut SrqAttr) -> Result {
    if attr.max_wr == 0 || attr.max_wr > limits::MAX_SRQ_WR || attr.max_sge > limits::MAX_SGE {
        return Err(EINVAL);
    }
    attr.max_sge = attr.max_sge.max(1);
    attr.max_wr = attr.max_wr.checked_next_power_of_two().ok_or(EINVAL)?;
    attr.limit = 0;
    Ok(())
}

/// Makes the queue of a kernel user.
fn kernel_queue(attr: &SrqAttr) -> Result<NewQueue> {
    let queue = KernelQueue::new(attr.max_wr, attr.max_sge);
    Ok(NewQueue {
        queue: Queue::Kernel(Arc::pin_init(queue, GFP_KERNEL)?),
        ring: None,
        tm: None,
        tm_mappings: None,
    })
}

/// Makes the ring of a process, and for tag matching the list and its rings, and tells user space
/// about them.
fn user_queue(
    init: &SrqInitAttr<'_, Xroce>,
    srqn: Srqn,
    udata: &mut Udata<'_, Xroce>,
) -> Result<NewQueue> {
    let entries = init.attr.max_wr;
    let stride = wr::recv_stride(init.attr.max_sge);
    let mem = wr::new_ring(entries, stride)?;
    let mapping = udata.ucontext()?.map_ring(mem.clone())?;
    let response = abi::xroce_create_srq_resp {
        ring: ring_info(&mem, &mapping, entries, stride),
        srqn: srqn.get(),
        reserved: 0,
    };
    let (tm, tm_mappings) = if init.srq_type == SrqType::TagMatching {
        let (tm, mappings) = user_tags(init, response, udata)?;
        (Some(tm), Some(mappings))
    } else {
        udata.write(&response)?;
        (None, None)
    };
    let ring = UserRing {
        mem: mem.clone(),
        _mapping: mapping,
    };
    Ok(NewQueue {
        queue: Queue::User(RingReader::new(mem, 0, entries, stride)),
        ring: Some(KBox::pin_init(new_mutex!(ring), GFP_ACCOUNT)?),
        tm,
        tm_mappings,
    })
}

/// Makes the matching list of a process and tells user space about it and about the queue.
fn user_tags(
    init: &SrqInitAttr<'_, Xroce>,
    srq: abi::xroce_create_srq_resp,
    udata: &mut Udata<'_, Xroce>,
) -> Result<(Arc<Tm>, [RingMapping; 2])> {
    let cq = init.cq.ok_or(EINVAL)?.data().wire.clone();
    let made = tm::create(init.max_num_tags, cq, udata)?;
    udata.write(&abi::xroce_create_tm_srq_resp {
        srq,
        ops: made.ops,
        freed: made.freed,
        max_sge: limits::MAX_TM_SGE,
        max_masks: roce::tm::MAX_MASKS as u32,
    })?;
    Ok((made.tm, made.mappings))
}

/// Gives a user's queue a ring for `max_wr` receives and tells user space about it. EINVAL when
/// more are posted, or when there is a limit above; nothing is changed then. Sets the limit as well
/// if there is a `new_limit`.
fn resize(
    srq: &Srq<Xroce>,
    max_wr: u32,
    new_limit: Option<u32>,
    udata: &mut Udata<'_, Xroce>,
) -> Result {
    let data = srq.data();
    let wire = &data.wire;
    if max_wr == 0 || max_wr > limits::MAX_SRQ_WR {
        return Err(EINVAL);
    }
    let entries = max_wr.checked_next_power_of_two().ok_or(EINVAL)?;
    let request: abi::xroce_modify_srq_req = udata.read()?;
    let address = usize::try_from(request.ring_addr).map_err(|_| EINVAL)?;
    // One resize at a time; receives are taken meanwhile.
    let mut user = data.ring.as_ref().ok_or(EINVAL)?.lock();
    let stride = wr::recv_stride(wire.max_sge());
    let mem = wr::new_ring(entries, stride)?;
    let mapping = udata.ucontext()?.map_ring(mem.clone())?;
    let info = ring_info(&mem, &mapping, entries, stride);
    UserSlice::new(
        UserPtr::from_addr(address),
        core::mem::size_of::<abi::xroce_ring_info>(),
    )
    .writer()
    .write_slice(info.as_bytes())?;
    wire.move_to(&mem, entries, new_limit)?;
    *user = UserRing {
        mem,
        _mapping: mapping,
    };
    Ok(())
}

/// `ibv_modify_srq`: size of a user's queue, limit. EINVAL for what is out of range.
pub(crate) fn modify(
    srq: &Srq<Xroce>,
    attr: &SrqAttr,
    mask: SrqAttrMask,
    udata: Option<&mut Udata<'_, Xroce>>,
) -> Result {
    let wire = &srq.data().wire;
    let limit = mask.limit.then_some(attr.limit);
    if mask.max_wr {
        // Both or nothing: user space stays with its ring when it is told of an error.
        resize(srq, attr.max_wr, limit, udata.ok_or(EINVAL)?)
    } else if let Some(limit) = limit {
        wire.set_limit(limit)
    } else {
        Ok(())
    }
}

/// `ibv_query_srq`.
pub(crate) fn query(srq: &Srq<Xroce>) -> Result<SrqAttr> {
    let wire = &srq.data().wire;
    if wire.is_dead() {
        return Err(EINVAL);
    }
    Ok(SrqAttr {
        max_wr: wire.max_wr(),
        max_sge: wire.max_sge(),
        limit: wire.limit(),
    })
}

/// No queue pair of ib_core's names the queue any more; packets may.
pub(crate) fn destroy(srq: &Srq<Xroce>) {
    let data = srq.data();
    data.wire.end();
    if let Some(ring) = &data.ring {
        let _ = ring
            .lock()
            .mem
            .fetch_or(abi::RING_KERNEL_FLAGS, abi::RING_DEAD);
    }
}

/// A user's doorbell: operations wait in the ring of a tag-matching queue; EINVAL for another.
/// Process context.
pub(crate) fn doorbell(srq: &Srq<Xroce>) -> Result {
    let wire = &srq.data().wire;
    let tm = wire.tm.as_ref().ok_or(EINVAL)?;
    tm.doorbell().inspect_err(|_| wire.fail())
}

/// One receive of a kernel user. Any context.
pub(crate) fn post(srq: &Srq<Xroce>, wr: &RecvWr<'_>) -> Result {
    let queue = srq.data().wire.kernel().ok_or(EINVAL)?;
    post::receive_into(queue, wr)
}
