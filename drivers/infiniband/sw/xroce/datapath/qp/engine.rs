// SPDX-License-Identifier: GPL-2.0

//! What drives the two directions of a queue pair, and from where.
//!
//! Runs normally happen in softirq or in the process that rings the doorbell, and do not sleep. The
//! runs of a queue pair that may meet on-demand memory ([`WireQp::sleeps`]) are different: whatever
//! brings input only queues a work item, and a kernel thread makes the run. A queue pair is marked
//! as one of this kind before such memory can be used. A run that began before that is an RCU
//! reader, and the registration of the memory waits for it.
//!
//! Each direction belongs to the context that holds its [`Owner`]. A doorbell, a packet, a timer
//! and a work item all do the same: they leave their input where the owner finds it (ring, backlog,
//! clock) and kick. The run that follows looks at everything. Only the control path waits: it takes
//! an owner in process context.

use super::receive::RecvSide;
use super::send::SendSide;
use crate::prelude::*;
use crate::rx::{
    Backlog,
    Verified, //
};
use crate::tables;
use crate::tx::Av;
use rdma::work;
use roce::wire::{
    Content,
    Packet, //
};

/// Rounds that one kick may do before it leaves the rest to the QP's work item: another CPU can
/// bring new input as fast as this one handles it.
const MAX_ROUNDS: u32 = 16;

/// QPs that one run of a send side has run after it, one for the sake of the other.
const MAX_WAITERS: u32 = 4;

/// Packets that one run takes from a backlog.
const BACKLOG_BURST: u32 = 64;

/// Runs that a doorbell makes in its caller. The device cannot be removed in the meantime. The work
/// item makes the other runs, so that a process that has posted much gets to poll for the first of
/// it.
const DOORBELL_RUNS: u32 = 4;

/// The same for messages within the host, 16 MiB: no peer paces them, and the copy takes as long in
/// the thread, which would compete with the process that polls for it.
const DOORBELL_COPY_RUNS: u32 = 64;

/// The send direction waits for an answer of the peer.
pub(crate) const UNDER_WAY: u32 = 0;
/// It waits for none, and the request that ended last was completed with a completion.
pub(crate) const ALL_TOLD: u32 = 1;
/// It waits for none, and the request that ended last has no completion: its process was not told.
pub(crate) const UNTOLD: u32 = 2;

/// Who makes a run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Runner {
    /// A kernel thread, in which a run may sleep.
    Thread,
    /// A softirq or a process, in which runs do not sleep.
    Direct,
}

impl Runner {
    /// The present context, in a callback of a timer or a work item.
    fn of_callback() -> Self {
        match work::in_softirq() {
            true => Runner::Direct,
            false => Runner::Thread,
        }
    }
}

/// Bytes of payload that one run may move.
const BYTES: u32 = 256 << 10;

/// So many packets that are left for a run are not worth beginning a train.
const SHORT: u32 = 16;

/// How much one run may do.
pub(crate) struct Budget {
    /// Packets still to be built or messages still to be handled.
    packets: u32,
    /// Bytes of payload still to be moved.
    bytes: u32,
}

impl Budget {
    /// Budget of one run: a burst that the softnet backlog of the receiving end (1000 packets by
    /// default, shared by all) holds easily.
    pub(crate) fn new() -> Self {
        Budget {
            packets: 64,
            bytes: BYTES,
        }
    }

    /// Takes one packet and `bytes` from the budget.
    pub(crate) fn spend(&mut self, bytes: u32) {
        self.spend_packets(1, bytes);
    }

    /// Takes `count` packets and their `bytes` from the budget.
    pub(crate) fn spend_packets(&mut self, count: u32, bytes: u32) {
        self.packets = self.packets.saturating_sub(count);
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Takes `count` requests without a packet from the budget.
    pub(crate) fn spend_requests(&mut self, count: u32) {
        self.packets = self.packets.saturating_sub(count);
    }

    /// A train has ended, of those with up to `room` packets. If little is left of the budget,
    /// nothing more is built: it would be a short one, and another run makes a longer one.
    pub(crate) fn end_with_train(&mut self, room: u32) {
        if self.packets < room.min(SHORT) {
            self.packets = 0;
        }
    }

    /// Packets that may still be built.
    pub(crate) fn packets(&self) -> u32 {
        self.packets
    }

    /// Bytes of payload that were moved, at most those of the budget.
    pub(crate) fn moved(&self) -> u32 {
        BYTES.saturating_sub(self.bytes)
    }

    /// Nothing is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.packets == 0 || self.bytes == 0
    }
}

impl WireQp {
    /// Runs the send side, or makes its present owner run it again. Any context but NMI and hard
    /// interrupt.
    pub fn kick_send(&self) {
        if self.run_send(&mut None, Runner::Direct) {
            self.schedule_send();
        }
    }

    /// Runs the receive side, or makes its present owner run it again. Any context but NMI and hard
    /// interrupt.
    pub fn kick_receive(&self) {
        if self.run_receive(&mut None, Runner::Direct) {
            self.schedule_receive();
        }
    }

    /// Has the send side run soon. Any context: kernel users post with interrupts off.
    pub fn schedule_send(&self) {
        if self.sleeps() {
            self.send_work.schedule_process();
        } else {
            self.send_home.schedule(&self.send_work);
        }
    }

    /// Has the receive side run soon. Any context.
    pub fn schedule_receive(&self) {
        if self.sleeps() {
            self.recv_work.schedule_process();
        } else {
            self.recv_home.schedule(&self.recv_work);
        }
    }

    /// Whether acknowledgements of the peer hold the send side back in the long run. A process can
    /// keep a side that nothing holds back busy for ever. Such a side must not stay in softirq,
    /// which comes before all other work of the CPU.
    fn awaits_acks(&self) -> bool {
        self.kind.is_reliable()
            && self.copies.load(Relaxed) == 0
            && self.last_run.load(Relaxed) == UNDER_WAY
            && !self.state().is_error()
    }

    /// A user's doorbell: makes a bounded number of runs of the send side in the caller, fewer when
    /// a signal is pending, and leaves what remains to the work item, in a kernel thread if nothing
    /// holds the send side back ([`WireQp::awaits_acks`]). The ring may be filled by another thread
    /// as fast as it is emptied here, and the removal of the device waits for its commands. In the
    /// error state it flushes both directions, since it is then what follows a posted receive as
    /// well. Process context.
    pub fn doorbell(&self) {
        if self.state().is_error() {
            self.kick_receive();
        }
        self.make_slots();
        self.send_home.move_here();
        self.note_doorbell();
        let mut runs = 0u32;
        while self.run_send(&mut None, Runner::Direct) {
            runs = runs.wrapping_add(1);
            let most = match self.copies.load(Relaxed) {
                0 => DOORBELL_RUNS,
                _ => DOORBELL_COPY_RUNS,
            };
            let mut is_enough = runs >= most || work::signal_pending();
            if !is_enough {
                work::cond_resched();
                // The scheduler may have moved the process. What it sent from the other CPU may
                // still be there, and would be overtaken.
                is_enough = self.awaits_acks() && self.send_home.elsewhere().is_some();
            }
            if is_enough {
                if self.awaits_acks() {
                    self.schedule_send();
                } else {
                    self.send_work.schedule_process();
                }
                return;
            }
        }
    }

    /// Whether a run must not begin here, but in a kernel thread. A QP that was reset uses no
    /// memory.
    fn is_for_thread(&self) -> bool {
        self.sleeps() && self.state() != QpState::Reset
    }

    /// Kicks the send side; true when work is left that nobody will do unless asked. `packet`, a
    /// response, is taken unless somebody else owns the side.
    pub(super) fn run_send(&self, packet: &mut Option<Verified>, runner: Runner) -> bool {
        let again = self.run_send_alone(packet, runner);
        self.run_waiters();
        again
    }

    /// Calls `run`, a run in a thread. It waits for no memory any more once the QP is reset or
    /// destroyed, because the reset waits for the run.
    fn cut_short<R>(&self, run: impl FnOnce() -> R) -> R {
        work::unless(&|| self.state() == QpState::Reset, run)
    }

    /// Runs the send sides that waited for this one, here and now: a work item would wait for a
    /// CPU. A chain of them is cut off.
    fn run_waiters(&self) {
        // The owner looks for waiters after it has let go.
        if self.send.is_owned() {
            return;
        }
        let mut next = self.take_send_waiter();
        for _ in 0..MAX_WAITERS {
            let Some(qp) = next else {
                return;
            };
            // The QP may belong to another process, which must not have to wait while this process
            // has no CPU.
            let softirq = NoSoftirq::new();
            if qp.run_send_alone(&mut None, Runner::Direct) {
                qp.schedule_send();
            }
            drop(softirq);
            next = qp.take_send_waiter();
        }
        if let Some(qp) = next {
            qp.schedule_send();
        }
    }

    /// The QP that waits for the send side. A QP that leaves its number looks once more whether the
    /// side is owned; the owner looks here after it has let go.
    fn take_send_waiter(&self) -> Option<Ref<WireQp>> {
        if self.send_waiter.load(Relaxed) == 0 {
            return None;
        }
        find(u64::from(self.send_waiter.xchg(0, Full)))
    }

    /// As [`WireQp::run_send`], but leaves those alone that wait for it.
    fn run_send_alone(&self, packet: &mut Option<Verified>, runner: Runner) -> bool {
        // A run that began before the queue pair could meet on-demand memory is an RCU reader, in a
        // thread as well: the registration waits for it.
        let may_sleep = runner == Runner::Thread && self.sleeps();
        kick(&self.send, |side: &mut SendSide| {
            if may_sleep {
                return self.cut_short(|| side.run(self, packet.take()));
            }
            let rcu = rdma::rcu::read_lock();
            if self.is_for_thread() {
                if let Some(packet) = packet.take() {
                    self.leave(&self.responses, packet);
                }
                self.send_work.schedule_process();
                return Run::Idle;
            }
            let run = side.run(self, packet.take());
            drop(rcu);
            run
        })
    }

    /// As [`WireQp::run_send`], for the receive side and a request.
    fn run_receive(&self, packet: &mut Option<Verified>, runner: Runner) -> bool {
        // As in `run_send_alone`.
        let may_sleep = runner == Runner::Thread && self.sleeps();
        let mut fetch = false;
        let again = kick(&self.recv, |side: &mut RecvSide| {
            if may_sleep {
                let run = self.cut_short(|| side.run(self, packet.take()));
                fetch |= side.io.take_fetch();
                return run;
            }
            let rcu = rdma::rcu::read_lock();
            if self.is_for_thread() {
                if let Some(packet) = packet.take() {
                    self.leave(&self.requests, packet);
                }
                self.recv_work.schedule_process();
                return Run::Idle;
            }
            let run = side.run(self, packet.take());
            fetch |= side.io.take_fetch();
            drop(rcu);
            run
        });
        // After the answers of this run, usually at the end of the softirq that makes the run.
        if fetch {
            self.schedule_send();
        }
        again
    }

    /// Hands a response packet to the requester. Softirq.
    pub(crate) fn response(&self, packet: Verified) {
        let home = self.send_home.elsewhere();
        let Some(packet) = self.leave_at_home(home, &self.responses, &self.send_work, packet)
        else {
            return;
        };
        let run = |packet: &mut Option<Verified>| self.run_send(packet, Runner::Direct);
        if self.hand_over(&self.responses, packet, run) {
            self.schedule_send();
        }
    }

    /// Hands a request packet to the responder. Softirq.
    pub(crate) fn request(&self, packet: Verified) {
        let home = self.recv_home.elsewhere();
        let Some(packet) = self.leave_at_home(home, &self.requests, &self.recv_work, packet) else {
            return;
        };
        let run = |packet: &mut Option<Verified>| self.run_receive(packet, Runner::Direct);
        if self.hand_over(&self.requests, packet, run) {
            self.schedule_receive();
        }
    }

    /// Leaves `packet` to the run of `work` on CPU `home`, if there is one and there is room. Else
    /// the packet, which is to be handled here. A thread that may sleep has no home.
    fn leave_at_home(
        &self,
        home: Option<u32>,
        backlog: &Backlog,
        work: &Work,
        packet: Verified,
    ) -> Option<Verified> {
        let Some(cpu) = home.filter(|_| !self.sleeps()) else {
            return Some(packet);
        };
        let left = backlog.push(packet);
        if left.is_ok() {
            work.schedule_on(cpu);
        }
        left.err()
    }

    /// Has `run` take `packet`, or leaves it where the present owner of the side finds it. True
    /// when work is left.
    fn hand_over(
        &self,
        backlog: &Backlog,
        packet: Verified,
        run: impl Fn(&mut Option<Verified>) -> bool,
    ) -> bool {
        let mut packet = Some(packet);
        let again = run(&mut packet);
        let Some(packet) = packet else {
            return again;
        };
        self.leave(backlog, packet);
        run(&mut None)
    }

    /// Leaves a packet for the next run.
    fn leave(&self, backlog: &Backlog, packet: Verified) {
        if backlog.push(packet).is_err() {
            self.device.count(Counter::Dropped, 1);
        }
    }

    /// Callback of the QP's timer and of its send work; `qpn` is their cookie. Softirq, or a
    /// thread.
    pub(crate) fn on_send_work(qpn: u64) {
        let Some(qp) = find(qpn) else {
            return;
        };
        let runner = Runner::of_callback();
        if qp.run_send(&mut None, runner) {
            if runner == Runner::Thread || !qp.awaits_acks() {
                qp.send_work.schedule_process();
            } else {
                qp.send_home.go_on(&qp.send_work);
            }
        } else if runner == Runner::Thread {
            qp.poll_ring();
        }
    }

    /// Callback of the QP's receive work. Softirq, on one CPU at a time; or a thread.
    pub(crate) fn on_recv_work(qpn: u64) {
        let Some(qp) = find(qpn) else {
            return;
        };
        let runner = Runner::of_callback();
        if runner == Runner::Direct && qp.take_arrivals() {
            qp.receive_goes_on();
        }
        qp.receive_later(runner);
    }

    /// Callback of the timer that paces the receive direction. Softirq.
    pub(crate) fn on_pace(qpn: u64) {
        if let Some(qp) = find(qpn) {
            qp.receive_later(Runner::of_callback());
        }
    }

    /// Runs the receive side from a callback, and sees to it that what is left is done.
    fn receive_later(&self, runner: Runner) {
        if self.run_receive(&mut None, runner) {
            // Receives may be posted as fast as they are flushed.
            if runner == Runner::Thread || self.state().is_error() {
                self.recv_work.schedule_process();
            } else {
                self.receive_goes_on();
            }
        }
    }
}

fn find(qpn: u64) -> Option<Ref<WireQp>> {
    tables::get()?.qps.get(u32::try_from(qpn).ok()?)
}

/// Kicks a side for at most [`MAX_ROUNDS`] runs; true when work is left that nobody will do unless
/// asked.
fn kick<T>(side: &Owner<T>, mut run: impl FnMut(&mut T) -> Run) -> bool {
    let mut rounds = 0u32;
    let kick = side.kick(|side: &mut T| {
        rounds = rounds.wrapping_add(1);
        if rounds > MAX_ROUNDS {
            return Run::Again;
        }
        run(side)
    });
    matches!(kick, Kick::Again)
}

/// Hands the packets that wait in `backlog`, then `packet`, to `f`, as many as one run may take,
/// and no more once the state of the queue pair changes or memory was waited for: each may have to
/// wait for memory that is not pinned, for seconds, and whoever changes the queue pair waits for
/// the run. `f` says whether it has left a part of a train in `backlog`, which it does if memory
/// was waited for. True when some are left for another run, which sees the new state.
pub(crate) fn take_packets(
    qp: &WireQp,
    backlog: &Backlog,
    packet: Option<Verified>,
    mut f: impl FnMut(Verified) -> bool,
) -> bool {
    let state = qp.state();
    let mut taken = 0u32;
    while taken < BACKLOG_BURST {
        let now = qp.state();
        if now != state || now == QpState::Reset {
            break;
        }
        match backlog.pop() {
            Some(first) => {
                taken = taken.saturating_add(first.count());
                let _ = work::step(|| f(first));
            }
            None => return packet.is_some_and(|packet| work::step(|| f(packet))),
        }
        if work::has_waited() {
            break;
        }
    }
    if let Some(packet) = packet {
        qp.leave(backlog, packet);
    }
    true
}

/// Hands `packet`, or each packet of a train in its order, to `f` with its index. `f` says how many
/// it has handled: one, or more of a train if it can. What is left of a train when memory was
/// waited for goes to `backlog`, for another run; says whether something does. Packets that wait
/// there are taken before it, so it may be out of order then, as if the network had disordered it.
/// What is left when the queue pair is reset is dropped.
pub(super) fn for_each(
    qp: &WireQp,
    backlog: &Backlog,
    packet: Verified,
    mut f: impl FnMut(&Verified, u32) -> u32,
) -> bool {
    let mut index = f(&packet, 0).max(1);
    let mut is_late = false;
    while index < packet.count() {
        if qp.state() == QpState::Reset {
            break;
        }
        is_late |= work::has_waited();
        if !is_late {
            index = index.saturating_add(f(&packet, index).max(1));
            continue;
        }
        match packet.part(index) {
            Some(part) => qp.leave(backlog, part),
            None => qp.device.count(Counter::Dropped, 1),
        }
        index = index.wrapping_add(1);
    }
    is_late
}

/// The packets of a train of the connection `av`, from the one with this index on, that can be
/// handled as one, and how many they are: Middle packets whose payload follows in memory. Memory
/// that may have to be waited for is not to be used for so many at a time.
pub(crate) fn middles_from<'a>(
    qp: &WireQp,
    av: &Av,
    packet: &'a Verified,
    index: u32,
) -> Option<(Packet<'a>, u32)> {
    // The first one of a train may be another one, and be marked.
    if index == 0 || qp.sleeps() || packet.src() != av.dst || packet.dst() != av.src {
        return None;
    }
    match packet.several(index)? {
        (Content::Message(message), count) if count > 1 => Some((message, count)),
        _ => None,
    }
}

/// What is in a packet of the connection `av`, the one with this index in a train; one of another
/// connection is counted, and taken for none.
pub(crate) fn content_from<'a>(
    qp: &WireQp,
    av: &Av,
    packet: &'a Verified,
    index: u32,
) -> Option<Content<'a>> {
    if packet.src() != av.dst || packet.dst() != av.src {
        qp.device.count(Counter::Unknown, 1);
        return None;
    }
    let content = packet.content(index);
    if matches!(content, Content::Cnp) {
        qp.device.count(Counter::CnpHandled, 1);
    }
    Some(content)
}
