// SPDX-License-Identifier: GPL-2.0

//! The memory of a completion queue: completions that wait, and what their user waits for.
//!
//! The memory is a ring that is shared with a process, or is the kernel's own. `entries`,
//! everywhere in this file, is its number of slots, a power of two; `producer` is the index of the
//! next slot to fill, which runs freely over 32 bits.

use super::completion::{
    Completion,
    KernelCompletion, //
};
use crate::prelude::*;
use crate::qp::request::filled;
use crate::wr;
use rdma::wr::WcBuf;
use roce::event::Arm;
use zerocopy::IntoBytes;

/// Where completions wait.
pub(super) enum Store {
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

impl Store {
    /// The ring of a process, or else memory of the kernel's own. Process context.
    pub(super) fn new(ring: Option<Arc<RingMem>>, entries: u32) -> Result<Self> {
        Ok(match ring {
            Some(ring) => Store::User(ring),
            None => Store::Kernel {
                slots: filled(entries as usize)?,
                consumer: 0,
                arm: Arm::None,
            },
        })
    }

    /// Writes a completion into the next slot; `None` if there is no room.
    pub(super) fn push(
        &mut self,
        entries: u32,
        producer: u32,
        completion: &Completion,
        qp: Option<&QpHandle>,
    ) -> Option<()> {
        match self {
            Store::User(ring) => push_user(ring, entries, producer, completion),
            Store::Kernel {
                slots, consumer, ..
            } => {
                if producer.wrapping_sub(*consumer) >= entries {
                    return None;
                }
                let slot = producer & entries.wrapping_sub(1);
                *slots.get_mut(slot as usize)? = KernelCompletion {
                    completion: *completion,
                    qp: qp.cloned(),
                };
                Some(())
            }
        }
    }

    /// Hands completions to a kernel user, as many as `wcs` has room for. EINVAL for the ring of a
    /// process, who reads it without the kernel.
    pub(super) fn poll(&mut self, entries: u32, producer: u32, wcs: &mut WcBuf<'_>) -> Result {
        let Store::Kernel {
            slots, consumer, ..
        } = self
        else {
            return Err(EINVAL);
        };
        while *consumer != producer && wcs.room() != 0 {
            let slot = *consumer & entries.wrapping_sub(1);
            let Some(slot) = slots.get_mut(slot as usize) else {
                break;
            };
            let taken = core::mem::take(slot);
            wr::fill_wc(wcs, &taken);
            *consumer = consumer.wrapping_add(1);
        }
        Ok(())
    }

    /// Completions that wait.
    pub(super) fn waiting(&self, producer: u32) -> u32 {
        match self {
            Store::User(ring) => {
                let consumer = ring.load_acquire(abi::RING_USER_INDEX).unwrap_or(0);
                producer.wrapping_sub(consumer)
            }
            Store::Kernel { consumer, .. } => producer.wrapping_sub(*consumer),
        }
    }

    /// What the queue is armed for. User space may change it at any time.
    pub(super) fn arm(&self) -> Arm {
        match self {
            Store::User(ring) => Arm::from_word(ring.load(abi::RING_ARM).unwrap_or(abi::ARM_NONE)),
            Store::Kernel { arm, .. } => *arm,
        }
    }

    /// Arms the queue for a kernel user, or for a process that does not use the shared word.
    pub(super) fn set_arm(&mut self, wanted: Arm) {
        match self {
            Store::User(ring) => {
                let word = match wanted {
                    Arm::None => abi::ARM_NONE,
                    Arm::Solicited => abi::ARM_SOLICITED,
                    Arm::Next => abi::ARM_NEXT,
                };
                let _ = ring.swap(abi::RING_ARM, word);
            }
            Store::Kernel { arm, .. } => *arm = wanted,
        }
    }

    /// Disarms the queue; false if it was not armed. This exchange makes one event of one arm,
    /// whatever the user does to the word meanwhile.
    pub(super) fn take_arm(&mut self) -> bool {
        match self {
            Store::User(ring) => {
                ring.swap(abi::RING_ARM, abi::ARM_NONE)
                    .unwrap_or(abi::ARM_NONE)
                    != abi::ARM_NONE
            }
            Store::Kernel { arm, .. } => core::mem::take(arm) != Arm::None,
        }
    }

    /// Sets a flag in the ring of a process, one of `abi::RING_*`.
    pub(super) fn mark(&self, flag: u32) {
        if let Store::User(ring) = self {
            let _ = ring.fetch_or(abi::RING_KERNEL_FLAGS, flag);
        }
    }
}

/// Writes one completion into a user's ring. `None` when the ring is full, or says so: the consumer
/// index is the user's and may be anything. The caller looks at the arm afterwards.
fn push_user(ring: &RingMem, entries: u32, producer: u32, completion: &Completion) -> Option<()> {
    let consumer = ring.load_acquire(abi::RING_USER_INDEX).ok()?;
    if producer.wrapping_sub(consumer) >= entries {
        return None;
    }
    ring.copy_in(
        slot_at(producer & entries.wrapping_sub(1)),
        completion.to_cqe(rdma::timer::now_raw_ns()).as_bytes(),
    )
    .ok()?;
    ring.store_release(abi::RING_KERNEL_INDEX, producer.wrapping_add(1))
        .ok()?;
    // Against the user, who arms and then looks at the index again: one of us sees the other.
    full_fence();
    Some(())
}

/// Offset of a slot in a ring.
pub(super) fn slot_at(slot: u32) -> usize {
    (slot as usize)
        .wrapping_mul(abi::CQE_SIZE)
        .wrapping_add(abi::RING_HDR_SIZE)
}

/// Makes the ring of a user's queue.
///
/// # Errors
///
/// EINVAL when the size overflows; ENOMEM.
pub fn new_ring(entries: u32) -> Result<Arc<RingMem>> {
    let size = (entries as usize)
        .checked_mul(abi::CQE_SIZE)
        .and_then(|slots| slots.checked_add(abi::RING_HDR_SIZE))
        .ok_or(EINVAL)?;
    Ok(Arc::new(RingMem::new(size)?, GFP_ACCOUNT)?)
}
