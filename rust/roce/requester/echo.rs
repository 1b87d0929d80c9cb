// SPDX-License-Identifier: GPL-2.0

//! Echoes: a silent responder is asked for an answer that repeats nothing.
//!
//! An echo is a WRITE of no bytes with the number before the oldest one that waits. The responder
//! has executed that number, so it takes the echo for a copy and answers with an ACK. It does not
//! look at the memory or the key, which an empty WRITE may leave out anyway. The number that it
//! answers with is not that of anything in flight ([`Requester::may_echo`]).
//!
//! The responder answers in order. So when the answer to an echo comes, the answers to all that was
//! sent before the echo have come, or they are lost, or the network has disordered them. That is
//! evidence of a loss, which a time without an answer is not, however long.

use core::{
    num::NonZeroU32,
    ops::DerefMut, //
};

use super::timeout::{
    Probe,
    ProbePacket, //
};
use super::transmit::{
    Bits,
    Transmit, //
};
use super::{
    Requester,
    SendOp,
    State,
    Wqe, //
};
use crate::key::Key;
use crate::opcode::Operation;
use crate::psn::Psn;
use crate::rtt::Rtt;
use crate::wire::Reth;

/// After so many times without an answer, they do not become longer: the wire may be interrupted,
/// and its end is to be noticed soon.
const PATIENCE: u16 = 3;

/// Then, echoes follow each other in half of the shortest round trip, or in this time if that is
/// longer, nanoseconds.
const MIN_GAP_NS: u64 = 3_000_000;

/// They do for so long, nanoseconds.
const PERSISTENCE_NS: u64 = 2_000_000_000;

/// So many doublings of the time of a probe, answers are awaited to what was asked before there was
/// progress; the second number is for what was asked before a loss.
const STALE_DOUBLINGS: (u8, u8) = (8, 0);

/// The number that an answer to an echo names, of what was done before, must not be one of so many
/// from the oldest packet on.
const FAR: u32 = 1 << 16;

/// After so many answers in a row that came one by one, each before the next question, the others
/// are lost: else they would have come before.
const PROMPT: u8 = 3;

/// Which answers are to echoes that say something of what is in flight now. An answer has no mark
/// of its question, so they are counted: each copy that was sent has one at most.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Echo {
    /// The number behind the last packet of a SEND, a WRITE or an atomic that is done, and
    /// [`KNOWN`].
    done: Option<NonZeroU32>,
    /// From then on, no answer is expected to what was asked before; in units of 2^20 ns, which
    /// come round. Small, since each queue pair has one.
    stale_until: u32,
    /// Copies that were sent and not answered since the oldest packet became that, or was repeated.
    asked: u16,
    /// The same before that.
    stale: u16,
    /// So many of the last ones were answered by one ACK each before the next was sent.
    prompt: u8,
    /// ACKs since the last was sent.
    answers: u8,
    /// How often all was sent again since there was progress.
    resent: u8,
    /// One was answered: what is in flight counts as lost when the time of the probe has come.
    is_answered: bool,
}

/// What marks a number that is known; numbers have 24 bits.
const KNOWN: u32 = 1 << 31;

/// A time, as [`Echo::stale_until`].
fn stamp(now: u64) -> u32 {
    (now >> 20) as u32
}

impl Echo {
    /// A copy was sent, which will be answered.
    #[inline]
    pub(super) fn on_asked(&mut self) {
        self.prompt = match self.answers {
            1 => self.prompt.saturating_add(1),
            _ => 0,
        };
        self.answers = 0;
        self.asked = self.asked.saturating_add(1);
    }

    /// There was progress, or what is in flight is sent again: what was asked so far tells nothing
    /// of it. `is_lossy`: answers to that may be lost.
    #[inline]
    pub(super) fn renew(&mut self, is_lossy: bool, now: u64, rtt: &Rtt) {
        self.is_answered = false;
        self.prompt = 0;
        if self.asked == 0 {
            return;
        }
        if !self.is_stale(now) {
            self.stale = 0;
        }
        self.stale = self.stale.saturating_add(self.asked);
        self.asked = 0;
        let (usual, lossy) = STALE_DOUBLINGS;
        let wait = rtt.probe_timeout(if is_lossy { lossy } else { usual });
        let until = now.saturating_add(wait.unwrap_or(0));
        self.stale_until = stamp(until).wrapping_add(1);
    }

    /// Whether the next answer may be to an earlier question.
    fn is_stale(&self, now: u64) -> bool {
        let left = self.stale_until.wrapping_sub(stamp(now)) as i32;
        self.stale != 0 && left > 0
    }

    /// Takes an answer. Whether it is to something that was asked since.
    fn take_answer(&mut self, now: u64) -> bool {
        self.answers = self.answers.saturating_add(1);
        if self.is_stale(now) && (self.answers != 1 || self.prompt < PROMPT) {
            self.stale = self.stale.wrapping_sub(1);
            return false;
        }
        self.stale = 0;
        let is_known = self.asked != 0;
        self.asked = self.asked.saturating_sub(1);
        is_known
    }

    /// The time for a probe begins again.
    #[inline]
    pub(super) fn forget_answer(&mut self) {
        self.is_answered = false;
    }

    /// Whether there is evidence that what is in flight is lost.
    #[inline]
    pub(super) fn is_answered(&self) -> bool {
        self.is_answered
    }
}

/// The distance of these echoes, and how many there are at that distance.
fn steady(rtt: &Rtt) -> (u64, u64) {
    let gap = (rtt.min() >> 1).max(MIN_GAP_NS);
    (gap, PERSISTENCE_NS.checked_div(gap).unwrap_or(0))
}

/// Whether a responder that did not answer so many times is asked steadily.
#[inline]
pub(super) const fn is_persistent(silent: u16) -> bool {
    silent >= PATIENCE
}

impl Probe {
    /// How long to wait for an answer before one is asked for, if a round trip was measured. While
    /// that becomes longer, it is `most` at most.
    pub(super) fn wait(&self, most: u64, rtt: &Rtt) -> Option<u64> {
        let once = rtt.probe_timeout(0)?;
        // What is sent again without end takes its time.
        let resent = self.echo.resent;
        if !is_persistent(self.silent) {
            let doublings = u16::from(self.count.max(resent)).max(self.silent);
            let wait = rtt.probe_timeout(doublings.min(16) as u8)?;
            // Where much is lost, no round trip may be measured for long.
            return Some(wait.min(once.max(most)));
        }
        let (gap, times) = steady(rtt);
        let beyond = u64::from(self.silent.saturating_sub(PATIENCE)).saturating_sub(times);
        // Answers that come at the same distance as the questions do may be to earlier ones, on a
        // long way: ask at another distance.
        let apart = match self.echo.stale {
            0 => 0,
            _ => u64::from(self.echo.prompt.min(PROMPT)) << 1,
        };
        let doublings = beyond.saturating_add(resent.into()).saturating_add(apart);
        // A round trip is at most a minute.
        Some(gap << doublings.min(16))
    }

    /// Whether the responder is asked steadily.
    #[inline]
    pub(super) fn is_steady(&self) -> bool {
        is_persistent(self.silent)
    }

    /// There are too many that ask: this one ends to do so steadily. The timer counts each question
    /// as well, so each time is four times as long as the one before.
    pub(super) fn ask_rarely(&mut self, rtt: &Rtt) {
        let (_, times) = steady(rtt);
        let most = u16::try_from(times).unwrap_or(u16::MAX);
        self.silent = self
            .silent
            .max(most.saturating_add(PATIENCE))
            .saturating_add(1);
    }

    /// There was progress.
    #[inline]
    pub(super) fn on_progress(&mut self, now: u64, rtt: &Rtt) {
        self.forget();
        if self.silent > PATIENCE {
            // What followed may have been lost as well.
            self.due = Some(ProbePacket::Echo);
            self.silent = PATIENCE;
        } else {
            self.silent = 0;
        }
        self.echo.resent = 0;
        self.echo.renew(false, now, rtt);
    }
}

impl<Q: DerefMut<Target = [Wqe]>> Requester<Q> {
    /// Packets before `end` are done, the last of which was none of a READ.
    #[inline]
    pub(super) fn on_data_done(&mut self, end: Psn) {
        self.probe.echo.done = NonZeroU32::new(end.get() | KNOWN);
    }

    /// Whether the answer to an echo cannot be taken for one to what is in flight. rxe names the
    /// last number that was none of a READ's (`ack_psn` in `rxe_resp.c`), which may be a whole
    /// sequence space ago. Before there is one, it names the last number of that space, or one of
    /// an earlier connection; an answer to READs alone completes nothing in any case.
    pub(super) fn may_echo(&self) -> bool {
        let end = self.probe.echo.done.map_or(0, NonZeroU32::get);
        let done = Psn::new(end & Psn::MASK).prev();
        let is_far = done.since(self.una) >= FAR;
        is_far && (self.probe.echo.done.is_some() || self.is_all_reads())
    }

    /// Whether all that has numbers are READs.
    fn is_all_reads(&self) -> bool {
        (0..self.assigned).all(|rel| {
            self.wqe(self.slot_at(rel))
                .is_some_and(|wqe| wqe.wr.op == SendOp::Read || wqe.packets == 0)
        })
    }

    /// An echo, in the name of the oldest request.
    pub(super) fn echo_packet(&mut self, oldest: &Wqe) -> Transmit {
        let mut header = self.begin(Operation::WriteOnly, oldest, Bits::ASK, self.una.prev());
        Reth {
            va: 0,
            rkey: Key::default(),
            len: 0,
        }
        .emit(&mut header);
        self.probe.echo.on_asked();
        self.stats.probes = self.stats.probes.wrapping_add(1);
        if !oldest.wr.op.has_response() {
            // Its ACK may be one to the oldest packet as well.
            self.timed = None;
        }
        Transmit {
            header,
            payload: None,
            pad: 0,
            followers: 0,
            others: 0,
            again: true,
        }
    }

    /// An ACK has come, and the oldest packet is not done by it. True if that is evidence that the
    /// response to that is lost: everything in flight is sent again if there is no progress by the
    /// time for which the network may have disordered the answers.
    pub(super) fn on_answer(&mut self, now: u64) -> bool {
        let Some(has_response) = self.oldest_assigned().map(|w| w.wr.op.has_response()) else {
            return false;
        };
        let is_persistent = is_persistent(self.probe.silent);
        if !has_response {
            if is_persistent && self.probe.echo.asked != 0 && self.can_resend() {
                self.on_answer_for_data(now);
            }
            return false;
        }
        // If later responses came, they tell what is missing.
        if !self.probe.echo.take_answer(now)
            || !self.can_resend()
            || !(is_persistent || self.early.is_none())
        {
            return false;
        }
        if !self.probe.echo.is_answered {
            // Long ago, there was a queue on the way.
            let wait = match is_persistent {
                true => self.rtt.min(),
                false => self.disorder_wait(),
            };
            self.start_probe_timer_at(now.saturating_add(wait));
            self.probe.echo.is_answered = true;
        }
        true
    }

    /// The responder is there, and lacks a SEND or a WRITE, as it seems. It does no harm to repeat
    /// those.
    fn on_answer_for_data(&mut self, now: u64) {
        if self.rd_atomic.sent() == 0 {
            // That is no proof of a loss: the answers to what was asked may still come.
            self.probe.echo.renew(false, now, &self.rtt);
            self.resend_lost(now);
        } else {
            self.probe.echo.asked = self.probe.echo.asked.saturating_sub(1);
            self.probe.due = Some(ProbePacket::Oldest);
        }
    }

    /// Whether packets are in flight that may be sent again.
    fn can_resend(&self) -> bool {
        self.state == State::Ready
            && self.next != self.una
            && self.rnr_until.is_none()
            && !self.rnr_retry.is_refused()
    }

    /// What is in flight is lost. It is sent again. That counts as no retry, as it does not move
    /// the acknowledge timer, which ends in time what goes on like that.
    pub(super) fn resend_lost(&mut self, now: u64) {
        self.stats.implied_naks = self.stats.implied_naks.wrapping_add(1);
        self.on_loss();
        self.rewind(now);
        // It was not that round trips take longer.
        self.probe.count = 0;
        self.probe.echo.resent = self.probe.echo.resent.saturating_add(1);
        self.start_probe_timer(now);
    }
}
