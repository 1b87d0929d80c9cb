// SPDX-License-Identifier: GPL-2.0

//! On which CPU the directions of a queue pair work.
//!
//! Small messages are handled where they come, since another CPU would have to be interrupted for
//! them. With bulk data this would leave all the work of both ends of a virtual link to the CPU of
//! the sender. Hence:
//!
//! * A super-packet is received on the CPU of the completion queue's vector, or on the next one if
//!   nobody has chosen the affinity of the vector. It is put into a queue
//!   of the queue pair ([`Arrivals`]) before anybody has looked at it, and the receive work item
//!   has it checked and handled there, as if it came only then. What follows it waits as well, so
//!   packets stay in order. Whoever is the peer can have packets wait, as in a backlog, and nobody
//!   else.
//! * A direction that sends bulk data has a [`Home`]: for large messages of a process the CPU of
//!   the last doorbell, for others and for READ data the CPU on which it began to. What lets it go
//!   on, an acknowledgement or a READ request, comes to another CPU then. It is left in the backlog
//!   of the direction, and the work item is run at home. So the two CPUs share the work, and the
//!   packets of one queue pair do not overtake each other.
//! * A doorbell moves the home to the CPU of the process, which may be the one that receives. The
//!   next super-packets come to that CPU then, and one CPU would do the work of both ends while the
//!   process polls on the other. Hence a super-packet that comes to the CPU on which others wait
//!   says anew where they are received. The receive direction can move, because its packets are in
//!   a queue, unless it sends bulk READ data: packets that a direction sends from two CPUs may
//!   overtake each other.
//!
//! All of this only decides where something is done. A direction may run anywhere at any time.

use crate::prelude::*;
use rdma::net::{
    other_cpu,
    Arrival,
    Arrivals,
    Peek, //
};
use rdma::process::Process;
use rdma::work::{
    self,
    Work, //
};
use roce::opcode::Opcode;

/// So much at a time is bulk, bytes.
const BULK: u32 = 16 << 10;

/// So many runs in a row that send something, but not in bulk, are the end of bulk data: they end
/// with a shorter run or two.
pub(super) const MAX_SMALL: u8 = 8;

/// Bytes that are received before other softirqs have their turn: those that hand over the answers.
const BURST: u32 = 32 << 10;

/// Packets that wait for another CPU, and which CPU that is.
#[pin_data]
pub(super) struct Queue {
    #[pin]
    packets: Arrivals,
    /// Valid while there are packets. A hint: bulk packets that come may change it, and the work
    /// item follows when it gives way.
    cpu: Atomic<u32>,
}

impl Queue {
    /// An empty queue, with the limits of a backlog.
    pub(super) fn new(limit: u32, max_bytes: u32, process: Arc<Process>) -> impl PinInit<Self> {
        pin_init!(Self {
            packets <- Arrivals::new(limit, max_bytes, process),
            cpu: Atomic::new(0),
        })
    }
}

/// The CPU on which a direction sends bulk data, if it does, and that of the last doorbell.
///
/// The numbers are hints, read and written by several CPUs without an order.
pub(super) struct Home {
    /// The CPU and 1, or 0; in the upper half, the same for that of the doorbell.
    word: Atomic<u32>,
}

/// The half of [`Home::word`] that is the home.
const HOME: u32 = 0xffff;

/// So often a change of [`Home::word`] is tried.
const MAX_CHANGES: u32 = 8;

/// This CPU, as it is in [`Home::word`].
fn here() -> u32 {
    work::this_cpu().wrapping_add(1) & HOME
}

impl Home {
    /// None.
    pub(super) fn new() -> Self {
        Home {
            word: Atomic::new(0),
        }
    }

    /// A run has sent `bytes` bytes of payload here; says whether that is bulk. If it is the first
    /// of it, the home is here; with `is_large` messages it is the CPU of the last doorbell, if
    /// there was one. The run may be that of an acknowledgement, which comes to the CPU that
    /// receives the data, of a timer, or of a thread.
    pub(super) fn note_sent(&self, bytes: u32, is_large: bool) -> bool {
        let is_bulk = bytes >= BULK;
        if is_bulk {
            self.change(|word| match (word & HOME, word >> 16) {
                (0, rung) if is_large && rung != 0 => word | rung,
                (0, _) => word | here(),
                _ => word,
            });
        }
        is_bulk
    }

    /// Changes the word. After a few changes by others meanwhile, by doorbells on several CPUs, it
    /// stays as it is: what it says is a hint.
    fn change(&self, new: impl Fn(u32) -> u32) {
        let mut word = self.word.load(Relaxed);
        for _ in 0..MAX_CHANGES {
            let wanted = new(word);
            if wanted == word {
                return;
            }
            match self.word.cmpxchg(word, wanted, Relaxed) {
                Ok(_) => return,
                Err(seen) => word = seen,
            }
        }
    }

    /// Nothing is sent from there any more.
    pub(super) fn leave(&self) {
        self.change(|word| word & !HOME);
    }

    /// A process is about to send here. If it sends bulk data, it does so from this CPU from now
    /// on.
    pub(super) fn move_here(&self) {
        let here = here();
        self.change(|word| match word & HOME {
            0 => here << 16,
            _ => here << 16 | here,
        });
    }

    /// Whether the direction sends bulk data.
    fn is_set(&self) -> bool {
        self.word.load(Relaxed) & HOME != 0
    }

    /// The work item of the direction has more to do, at home if there is one. Softirq.
    pub(super) fn go_on(&self, work: &Work) {
        work.give_way(self.elsewhere().unwrap_or(work::this_cpu()));
    }

    /// The CPU, if it is another than this one.
    pub(super) fn elsewhere(&self) -> Option<u32> {
        let cpu = (self.word.load(Relaxed) & HOME).checked_sub(1)?;
        (cpu != work::this_cpu()).then_some(cpu)
    }

    /// Has `work` run soon, at home if there is one.
    pub(super) fn schedule(&self, work: &Work) {
        match self.elsewhere() {
            Some(cpu) => work.schedule_on(cpu),
            None => work.schedule(),
        };
    }
}

impl WireQp {
    /// A super-packet, or a packet while others wait, has come that is for this queue pair, if it
    /// is valid. Softirq.
    ///
    /// # Errors
    ///
    /// The packet, which is to be received here and now.
    pub(crate) fn steer(&self, packet: Arrival, peek: &Peek<'_>) -> Result<(), Arrival> {
        let queue = &self.arrivals;
        let waits = queue.packets.is_busy();
        let is_bulk = peek.is_super() && peek.bytes() >= BULK;
        // Memory that may have to be waited for is a thread's.
        if !waits && (!is_bulk || self.kind.is_datagram() || self.sleeps()) {
            return Err(packet);
        }
        let Some(opcode) = Opcode::from_byte(peek.opcode()) else {
            return Err(packet);
        };
        let is_response = opcode.is_response();
        let connection = match is_response {
            true => &self.send_connection,
            false => &self.recv_connection,
        };
        if !connection.carries(&peek.src(), &peek.dst()) {
            return Err(packet);
        }
        // While packets wait, they are taken up elsewhere only if the sender is where they wait.
        if !waits || (is_bulk && queue.cpu.load(Relaxed) == work::this_cpu()) {
            match self.bulk_cpu(is_response) {
                Some(cpu) => queue.cpu.store(cpu, Relaxed),
                None if waits => (),
                None => return Err(packet),
            }
        }
        match queue.packets.push(packet) {
            Ok(()) => {
                self.recv_work.schedule_on(queue.cpu.load(Relaxed));
            }
            // There is no room, and it overtakes nothing.
            Err(packet) if !waits => return Err(packet),
            Err(_) => self.device.count(Counter::Dropped, 1),
        }
        Ok(())
    }

    /// Where bulk data of a direction belong that come to this CPU; `None`: here.
    fn bulk_cpu(&self, is_response: bool) -> Option<u32> {
        let cq = match is_response {
            true => self.send_cq.as_ref(),
            false => {
                let of_srq = self.srq.as_ref().and_then(|srq| srq.cq.as_ref());
                of_srq.or(self.recv_cq.as_ref())
            }
        };
        match cq {
            Some(cq) => cq.bulk_cpu(),
            // An XRC target: only the packet says where it completes.
            None => other_cpu(),
        }
    }

    /// The receive work item has more to do, where the packets that wait belong; here, if it also
    /// sends READ data in bulk. Softirq.
    pub(super) fn receive_goes_on(&self) {
        let may_move = self.arrivals.packets.is_busy() && !self.recv_home.is_set();
        let cpu = match may_move {
            true => self.arrivals.cpu.load(Relaxed),
            false => work::this_cpu(),
        };
        self.recv_work.give_way(cpu);
    }

    /// Drops the packets that wait: the queue pair is reset. Process context.
    pub(super) fn purge_arrivals(&self) {
        while self.arrivals.packets.pop().is_some() {}
    }

    /// Receives packets that wait for this CPU; true when some are left. Softirq; the receive work
    /// item, which is the only one to receive them and runs on one CPU at a time.
    pub(super) fn take_arrivals(&self) -> bool {
        let mut bytes = 0u32;
        while bytes < BURST {
            let Some(packet) = self.arrivals.packets.pop() else {
                return false;
            };
            bytes = bytes.saturating_add(packet.bytes());
            packet.receive(self.device.tunnel());
        }
        true
    }
}
