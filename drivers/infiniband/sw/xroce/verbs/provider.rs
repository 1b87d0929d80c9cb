// SPDX-License-Identifier: GPL-2.0

//! The device as ib_core sees it: its operations table.

use super::ah::AhData;
use super::cq::CqData;
use super::dm::DmData;
use super::mr::MrData;
use super::mw::MwData;
use super::pd::PdData;
use super::qp::QpData;
use super::rcv_qp::RcvQpData;
use super::srq::SrqData;
use super::xrc::XrcdData;
use super::{
    advise,
    ah,
    cq,
    dm,
    mcast,
    mr,
    mw,
    port,
    post,
    qp,
    rcv_qp,
    srq,
    xrc, //
};
use crate::prelude::*;
use datapath::{
    counters,
    limits,
    mcast as groups, //
};
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
        device_cap,
        kernel_cap,
        odp_cap,
        Device,
        DeviceAttr,
        OnDemandCaps,
        TmCaps, //
    },
    dm::{
        CreatedDm,
        Dm,
        DmAlloc,
        DmRegion, //
    },
    gid::Gid,
    mem,
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
        rcv_qp::RcvQpAttr,
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

/// Version that `ibv_devinfo` shows: major.minor.patch.
const VERSION: u64 = 1 << 16;
/// Shown as the vendor: locally administered, nobody's.
const VENDOR_ID: u32 = 0x02_5852;
/// The part: "xr".
const VENDOR_PART_ID: u32 = 0x7872;
/// Features of the user ABI.
const FEATURES: u64 = abi::XROCE_FEATURE_SHARED_ARM as u64 | abi::XROCE_FEATURE_AWAKE as u64;

/// The operations of one transport that support on-demand paging: all of its operations.
const DATAGRAM: u32 = odp_cap::SEND | odp_cap::RECV | odp_cap::SRQ_RECV;
const CONNECTED: u32 = DATAGRAM | odp_cap::WRITE;
const RELIABLE: u32 =
    CONNECTED | odp_cap::READ | odp_cap::ATOMIC | odp_cap::FLUSH | odp_cap::ATOMIC_WRITE;

/// On-demand paging.
const ON_DEMAND: OnDemandCaps = OnDemandCaps {
    general: odp_cap::SUPPORT | odp_cap::IMPLICIT,
    rc: RELIABLE,
    uc: CONNECTED,
    ud: DATAGRAM,
    xrc: RELIABLE & !odp_cap::RECV,
};

/// FLUSH to persistence, on architectures that can write their caches back.
const PERSISTENCE: u64 = match mem::HAS_WRITE_BACK {
    true => device_cap::FLUSH_PERSISTENT,
    false => 0,
};

/// The driver.
pub(crate) struct Xroce;

/// What ib_core's device holds.
pub(crate) struct DeviceData {
    pub(crate) wire: Arc<WireDevice>,
}

impl Drop for DeviceData {
    /// The device is gone: frees the UDP port at once, whatever still holds the shared part.
    fn drop(&mut self) {
        self.wire.tunnel().close();
    }
}

#[vtable]
impl Provider for Xroce {
    const DRIVER_ID: u32 = abi::XROCE_DRIVER_ID;
    const UVERBS_ABI_VERSION: u32 = abi::XROCE_UVERBS_ABI_VERSION;
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
    type Xrcd = XrcdData;
    type RcvQp = RcvQpData;

    fn query_device(device: &Device<Self>) -> Result<DeviceAttr> {
        let wire = &device.data().wire;
        Ok(DeviceAttr {
            fw_ver: VERSION,
            sys_image_guid: wire.guid().to_be_bytes(),
            max_mr_size: limits::MAX_MR_SIZE,
            page_size_cap: !0xfff,
            vendor_id: VENDOR_ID,
            vendor_part_id: VENDOR_PART_ID,
            hw_ver: 1,
            max_qp: limits::MAX_QP,
            max_qp_wr: limits::MAX_QP_WR,
            device_cap_flags: device_cap::XRC
                | device_cap::CURR_QP_STATE_MOD
                | device_cap::PORT_ACTIVE_EVENT
                | device_cap::SYS_IMAGE_GUID
                | device_cap::RC_RNR_NAK_GEN
                | device_cap::SRQ_RESIZE
                | device_cap::MEM_WINDOW
                | device_cap::MEM_WINDOW_TYPE_2B
                | device_cap::MEM_MGT_EXTENSIONS
                | device_cap::FLUSH_GLOBAL
                | PERSISTENCE
                | device_cap::ATOMIC_WRITE,
            kernel_cap_flags: kernel_cap::LOCAL_DMA_LKEY
                | kernel_cap::ALLOW_USER_UNREG
                | kernel_cap::ON_DEMAND_PAGING,
            on_demand: ON_DEMAND,
            max_send_sge: limits::MAX_SGE,
            max_recv_sge: limits::MAX_SGE,
            max_sge_rd: limits::MAX_SGE,
            max_cq: limits::MAX_CQ,
            max_cqe: limits::MAX_CQE,
            max_mr: limits::MAX_MR,
            max_mw: limits::MAX_MW,
            max_dm_size: limits::MAX_DM_SIZE,
            max_fast_reg_page_list_len: limits::MAX_FAST_PAGES,
            max_pd: limits::MAX_PD,
            max_qp_rd_atom: u32::from(limits::MAX_RD_ATOMIC),
            max_res_rd_atom: limits::MAX_QP.saturating_mul(u32::from(limits::MAX_RD_ATOMIC)),
            max_qp_init_rd_atom: u32::from(limits::MAX_INIT_RD_ATOMIC),
            atomic_hca: true,
            max_mcast_grp: groups::MAX_GROUPS,
            max_mcast_qp_attach: groups::MAX_QPS as u32,
            max_total_mcast_qp_attach: groups::MAX_MEMBERS as u32,
            max_ah: limits::MAX_AH,
            max_srq: limits::MAX_SRQ,
            max_srq_wr: limits::MAX_SRQ_WR,
            max_srq_sge: limits::MAX_SGE,
            max_pkeys: 1,
            // 4.096 µs << 15 = 134 ms: the receiver may sit behind a busy softirq.
            local_ca_ack_delay: 15,
            timestamp_mask: u64::MAX,
            // kHz; the time stamps count nanoseconds.
            hca_core_clock: 1_000_000,
            max_cq_moderation_count: limits::MAX_CQ_MODERATION_COUNT,
            max_cq_moderation_period: limits::MAX_CQ_MODERATION_PERIOD,
            tm: TmCaps {
                max_rndv_hdr_size: limits::MAX_RNDV_HDR,
                max_num_tags: limits::MAX_TM_TAGS,
                max_ops: limits::MAX_TM_OPS,
                max_sge: limits::MAX_TM_SGE,
            },
        })
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
        let request: abi::xroce_alloc_ucontext_req = udata.read()?;
        if request.abi_version != abi::XROCE_ABI_VERSION {
            return Err(eproto());
        }
        if request.reserved != 0 {
            return Err(EINVAL);
        }
        udata.write(&abi::xroce_alloc_ucontext_resp {
            abi_version: abi::XROCE_ABI_VERSION,
            max_inline: limits::MAX_INLINE,
            features: request.features & FEATURES,
        })
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

    fn alloc_xrcd(device: &Device<Self>, _udata: Option<&mut Udata<'_, Self>>) -> Result<XrcdData> {
        XrcdData::new(&device.data().wire)
    }

    fn dealloc_xrcd(xrcd: &Xrcd<Self>) {
        xrcd.data().domain().close();
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
        Some(qp.data().view.as_ref()?.target()?.shown)
    }

    fn create_rcv_qp(
        xrcd: &Xrcd<Self>,
        events: FileEvents,
        attr: &mut RcvQpAttr<'_>,
    ) -> Result<(u32, RcvQpData)> {
        rcv_qp::create(xrcd, events, attr)
    }

    fn register_rcv_qp(xrcd: &Xrcd<Self>, qp_num: u32, events: FileEvents) -> Result<RcvQpData> {
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
        let wire = &qp.data().wire;
        let queue = wire.kernel_sends.as_ref().ok_or(EINVAL)?;
        if matches!(wire.state(), QpState::Reset | QpState::Init | QpState::Rtr) {
            return Err(EINVAL);
        }
        post::post_send(wire.kind, queue, wr, wire.state().is_error())
    }

    fn post_send_end(qp: &Qp<Self>) {
        qp.data().wire.schedule_send();
    }

    fn doorbell(qp: &Qp<Self>) -> Result {
        qp.data().wire.doorbell();
        Ok(())
    }

    fn post_recv(qp: &Qp<Self>, wr: &RecvWr<'_>) -> Result {
        let wire = &qp.data().wire;
        let queue = wire.kernel_recvs.as_ref().ok_or(EINVAL)?;
        if wire.state() == QpState::Reset {
            return Err(EINVAL);
        }
        post::post_recv(queue, wr)?;
        if wire.state().is_error() {
            // Nothing else runs this side any more.
            wire.schedule_receive();
        }
        Ok(())
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
