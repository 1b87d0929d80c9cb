// SPDX-License-Identifier: GPL-2.0

//! Completion queues: adding completions, polling and arming.
//!
//! `cq/resize.rs` changes the size of a queue, `cq/moderation.rs` holds events back, and
//! `cq/adaptive.rs` adapts the moderation to the load.
//! `Documentation/infiniband/xroce-completion-vectors.rst` follows a completion to the file
//! descriptor of a completion channel.

mod adaptive;
mod moderation;
mod resize;

use crate::limits::Charge;
use crate::prelude::*;
use crate::wr;
use kernel::sync::SetOnce;
use rdma::cq::Notify;
use rdma::wr::WcBuf;
use roce::event::{
    Act,
    Arm,
    Moderation, //
};

pub use adaptive::start as start_adapting;
pub use moderation::ensure_alarm;

/// A completion, before it is put into a ring.
#[derive(Clone, Copy, Default)]
pub struct Completion {
    /// Of the work request.
    pub wr_id: u64,
    /// How it went.
    pub status: WcStatus,
    /// `enum ibv_wc_opcode`.
    pub opcode: u32,
    /// Bytes received or read.
    pub byte_len: u32,
    /// Immediate data (big-endian bits) or the invalidated key.
    pub imm: u32,
    /// Local QP number.
    pub qp_num: u32,
    /// UD: remote QP number; tag matching: data of the application.
    pub src_qp: u32,
    /// `wr::WC_*` flags.
    pub wc_flags: u32,
    /// UD: index of the partition key.
    pub pkey_index: u16,
    /// A hint, with an error.
    pub vendor_err: u32,
    /// Tag matching: the tag of the message.
    pub tm_tag: u64,
    /// The sender asked for a solicited event.
    pub solicited: bool,
    /// GSI and kernel UD: source hardware address, when known.
    pub smac: Option<[u8; 6]>,
    /// GSI and kernel UD: the packet's VLAN.
    pub vlan: Option<u16>,
    /// UD: the packet came over IPv6.
    pub is_v6: bool,
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
        put(&self.vendor_err.to_ne_bytes());
        put(&self.byte_len.to_ne_bytes());
        put(&self.imm.to_ne_bytes());
        put(&self.qp_num.to_ne_bytes());
        put(&self.src_qp.to_ne_bytes());
        put(&self.wc_flags.to_ne_bytes());
        put(&self.pkey_index.to_ne_bytes());
        put(&0u16.to_ne_bytes());
        put(&[self.packet_type(), 0, 0, 0]);
        put(&now.to_ne_bytes());
        put(&self.tm_tag.to_ne_bytes());
        bytes
    }

    /// What a process gets as service level, of which RoCE has none. IBTA A17.4.5.1 wants a
    /// datagram's completion to say whether it came over IPv4 or IPv6; `struct ibv_wc` has no
    /// field for that. mlx5's has it here (rdma-core's plug-in hands on the device's four bits):
    /// bit 3, there is a UDP header; below it 1, IPv6, or 2, IPv4. UCX relies on it and takes
    /// what came over IPv4 for a stranger's otherwise. Kernel users have `network_hdr_type`.
    fn packet_type(&self) -> u8 {
        const UDP: u8 = 1 << 3;
        match (self.wc_flags & wr::WC_GRH != 0, self.is_v6) {
            (false, _) => 0,
            (true, true) => UDP | 1,
            (true, false) => UDP | 2,
        }
    }

    /// Completions with an error count as solicited.
    fn is_solicited(&self) -> bool {
        self.solicited || self.status != WcStatus::Success
    }
}

/// A completion of a kernel user, with what `struct ib_wc` wants besides.
#[derive(Clone, Default)]
pub struct KernelCompletion {
    /// What a process would get.
    pub completion: Completion,
    /// The queue pair, as its user knows it.
    pub qp: Option<QpHandle>,
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
        /// What its user waits for.
        arm: Arm,
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
    /// Holds events back.
    moderation: Moderation,
    /// Changes `moderation`.
    adapting: Option<adaptive::Adapting>,
}

/// A completion was lost: the queue has overflowed, now or earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overrun;

/// What to do when the lock is dropped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Raise {
    Nothing,
    /// The queue overflowed earlier.
    Lost,
    Completion,
    /// The event is held back until this time at most, `now_ns`.
    Later(u64),
    /// The queue overflowed; it was armed or not.
    Error {
        armed: bool,
    },
}

/// A completion queue, as queue pairs see it.
#[pin_data]
pub struct WireCq {
    #[pin]
    inner: SpinLockIrq<Inner>,
    handle: CqHandle,
    dead: Atomic<u32>,
    device: Arc<WireDevice>,
    /// What ends the wait of an event that is held back; there is none before events ever were.
    alarm: SetOnce<moderation::Alarm>,
    /// A process polls it.
    pub user: bool,
    _charge: Charge,
}

impl WireCq {
    /// Makes a queue for `entries` completions, a power of two: in the ring of a process, or of the
    /// kernel's own. Process context.
    pub fn new(
        device: &Arc<WireDevice>,
        ring: Option<Arc<RingMem>>,
        entries: u32,
        handle: CqHandle,
        charge: Charge,
    ) -> Result<Ref<Self>> {
        let user = ring.is_some();
        let store = match ring {
            Some(ring) => Store::User(ring),
            None => Store::Kernel {
                slots: crate::qp::request::filled(entries as usize)?,
                consumer: 0,
                arm: Arm::None,
            },
        };
        let inner = Inner {
            store,
            entries,
            producer: 0,
            overrun: false,
            moderation: Moderation::default(),
            adapting: None,
        };
        Ref::pin_init(
            try_pin_init!(WireCq {
                inner <- new_spinlock_irq!(inner, "xroce cq"),
                handle,
                dead: Atomic::new(0),
                device: device.clone(),
                alarm: SetOnce::new(),
                user,
                _charge: charge,
            }? Error),
            GFP_ACCOUNT,
        )
    }

    /// Queue pairs are gone; what is in flight finds a dead queue from now on. Process context, sleeps.
    pub fn end(&self) {
        self.kill();
        self.stop_alarm();
        self.stop_adapting();
    }

    /// Puts a completion into the queue and raises its event; `qp` is what a kernel user finds in it.
    /// Any context; the event itself is delivered elsewhere, by the interrupt of the queue's vector.
    ///
    /// When the queue overflows or has overflowed, nobody can learn of the completion any more, and the
    /// caller sees to it that its queue pair ends ([`WireQp::fail`]). The queue keeps no list of its
    /// queue pairs: each finds out when it wants to complete something.
    pub(crate) fn post_from(
        &self,
        completion: &Completion,
        qp: Option<&QpHandle>,
    ) -> Result<(), Overrun> {
        let raise = self.inner.lock().push(completion, qp);
        match raise {
            Raise::Nothing => {}
            Raise::Lost => return Err(Overrun),
            Raise::Completion => self.handle.completion(),
            Raise::Later(ns) => self.raise_at(ns),
            Raise::Error { armed } => {
                // Store it first: whoever gets the event must find a dead queue.
                if self.dead.xchg(1, Full) == 0 {
                    self.device.count(Counter::CqOverrun, 1);
                    if self.device.log.pass() {
                        pr_info!(
                            "{}: a completion queue overflowed, the user polls too late\n",
                            self.device.name()
                        );
                    }
                    if armed {
                        self.handle.completion();
                    }
                    self.handle.error();
                }
                return Err(Overrun);
            }
        }
        Ok(())
    }

    /// The queue overflowed or was destroyed; completions go nowhere. Any context.
    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Relaxed) != 0
    }

    /// `ib_poll_cq`. Any context.
    pub fn poll(&self, wcs: &mut WcBuf<'_>) -> Result {
        let mut inner = self.inner.lock();
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
    pub fn req_notify(&self, notify: Notify) -> Result<bool> {
        let (wanted, word) = if notify.solicited_only {
            (Arm::Solicited, abi::ARM_SOLICITED)
        } else {
            (Arm::Next, abi::ARM_NEXT)
        };
        let mut inner = self.inner.lock();
        // A stronger arm stays.
        if inner.arm() < wanted {
            match &mut inner.store {
                // A process that does not use the shared word.
                Store::User(ring) => {
                    let _ = ring.swap(abi::RING_ARM, word);
                }
                Store::Kernel { arm, .. } => *arm = wanted,
            }
        }
        Ok(notify.report_missed && inner.waiting() != 0)
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
            return Raise::Lost;
        }
        if self.store_completion(completion, qp).is_none() {
            self.overrun = true;
            if let Store::User(ring) = &self.store {
                let _ = ring.fetch_or(abi::RING_KERNEL_FLAGS, abi::RING_OVERRUN);
            }
            return Raise::Error {
                armed: self.take_arm(),
            };
        }
        self.producer = self.producer.wrapping_add(1);
        if let Some(adapting) = &mut self.adapting {
            adapting.completed();
        }
        if !self.arm().takes(completion.is_solicited()) {
            return Raise::Nothing;
        }
        let act = if !self.moderation.is_on() {
            Act::Raise
        } else if self.waiting() >= self.entries / 2 {
            // The user has to hear of it before the queue is full.
            self.moderation.reset();
            Act::Raise
        } else {
            self.moderation.arrived(now_ns())
        };
        self.raise(act)
    }

    /// Writes a completion into the next slot; `None` if there is no room.
    fn store_completion(&mut self, completion: &Completion, qp: Option<&QpHandle>) -> Option<()> {
        let slot = self.producer & self.entries.wrapping_sub(1);
        match &mut self.store {
            Store::User(ring) => push_user(ring, self.entries, self.producer, slot, completion),
            Store::Kernel {
                slots, consumer, ..
            } => {
                if self.producer.wrapping_sub(*consumer) >= self.entries {
                    return None;
                }
                *slots.get_mut(slot as usize)? = KernelCompletion {
                    completion: *completion,
                    qp: qp.cloned(),
                };
                Some(())
            }
        }
    }

    /// What the queue is armed for. User space may change it at any time.
    fn arm(&self) -> Arm {
        match &self.store {
            Store::User(ring) => Arm::from_word(ring.load(abi::RING_ARM).unwrap_or(abi::ARM_NONE)),
            Store::Kernel { arm, .. } => *arm,
        }
    }

    /// Disarms the queue; false if it was not armed. What makes one event of one arm, whatever the
    /// user does to the word meanwhile.
    fn take_arm(&mut self) -> bool {
        match &mut self.store {
            Store::User(ring) => {
                ring.swap(abi::RING_ARM, abi::ARM_NONE)
                    .unwrap_or(abi::ARM_NONE)
                    != abi::ARM_NONE
            }
            Store::Kernel { arm, .. } => core::mem::take(arm) != Arm::None,
        }
    }

    fn raise(&mut self, act: Act) -> Raise {
        match act {
            Act::Nothing => Raise::Nothing,
            Act::Wait(ns) => Raise::Later(ns),
            Act::Raise if self.take_arm() => {
                if let Some(adapting) = &mut self.adapting {
                    adapting.raised();
                }
                Raise::Completion
            }
            Act::Raise => Raise::Nothing,
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

/// Writes one completion into a user's ring. `None` when the ring is full, or says so: the consumer
/// index is the user's and may be anything. The caller looks at the arm afterwards.
fn push_user(
    ring: &RingMem,
    entries: u32,
    producer: u32,
    slot: u32,
    completion: &Completion,
) -> Option<()> {
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
    Some(())
}

/// Offset of a slot in a ring.
fn slot_at(slot: u32) -> usize {
    (slot as usize)
        .wrapping_mul(abi::CQE_SIZE)
        .wrapping_add(abi::RING_HDR_SIZE)
}

/// Makes the ring of a user's queue.
pub fn new_ring(entries: u32) -> Result<Arc<RingMem>> {
    let size = (entries as usize)
        .checked_mul(abi::CQE_SIZE)
        .and_then(|slots| slots.checked_add(abi::RING_HDR_SIZE))
        .ok_or(EINVAL)?;
    Ok(Arc::new(RingMem::new(size)?, GFP_ACCOUNT)?)
}
