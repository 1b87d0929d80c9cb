// SPDX-License-Identifier: GPL-2.0

//! A second provider of XRC: a device without packets, rings or memory.
//!
//! It shows that crates `rdma` and `xrc` do not depend on xroce: what is here is all that a
//! provider adds to them. A message carries no data. A process connects an initiator to a target
//! (`dest_qp_num`) and names an SRQ (`sq_psn`, as there are no packets that would need one). Each
//! doorbell of the initiator is one message, each doorbell of an SRQ posts one receive. A message
//! that takes a receive raises a completion event of the SRQ's CQ.
//!
//! The module contains copies of the crates, so `xroce` may or may not be loaded.
//! `selftests/lib/loopback.py` is its user space.

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Full,
            Relaxed, //
        },
        Arc, //
    }, //
};
use rdma::{
    cq::{
        Cq,
        CqInitAttr,
        CreatedCq,
        Notify, //
    },
    device::{
        device_cap,
        kernel_cap,
        Device,
        DeviceAttr,
        DeviceConfig,
        UnregisteredDevice, //
    },
    errno::eopnotsupp,
    events::{
        CqHandle,
        QpEvent,
        QpHandle,
        SrqHandle, //
    },
    gid::Gid,
    link::{
        Leave,
        LinkOps,
        Registration, //
    },
    mem::KernelAddr,
    mr::{
        CreatedMr,
        Mr,
        UserRegion, //
    },
    net::NetDev,
    pd::Pd,
    port::PortAttr,
    provider::Provider,
    qp::{
        CreatedQp,
        DestroyCause,
        Qp,
        QpAttr,
        QpAttrMask,
        QpInitAttr,
        QpType, //
    },
    rcu::{
        Global,
        Ref,
        Reservation,
        Table,
        GFP_ACCOUNT, //
    },
    srq::{
        CreatedSrq,
        Srq,
        SrqInitAttr, //
    },
    stats::CounterDesc,
    uverbs::udata::{
        Payload,
        Udata, //
    },
    vector::Vectors,
    work::Services,
    wr::{
        RecvWr,
        SendWr,
        WcBuf, //
    },
    xrcd::Xrcd, //
};
use roce::{
    number::{
        Qpn,
        Srqn, //
    },
    responder::ReceiveError, //
};
use xrc::{
    Counted,
    Member,
    OpenDomain,
    OpenTarget,
    SharedQueue,
    Srqs,
    Target,
    View,
    Views,
    XrcProvider,
    XrcSrq, //
};

module! {
    type: Module,
    name: "selftest_loopback",
    authors: ["The xroce authors"],
    description: "A provider of XRC without a network",
    license: "GPL",
}

/// Queue pairs by number. Only targets are found.
static QPS: Global<Table<WireTgt>> = Global::new();
static SRQS: Global<Srqs<WireSrq>> = Global::new();

/// What the counters of the port say.
static MESSAGES: Atomic<u64> = Atomic::new(0);
static DOMAINS: Atomic<u64> = Atomic::new(0);
static USERS: Atomic<u64> = Atomic::new(0);
static TARGETS: Atomic<u64> = Atomic::new(0);

/// One object that is counted as long as this exists.
struct Charge(&'static Atomic<u64>);

impl Charge {
    fn new(count: &'static Atomic<u64>) -> Self {
        count.fetch_add(1, Relaxed);
        Self(count)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// A target, as messages find it.
struct WireTgt {
    qpn: Qpn,
    domain: u64,
    views: Arc<Views>,
}

impl WireTgt {
    /// One message for SRQ `srqn`. Any context.
    fn deliver(&self, srqn: Srqn) -> Result {
        let srqs = SRQS.get().ok_or(ENODEV)?;
        match srqs.with(srqn, self.domain, WireSrq::take) {
            Ok(true) => Ok(()),
            Ok(false) => Err(EAGAIN),
            Err(e) => {
                // Whoever has the target open may hear of it, as with xroce.
                let _ = self.views.event(QpEvent::AccessError);
                Err(match e {
                    ReceiveError::WrongDomain => EACCES,
                    _ => EINVAL,
                })
            }
        }
    }
}

/// A target, as its domain sees it.
#[derive(Clone)]
struct Tgt {
    wire: Ref<WireTgt>,
    _charge: Arc<Charge>,
}

impl Target for Tgt {
    fn end(&self) {
        if let Some(qps) = QPS.get() {
            drop(qps.remove(self.wire.qpn.get()));
        }
    }
}

/// An SRQ, as messages find it.
struct WireSrq {
    member: Option<Member>,
    cq: CqHandle,
    posted: Atomic<u32>,
}

impl SharedQueue for WireSrq {
    fn member(&self) -> Option<&Member> {
        self.member.as_ref()
    }
}

impl WireSrq {
    /// Takes a receive and completes it; false when there is none. Any context.
    fn take(&self) -> bool {
        let mut posted = self.posted.load(Relaxed);
        while let Some(left) = posted.checked_sub(1) {
            match self.posted.cmpxchg(posted, left, Full) {
                Ok(_) => {
                    MESSAGES.fetch_add(1, Relaxed);
                    self.cq.completion();
                    return true;
                }
                Err(now) => posted = now,
            }
        }
        false
    }
}

struct SrqData {
    srqn: Srqn,
    wire: Ref<WireSrq>,
}

/// A view of a target, or an initiator.
struct QpData {
    view: Option<View<Tgt>>,
    _charge: Option<Charge>,
    dest: Atomic<u32>,
    srqn: Atomic<u32>,
}

/// The driver.
struct Loopback;

impl XrcProvider for Loopback {
    type Target = Tgt;
    type Number = Reservation<'static, WireTgt>;
    type Charge = Charge;

    const MAX_TARGETS: usize = 16;
    const OPEN_TARGET: u32 = 0x4f50_454e;

    fn charge(_device: &Device<Self>, what: Counted) -> Result<Charge> {
        Ok(Charge::new(match what {
            Counted::Domain => &DOMAINS,
            Counted::User => &USERS,
        }))
    }

    fn reserve_target(_device: &Device<Self>) -> Result<(Qpn, Self::Number)> {
        let reservation = QPS.get().ok_or(ENODEV)?.reserve()?;
        Ok((Qpn::new(reservation.id()), reservation))
    }

    fn new_target(
        _device: &Device<Self>,
        qpn: Qpn,
        domain: u64,
        views: &Arc<Views>,
    ) -> Result<Tgt> {
        let wire = WireTgt {
            qpn,
            domain,
            views: views.clone(),
        };
        Ok(Tgt {
            wire: Ref::new(wire, GFP_ACCOUNT)?,
            _charge: Arc::new(Charge::new(&TARGETS), GFP_ACCOUNT)?,
        })
    }

    fn publish_target(number: Self::Number, target: &Tgt) {
        number.publish(target.wire.clone());
    }
}

#[vtable]
impl Provider for Loopback {
    const DRIVER_ID: u32 = 0x4c4f_4f50;
    const UVERBS_ABI_VERSION: u32 = 1;
    const FIXED_MMAP_BASE: u64 = 1 << 20;
    const COUNTERS: &'static [CounterDesc] = &[
        CounterDesc::new(c"messages"),
        CounterDesc::new(c"domains"),
        CounterDesc::new(c"users"),
        CounterDesc::new(c"targets"),
    ];

    type Data = ();
    type UContext = ();
    type Pd = ();
    type Mr = ();
    type Mw = ();
    type Dm = ();
    type Cq = ();
    type Srq = SrqData;
    type Qp = QpData;
    type Ah = ();
    type Xrcd = OpenDomain<Self>;
    type RcvQp = ();

    fn query_device(_device: &Device<Self>) -> Result<DeviceAttr> {
        Ok(DeviceAttr {
            device_cap_flags: device_cap::XRC,
            kernel_cap_flags: kernel_cap::LOCAL_DMA_LKEY,
            max_qp: 1 << 16,
            max_qp_wr: 1 << 10,
            max_cq: 1 << 16,
            max_cqe: 1 << 16,
            max_srq: 1 << 16,
            max_pd: 1 << 16,
            max_pkeys: 1,
            ..DeviceAttr::default()
        })
    }

    fn query_port(device: &Device<Self>, port: u32) -> Result<PortAttr> {
        let link = device.link(port)?;
        Ok(PortAttr {
            state: link.state,
            max_mtu: 4096,
            active_mtu: 1024,
            gid_table_len: 16,
            pkey_table_len: 1,
            active_width: link.width,
            active_speed: link.speed,
            ..PortAttr::default()
        })
    }

    fn query_pkey(_device: &Device<Self>, _port: u32, _index: u16) -> Result<u16> {
        Ok(0xffff)
    }

    fn add_gid(_device: &Device<Self>, _gid: &Gid) -> Result {
        Ok(())
    }

    fn hw_stats(_device: &Device<Self>, _port: u32, values: &mut [u64]) {
        for (value, count) in values
            .iter_mut()
            .zip([&MESSAGES, &DOMAINS, &USERS, &TARGETS])
        {
            *value = count.load(Relaxed);
        }
    }

    fn alloc_ucontext(_device: &Device<Self>, _udata: &mut Payload<'_>) -> Result<()> {
        Ok(())
    }

    fn alloc_pd(_device: &Device<Self>, _udata: Option<&mut Udata<'_, Self>>) -> Result<()> {
        Ok(())
    }

    fn reg_user_mr(
        _pd: &Pd<Self>,
        _region: &UserRegion,
        _udata: Option<&mut Udata<'_, Self>>,
    ) -> Result<CreatedMr<()>> {
        Err(eopnotsupp())
    }

    fn get_dma_mr(_pd: &Pd<Self>, _access: u32, _memory: KernelAddr) -> Result<CreatedMr<()>> {
        Err(eopnotsupp())
    }

    fn dereg_mr(_mr: &Mr<Self>) -> Result {
        Ok(())
    }

    fn create_cq(
        _device: &Device<Self>,
        init: &CqInitAttr,
        _handle: CqHandle,
        _udata: Option<&mut Udata<'_, Self>>,
    ) -> Result<CreatedCq<()>> {
        Ok(CreatedCq {
            data: (),
            cqe: init.cqe,
            adaptive: false,
        })
    }

    fn poll_cq(_cq: &Cq<Self>, _wcs: &mut WcBuf<'_>) -> Result {
        Ok(())
    }

    fn req_notify_cq(_cq: &Cq<Self>, _notify: Notify) -> Result<bool> {
        Ok(false)
    }

    fn create_srq(
        _pd: &Pd<Self>,
        init: &mut SrqInitAttr<'_, Self>,
        _handle: SrqHandle,
        _udata: Option<&mut Udata<'_, Self>>,
    ) -> Result<CreatedSrq<SrqData>> {
        let XrcSrq { cq, member } = XrcSrq::new(init)?.ok_or(eopnotsupp())?;
        let reservation = SRQS.get().ok_or(ENODEV)?.reserve()?;
        let srqn = reservation.number();
        let wire = WireSrq {
            member: Some(member),
            cq: cq.handle().clone(),
            posted: Atomic::new(0),
        };
        let wire = Ref::new(wire, GFP_ACCOUNT)?;
        reservation.publish(wire.clone());
        Ok(CreatedSrq {
            data: SrqData { srqn, wire },
            srq_num: srqn.get(),
        })
    }

    fn destroy_srq(srq: &Srq<Self>) {
        if let Some(srqs) = SRQS.get() {
            srqs.remove(srq.data().srqn);
        }
    }

    fn post_srq_recv(_srq: &Srq<Self>, _wr: &RecvWr<'_>) -> Result {
        Err(eopnotsupp())
    }

    fn srq_doorbell(srq: &Srq<Self>) -> Result {
        srq.data().wire.posted.fetch_add(1, Relaxed);
        Ok(())
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
        _udata: Option<&mut Udata<'_, Self>>,
    ) -> Result<CreatedQp<QpData>> {
        let (qp_num, view, charge) = match init.qp_type {
            QpType::XrcTgt => {
                let OpenTarget {
                    qpn, view, charge, ..
                } = xrc::open_target(device, init, handle)?;
                (qpn.get(), Some(view), charge)
            }
            // Nobody names it by its number. QP 1 is ib_mad's, which finds nobody to talk to.
            QpType::XrcIni | QpType::Gsi => (1, None, None),
            _ => return Err(eopnotsupp()),
        };
        Ok(CreatedQp {
            qp_num,
            tracked: false,
            data: QpData {
                view,
                _charge: charge,
                dest: Atomic::new(0),
                srqn: Atomic::new(0),
            },
        })
    }

    fn modify_qp(
        qp: &Qp<Self>,
        attr: &QpAttr,
        mask: QpAttrMask,
        _udata: Option<&mut Udata<'_, Self>>,
    ) -> Result {
        if mask.contains(QpAttrMask::DEST_QPN) {
            qp.data().dest.store(attr.dest_qp_num, Relaxed);
        }
        if mask.contains(QpAttrMask::SQ_PSN) {
            qp.data().srqn.store(attr.sq_psn, Relaxed);
        }
        Ok(())
    }

    fn destroy_qp(qp: &Qp<Self>, cause: DestroyCause) {
        if let Some(view) = &qp.data().view {
            view.close(cause);
        }
    }

    fn post_send(_qp: &Qp<Self>, _wr: &SendWr<'_, Self>) -> Result {
        Err(eopnotsupp())
    }

    /// `ENOENT` when there is no such target, `EACCES` when the SRQ is another domain's, `EINVAL`
    /// when there is none, `EAGAIN` when it has no receive.
    fn doorbell(qp: &Qp<Self>) -> Result {
        let srqn = Srqn::new(qp.data().srqn.load(Relaxed));
        let qps = QPS.get().ok_or(ENODEV)?;
        qps.with(qp.data().dest.load(Relaxed), |target| target.deliver(srqn))
            .unwrap_or(Err(ENOENT))
    }

    fn post_recv(_qp: &Qp<Self>, _wr: &RecvWr<'_>) -> Result {
        Ok(())
    }
}

/// The link type.
struct Links;

impl LinkOps<Loopback> for Links {
    fn newlink(leave: &Leave<'_, Loopback>, name: &CStr, netdev: &NetDev) -> Result {
        let vectors = Vectors::new(name, 1)?;
        let device = UnregisteredDevice::<Loopback>::new(netdev, vectors, Ok(()))?;
        device.register(
            leave,
            netdev,
            &DeviceConfig {
                name,
                description: c"loopback",
                local_dma_lkey: 0,
            },
        )
    }
}

/// No packet is sent.
struct NoPackets;

impl rdma::net::Icrc for NoPackets {
    fn icrc(_headers: &[u8], _covered: &[u8]) -> u32 {
        0
    }
}

struct Module {
    _links: Registration<Loopback, Links>,
    _services: Services,
}

impl kernel::Module for Module {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let services = Services::start::<NoPackets>()?;
        QPS.init(Table::new(16..Qpn::MASK))?;
        SRQS.init(Srqs::new())?;
        Ok(Module {
            _links: Registration::new(c"loopback", None)?,
            _services: services,
        })
    }
}
