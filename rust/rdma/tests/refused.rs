// SPDX-License-Identifier: GPL-2.0

//! Code that the compiler must reject in safe users of crate `rdma`.
//!
//! `tools/vm/refused` compiles this file in the same way as the crates above `rdma`, and compares
//! the errors with the comments at the ends of lines. The opposite, what may be shared and sent, is
//! in `threads.rs` of each room of the crate itself.

use core::cell::Cell;
use kernel::prelude::*;
use rdma::{
    device::{
        DeviceConfig,
        UnregisteredDevice, //
    },
    gated::Gated,
    link::{
        Leave,
        LinkOps, //
    },
    mem::{
        KernelAddr,
        OnDemand,
        PageList,
        Region,
        Usage, //
    },
    mr::{
        AccessFlag,
        AccessFlags,
        SgList, //
    },
    net::{
        Backlog,
        NetDev,
        RxSkb,
        TxBatch, //
    },
    owner::{
        Owner,
        OwnerGuard,
        OwnerGuardBh,
        Run, //
    },
    provider::Provider,
    rcu::{
        Global,
        Ref,
        Reservation,
        Table, //
    },
    restrack::ResEntry,
    uverbs::{
        file::FileId,
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
    }, //
};

fn send<T: Send>() {}
fn sync<T: Sync>() {}

/// May be sent, but not shared.
type Unshared = Cell<u32>;
/// May be neither.
type Bound = *mut u8;

// What stands for data may be shared and sent as those may.
fn data() {
    sync::<OwnerGuard<'static, Unshared>>(); //~ E0277
    send::<OwnerGuard<'static, Bound>>(); //~ E0277
    sync::<Owner<Bound>>(); //~ E0277
    send::<Owner<Bound>>(); //~ E0277
    sync::<Gated<Unshared>>(); //~ E0277
    sync::<Gated<Bound>>(); //~ E0277
    send::<Gated<Bound>>(); //~ E0277
    sync::<Global<Unshared>>(); //~ E0277
    sync::<RxSkb<Unshared>>(); //~ E0277
    send::<RxSkb<Bound>>(); //~ E0277
    sync::<Backlog<Bound>>(); //~ E0277
    send::<Backlog<Bound>>(); //~ E0277
    sync::<rdma::sync::SpinLockBh<Bound>>(); //~ E0277
    sync::<rdma::sync::SpinLockIrq<Bound>>(); //~ E0277
}

// What RCU readers find is shared by them.
fn found(_: Ref<Unshared>) {} //~ E0277
fn listed(_: &Table<Unshared>) {} //~ E0277
fn promised(_: Reservation<'static, Unshared>) {} //~ E0277

// A read section and a lock are their thread's.
fn section() {
    send::<rdma::rcu::Guard>(); //~ E0277
    send::<rdma::sync::NoSoftirq>(); //~ E0277
    send::<OwnerGuardBh<'static, u32>>(); //~ E0277
    send::<kernel::sync::lock::Guard<'static, u32, rdma::sync::BhBackend>>(); //~ E0277
    send::<kernel::sync::lock::Guard<'static, u32, rdma::sync::IrqBackend>>(); //~ E0277
}

// What belongs to a command or a call stays in the thread that makes it.
fn lent<P: Provider>() {
    send::<Payload<'static>>(); //~ E0277
    send::<Udata<'static, P>>(); //~ E0277
    send::<RcvQpAttr<'static>>(); //~ E0277
    send::<SgList<'static, P>>(); //~ E0277
    send::<SendWr<'static, P>>(); //~ E0277
    send::<RecvWr<'static>>(); //~ E0277
    send::<WcBuf<'static>>(); //~ E0277
    send::<ResEntry>(); //~ E0277
    send::<Region<'static>>(); //~ E0277
    send::<Leave<'static, P>>(); //~ E0277
    send::<UnregisteredDevice<P>>(); //~ E0277
    sync::<TxBatch>(); //~ E0277
    send::<FileId>(); //~ E0277
}

// Nor does it last longer.
fn for_ever<T>(_: &'static T) {}
fn table(table: &'static Table<u32>) {
    table.with(0, |number| for_ever(number)); //~ E0521
    table.find(|_, number| Some(for_ever(number))); //~ E0521
    table.get_if(0, |number| (for_ever(number), true).1); //~ E0521
}
fn gate(gate: &'static Gated<u32>) {
    gate.read(|number| for_ever(number)); //~ E0521
    gate.write(|number, was| (was, for_ever(number))); //~ E0521
}
fn owner(owner: &'static Owner<u32>) {
    let _ = owner.kick(|number| (for_ever(number), Run::Idle).1); //~ E0521
}
fn held(memory: &'static OnDemand) {
    let _ = memory.with(0, 8, Usage::Write, |region| Ok(for_ever(region))); //~ E0521
}
struct Keeps;
impl<P: Provider> LinkOps<P> for Keeps {
    fn newlink(leave: &Leave<'_, P>, _name: &CStr, _netdev: &NetDev) -> Result {
        for_ever(leave); //~ E0521
        Ok(())
    }
}
fn guard(owner: Owner<u32>) -> u32 {
    let guard = owner.try_lock();
    drop(owner); //~ E0505
    guard.map_or(0, |number| *number)
}
fn reservation(table: Pin<KBox<Table<u32>>>) -> Option<u32> {
    let reserved = table.reserve().ok();
    drop(table); //~ E0505
    reserved.map(|r| r.id())
}
fn twice(reserved: Reservation<'_, u32>, object: Ref<u32>) {
    reserved.publish(object.clone());
    reserved.publish(object); //~ E0382
}

// A packet is cloned by one at a time.
fn clones(skb: &RxSkb) -> Option<RxSkb> {
    skb.share() //~ E0596
}

// A packet with a note is not confused with other packets.
fn plain(backlog: &Backlog<u8>, skb: RxSkb) -> bool {
    backlog.push(skb).is_ok() //~ E0308
}
fn noted(backlog: &Backlog<u8>, skb: RxSkb<i8>) -> bool {
    backlog.push(skb).is_ok() //~ E0308
}
fn renoted(skb: RxSkb<u8>) -> RxSkb<i8> {
    skb.note(1i8) //~ E0599
}

// There is no user context before it is made.
fn context<P: Provider>(payload: &mut Payload<'_>) {
    let _ = payload.ucontext(); //~ E0599
}

// Devices are registered while somebody is there to unregister them, and with the operations of
// their own provider.
fn devices<P: Provider, Q: Provider>(
    device: UnregisteredDevice<Q>,
    leave: &Leave<'_, P>,
    netdev: &NetDev,
    config: &DeviceConfig<'_>,
) -> Result {
    device.register(leave, netdev, config) //~ E0308
}
fn alone<P: Provider>(
    device: UnregisteredDevice<P>,
    netdev: &NetDev,
    config: &DeviceConfig<'_>,
) -> Result {
    device.register(netdev, config) //~ E0061
}

// A number that a user gave is no set of access flags before it was checked.
fn rights(given: u32) -> AccessFlags {
    given //~ E0308
}
fn adds(rights: AccessFlags, given: u32) -> bool {
    rights.contains(given) //~ E0308
        || rights.contains(AccessFlag::RemoteRead)
}

// Promises are made in unsafe code.
fn promises(list: &mut PageList) {
    let _ = KernelAddr::everything(); //~ E0133
    let _ = KernelAddr::new(0, 8); //~ E0133
    let _ = list.push(0); //~ E0133
    let _ = rdma::net::Namespace::from_raw(core::ptr::null_mut()); //~ E0133
    let _ = NetDev::from_raw(core::ptr::null_mut()); //~ E0133
}
