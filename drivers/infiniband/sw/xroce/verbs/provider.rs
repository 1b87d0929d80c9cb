// SPDX-License-Identifier: GPL-2.0

//! The device as ib_core sees it: its operations table.

use super::ah::AhData;
use super::cq::CqData;
use super::device::DeviceData;
use super::dm::DmData;
use super::mr::MrData;
use super::mw::MwData;
use super::pd::PdData;
use super::qp::QpData;
use super::srq::SrqData;
use super::{
    advise,
    ah,
    context,
    cq,
    device,
    dm,
    mcast,
    mr,
    mw,
    port,
    post,
    qp,
    srq,
    xrc, //
};
use crate::prelude::*;
use ::xrc::{
    rcv_qp,
    OpenDomain, //
};
use datapath::counters;
use rdma::{
    ah::{
        Ah,
        AhAttr, //
    },
    cq::{
        Cq,
        CqInitAttr,
        CreatedCq,
        Notify, //
    },
    device::{
        Device,
        DeviceAttr, //
    },
    dm::{
        CreatedDm,
        Dm,
        DmAlloc,
        DmRegion, //
    },
    gid::Gid,
    mr::{
        Advice,
        AdvisedRange,
        CreatedMr,
        Mr,
        Rereg,
        SgList,
        UserRegion, //
    },
    mw::{
        CreatedMw,
        Mw,
        MwType, //
    },
    pd::Pd,
    pma::PortCounters,
    port::PortAttr,
    provider::Provider,
    qp::{
        CreatedQp,
        DestroyCause,
        Qp,
        QpAttr,
        QpAttrMask,
        QpInitAttr,
        QpQuery, //
    },
    restrack::{
        ResEntry,
        TrackedQp, //
    },
    srq::{
        CreatedSrq,
        Srq,
        SrqAttr,
        SrqAttrMask,
        SrqInitAttr, //
    },
    stats::CounterDesc,
    uverbs::{
        file::{
            FileEvents,
            FileId, //
        },
        rcv_qp::{
            RcvQpAttr,
            RcvQpEnd, //
        },
        udata::{
            Payload,
            Udata, //
        }, //
    },
    wr::{
        RecvWr,
        SendWr,
        WcBuf, //
    },
    xrcd::Xrcd, //
};

/// The driver.
pub(crate) struct Xroce;

#[vtable]
impl Provider for Xroce {
    const DRIVER_ID: u32 = abi::XROCE_DRIVER_ID;
    const UVERBS_ABI_VERSION: u32 = abi::XROCE_UVERBS_ABI_VERSION;
    const FIXED_MMAP_BASE: u64 = abi::XROCE_DM_MMAP_BASE;
    const RCV_QP_EVENT: u32 = abi::XROCE_EVENT_RCV_QP;
    const COUNTERS: &'static [CounterDesc] = counters::DESCRIPTIONS;

    type Data = DeviceData;
    type UContext = ();
    type Pd = PdData;
    type Mr = MrData;
    type Mw = MwData;
    type Dm = DmData;
    type Cq = CqData;
    type Srq = SrqData;
    type Qp = QpData;
    type Ah = AhData;
    type Xrcd = OpenDomain<Self>;
    type RcvQp = rcv_qp::Registered<Self>;

    fn query_device(device: &Device<Self>) -> Result<DeviceAttr> {
        Ok(device::query(device))
    }

    fn query_port(device: &Device<Self>, port: u32) -> Result<PortAttr> {
        port::query(device, port)
    }

    fn query_pkey(_device: &Device<Self>, port: u32, index: u16) -> Result<u16> {
        port::query_pkey(port, index)
    }

    fn add_gid(device: &Device<Self>, gid: &Gid) -> Result {
        device.data().wire.add_address(GidAddr(gid.raw))
    }

    fn del_gid(device: &Device<Self>, gid: &Gid) {
        device.data().wire.remove_address(&GidAddr(gid.raw));
    }

    fn hw_stats(device: &Device<Self>, _port: u32, values: &mut [u64]) {
        let wire = &device.data().wire;
        for (i, value) in values.iter_mut().enumerate() {
            *value = wire.counter(i);
        }
    }

    fn port_counters(device: &Device<Self>, _port: u32) -> PortCounters {
        device.data().wire.port_counters()
    }

    fn alloc_ucontext(_device: &Device<Self>, udata: &mut Payload<'_>) -> Result<()> {
        context::alloc(udata)
    }

    fn alloc_pd(device: &Device<Self>, _udata: Option<&mut Udata<'_, Self>>) -> Result<PdData> {
        PdData::new(&device.data().wire)
    }

    fn reg_user_mr(
        pd: &Pd<Self>,
        region: &UserRegion,
        _udata: Option<&mut Udata<'_, Self>>,
    ) -> Result<CreatedMr<MrData>> {
        mr::reg_user(pd, region)
    }

    fn get_dma_mr(pd: &Pd<Self>, access: u32, memory: KernelAddr) -> Result<CreatedMr<MrData>> {
        mr::get_dma(pd, access, memory)
    }

    fn dereg_mr(mr: &Mr<Self>) -> Result {
        mr::dereg(mr)
    }

    fn rereg_user_mr(mr: &Mr<Self>, change: &Rereg<'_, Self>) -> Result {
        mr::rereg(mr, change)
    }

    fn advise_mr(pd: &Pd<Self>, advice: Advice, wait: bool, list: &[AdvisedRange]) -> Result {
        advise::advise(pd, advice, wait, list)
    }

    fn alloc_dm(device: &Device<Self>, alloc: &DmAlloc<'_, Self>) -> Result<CreatedDm<DmData>> {
        dm::alloc(device, alloc)
    }

    fn reg_dm_mr(pd: &Pd<Self>, dm: &Dm<Self>, region: &DmRegion) -> Result<CreatedMr<MrData>> {
        mr::reg_dm(pd, dm, region)
    }

    fn alloc_mr(pd: &Pd<Self>, max_pages: u32) -> Result<CreatedMr<MrData>> {
        mr::alloc_fast(pd, max_pages)
    }

    fn map_mr_sg(mr: &Mr<Self>, sg: SgList<'_, Self>) -> Result<u32> {
        mr::map(mr, sg)
    }

    fn alloc_mw(
        pd: &Pd<Self>,
        mw_type: MwType,
        _udata: Option<&mut Udata<'_, Self>>,
    ) -> Result<CreatedMw<MwData>> {
        mw::alloc(pd, mw_type)
    }

    fn dealloc_mw(mw: &Mw<Self>) {
        mw::dealloc(mw);
    }

    fn create_cq(
        device: &Device<Self>,
        init: &CqInitAttr,
        handle: CqHandle,
        udata: Option<&mut Udata<'_, Self>>,
    ) -> Result<CreatedCq<CqData>> {
        cq::create(device, init, handle, udata)
    }

    fn resize_cq(cq: &Cq<Self>, cqe: u32, udata: &mut Udata<'_, Self>) -> Result<u32> {
        cq::resize(cq, cqe, udata)
    }

    fn modify_cq(cq: &Cq<Self>, count: u16, period: u16) -> Result {
        cq::modify(cq, count, period)
    }

    fn destroy_cq(cq: &Cq<Self>) {
        cq::destroy(cq);
    }

    fn show_cq(cq: &Cq<Self>, entry: &mut ResEntry) -> Result {
        cq::show(cq, entry)
    }

    fn poll_cq(cq: &Cq<Self>, wcs: &mut WcBuf<'_>) -> Result {
        cq.data().wire.poll(wcs)
    }

    fn req_notify_cq(cq: &Cq<Self>, notify: Notify) -> Result<bool> {
        cq.data().wire.req_notify(notify)
    }

    fn create_srq(
        _pd: &Pd<Self>,
        init: &mut SrqInitAttr<'_, Self>,
        handle: SrqHandle,
        udata: Option<&mut Udata<'_, Self>>,
    ) -> Result<CreatedSrq<SrqData>> {
        srq::create(init, handle, udata)
    }

    fn modify_srq(
        srq: &Srq<Self>,
        attr: &SrqAttr,
        mask: SrqAttrMask,
        udata: Option<&mut Udata<'_, Self>>,
    ) -> Result {
        srq::modify(srq, attr, mask, udata)
    }

    fn query_srq(srq: &Srq<Self>) -> Result<SrqAttr> {
        srq::query(srq)
    }

    fn destroy_srq(srq: &Srq<Self>) {
        srq::destroy(srq);
    }

    fn post_srq_recv(srq: &Srq<Self>, wr: &RecvWr<'_>) -> Result {
        srq::post(srq, wr)
    }

    fn srq_doorbell(srq: &Srq<Self>) -> Result {
        srq::doorbell(srq)
    }

    fn alloc_xrcd(
        device: &Device<Self>,
        _udata: Option<&mut Udata<'_, Self>>,
    ) -> Result<OpenDomain<Self>> {
        OpenDomain::new(device)
    }

    fn dealloc_xrcd(xrcd: &Xrcd<Self>) {
        xrcd.data().close();
    }

    fn create_qp(
        device: &Device<Self>,
        init: &mut QpInitAttr<'_, Self>,
        handle: QpHandle,
        udata: Option<&mut Udata<'_, Self>>,
    ) -> Result<CreatedQp<QpData>> {
        qp::create::create(device, init, handle, udata)
    }

    fn modify_qp(
        qp: &Qp<Self>,
        attr: &QpAttr,
        mask: QpAttrMask,
        _udata: Option<&mut Udata<'_, Self>>,
    ) -> Result {
        qp::modify::modify(qp, attr, mask)
    }

    fn query_qp(qp: &Qp<Self>, _mask: QpAttrMask) -> Result<QpQuery> {
        qp::query::query(qp)
    }

    fn destroy_qp(qp: &Qp<Self>, cause: DestroyCause) {
        qp::destroy::destroy(qp, cause);
    }

    fn show_qp(qp: &Qp<Self>, entry: &mut ResEntry) -> Result {
        xrc::show(qp, entry)
    }

    fn shown_qp(qp: &Qp<Self>) -> Option<Arc<TrackedQp<Self>>> {
        // The entry itself has no view.
        Some(qp.data().view.as_ref()?.target()?.into_shown())
    }

    fn create_rcv_qp(
        xrcd: &Xrcd<Self>,
        events: FileEvents,
        attr: &mut RcvQpAttr<'_>,
        end: RcvQpEnd,
    ) -> Result<(u32, rcv_qp::Registered<Self>)> {
        rcv_qp::create(xrcd, events, attr, end)
    }

    fn register_rcv_qp(
        xrcd: &Xrcd<Self>,
        qp_num: u32,
        events: FileEvents,
    ) -> Result<rcv_qp::Registered<Self>> {
        rcv_qp::register(xrcd, qp_num, events)
    }

    fn modify_rcv_qp(xrcd: &Xrcd<Self>, qp_num: u32, attr: &mut RcvQpAttr<'_>) -> Result {
        rcv_qp::modify(xrcd, qp_num, attr)
    }

    fn is_going(device: &Device<Self>) -> bool {
        device.data().wire.is_going()
    }

    fn query_rcv_qp(xrcd: &Xrcd<Self>, qp_num: u32) -> Result<QpAttr> {
        rcv_qp::query(xrcd, qp_num)
    }

    fn rcv_qp_registration(xrcd: &Xrcd<Self>, qp_num: u32, file: FileId) -> Result<u32> {
        rcv_qp::registration(xrcd, qp_num, file)
    }

    fn post_send(qp: &Qp<Self>, wr: &SendWr<'_, Self>) -> Result {
        post::send(&qp.data().wire, wr)
    }

    fn post_send_end(qp: &Qp<Self>) {
        qp.data().wire.schedule_send();
    }

    fn doorbell(qp: &Qp<Self>) -> Result {
        qp.data().wire.doorbell();
        Ok(())
    }

    fn post_recv(qp: &Qp<Self>, wr: &RecvWr<'_>) -> Result {
        post::receive(&qp.data().wire, wr)
    }

    fn create_ah(
        pd: &Pd<Self>,
        attr: &AhAttr,
        sleepable: bool,
        udata: Option<&mut Udata<'_, Self>>,
    ) -> Result<AhData> {
        ah::create(pd, attr, sleepable, udata)
    }

    fn modify_ah(ah: &Ah<Self>, attr: &AhAttr) -> Result {
        ah::modify(ah, attr)
    }

    fn query_ah(ah: &Ah<Self>) -> Result<AhAttr> {
        Ok(ah::query(ah))
    }

    fn destroy_ah(ah: &Ah<Self>) {
        ah::destroy(ah);
    }

    fn attach_mcast(qp: &Qp<Self>, gid: &[u8; 16], _lid: u16) -> Result {
        mcast::attach(qp, gid)
    }

    fn detach_mcast(qp: &Qp<Self>, gid: &[u8; 16], _lid: u16) -> Result {
        mcast::detach(qp, gid)
    }
}
