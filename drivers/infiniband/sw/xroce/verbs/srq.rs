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

/// `ibv_create_srq`, `ibv_create_srq_ex`. EINVAL for sizes beyond the device's.
pub(crate) fn create(
    init: &mut SrqInitAttr<'_, Xroce>,
    handle: SrqHandle,
    udata: Option<&mut Udata<'_, Xroce>>,
) -> Result<CreatedSrq<SrqData>> {
    let device = &init.pd.device().data().wire;
    let (cq, domain) = match init.srq_type {
        SrqType::Basic => (None, None),
        SrqType::Xrc => {
            let cq = init.cq.ok_or(EINVAL)?;
            let xrcd = init.xrcd.ok_or(EINVAL)?;
            (Some(cq.data().wire.clone()), Some(xrcd.data().id()))
        }
        SrqType::TagMatching => {
            let cq = init.cq.ok_or(EINVAL)?;
            (Some(cq.data().wire.clone()), None)
        }
    };
    let attr = &mut init.attr;
    if attr.max_wr == 0 || attr.max_wr > limits::MAX_SRQ_WR || attr.max_sge > limits::MAX_SGE {
        return Err(EINVAL);
    }
    attr.max_sge = attr.max_sge.max(1);
    attr.max_wr = attr.max_wr.checked_next_power_of_two().ok_or(EINVAL)?;
    attr.limit = 0;
    let charge = Charge::new(device, Kind::Srq)?;
    let reservation = tables::tables()?.srqs.reserve()?;
    let srqn = reservation.id();
    let mut ring = None;
    let mut matching = None;
    let mut tm_mappings = None;
    let queue = match udata {
        Some(udata) => {
            let stride = wr::recv_stride(attr.max_sge);
            let mem = wr::new_ring(attr.max_wr, stride)?;
            let map = udata.ucontext()?.map_ring(mem.clone())?;
            let response = abi::xroce_create_srq_resp {
                ring: ring_info(&mem, &map, attr.max_wr, stride),
                srqn,
                reserved: 0,
            };
            if init.srq_type == SrqType::TagMatching {
                let cq = cq.clone().ok_or(EINVAL)?;
                let made = tm::create(init.max_num_tags, cq, udata)?;
                matching = Some(made.tm);
                tm_mappings = Some(made.mappings);
                udata.write(&abi::xroce_create_tm_srq_resp {
                    srq: response,
                    ops: made.ops,
                    freed: made.freed,
                    max_sge: limits::MAX_TM_SGE,
                    reserved: 0,
                })?;
            } else {
                udata.write(&response)?;
            }
            ring = Some(KBox::pin_init(
                new_mutex!(UserRing {
                    mem: mem.clone(),
                    _mapping: map,
                }),
                GFP_ACCOUNT,
            )?);
            Queue::User(RingReader::new(mem, attr.max_wr, stride))
        }
        // Operations on a matching list have no verb in the kernel.
        None if init.srq_type == SrqType::TagMatching => return Err(eopnotsupp()),
        None => {
            let queue = KernelQueue::new(attr.max_wr, attr.max_sge);
            Queue::Kernel(Arc::pin_init(queue, GFP_KERNEL)?)
        }
    };
    let wire = WireSrq::new(NewSrq {
        srqn,
        device,
        pd: init.pd.data().wire(),
        cq,
        domain,
        max_wr: init.attr.max_wr,
        max_sge: init.attr.max_sge,
        queue,
        tm: matching,
        handle,
        charge,
    })?;
    reservation.publish(wire.clone());
    Ok(CreatedSrq {
        data: SrqData {
            wire,
            ring,
            _tm_mappings: tm_mappings,
        },
        srq_num: srqn,
    })
}

/// Gives a user's queue a ring for `max_wr` receives and tells user space about it. EINVAL when more
/// are posted, or when there is a limit above; nothing is changed then. Sets the limit as well if
/// there is a `new_limit`.
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

/// A user's doorbell: operations wait in the ring of a tag-matching queue; EINVAL for another. Process
/// context.
pub(crate) fn doorbell(srq: &Srq<Xroce>) -> Result {
    let wire = &srq.data().wire;
    let tm = wire.tm.as_ref().ok_or(EINVAL)?;
    tm.doorbell().inspect_err(|_| wire.fail())
}

/// One receive of a kernel user. Any context.
pub(crate) fn post(srq: &Srq<Xroce>, wr: &RecvWr<'_>) -> Result {
    let queue = srq.data().wire.kernel().ok_or(EINVAL)?;
    post::post_recv(queue, wr)
}
