// SPDX-License-Identifier: GPL-2.0

//! The interface that a driver implements to become an RDMA device.
//!
//! C header: `include/rdma/ib_verbs.h` (`struct ib_device_ops`).
//!
//! [`Provider`] is the Rust form of `struct ib_device_ops`. It has one associated type for each
//! verbs object and one method for each operation. A method that an implementation leaves out
//! becomes a `NULL` entry of the operations table, which tells ib_core that the device does not
//! support the operation.
//!
//! # Lifetimes of the objects
//!
//! ib_core allocates each object zeroed and calls the create operation. If that fails, ib_core
//! frees the memory without calling destroy. Therefore a create method returns the *data* of the
//! object by value, and this crate stores it next to the C structure. The data is dropped exactly
//! once, after the destroy method has returned and after the event handle of the object has been
//! revoked. ib_core frees the memory immediately afterwards. Data that must outlive the verbs
//! object (packets in flight, timers) has to be an object of its own, to which the data of the
//! verbs object refers.
//!
//! # Contexts
//!
//! Methods run in process context and may sleep unless their documentation says otherwise.
//!
//! # Errors
//!
//! The caller of the verb gets the error of a method as it is: a process as `errno`, a kernel user
//! as the return value. After an error of a create method there is no object. After an error of any
//! other method everything is as it was, unless its section says otherwise. The sections name the
//! errors to which verbs give a meaning. `ENOMEM` also stands for a limit of the device. A method
//! that reads or writes `udata` also returns the errors of these calls.

use crate::{
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
    events::{
        CqHandle,
        QpHandle,
        SrqHandle, //
    },
    gid::Gid,
    mem::KernelAddr,
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
    ucontext::UContext,
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
use kernel::{
    error::VTABLE_DEFAULT_ERROR,
    prelude::*,
    sync::Arc, //
};

/// The operations of an RDMA driver.
///
/// Implement it with `#[vtable]` on a (usually empty) type that names the driver.
///
/// The order in which ib_core tears things down is a promise to rely on: QPs before the CQs, SRQs
/// and PDs that they name, SRQs before their CQ and XRC domain, everything of a process before its
/// user context, every user context before the device.
///
/// # Examples
///
/// The beginning of an implementation (`drivers/infiniband/sw/xroce/verbs/provider.rs` is a whole
/// one):
///
/// ```text
/// struct Driver;
///
/// #[vtable]
/// impl Provider for Driver {
///     const DRIVER_ID: u32 = abi::DRIVER_ID;
///     const UVERBS_ABI_VERSION: u32 = 1;
///     type Data = Arc<WireDevice>;
///     type Pd = u32;
///     // ...
///
///     fn alloc_pd(device: &Device<Self>, udata: Option<&mut Udata<'_, Self>>) -> Result<u32> {
///         device.data().new_pd_number()
///     }
///     // ...
/// }
/// ```
#[vtable]
pub trait Provider: Sized + Send + Sync + 'static {
    /// `enum rdma_driver_id` value: the driver's identity in the user ABI.
    const DRIVER_ID: u32;
    /// Version of the driver's user ABI, as sysfs `abi_version` shows it.
    const UVERBS_ABI_VERSION: u32;
    /// `mmap` offsets below this are chosen by [`UContext::map_ring`]. Those from it on are the
    /// driver's to choose ([`UContext::map_ring_at`]). In bytes, a multiple of the page size, and
    /// at most 2^32 - 1 pages: ib_core has no more.
    const FIXED_MMAP_BASE: u64;
    /// A flag of the driver's ABI. Events for [`FileEvents`] have it in their type, besides the
    /// type of the event. libibverbs passes a type that it does not know to the program as it is.
    const RCV_QP_EVENT: u32 = 0;
    /// Names of the counters that [`Provider::hw_stats`] fills, in order.
    const COUNTERS: &'static [CounterDesc] = &[];

    /// Private data of a device; dropped when ib_core gives the device up.
    type Data: Send + Sync;
    /// Private data of a user context (an open of the uverbs device).
    type UContext: Send + Sync;
    /// Private data of a protection domain.
    type Pd: Send + Sync;
    /// Private data of a memory region.
    type Mr: Send + Sync;
    /// Private data of a memory window.
    type Mw: Send + Sync;
    /// Private data of device memory.
    type Dm: Send + Sync;
    /// Private data of a completion queue.
    type Cq: Send + Sync;
    /// Private data of a shared receive queue.
    type Srq: Send + Sync;
    /// Private data of a queue pair.
    type Qp: Send + Sync;
    /// Private data of an address handle. May be dropped in atomic context.
    type Ah: Send + Sync;
    /// Private data of an XRC domain.
    type Xrcd: Send + Sync;
    /// Private data of a registration for a receive queue pair by number. Its drop ends the
    /// registration. Process context.
    type RcvQp: Send + Sync;

    /// Reports the attributes of the device. Also called once during registration.
    ///
    /// # Errors
    ///
    /// An error fails the registration of the device, or the query.
    fn query_device(device: &Device<Self>) -> Result<DeviceAttr>;

    /// Reports the state and the limits of port `port` (1-based).
    ///
    /// # Errors
    ///
    /// `EINVAL` for a port that the device does not have.
    fn query_port(device: &Device<Self>, port: u32) -> Result<PortAttr>;

    /// Returns the partition key at `index` of the table of `port`.
    ///
    /// # Errors
    ///
    /// `EINVAL` for another port, or an index beyond the end of the table.
    fn query_pkey(device: &Device<Self>, port: u32, index: u16) -> Result<u16>;

    /// A GID was entered into the table of the port.
    ///
    /// # Errors
    ///
    /// Any error keeps the GID out of the table.
    fn add_gid(_device: &Device<Self>, _gid: &Gid) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// A GID leaves the table of the port.
    fn del_gid(_device: &Device<Self>, _gid: &Gid) {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Fills `values`, one for each of [`Provider::COUNTERS`], with the counters of `port`.
    fn hw_stats(_device: &Device<Self>, _port: u32, _values: &mut [u64]) {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// The traffic of `port`, for sysfs `ports/N/counters` and performance management datagrams.
    fn port_counters(_device: &Device<Self>, _port: u32) -> PortCounters {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// The device has been registered and is about to be shown to clients.
    ///
    /// # Errors
    ///
    /// Any error fails the registration of the device.
    fn enable(_device: &Device<Self>) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// A process opens the device: negotiates the ABI. There is no user context before this has
    /// made its data.
    ///
    /// # Errors
    ///
    /// Any error fails the open of the device, for instance `EPROTO` for another version of the
    /// ABI.
    fn alloc_ucontext(device: &Device<Self>, udata: &mut Payload<'_>) -> Result<Self::UContext>;

    /// The user context goes; its objects are gone already.
    fn dealloc_ucontext(_ctx: &UContext<Self>) {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// The device is being removed under a process that has it open; its objects are destroyed
    /// right after. Required for removal that does not wait for processes, so the operation is in
    /// the table even when this method is absent.
    fn disassociate_ucontext(_ctx: &UContext<Self>) {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Makes a protection domain. `udata` is `None` for a kernel user.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    fn alloc_pd(device: &Device<Self>, udata: Option<&mut Udata<'_, Self>>) -> Result<Self::Pd>;

    /// The protection domain goes; nothing refers to it any more.
    fn dealloc_pd(_pd: &Pd<Self>) {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Registers memory of the calling process.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a range or for rights that make no sense, `EOPNOTSUPP` for rights that the
    /// device does not have, `EFAULT` for memory that is not there, `ENOMEM`, also beyond
    /// `RLIMIT_MEMLOCK`.
    fn reg_user_mr(
        pd: &Pd<Self>,
        region: &UserRegion,
        udata: Option<&mut Udata<'_, Self>>,
    ) -> Result<CreatedMr<Self::Mr>>;

    /// Makes the region that covers all kernel memory, for kernel users. `access` is made of the
    /// `IB_ACCESS_*` flags.
    ///
    /// `memory` is that memory, offsets being addresses. Keep it in the region and use it only
    /// for those who know the region's keys: the kernel user trusts them with exactly that.
    ///
    /// # Errors
    ///
    /// `EINVAL` or `EOPNOTSUPP` for rights that such a region cannot have, `ENOMEM`.
    fn get_dma_mr(pd: &Pd<Self>, access: u32, memory: KernelAddr) -> Result<CreatedMr<Self::Mr>>;

    /// Ends a memory region. Its keys must be refused from the moment this method succeeds.
    ///
    /// # Errors
    ///
    /// `EBUSY` while memory windows are bound to the region, which stays.
    fn dereg_mr(mr: &Mr<Self>) -> Result;

    /// Changes a region of a process as `change` says; it keeps its keys.
    ///
    /// # Errors
    ///
    /// As [`Provider::reg_user_mr`], and `EBUSY` while memory windows are bound to the region.
    fn rereg_user_mr(_mr: &Mr<Self>, _change: &Rereg<'_, Self>) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// A process gives advice about parts of its regions; `wait`: it wants to know what came of it.
    ///
    /// # Errors
    ///
    /// `ENOENT` for a key that is not of a region which the advice is for, `EPERM` for one of
    /// another protection domain or without the rights, `EFAULT` for a range outside of its region,
    /// `EINTR`. Parts may have been dealt with before.
    fn advise_mr(_pd: &Pd<Self>, _advice: Advice, _wait: bool, _list: &[AdvisedRange]) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Allocates device memory for a process.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a length or an alignment that the device does not offer, `ENOMEM`.
    fn alloc_dm(_device: &Device<Self>, _alloc: &DmAlloc<'_, Self>) -> Result<CreatedDm<Self::Dm>> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Registers part of device memory, which stays as long as the region.
    ///
    /// # Errors
    ///
    /// `EINVAL` or `EOPNOTSUPP` for rights that device memory does not have, `ENOMEM`.
    fn reg_dm_mr(
        _pd: &Pd<Self>,
        _dm: &Dm<Self>,
        _region: &DmRegion,
    ) -> Result<CreatedMr<Self::Mr>> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Makes a region for fast registration of up to `max_pages` pages, which is not valid before
    /// it is registered by a work request. Kernel users only.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a number of pages that the device does not offer, `ENOMEM`.
    fn alloc_mr(_pd: &Pd<Self>, _max_pages: u32) -> Result<CreatedMr<Self::Mr>> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Gives a region of [`Provider::alloc_mr`] the pages of `sg`; returns how many elements of it
    /// fit. Process context or softirq.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a region of another kind.
    fn map_mr_sg(_mr: &Mr<Self>, _sg: SgList<'_, Self>) -> Result<u32> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Makes a memory window of the process.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    fn alloc_mw(
        _pd: &Pd<Self>,
        _mw_type: MwType,
        _udata: Option<&mut Udata<'_, Self>>,
    ) -> Result<CreatedMw<Self::Mw>> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// The window goes; it is unbound when this returns.
    fn dealloc_mw(_mw: &Mw<Self>) {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Makes a completion queue. `udata` is `None` for a kernel user.
    ///
    /// `handle` raises the events of the queue from any context until the queue is destroyed.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a size beyond that of `query_device`, `EOPNOTSUPP` for flags that
    /// the device does not have, `ENOMEM`.
    fn create_cq(
        device: &Device<Self>,
        init: &CqInitAttr,
        handle: CqHandle,
        udata: Option<&mut Udata<'_, Self>>,
    ) -> Result<CreatedCq<Self::Cq>>;

    /// Changes the capacity of a user's completion queue; returns the new one.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a size beyond that of `query_device`, or in which the completions that wait do
    /// not fit, `ENOMEM`.
    fn resize_cq(_cq: &Cq<Self>, _cqe: u32, _udata: &mut Udata<'_, Self>) -> Result<u32> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Moderates events: at most one for `count` completions or `period` microseconds.
    ///
    /// # Errors
    ///
    /// `EINVAL` for values beyond those of `query_device`.
    fn modify_cq(_cq: &Cq<Self>, _count: u16, _period: u16) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// The completion queue goes; no queue posts to it any more.
    fn destroy_cq(_cq: &Cq<Self>) {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Moves completions of a kernel user's queue into `wcs`. Any context.
    ///
    /// # Errors
    ///
    /// `EINVAL` for the queue of a process, which the process polls itself.
    fn poll_cq(cq: &Cq<Self>, wcs: &mut WcBuf<'_>) -> Result;

    /// Arms the queue. Returns whether completions wait already, when
    /// [`Notify::report_missed`] asks for that. Any context; a user's queue comes here by the
    /// `REQ_NOTIFY_CQ` command.
    ///
    /// # Errors
    ///
    /// Any error means that the queue is not armed.
    fn req_notify_cq(cq: &Cq<Self>, notify: Notify) -> Result<bool>;

    /// Makes a shared receive queue; adjusts `init.attr` to what it got.
    ///
    /// # Errors
    ///
    /// `EINVAL` for sizes beyond those of `query_device`, or without a CQ or a domain where the
    /// type needs one, `EOPNOTSUPP` for a type that the device does not have, `ENOMEM`.
    fn create_srq(
        _pd: &Pd<Self>,
        _init: &mut SrqInitAttr<'_, Self>,
        _handle: SrqHandle,
        _udata: Option<&mut Udata<'_, Self>>,
    ) -> Result<CreatedSrq<Self::Srq>> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Resizes the queue or sets its limit, as `mask` says.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a size or a limit out of range, or for fewer receives than are posted,
    /// `ENOMEM`.
    fn modify_srq(
        _srq: &Srq<Self>,
        _attr: &SrqAttr,
        _mask: SrqAttrMask,
        _udata: Option<&mut Udata<'_, Self>>,
    ) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Reports size and limit of the queue.
    ///
    /// # Errors
    ///
    /// `EINVAL` when the queue is corrupt.
    fn query_srq(_srq: &Srq<Self>) -> Result<SrqAttr> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// The shared receive queue goes; no QP of ib_core's refers to it any more.
    fn destroy_srq(_srq: &Srq<Self>) {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Queues one receive of a kernel user. Any context, interrupts off included.
    ///
    /// # Errors
    ///
    /// `EINVAL` for the queue of a process or too many elements, `ENOMEM` when the queue is full.
    /// An error ends the chain of requests.
    fn post_srq_recv(_srq: &Srq<Self>, _wr: &RecvWr<'_>) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// A process rang the doorbell of its shared receive queue (`POST_SRQ_RECV` without requests).
    ///
    /// # Errors
    ///
    /// `EINVAL` for a queue that has no doorbell.
    fn srq_doorbell(_srq: &Srq<Self>) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Opens an XRC domain.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    fn alloc_xrcd(
        _device: &Device<Self>,
        _udata: Option<&mut Udata<'_, Self>>,
    ) -> Result<Self::Xrcd> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// The last open of an XRC domain was closed. ib_core ignores failure here, so there is none.
    fn dealloc_xrcd(_xrcd: &Xrcd<Self>) {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Makes a queue pair; adjusts `init.cap` to what it got.
    ///
    /// For [`crate::qp::QpType::XrcTgt`] there is neither PD nor CQ nor `udata`, whoever the user
    /// is; `init.cap` passes through from user space untouched. For every other type `udata` is
    /// `None` exactly for kernel users.
    ///
    /// # Errors
    ///
    /// `EINVAL` for capacities beyond those of `query_device`, or without an object that the type
    /// needs, `EOPNOTSUPP` for a type or flags that the device does not have, `ENOMEM`.
    fn create_qp(
        device: &Device<Self>,
        init: &mut QpInitAttr<'_, Self>,
        handle: QpHandle,
        udata: Option<&mut Udata<'_, Self>>,
    ) -> Result<CreatedQp<Self::Qp>>;

    /// Changes the attributes in `mask`. ib_core has checked little: begin with
    /// [`crate::qp::modify_qp_is_ok`].
    ///
    /// # Errors
    ///
    /// `EINVAL` for a transition or a value that verbs do not allow, `EOPNOTSUPP` for attributes
    /// that the device does not have.
    fn modify_qp(
        qp: &Qp<Self>,
        attr: &QpAttr,
        mask: QpAttrMask,
        udata: Option<&mut Udata<'_, Self>>,
    ) -> Result;

    /// Reports all attributes.
    ///
    /// # Errors
    ///
    /// None that verbs know: a queue pair can always be queried.
    fn query_qp(_qp: &Qp<Self>, _mask: QpAttrMask) -> Result<QpQuery> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// The queue pair goes. `cause` tells an explicit destroy from the end of the process' file.
    fn destroy_qp(qp: &Qp<Self>, cause: DestroyCause);

    /// Adds what is to be known of a completion queue to its line in `rdma -dd resource show`. May
    /// run while the queue is used.
    ///
    /// # Errors
    ///
    /// `EMSGSIZE` when the message is full; ib_core then writes the line anew in the next one.
    fn show_cq(_cq: &Cq<Self>, _entry: &mut ResEntry) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Adds what is to be known of a queue pair to its line in `rdma -dd resource show`. May run
    /// while the queue pair is used.
    ///
    /// # Errors
    ///
    /// As [`Provider::show_cq`].
    fn show_qp(_qp: &Qp<Self>, _entry: &mut ResEntry) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// What `rdma res` shows in place of `qp`, where that is one of several queue pairs of
    /// ib_core's that stand for the same thing.
    fn shown_qp(_qp: &Qp<Self>) -> Option<Arc<TrackedQp<Self>>> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Makes an XRC target that is known by its number, brings it to the state that `attr` is for,
    /// and registers a process for it: the number, and the registration, whose events go to
    /// `events`. `end` says when the target ends.
    ///
    /// A provider that has this method has the four other methods on receive queue pairs as well.
    /// It defines the methods of uverbs that call them (`xrdma_driver_methods` of
    /// `verbs/uverbs.h`).
    ///
    /// # Errors
    ///
    /// `EINVAL` for a mask or a value that cannot take a target to that state, `ENOMEM`.
    fn create_rcv_qp(
        _xrcd: &Xrcd<Self>,
        _events: FileEvents,
        _attr: &mut RcvQpAttr<'_>,
        _end: RcvQpEnd,
    ) -> Result<(u32, Self::RcvQp)> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Registers a process for a target of the domain.
    ///
    /// # Errors
    ///
    /// `EINVAL` when the domain has no target with that number, `EEXIST` when the file has a
    /// registration for it, `ENOMEM`.
    fn register_rcv_qp(
        _xrcd: &Xrcd<Self>,
        _qp_num: u32,
        _events: FileEvents,
    ) -> Result<Self::RcvQp> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Changes a target of the domain.
    ///
    /// # Errors
    ///
    /// `EINVAL` when the domain has no target with that number, or as [`Provider::modify_qp`].
    fn modify_rcv_qp(_xrcd: &Xrcd<Self>, _qp_num: u32, _attr: &mut RcvQpAttr<'_>) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Whether the device is about to be unregistered: ib_core waits for the calls under way, so
    /// those that wait for others first give up then.
    fn is_going(_device: &Device<Self>) -> bool {
        false
    }

    /// Reports the attributes of a target of the domain.
    ///
    /// # Errors
    ///
    /// `EINVAL` when the domain has no target with that number.
    fn query_rcv_qp(_xrcd: &Xrcd<Self>, _qp_num: u32) -> Result<QpAttr> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Finds the registration of a file for a target of the domain: its handle
    /// ([`FileEvents::handle`]).
    ///
    /// # Errors
    ///
    /// `EINVAL` when the file has none.
    fn rcv_qp_registration(_xrcd: &Xrcd<Self>, _qp_num: u32, _file: FileId) -> Result<u32> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Queues one send of a kernel user. Any context, interrupts off included: must not run the
    /// requester here.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a request or a state in which nothing can be sent, `ENOMEM` when the queue is
    /// full. An error ends the chain of requests, as `ib_post_send` documents.
    fn post_send(qp: &Qp<Self>, wr: &SendWr<'_, Self>) -> Result;

    /// Called once after [`Provider::post_send`] accepted at least one request of a chain: the
    /// place to schedule the requester. Any context.
    fn post_send_end(_qp: &Qp<Self>) {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// A process rang the doorbell of its QP (`POST_SEND` without requests).
    ///
    /// # Errors
    ///
    /// Any error fails the command; the requests stay in the ring.
    fn doorbell(_qp: &Qp<Self>) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Queues one receive of a kernel user. Any context, interrupts off included.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a request or a state in which nothing can be received, `ENOMEM` when the queue
    /// is full. An error ends the chain of requests.
    fn post_recv(qp: &Qp<Self>, wr: &RecvWr<'_>) -> Result;

    /// Makes an address handle. May run in atomic context when `sleepable` is false (kernel users
    /// only), then allocate with `GFP_ATOMIC`.
    ///
    /// # Errors
    ///
    /// `EINVAL` for an address that is not one of RoCEv2, or that has no source; `ENOMEM`.
    fn create_ah(
        _pd: &Pd<Self>,
        _attr: &AhAttr,
        _sleepable: bool,
        _udata: Option<&mut Udata<'_, Self>>,
    ) -> Result<Self::Ah> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Replaces the address of a handle.
    ///
    /// # Errors
    ///
    /// As [`Provider::create_ah`].
    fn modify_ah(_ah: &Ah<Self>, _attr: &AhAttr) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Reports the address of a handle.
    ///
    /// # Errors
    ///
    /// None that verbs know: a handle can always be queried.
    fn query_ah(_ah: &Ah<Self>) -> Result<AhAttr> {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// The address handle goes. May run in atomic context.
    fn destroy_ah(_ah: &Ah<Self>) {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Joins a UD QP to a multicast group.
    ///
    /// # Errors
    ///
    /// `EINVAL` for an address that is not one of a group, or a queue pair that is not one for
    /// datagrams, `ENOMEM`.
    fn attach_mcast(_qp: &Qp<Self>, _gid: &[u8; 16], _lid: u16) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }

    /// Takes a UD QP out of a multicast group.
    ///
    /// # Errors
    ///
    /// `EINVAL` when the queue pair is no member of the group.
    fn detach_mcast(_qp: &Qp<Self>, _gid: &[u8; 16], _lid: u16) -> Result {
        build_error!(VTABLE_DEFAULT_ERROR)
    }
}
