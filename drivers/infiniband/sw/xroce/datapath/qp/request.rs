// SPDX-License-Identifier: GPL-2.0

//! Work requests as the module represents them, whichever ring or call they came from.
//!
//! `wr.rs` decodes the slots of a user's ring and the lists of a kernel user into these types. It
//! checks everything that can be checked without the state of the queue pair: opcode, counts,
//! lengths.

use crate::prelude::*;

/// The most scatter/gather elements that any work request may have.
pub const MAX_SGE: usize = 32;

/// One scatter/gather element.
#[derive(Clone, Copy, Default)]
pub struct Sge {
    /// Virtual address in the address space of the region that `lkey` names.
    pub addr: u64,
    /// Bytes.
    pub len: u32,
    /// Local key; unused with `kernel`.
    pub lkey: Key,
    /// The address of a kernel user that gave the device's local DMA key.
    pub kernel: Option<KernelAddr>,
}

/// What a send work request asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SendOp {
    /// SEND, with `imm` when it has immediate data.
    #[default]
    Send,
    /// SEND with immediate data.
    SendImm,
    /// SEND that invalidates the remote key `imm`.
    SendInv,
    /// RDMA WRITE.
    Write,
    /// RDMA WRITE with immediate data.
    WriteImm,
    /// RDMA READ.
    Read,
    /// Compare and swap of 8 bytes.
    CmpSwap,
    /// Fetch and add of 8 bytes.
    FetchAdd,
    /// Write of 8 bytes at once.
    AtomicWrite,
    /// FLUSH of remote memory.
    Flush,
    /// Bind of a memory window, see [`BindPart`].
    BindMw,
    /// Invalidation of the local key `imm`.
    LocalInv,
    /// Fast registration, see [`RegPart`]. Kernel users only.
    RegMr,
}

/// What a bind names.
#[derive(Clone, Copy)]
pub struct BindPart {
    /// First byte, as the region is addressed.
    pub addr: u64,
    /// Bytes; 0 unbinds a window of type 1.
    pub length: u64,
    /// Local key of the region.
    pub mr_lkey: Key,
    /// Present key of the window.
    pub mw_rkey: Key,
    /// `IB_ACCESS_*` flags.
    pub access: u32,
    /// Key from now on.
    pub new_rkey: Key,
}

/// What a fast registration names.
#[derive(Clone, Copy)]
pub struct RegPart {
    /// Address of the first byte.
    pub iova: u64,
    /// Key from now on.
    pub key: Key,
    /// `IB_ACCESS_*` flags.
    pub access: u32,
}

/// What a FLUSH names besides the range.
#[derive(Clone, Copy)]
pub struct FlushPart {
    /// Placement type bits.
    pub placement: u8,
    /// Selectivity level.
    pub level: u8,
}

/// Whose a send work request is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// The user's.
    #[default]
    User,
    /// The device's: it fetches the data of a message.
    Fetch,
    /// The device's: it tells a sender that its data were fetched.
    Fin,
}

/// The RDMA part of a send work request.
#[derive(Clone, Copy, Default)]
pub struct RdmaPart {
    /// Remote virtual address.
    pub remote_addr: u64,
    /// Remote key.
    pub rkey: Key,
    /// Remote XRC SRQ number, of SENDs too.
    pub srqn: u32,
    /// Comparand or addend of an atomic.
    pub compare_add: u64,
    /// New value of a compare and swap.
    pub swap: u64,
}

/// Local work and FLUSH are rare, and every queue has room for many requests: what they name is
/// kept in the fields that they do not use.
impl RdmaPart {
    /// Keeps the operands of a bind.
    pub fn from_bind(bind: &BindPart) -> Self {
        RdmaPart {
            remote_addr: bind.addr,
            rkey: bind.mr_lkey,
            srqn: bind.mw_rkey.get(),
            compare_add: bind.length,
            swap: u64::from(bind.access) << 32 | u64::from(bind.new_rkey.get()),
        }
    }

    /// The operands of a bind.
    pub fn bind(&self) -> BindPart {
        BindPart {
            addr: self.remote_addr,
            length: self.compare_add,
            mr_lkey: self.rkey,
            mw_rkey: Key::new(self.srqn),
            access: (self.swap >> 32) as u32,
            new_rkey: Key::new(self.swap as u32),
        }
    }

    /// Keeps the operands of a fast registration.
    pub fn from_reg(reg: &RegPart) -> Self {
        RdmaPart {
            remote_addr: reg.iova,
            rkey: reg.key,
            srqn: reg.access,
            ..RdmaPart::default()
        }
    }

    /// The operands of a fast registration.
    pub fn reg(&self) -> RegPart {
        RegPart {
            iova: self.remote_addr,
            key: self.rkey,
            access: self.srqn,
        }
    }

    /// Keeps what is special about a FLUSH.
    pub fn set_flush(&mut self, flush: FlushPart) {
        self.swap = u64::from(u16::from_ne_bytes([flush.placement, flush.level]));
    }

    /// What is special about a FLUSH.
    pub fn flush(&self) -> FlushPart {
        let [placement, level] = (self.swap as u16).to_ne_bytes();
        FlushPart { placement, level }
    }
}

/// The datagram part of a send work request.
#[derive(Clone, Copy, Default)]
pub struct UdPart {
    /// Number of the address handle.
    pub ah: u32,
    /// Remote QP number.
    pub remote_qpn: Qpn,
    /// Remote Q_Key; the QP's own is sent when the high bit is set.
    pub remote_qkey: u32,
}

/// A send work request without its gather list.
#[derive(Clone, Copy, Default)]
pub struct SendHead {
    /// Given back in the completion.
    pub wr_id: u64,
    /// What to do.
    pub op: SendOp,
    /// Who wants it.
    pub origin: Origin,
    /// Completion wanted.
    pub signaled: bool,
    /// Solicited event at the receiver.
    pub solicited: bool,
    /// Wait for earlier READs and atomics.
    pub fence: bool,
    /// Immediate data as the verbs carry it (big-endian bits), or the key to invalidate.
    pub imm: u32,
    /// RDMA and atomics.
    pub rdma: RdmaPart,
    /// Datagrams.
    pub ud: UdPart,
    /// Total bytes.
    pub length: u32,
    /// Elements in the gather list.
    pub num_sge: u32,
    /// Inline data: its first byte, counted from the start of the slot, and `length` bytes of it.
    pub inline_at: Option<u32>,
}

/// A receive work request without its scatter list.
#[derive(Clone, Copy, Default)]
pub struct RecvHead {
    /// Given back in the completion.
    pub wr_id: u64,
    /// Elements in the scatter list.
    pub num_sge: u32,
}

/// Gives access to the element count, for [`KernelQueue`].
pub trait Head: Copy + Default + Send {
    /// Elements in the list.
    fn num_sge(&self) -> u32;
}

impl Head for SendHead {
    fn num_sge(&self) -> u32 {
        self.num_sge
    }
}

impl Head for RecvHead {
    fn num_sge(&self) -> u32 {
        self.num_sge
    }
}

/// What [`KernelQueue`]'s lock protects.
struct Slots<H> {
    heads: KVVec<H>,
    sges: KVVec<Sge>,
    max_sge: usize,
    /// Next slot to fill, next slot to take, next slot to give back; they run freely over 32 bits.
    filled: u32,
    taken: u32,
    retired: u32,
}

impl<H> Slots<H> {
    fn capacity(&self) -> u32 {
        self.heads.len() as u32
    }
    fn at(&self, index: u32) -> usize {
        // The number of slots is a power of two.
        (index & self.capacity().wrapping_sub(1)) as usize
    }
    fn list(&mut self, slot: usize) -> Option<&mut [Sge]> {
        let from = slot.wrapping_mul(self.max_sge);
        self.sges.get_mut(from..from.wrapping_add(self.max_sge))
    }
}

/// A queue of work requests posted by a kernel user.
///
/// Posting is legal in any context, interrupts off included; so is taking.
#[pin_data]
pub struct KernelQueue<H: Head> {
    #[pin]
    slots: SpinLockIrq<Slots<H>>,
}

impl<H: Head> KernelQueue<H> {
    /// Makes an empty queue for `entries` requests (rounded up to a power of two) of up to
    /// `max_sge` elements. Process context.
    pub fn new(entries: u32, max_sge: u32) -> impl PinInit<Self, Error> {
        pin_init::pin_init_scope(move || {
            let entries = entries.max(1).checked_next_power_of_two().ok_or(EINVAL)?;
            let max_sge = (max_sge as usize).min(MAX_SGE);
            let elements = (entries as usize).checked_mul(max_sge).ok_or(EINVAL)?;
            let heads = filled::<H>(entries as usize)?;
            let sges = filled::<Sge>(elements)?;
            Ok(pin_init!(KernelQueue {
                slots <- new_spinlock_irq!(Slots {
                    heads,
                    sges,
                    max_sge,
                    filled: 0,
                    taken: 0,
                    retired: 0,
                }, "xroce kernel queue"),
            }? Error))
        })
    }

    /// Appends a request. Fails with ENOMEM when as many as the queue holds have not completed.
    ///
    /// # Errors
    ///
    /// ENOMEM when as many requests as the queue holds have not completed; EINVAL for a longer list
    /// than it takes.
    pub fn post(&self, head: &H, list: &[Sge]) -> Result {
        let mut slots = self.slots.lock();
        if slots.filled.wrapping_sub(slots.retired) >= slots.capacity() {
            return Err(ENOMEM);
        }
        let slot = slots.at(slots.filled);
        let room = slots.list(slot).ok_or(EINVAL)?;
        room.get_mut(..list.len())
            .ok_or(EINVAL)?
            .copy_from_slice(list);
        *slots.heads.get_mut(slot).ok_or(EINVAL)? = *head;
        slots.filled = slots.filled.wrapping_add(1);
        Ok(())
    }

    /// Requests that can be posted now.
    pub fn room(&self) -> u32 {
        let slots = self.slots.lock();
        slots
            .capacity()
            .saturating_sub(slots.filled.wrapping_sub(slots.retired))
    }

    /// Requests that were posted and not taken.
    pub fn available(&self) -> u32 {
        let slots = self.slots.lock();
        slots.filled.wrapping_sub(slots.taken)
    }

    /// Copies the oldest request that was not taken; `list` holds at least its elements.
    pub fn take(&self, head: &mut H, list: &mut [Sge]) -> bool {
        let mut slots = self.slots.lock();
        if slots.filled == slots.taken {
            return false;
        }
        let slot = slots.at(slots.taken);
        let Some(from) = slots.heads.get(slot) else {
            return false;
        };
        *head = *from;
        let count = head.num_sge() as usize;
        if let Some(elements) = slots.list(slot).and_then(|l| l.get(..count)) {
            if let Some(to) = list.get_mut(..count) {
                to.copy_from_slice(elements);
            }
        }
        slots.taken = slots.taken.wrapping_add(1);
        true
    }

    /// Gives `count` slots back for new requests.
    pub fn retire(&self, count: u32) {
        let mut slots = self.slots.lock();
        slots.retired = slots.retired.wrapping_add(count);
    }

    /// Forgets everything.
    pub fn forget(&self) {
        let mut slots = self.slots.lock();
        slots.taken = slots.filled;
        slots.retired = slots.filled;
    }
}

/// A vector of `count` default values.
///
/// # Errors
///
/// ENOMEM.
pub fn filled<T: Default + Clone>(count: usize) -> Result<KVVec<T>> {
    let mut v = KVVec::with_capacity(count, GFP_ACCOUNT)?;
    v.extend_with(count, T::default(), GFP_ACCOUNT)?;
    Ok(v)
}
