// SPDX-License-Identifier: GPL-2.0

//! Completion queues.

use crate::limits::{
    self,
    Charge,
    Kind, //
};
use crate::prelude::*;
use crate::provider::Xroce;
use crate::wr;
use rdma::cq::{
    Cq,
    CqInitAttr,
    CreatedCq,
    Notify, //
};
use rdma::device::Device;
use rdma::uverbs::{
    mmap::RingMapping,
    udata::Udata, //
};
use rdma::wr::WcBuf;

/// A completion, before it is put into a ring.
#[derive(Clone, Copy, Default)]
pub(crate) struct Completion {
    /// Of the work request.
    pub(crate) wr_id: u64,
    /// How it went.
    pub(crate) status: WcStatus,
    /// `enum ibv_wc_opcode`.
    pub(crate) opcode: u32,
    /// Bytes received or read.
    pub(crate) byte_len: u32,
    /// Immediate data (big-endian bits) or the invalidated key.
    pub(crate) imm: u32,
    /// Local QP number.
    pub(crate) qp_num: u32,
    /// UD: remote QP number.
    pub(crate) src_qp: u32,
    /// `wr::WC_*` flags.
    pub(crate) wc_flags: u32,
    /// UD: index of the partition key.
    pub(crate) pkey_index: u16,
    /// Service level.
    pub(crate) sl: u8,
    /// The sender asked for a solicited event.
    pub(crate) solicited: bool,
    /// GSI and kernel UD: source hardware address, when known.
    pub(crate) smac: Option<[u8; 6]>,
    /// GSI and kernel UD: the packet's VLAN.
    pub(crate) vlan: Option<u16>,
    /// GSI and kernel UD: the packet came over IPv6.
    pub(crate) is_v6: bool,
}

impl Completion {
    /// The completion as it lies in a user's ring (`struct xroce_cqe`).
    fn to_bytes(self, now: u64) -> [u8; abi::CQE_SIZE] {
        let mut bytes = [0u8; abi::CQE_SIZE];
        let mut at = 0usize;
        let mut put = |field: &[u8]| {
            let end = at.wrapping_add(field.len());
            if let Some(to) = bytes.get_mut(at..end) {
                to.copy_from_slice(field);
            }
            at = end;
        };
        put(&self.wr_id.to_ne_bytes());
        put(&(self.status as u32).to_ne_bytes());
        put(&self.opcode.to_ne_bytes());
        put(&0u32.to_ne_bytes());
        put(&self.byte_len.to_ne_bytes());
        put(&self.imm.to_ne_bytes());
        put(&self.qp_num.to_ne_bytes());
        put(&self.src_qp.to_ne_bytes());
        put(&self.wc_flags.to_ne_bytes());
        put(&self.pkey_index.to_ne_bytes());
        put(&0u16.to_ne_bytes());
        put(&[self.sl, 0, 0, 0]);
        put(&now.to_ne_bytes());
        bytes
    }

    /// Completions with an error count as solicited.
    fn is_solicited(&self) -> bool {
        self.solicited || self.status != WcStatus::Success
    }
}

/// A completion of a kernel user, with what `struct ib_wc` wants besides.
#[derive(Clone, Default)]
pub(crate) struct KernelCompletion {
    pub(crate) completion: Completion,
    pub(crate) qp: Option<QpHandle>,
}

/// Where completions wait.
enum Store {
    /// In memory shared with a process.
    User(Arc<RingMem>),
    /// In the kernel.
    Kernel {
        slots: KVVec<KernelCompletion>,
        /// Next to poll; runs freely over 32 bits.
        consumer: u32,
        /// What the next completion raises: one of `abi::ARM_*`.
        arm: u32,
    },
}

/// What the lock of a completion queue protects.
struct Inner {
    store: Store,
    /// Slots, a power of two.
    entries: u32,
    /// Next slot to fill; runs freely over 32 bits.
    producer: u32,
    /// A completion was lost.
    overrun: bool,
}

/// What to raise when the lock is dropped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Raise {
    Nothing,
    Completion,
    Error,
}

/// A completion queue, as queue pairs see it.
#[pin_data]
pub(crate) struct WireCq {
    #[pin]
    inner: SpinLockIrq<Inner>,
    handle: CqHandle,
    dead: Atomic<u32>,
    device: Arc<WireDevice>,
    /// A process polls it.
    pub(crate) user: bool,
    _charge: Charge,
}

impl WireCq {
    /// Puts a completion into the queue and raises its event; `qp` is what a kernel user finds in it.
    /// Any context; the caller holds no lock that the handler of the event could want.
    pub(crate) fn post_from(&self, completion: &Completion, qp: Option<&QpHandle>) {
        let raise = self.inner.lock().push(completion, qp);
        match raise {
            Raise::Nothing => {}
            Raise::Completion => self.handle.completion(),
            Raise::Error => {
                // Store it first: whoever gets the event must find a dead queue.
                if self.dead.xchg(1, Full) == 0 {
                    self.device.count(Counter::CqOverrun, 1);
                    if self.device.may_log() {
                        pr_info!(
                            "{}: a completion queue overflowed, the user polls too late\n",
                            self.device.name()
                        );
                    }
                    self.handle.error();
                    self.handle.completion();
                }
            }
        }
    }

    /// The queue overflowed or was destroyed; completions go nowhere. Any context.
    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Relaxed) != 0
    }

    /// Marks the queue dead: nothing is posted any more.
    fn kill(&self) {
        self.dead.store(1, Relaxed);
        let inner = self.inner.lock();
        if let Store::User(ring) = &inner.store {
            let _ = ring.fetch_or(abi::RING_KERNEL_FLAGS, abi::RING_DEAD);
        }
    }
}

impl Inner {
    fn push(&mut self, completion: &Completion, qp: Option<&QpHandle>) -> Raise {
        if self.overrun {
            return Raise::Nothing;
        }
        let slot = self.producer & self.entries.wrapping_sub(1);
        let done = match &mut self.store {
            Store::User(ring) => push_user(ring, self.entries, self.producer, slot, completion),
            Store::Kernel {
                slots,
                consumer,
                arm,
            } => {
                if self.producer.wrapping_sub(*consumer) >= self.entries {
                    None
                } else if let Some(to) = slots.get_mut(slot as usize) {
                    *to = KernelCompletion {
                        completion: *completion,
                        qp: qp.cloned(),
                    };
                    let raise = takes(*arm, completion);
                    if raise {
                        *arm = abi::ARM_NONE;
                    }
                    Some(raise)
                } else {
                    None
                }
            }
        };
        match done {
            Some(raise) => {
                self.producer = self.producer.wrapping_add(1);
                if raise {
                    Raise::Completion
                } else {
                    Raise::Nothing
                }
            }
            None => {
                self.overrun = true;
                if let Store::User(ring) = &self.store {
                    let _ = ring.fetch_or(abi::RING_KERNEL_FLAGS, abi::RING_OVERRUN);
                }
                Raise::Error
            }
        }
    }

    /// Completions that wait.
    fn waiting(&self) -> u32 {
        match &self.store {
            Store::User(ring) => {
                let consumer = ring.load_acquire(abi::RING_USER_INDEX).unwrap_or(0);
                self.producer.wrapping_sub(consumer)
            }
            Store::Kernel { consumer, .. } => self.producer.wrapping_sub(*consumer),
        }
    }
}

/// Tells whether a queue armed with `arm` raises an event for `completion`.
fn takes(arm: u32, completion: &Completion) -> bool {
    match arm {
        abi::ARM_NONE => false,
        abi::ARM_SOLICITED => completion.is_solicited(),
        // User space may store anything.
        _ => true,
    }
}

/// Writes one completion into a user's ring. `None` when the ring is full, or says so: the consumer
/// index is the user's and may be anything. Some(true): raise the event.
fn push_user(
    ring: &RingMem,
    entries: u32,
    producer: u32,
    slot: u32,
    completion: &Completion,
) -> Option<bool> {
    let consumer = ring.load_acquire(abi::RING_USER_INDEX).ok()?;
    if producer.wrapping_sub(consumer) >= entries {
        return None;
    }
    ring.copy_in(
        slot_at(slot),
        &completion.to_bytes(rdma::timer::now_raw_ns()),
    )
    .ok()?;
    ring.store_release(abi::RING_KERNEL_INDEX, producer.wrapping_add(1))
        .ok()?;
    // Against the user, who arms and then looks at the index again: one of us sees the other.
    full_fence();
    let arm = ring.load(abi::RING_ARM).ok()?;
    if !takes(arm, completion) {
        return Some(false);
    }
    // Only one event for one arm, whatever the user does to the word meanwhile.
    Some(ring.swap(abi::RING_ARM, abi::ARM_NONE).ok()? != abi::ARM_NONE)
}

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
            GFP_KERNEL,
        )
    }
}

/// `IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION`.
const TIMESTAMP_COMPLETION: u32 = 1 << 0;

/// Slots for `cqe` completions.
fn entries_for(cqe: u32) -> Result<u32> {
    if cqe == 0 || cqe > limits::MAX_CQE {
        return Err(EINVAL);
    }
    cqe.checked_next_power_of_two().ok_or(EINVAL)
}

/// Makes the ring of a user's queue.
fn new_ring(entries: u32) -> Result<Arc<RingMem>> {
    let size = (entries as usize)
        .checked_mul(abi::CQE_SIZE)
        .and_then(|slots| slots.checked_add(abi::RING_HDR_SIZE))
        .ok_or(EINVAL)?;
    Ok(Arc::new(RingMem::new(size)?, GFP_ACCOUNT)?)
}

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
    let store = match udata {
        Some(udata) => {
            let request: abi::xroce_create_cq_req = udata.read()?;
            if request.flags != 0 || request.reserved != 0 {
                return Err(EINVAL);
            }
            let ring = new_ring(entries)?;
            let mapping = udata.ucontext()?.map_ring(ring.clone())?;
            udata.write(&ring_response(&ring, &mapping, entries))?;
            user = Some(mapping);
            Store::User(ring)
        }
        None => Store::Kernel {
            slots: crate::qp::request::filled(entries as usize)?,
            consumer: 0,
            arm: abi::ARM_NONE,
        },
    };
    let inner = Inner {
        store,
        entries,
        producer: 0,
        overrun: false,
    };
    let is_user = user.is_some();
    let wire = Ref::pin_init(
        try_pin_init!(WireCq {
            inner <- new_spinlock_irq!(inner, "xroce cq"),
            handle,
            dead: Atomic::new(0),
            device: wire_device.clone(),
            user: is_user,
            _charge: charge,
        }? Error),
        GFP_ACCOUNT,
    )?;
    Ok(CreatedCq {
        data: CqData {
            wire,
            mapping: MappingCell::new(user)?,
        },
        cqe: entries,
    })
}

/// Completions that a resize moves under the lock of the queue at a time.
const MOVE_BURST: u32 = 256;

/// How far a resize has come.
struct Move {
    /// Next completion of the old ring.
    next: u32,
    /// Completions in the new ring.
    moved: u32,
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
    let mut progress = data.wire.inner.lock().begin_move(entries)?;
    let old = loop {
        let moved = data
            .wire
            .inner
            .lock()
            .move_some(&ring, entries, &mut progress)?;
        if let Some(old) = moved {
            break old;
        }
    };
    // Freed without the lock. Mappings of the old ring stay until they are unmapped.
    drop(old);
    let previous = current.replace(mapping);
    drop(current);
    drop(previous);
    Ok(entries)
}

impl Inner {
    /// Where a move to a ring with `entries` slots begins.
    fn begin_move(&self, entries: u32) -> Result<Move> {
        let waiting = self.waiting();
        if waiting > self.entries || waiting > entries || self.overrun {
            return Err(EINVAL);
        }
        Ok(Move {
            next: self.producer.wrapping_sub(waiting),
            moved: 0,
        })
    }

    /// Moves some completions to `ring`, under the lock. When none is left the ring becomes the
    /// queue's: returns the old one. Completions may be added to the old ring between two calls.
    fn move_some(
        &mut self,
        ring: &Arc<RingMem>,
        entries: u32,
        progress: &mut Move,
    ) -> Result<Option<Arc<RingMem>>> {
        if self.overrun {
            return Err(EINVAL);
        }
        let Store::User(old) = &self.store else {
            return Err(EINVAL);
        };
        let mut bytes = [0u8; abi::CQE_SIZE];
        for _ in 0..MOVE_BURST {
            if progress.next == self.producer {
                break;
            }
            // What comes meanwhile must fit as well; this also bounds the loop.
            if progress.moved >= entries {
                return Err(EINVAL);
            }
            let from = progress.next & self.entries.wrapping_sub(1);
            old.copy_out(slot_at(from), &mut bytes)?;
            ring.copy_in(slot_at(progress.moved), &bytes)?;
            progress.next = progress.next.wrapping_add(1);
            progress.moved = progress.moved.wrapping_add(1);
        }
        if progress.next != self.producer {
            return Ok(None);
        }
        let arm = old.swap(abi::RING_ARM, abi::ARM_NONE)?;
        ring.store(abi::RING_ARM, arm)?;
        ring.store_release(abi::RING_KERNEL_INDEX, progress.moved)?;
        let old = old.clone();
        self.store = Store::User(ring.clone());
        self.entries = entries;
        self.producer = progress.moved;
        Ok(Some(old))
    }
}

/// Offset of a slot in a ring.
fn slot_at(slot: u32) -> usize {
    (slot as usize)
        .wrapping_mul(abi::CQE_SIZE)
        .wrapping_add(abi::RING_HDR_SIZE)
}

/// Queue pairs are gone; what is in flight finds a dead queue.
pub(crate) fn destroy(cq: &Cq<Xroce>) {
    cq.data().wire.kill();
}

/// `ib_poll_cq`. Any context.
pub(crate) fn poll(cq: &Cq<Xroce>, wcs: &mut WcBuf<'_>) -> Result {
    let mut inner = cq.data().wire.inner.lock();
    let producer = inner.producer;
    let mask = inner.entries.wrapping_sub(1);
    let Store::Kernel {
        slots, consumer, ..
    } = &mut inner.store
    else {
        return Err(EINVAL);
    };
    while *consumer != producer && wcs.room() != 0 {
        let Some(slot) = slots.get_mut((*consumer & mask) as usize) else {
            break;
        };
        let taken = core::mem::take(slot);
        wr::fill_wc(wcs, &taken);
        *consumer = consumer.wrapping_add(1);
    }
    Ok(())
}

/// `ib_req_notify_cq`; true when completions wait already and the caller wants to know. Any context.
pub(crate) fn req_notify(cq: &Cq<Xroce>, notify: Notify) -> Result<bool> {
    let wanted = if notify.solicited_only {
        abi::ARM_SOLICITED
    } else {
        abi::ARM_NEXT
    };
    let mut inner = cq.data().wire.inner.lock();
    match &mut inner.store {
        // A process that does not use the shared word.
        Store::User(ring) => {
            let now = ring.load(abi::RING_ARM).unwrap_or(abi::ARM_NONE);
            if now < wanted {
                let _ = ring.swap(abi::RING_ARM, wanted);
            }
        }
        Store::Kernel { arm, .. } => *arm = (*arm).max(wanted),
    }
    Ok(notify.report_missed && inner.waiting() != 0)
}
