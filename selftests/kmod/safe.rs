// SPDX-License-Identifier: GPL-2.0

//! Safe code that misuses crate `rdma`: it leaks objects that it should drop, and calls functions
//! when there are no services. This must cause nothing worse than an error. In particular the
//! kernel must not call the module after the module has been removed.
//!
//! The module loads if all checks succeed, and logs those that fail. It contains a copy of the
//! crate of its own, so `xroce` may or may not be loaded.

use core::{
    mem::forget,
    sync::atomic::{
        AtomicBool,
        AtomicU32,
        Ordering, //
    },
};
use kernel::{
    prelude::*,
    sync::aref::ARef,
    time::{
        delay::fsleep,
        Delta, //
    }, //
};
use rdma::{
    dim::Adaptive,
    net::{
        Arrival,
        GidAddr,
        Icrc,
        Namespace,
        NamespaceId,
        NetDev,
        NetdevEvent,
        NetdevEvents,
        NetdevNotifier,
        Peek,
        Receiver,
        RxSkb,
        Tunnel, //
    },
    process::Process,
    rcu::{
        Global,
        Ref,
        Table,
        GFP_ACCOUNT, //
    },
    sync::{
        new_spinlock_irq,
        SpinLockIrq, //
    },
    timer::Timer,
    vector::Vectors,
    work::{
        Services,
        Work, //
    },
};

module! {
    type: Misuse,
    name: "selftest_safe",
    authors: ["The xroce authors"],
    description: "Misuse of crate rdma by safe code",
    license: "GPL",
    params: {
        case: u32 {
            default: 0,
            description: "0 to 5: no services, leaks, wrong order, tables, leaked services, runs",
        },
    },
}

/// What a parameter's `value()` says: a reference in Linux 7.2, the value itself in 7.3.
fn param(value: impl core::borrow::Borrow<u32>) -> u32 {
    *value.borrow()
}

/// Says `what` was not so.
fn expect(what: &str, is_so: bool) -> Result {
    if !is_so {
        pr_err!("{what}\n");
        return Err(EINVAL);
    }
    Ok(())
}

fn expect_error<T>(what: &str, got: Result<T>, error: Error) -> Result {
    expect(what, got.err() == Some(error))
}

/// The first net device there is.
static NETDEV: Global<SpinLockIrq<Option<ARef<NetDev>>>> = Global::new();

struct Watch;

impl NetdevEvents for Watch {
    fn netdev_event(event: NetdevEvent, dev: &NetDev) {
        if event == NetdevEvent::Register {
            if let Some(netdev) = NETDEV.get() {
                netdev.lock().get_or_insert_with(|| dev.into());
            }
        }
    }
}

/// Keeps nothing.
struct Idle;

impl NetdevEvents for Idle {
    fn netdev_event(_event: NetdevEvent, _dev: &NetDev) {}
}

struct Nobody;

impl Receiver for Nobody {
    fn receive(_ns: NamespaceId, _skb: RxSkb) {}

    fn steer(_ns: NamespaceId, packet: Arrival, _peek: &Peek<'_>) -> Result<(), Arrival> {
        Err(packet)
    }

    fn refused(_ns: NamespaceId, _dst: &GidAddr) {}
}

impl Icrc for Nobody {
    fn icrc(_headers: &[u8], _covered: &[u8]) -> u32 {
        0
    }
}

/// A namespace; needs services.
fn namespace() -> Result<Namespace> {
    drop(NetdevNotifier::register::<Watch>()?);
    let netdev = NETDEV.get().ok_or(ENODEV)?.lock().take();
    netdev.and_then(|netdev| netdev.namespace()).ok_or(ENODEV)
}

fn nothing(_: u64) {}

/// Without services there is nothing to be had.
fn refused(ns: Option<&Namespace>) -> Result {
    expect_error("a timer", Timer::new(0, nothing), ENOMEM)?;
    expect_error("adaptive moderation", Adaptive::new(0, nothing), ENOMEM)?;
    expect_error("work", Work::new(0, nothing, Process::kernel()?), ENODEV)?;
    expect_error("an object", Ref::new(0u32, GFP_ACCOUNT), ENODEV)?;
    expect_error("vectors", Vectors::new(c"safe", 1), ENODEV)?;
    expect_error("a notifier", NetdevNotifier::register::<Idle>(), ENODEV)?;
    if let Some(ns) = ns {
        expect_error("a tunnel", Tunnel::open::<Nobody>(ns), ENODEV)?;
    }
    Ok(())
}

fn without_services() -> Result {
    refused(None)?;
    let services = Services::start::<Nobody>()?;
    expect_error("services twice", Services::start::<Nobody>(), EBUSY)?;
    let ns = namespace()?;
    drop(Tunnel::open::<Nobody>(&ns)?);
    drop(services);
    refused(Some(&ns))?;
    // They can be had again.
    let services = Services::start::<Nobody>()?;
    drop(Tunnel::open::<Nobody>(&ns)?);
    drop(services);
    refused(Some(&ns))
}

static TIMER: Global<Timer> = Global::new();
static BH: Global<Work> = Global::new();
static THREAD: Global<Work> = Global::new();
/// Calls of [`tick`].
static TICKS: AtomicU32 = AtomicU32::new(0);

/// Never ends by itself: the timer and both work items keep each other going.
fn tick(_: u64) {
    TICKS.fetch_add(1, Ordering::Relaxed);
    if let (Some(timer), Some(bh), Some(thread)) = (TIMER.get(), BH.get(), THREAD.get()) {
        timer.start_in(100_000);
        bh.schedule();
        thread.schedule_process();
        bh.schedule_process();
    }
}

fn leaks() -> Result {
    let ns = namespace()?;
    TIMER.init(Timer::new(0, tick))?;
    BH.init(Work::new(0, tick, Process::kernel()?))?;
    THREAD.init(Work::new(0, tick, Process::kernel()?))?;
    forget(NetdevNotifier::register::<Idle>()?);
    forget(Vectors::new(c"safe", 2)?);
    forget(Tunnel::open::<Nobody>(&ns)?);
    forget(Adaptive::new(0, nothing)?);
    let in_an_object = Timer::new(0, tick)?;
    in_an_object.start_in(1_000_000);
    forget(Ref::new(in_an_object, GFP_ACCOUNT)?);
    Ok(())
}

/// Services that are gone when others still work with them.
fn wrong_order(services: Services) -> Result {
    leaks()?;
    tick(0);
    drop(services);
    let ticks = TICKS.load(Ordering::Relaxed);
    tick(0);
    let (bh, thread) = (BH.get().ok_or(EINVAL)?, THREAD.get().ok_or(EINVAL)?);
    expect("work is scheduled after the services", !bh.schedule())?;
    expect(
        "work is scheduled after the services, in a thread",
        !thread.schedule_process(),
    )?;
    expect("work is scheduled elsewhere", !bh.schedule_process())?;
    rdma::rcu::synchronize();
    expect(
        "something has run after the services",
        TICKS.load(Ordering::Relaxed) == ticks.wrapping_add(1),
    )
}

static TABLE: Global<Table<u32>> = Global::new();
/// The number that two work with.
const ID: u32 = 7;
/// How often [`churn`] does so. KASAN, and what goes with it, makes each round slow.
const ROUNDS: u32 = if cfg!(CONFIG_KASAN) { 5_000 } else { 20_000 };
static CHURNED: AtomicBool = AtomicBool::new(false);
static TAKEN: AtomicU32 = AtomicU32::new(0);

/// Enters an object and takes it out, again and again.
fn churn(_: u64) {
    for _ in 0..ROUNDS {
        let (Some(table), Ok(object)) = (TABLE.get(), Ref::new(1u32, GFP_ACCOUNT)) else {
            continue;
        };
        match table.reserve_at(ID) {
            Ok(reserved) => reserved.publish(object),
            // Nobody else enters one.
            Err(_) => {
                TAKEN.fetch_add(1, Ordering::Relaxed);
            }
        }
        drop(table.remove(ID));
        rdma::work::cond_resched();
    }
    CHURNED.store(true, Ordering::Release);
}

fn tables() -> Result {
    let empty = KBox::pin_init(Table::<u32>::new(0..0), GFP_KERNEL)?;
    expect_error("a number of an empty table", empty.reserve(), ENOSPC)?;

    let table = TABLE.init(Table::new(0..16))?;
    // A reservation is its owner's.
    let reserved = table.reserve_at(5)?;
    expect("a reservation is removed", table.remove(5).is_none())?;
    let replaced = table.replace(5, Ref::new(1u32, GFP_ACCOUNT)?);
    expect("a reservation is replaced", replaced.is_none())?;
    expect_error("a number is taken twice", table.reserve_at(5), EBUSY)?;
    reserved.publish(Ref::new(2u32, GFP_ACCOUNT)?);
    expect("another object is found", table.with(5, |n| *n) == Some(2))?;
    expect("an object is not removed", table.remove(5).is_some())?;
    drop(table.reserve_at(5)?);
    drop(table.reserve_at(5)?);

    // Replacing beside removing: what is returned was there, and nothing is left behind.
    let work = Work::new(0, churn, Process::kernel()?)?;
    work.schedule_process();
    while !CHURNED.load(Ordering::Acquire) {
        if let Some(old) = table.replace(ID, Ref::new(2u32, GFP_ACCOUNT)?) {
            expect("something else was there", matches!(*old, 1 | 2))?;
        }
        rdma::work::cond_resched();
    }
    expect(
        "an object was entered where there was none",
        TAKEN.load(Ordering::Relaxed) == 0 && table.is_empty(),
    )
}

/// Items of one process, and how many of them have a thread at a time.
const ITEMS: usize = 20;
const AT_A_TIME: u32 = 16;
/// How often each item of [`waits`] has begun, and all of them together.
static BEGUN: [AtomicU32; ITEMS] = [const { AtomicU32::new(0) }; ITEMS];
static ALL_BEGUN: AtomicU32 = AtomicU32::new(0);
static MAY_END: AtomicBool = AtomicBool::new(false);
static OTHER: AtomicBool = AtomicBool::new(false);

fn begun(item: usize) -> u32 {
    BEGUN.get(item).map_or(0, |n| n.load(Ordering::Acquire))
}

/// Waits for an event; the time limit of the test ends one that does not come.
fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        fsleep(Delta::from_millis(1));
    }
}

/// A run that goes on until it may end.
fn waits(item: u64) {
    if let Some(n) = BEGUN.get(item as usize) {
        n.fetch_add(1, Ordering::AcqRel);
    }
    ALL_BEGUN.fetch_add(1, Ordering::AcqRel);
    until(|| MAY_END.load(Ordering::Acquire));
}

/// A run of another process.
fn other(_: u64) {
    OTHER.store(true, Ordering::Release);
}

/// Items that run until they are let go, all scheduled, of the calling process.
fn occupy() -> Result<KVec<Work>> {
    MAY_END.store(false, Ordering::Release);
    ALL_BEGUN.store(0, Ordering::Release);
    let mut items = KVec::with_capacity(ITEMS, GFP_KERNEL)?;
    let process = Process::current()?;
    for (item, n) in BEGUN.iter().enumerate() {
        n.store(0, Ordering::Release);
        items.push(Work::new(item as u64, waits, process.clone())?, GFP_KERNEL)?;
    }
    for item in &items {
        expect("an item was scheduled before", item.schedule_process())?;
    }
    until(|| ALL_BEGUN.load(Ordering::Acquire) >= AT_A_TIME);
    Ok(items)
}

/// Runs of one process wait for each other, and nobody else for them.
fn runs() -> Result {
    let items = occupy()?;
    OTHER.store(false, Ordering::Release);
    let others = Work::new(0, other, Process::kernel()?)?;
    others.schedule_process();
    until(|| OTHER.load(Ordering::Acquire));
    let all = ALL_BEGUN.load(Ordering::Acquire);
    let result = expect("a process has more threads than it may", all == AT_A_TIME);
    // Who waits and is stopped is out of the list for good, and who runs runs once more.
    let last = items.get(ITEMS - 1).ok_or(EINVAL)?;
    last.stop();
    let is_stopped = expect("what is stopped is scheduled", !last.schedule_process());
    let first = items.first().ok_or(EINVAL)?;
    first.schedule_process();
    MAY_END.store(true, Ordering::Release);
    until(|| begun(0) > 1 && (1..ITEMS - 1).all(|item| begun(item) > 0));
    drop(items);
    result?;
    is_stopped?;
    expect("what is stopped has run", begun(ITEMS - 1) == 0)?;
    // Dropped in the list, or about to run: the places are there again.
    let items = occupy()?;
    MAY_END.store(true, Ordering::Release);
    drop(items);
    let items = occupy()?;
    MAY_END.store(true, Ordering::Release);
    until(|| (0..ITEMS).all(|item| begun(item) > 0));
    drop(items);
    Ok(())
}

struct Misuse {
    _services: Option<Services>,
}

impl kernel::Module for Misuse {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        NETDEV.init(new_spinlock_irq!(None))?;
        let mut services = None;
        match param(module_parameters::case.value()) {
            0 => without_services()?,
            1 => {
                services = Some(Services::start::<Nobody>()?);
                leaks()?;
                tick(0);
            }
            2 => wrong_order(Services::start::<Nobody>()?)?,
            3 => {
                services = Some(Services::start::<Nobody>()?);
                tables()?;
            }
            4 => forget(Services::start::<Nobody>()?),
            5 => {
                services = Some(Services::start::<Nobody>()?);
                runs()?;
            }
            _ => return Err(EINVAL),
        }
        Ok(Misuse {
            _services: services,
        })
    }
}
