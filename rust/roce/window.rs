// SPDX-License-Identifier: GPL-2.0

//! The amount of data in flight: a congestion window, counted in packets.
//!
//! The window doubles with every window of acknowledged packets until the first loss (slow start).
//! Then it grows by one packet per round trip. When packets are lost it shrinks, at most once per
//! round trip: to what the wire and the hosts hold without a queue ([`crate::bandwidth`]), but by a
//! half at most, and by a half if that is unknown. If the wire and the hosts hold more than the
//! window, and losses are rare, it grows to that in the next round trips instead. If many of the
//! packets that were in flight turn out to be lost, it shrinks again. It grows only while it is the
//! limit that holds the sender back. A READ counts with the packets of its response.
//!
//! When the network marks packets instead of dropping them (ECN), the window shrinks depending on
//! how frequent the marks have been, by a half at most. It then recovers half of the difference per
//! round trip: DCTCP's estimate with DCQCN's fast recovery. After five such round trips it grows by
//! one packet per round trip again.

use crate::mtu::Mtu;
use crate::psn::Psn;

/// Fewest packets: what keeps two ends busy.
pub const MIN_PACKETS: u32 = 4;

/// Packets of a new connection.
pub const INITIAL_PACKETS: u32 = 64;

/// Bytes that a window grows to when the configuration does not say.
pub const DEFAULT_MAX_BYTES: u32 = 2 << 20;

/// Most packets in flight, whatever the configuration says: far below half the
/// sequence space, within which numbers can be compared.
pub const MAX_PACKETS: u32 = 1 << 20;

/// The longest round trip for which the configured maximum is enough, nanoseconds.
pub const SHORT_ROUND_TRIP_NS: u64 = 1_000_000;

/// How many times the configured maximum the window has on a long wire, at most.
pub const LONG_WIRE: u64 = 4;

/// What a queue may add to a round trip before slow start ends, nanoseconds; four times as much if
/// that is less than an eighth of the round trip.
const QUEUE_NS: u64 = 4_000_000;

/// Measurements of round trips after which slow start, which a late answer has ended, may go on.
const LATE_ROUNDS: u8 = 5;

/// The estimate of how frequent marks are, when every round has some.
const MARKS_ALWAYS: u32 = 1 << 10;

/// How fast that estimate follows: by a sixteenth a round.
const MARKS_SHIFT: u32 = 4;

/// Rounds of fast recovery after marks, and after a loss when more fits than the window had.
const FAST_ROUNDS: u8 = 5;

/// A congestion window.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    packets: u32,
    max: u32,
    /// What the configuration allows: [`Self::max`] on a wire with short round trips.
    base: u32,
    /// Slow start ends here.
    threshold: u32,
    /// For how many more measurements of round trips it may be resumed up to the maximum: a late
    /// answer has ended it, and there has been no loss since.
    resume_rounds: u8,
    /// The same before the last loss.
    resume_before: u8,
    /// Acknowledged packets not yet turned into growth.
    credit: u32,
    /// The window, or its pace, held the sender back when it sent last.
    limited: bool,
    /// Losses of packets before this one belong to a loss already counted.
    recover: Option<Psn>,
    /// The window and the threshold before that loss, and the oldest packet in flight then.
    before: (u32, u32, Psn),
    /// How many packets belong to that loss, as long as all of them may turn out not to be lost.
    doubts: u8,
    /// How frequent marks are, up to [`MARKS_ALWAYS`].
    marks: u32,
    /// There were some, and they are not forgotten.
    has_marks: bool,
    /// Marks of packets before this one belong to a round already counted.
    marked: Option<Psn>,
    /// A round ends here: one without marks, as long as there is one to remember, or one of fast
    /// recovery. After a loss, none may be left.
    round: Option<Psn>,
    /// Fast recovery leads to this many packets.
    target: u32,
    /// Rounds of fast recovery that are left.
    fast_rounds: u8,
}

impl Default for Window {
    fn default() -> Self {
        Self::new(Mtu::M1024, 0)
    }
}

impl Window {
    /// A window of at most `max_bytes` (0: [`DEFAULT_MAX_BYTES`]).
    pub fn new(mtu: Mtu, max_bytes: u32) -> Self {
        let bytes = if max_bytes == 0 {
            DEFAULT_MAX_BYTES
        } else {
            max_bytes
        };
        let max = mtu.packets(bytes).clamp(MIN_PACKETS, MAX_PACKETS);
        Self {
            packets: INITIAL_PACKETS.min(max),
            max,
            base: max,
            threshold: max,
            resume_rounds: 0,
            resume_before: 0,
            credit: 0,
            limited: false,
            recover: None,
            before: (0, 0, Psn::default()),
            doubts: 0,
            // The first ones are taken seriously.
            marks: MARKS_ALWAYS,
            has_marks: false,
            marked: None,
            round: None,
            target: 0,
            fast_rounds: 0,
        }
    }

    /// A round trip took `ns` nanoseconds; the shortest so far, `min`.
    ///
    /// The maximum is one for what the queues of two hosts hold. On a longer wire most packets are
    /// on their way, so more of them may be in flight: in proportion, up to [`LONG_WIRE`] times.
    /// There, slow start ends when a queue forms: when a round trip takes longer by what HyStart++
    /// allows (RFC 9406, 4.2). A host that had no time for an answer makes one round trip long, and
    /// a queue makes all of them long. So slow start up to the maximum goes on if one of the next
    /// five does not take long, as there after "Conservative Slow Start".
    #[inline]
    pub fn on_round_trip(&mut self, ns: u64, min: u64) {
        let times = (min / SHORT_ROUND_TRIP_NS).clamp(1, LONG_WIRE);
        // No more than four.
        let max = self.base.saturating_mul(times as u32).min(MAX_PACKETS);
        if max != self.max {
            if self.threshold == self.max {
                // Slow start has not ended.
                self.threshold = max;
            }
            self.threshold = self.threshold.min(max);
            self.max = max;
            self.packets = self.packets.min(max);
        }
        let allowed = (min >> 3).clamp(QUEUE_NS, QUEUE_NS << 2);
        let is_late = times > 1 && ns > min.saturating_add(allowed);
        if is_late && self.is_slow_start() {
            if self.threshold == self.max {
                self.resume_rounds = LATE_ROUNDS;
            }
            self.threshold = self.packets;
        } else if is_late {
            self.resume_rounds = self.resume_rounds.saturating_sub(1);
        } else if self.resume_rounds != 0 {
            self.resume_rounds = 0;
            self.threshold = self.max;
        }
    }

    /// Packets that may be in flight.
    #[inline]
    pub const fn packets(&self) -> u32 {
        self.packets
    }

    /// Whether it doubles in a round trip.
    #[inline]
    pub const fn is_slow_start(&self) -> bool {
        self.packets < self.threshold
    }

    /// Whether what was in flight at the last loss is not acknowledged yet.
    #[inline]
    pub const fn is_recovering(&self) -> bool {
        self.recover.is_some()
    }

    /// The sender has more to send than the window, or its pace, lets pass. That holds for all
    /// that is acknowledged until [`Self::on_idle`], since a host handles many acknowledgements
    /// before it sends again.
    #[inline]
    pub fn on_limited(&mut self) {
        self.limited = true;
    }

    /// The sender has nothing more to send, or something other than the window holds it back.
    #[inline]
    pub fn on_idle(&mut self) {
        self.limited = false;
    }

    /// `count` packets were acknowledged, all before `una`.
    #[inline]
    pub fn on_ack(&mut self, count: u32, una: Psn) {
        if self.round.is_some_and(|end| !una.is_before(end)) {
            self.end_round(una);
        }
        if let Some(recover) = self.recover {
            if !una.is_before(recover) {
                self.recover = None;
            } else if self.packets >= self.threshold {
                // Until then it grows only from a timeout back to the threshold.
                return;
            }
        }
        if !self.limited
            || self.packets >= self.max
            || self.marked.is_some_and(|end| una.is_before(end))
        {
            return;
        }
        self.credit = self.credit.saturating_add(count);
        if self.packets < self.threshold {
            let grown = self.packets.saturating_add(self.credit);
            self.packets = grown.min(self.threshold).min(self.max);
            self.credit = 0;
        } else if self.credit >= self.packets {
            self.credit = 0;
            self.packets = self.packets.saturating_add(1).min(self.max);
        }
    }

    /// A packet at or after `una` was lost while everything before `sent` was in flight. What the
    /// wire and the hosts hold is `fits` packets (0: unknown), so that many are no reason for a
    /// loss. If that is more than the window, which is to be so only where losses are rare, and the
    /// network does not mark packets, the window grows to that behind what is in flight, by half of
    /// the difference per round trip.
    #[inline]
    pub fn on_loss(&mut self, una: Psn, sent: Psn, fits: u32) {
        if let Some(recover) = self.recover {
            if una.is_before(recover) {
                if self.doubts != 0 {
                    self.doubts = self.doubts.saturating_add(1);
                }
                return;
            }
        }
        // With nothing in flight no loss can be counted twice. A number to wait
        // for would be that of the next packet, and one message of the same host
        // can pass so far beyond it that it looks like a later one.
        self.recover = (una != sent).then_some(sent);
        self.before = (self.packets, self.threshold, una);
        self.doubts = 1;
        self.resume_before = self.resume_rounds;
        self.resume_rounds = 0;
        self.fast_rounds = 0;
        if fits > self.packets && !self.has_marks {
            // What is in flight now, and what is sent while it is acknowledged, come first.
            self.target = fits.min(self.max);
            self.fast_rounds = FAST_ROUNDS;
            self.round = Some(sent.add(self.packets));
        }
        self.threshold = (self.packets >> 1)
            .max(fits.min(self.packets))
            .max(MIN_PACKETS)
            .min(self.max);
        self.packets = self.threshold;
        self.credit = 0;
    }

    /// More packets of those that were in flight at the last loss were lost, which was taken for a
    /// rare one: what fits may be less than was thought.
    pub fn stop_growth(&mut self) {
        if !self.has_marks {
            self.fast_rounds = 0;
        }
    }

    /// Many of the packets that were in flight at the last loss were lost. A full queue may be the
    /// cause, which has room for less than was thought.
    pub fn on_more_losses(&mut self) {
        self.doubts = 0;
        self.fast_rounds = 0;
        self.credit = 0;
        self.packets = (self.packets >> 1).max(MIN_PACKETS).min(self.max);
        let less = self.threshold.saturating_sub(self.threshold >> 2);
        self.threshold = less.max(self.packets);
    }

    /// The packet `psn`, which was counted as lost, was only late. If all of those were that belong
    /// to the last loss, the window is what it was before (as `tcp_undo_cwnd_reduction` of Linux
    /// has it).
    pub fn on_no_loss(&mut self, psn: Psn) {
        let (packets, threshold, una) = self.before;
        if psn.is_before(una) {
            return;
        }
        if self.doubts == 1 {
            self.threshold = self.threshold.max(threshold).min(self.max);
            self.packets = self.packets.max(packets).min(self.max);
            self.resume_rounds = self.resume_rounds.max(self.resume_before);
            self.recover = None;
            self.fast_rounds = 0;
        }
        self.doubts = self.doubts.saturating_sub(1);
    }

    /// The network marked packets as having met congestion, while everything
    /// from `una` to `sent` was in flight. Acts once a round.
    pub fn on_mark(&mut self, una: Psn, sent: Psn) {
        if self.marked.is_some_and(|end| una.is_before(end)) {
            return;
        }
        let missing = MARKS_ALWAYS.saturating_sub(self.marks);
        self.marks = self.marks.saturating_add(missing >> MARKS_SHIFT);
        // At most 2^20 packets by 2^10.
        let cut = (self.packets.saturating_mul(self.marks) >> 11).max(1);
        self.has_marks = true;
        self.doubts = 0;
        self.resume_rounds = 0;
        self.target = self.packets;
        self.fast_rounds = FAST_ROUNDS;
        self.packets = self
            .packets
            .saturating_sub(cut)
            .max(MIN_PACKETS)
            .min(self.max);
        self.threshold = self.packets;
        self.credit = 0;
        self.marked = Some(sent);
        // What is sent from now on shows whether that was enough.
        self.round = Some(sent.add(self.packets));
    }

    /// A round without marks, or of fast recovery, has ended at `una`.
    fn end_round(&mut self, una: Psn) {
        if self.has_marks {
            self.marks = self.marks.saturating_sub(self.marks >> MARKS_SHIFT);
            if self.marks < 1 << MARKS_SHIFT {
                (self.marks, self.has_marks) = (0, false);
            }
        }
        if self.fast_rounds != 0 {
            self.fast_rounds = self.fast_rounds.wrapping_sub(1);
            // After marks it leads back to a window that there was.
            if self.has_marks || self.limited {
                let way = self.target.saturating_sub(self.packets).div_ceil(2);
                let more = way.min(self.packets);
                self.packets = self.packets.saturating_add(more).min(self.max);
                self.threshold = self.packets;
            }
        }
        let more = self.fast_rounds != 0 || self.has_marks;
        self.round = more.then(|| una.add(self.packets));
        self.marked = None;
    }

    /// Nothing was heard for a whole timeout: start small again.
    #[inline]
    pub fn on_timeout(&mut self, una: Psn, sent: Psn, fits: u32) {
        self.on_loss(una, sent, fits);
        self.doubts = 0;
        self.resume_rounds = 0;
        self.fast_rounds = 0;
        self.recover = (una != sent).then_some(sent);
        self.packets = MIN_PACKETS.min(self.max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grown(acks: u32) -> Window {
        let mut w = Window::new(Mtu::M1024, 0);
        for i in 0..acks {
            w.on_limited();
            w.on_ack(64, Psn::new(i * 64));
        }
        w
    }

    #[test]
    fn slow_start_up_to_the_maximum() {
        assert_eq!(Window::new(Mtu::M1024, 0).packets(), INITIAL_PACKETS);
        assert_eq!(grown(1).packets(), 128);
        assert_eq!(grown(1000).packets(), DEFAULT_MAX_BYTES / 1024);
    }

    #[test]
    fn a_long_wire_has_room_for_more() {
        let ms = SHORT_ROUND_TRIP_NS;
        let full = DEFAULT_MAX_BYTES / 1024;
        for (min, times) in [
            (0, 1),
            (ms / 50, 1),
            (2 * ms, 2),
            (40 * ms, 4),
            (u64::MAX, 4),
        ] {
            let mut w = Window::new(Mtu::M1024, 0);
            w.on_round_trip(min, min);
            assert_eq!(w.packets(), INITIAL_PACKETS);
            for i in 0..1000 {
                w.on_limited();
                w.on_ack(64, Psn::new(i * 64));
            }
            assert_eq!(w.packets(), full * times);
            // It was not that long after all.
            w.on_round_trip(ms / 50, ms / 50);
            assert_eq!(w.packets(), full);
        }
        let mut w = Window::new(Mtu::M256, u32::MAX);
        w.on_round_trip(40 * ms, 40 * ms);
        assert_eq!(w.max, MAX_PACKETS);
    }

    #[test]
    fn a_queue_ends_slow_start_on_a_long_wire() {
        let ms = SHORT_ROUND_TRIP_NS;
        for (min, ns, is_over) in [
            (10 * ms, 14 * ms, false),
            (10 * ms, 15 * ms, true),
            (80 * ms, 90 * ms, false),
            (80 * ms, 91 * ms, true),
            // On a short wire it tells of the hosts.
            (ms, 20 * ms, false),
        ] {
            let mut w = Window::new(Mtu::M1024, 0);
            w.on_limited();
            w.on_ack(64, Psn::new(64));
            w.on_round_trip(ns, min);
            w.on_limited();
            w.on_ack(128, Psn::new(192));
            let expect = if is_over { 129 } else { 256 };
            assert_eq!(w.packets(), expect, "{min} {ns}");
        }
    }

    /// A window of 128 packets, of which one was answered late.
    fn late() -> Window {
        let ms = SHORT_ROUND_TRIP_NS;
        let mut w = Window::new(Mtu::M1024, 0);
        w.on_limited();
        w.on_ack(64, Psn::new(64));
        w.on_round_trip(20 * ms, 10 * ms);
        assert!(!w.is_slow_start());
        w
    }

    #[test]
    fn many_losses_shrink_it_once_more() {
        let mut w = grown(1000);
        let full = w.packets();
        w.on_loss(Psn::new(0), Psn::new(full), full);
        assert_eq!(w.packets(), full);
        w.on_more_losses();
        assert_eq!((w.packets(), w.threshold), (full / 2, full / 4 * 3));
        // No single packet that was only late takes that back.
        w.on_no_loss(Psn::new(0));
        assert_eq!(w.packets(), full / 2);
        w.on_limited();
        w.on_ack(full, Psn::new(full));
        assert_eq!(w.packets(), full / 4 * 3);
        for _ in 0..40 {
            w.on_more_losses();
        }
        assert_eq!((w.packets(), w.threshold), (MIN_PACKETS, MIN_PACKETS));
    }

    #[test]
    fn marks_do_not_take_back_that_many_were_lost() {
        let mut w = grown(1000);
        w.on_loss(Psn::new(0), Psn::new(10), w.packets());
        w.on_mark(Psn::new(1), Psn::new(20));
        w.on_more_losses();
        let before = w.packets();
        // Rounds without marks.
        for i in 1..10 {
            w.on_ack(0, Psn::new(i * 10_000));
        }
        assert_eq!(w.packets(), before);
    }

    #[test]
    fn an_answer_that_is_late_only_delays_slow_start() {
        let ms = SHORT_ROUND_TRIP_NS;
        for late_ones in 0..10 {
            let mut w = late();
            for _ in 0..late_ones {
                w.on_round_trip(20 * ms, 10 * ms);
            }
            w.on_round_trip(10 * ms, 10 * ms);
            assert_eq!(w.is_slow_start(), late_ones < 5, "{late_ones}");
            w.on_ack(128, Psn::new(192));
            assert_eq!(w.packets(), if late_ones < 5 { 256 } else { 129 });
        }
        // Nor does a loss that was none end it.
        let mut w = late();
        w.on_loss(Psn::new(100), Psn::new(192), 0);
        w.on_no_loss(Psn::new(100));
        w.on_round_trip(10 * ms, 10 * ms);
        assert!(w.is_slow_start());
        // Where it ends for another reason, it does not go on.
        let mut w = late();
        w.on_loss(Psn::new(100), Psn::new(192), 0);
        w.on_round_trip(10 * ms, 10 * ms);
        assert!(!w.is_slow_start());
        let mut w = late();
        w.on_timeout(Psn::new(100), Psn::new(192), 128);
        w.on_round_trip(10 * ms, 10 * ms);
        w.on_ack(1000, Psn::new(192));
        assert_eq!(w.packets(), 128);
        assert!(!w.is_slow_start());
        let mut w = late();
        w.on_mark(Psn::new(100), Psn::new(192));
        w.on_round_trip(10 * ms, 10 * ms);
        assert!(!w.is_slow_start());
    }

    #[test]
    fn does_not_grow_unused() {
        let mut w = Window::new(Mtu::M1024, 0);
        w.on_ack(1000, Psn::new(1000));
        assert_eq!(w.packets(), INITIAL_PACKETS);
    }

    #[test]
    fn many_acknowledgements_in_a_row_all_count() {
        let mut w = Window::new(Mtu::M1024, 0);
        w.on_limited();
        for at in 1..=u64::from(INITIAL_PACKETS) {
            w.on_ack(1, Psn::new(at as u32));
            assert_eq!(u64::from(w.packets()), u64::from(INITIAL_PACKETS) + at);
        }
        // As long as there is more to send.
        w.on_idle();
        w.on_ack(64, Psn::new(128));
        assert_eq!(w.packets(), 2 * INITIAL_PACKETS);
        // Linear growth as well.
        w.on_loss(Psn::new(128), Psn::new(256), 0);
        w.on_ack(0, Psn::new(256));
        let halved = w.packets();
        w.on_limited();
        w.on_ack(2 * halved, Psn::new(400));
        w.on_ack(halved, Psn::new(500));
        assert_eq!(w.packets(), halved + 1);
        w.on_ack(1, Psn::new(501));
        assert_eq!(w.packets(), halved + 2);
    }

    #[test]
    fn halves_once_a_round_then_grows_linearly() {
        let mut w = grown(7);
        assert_eq!(w.packets(), 512);
        w.on_loss(Psn::new(100), Psn::new(600), 0);
        assert_eq!(w.packets(), 256);
        w.on_loss(Psn::new(300), Psn::new(700), 0);
        assert_eq!(w.packets(), 256);
        w.on_limited();
        w.on_ack(100, Psn::new(400));
        assert_eq!(w.packets(), 256);
        w.on_limited();
        w.on_ack(256, Psn::new(600));
        assert_eq!(w.packets(), 257);
        w.on_loss(Psn::new(600), Psn::new(857), 0);
        assert_eq!(w.packets(), 128);
    }

    #[test]
    fn what_fits_on_the_wire_stays() {
        for (fits, expect) in [
            (0, 256),
            (200, 256),
            (300, 300),
            (512, 512),
            (u32::MAX, 512),
        ] {
            let mut w = grown(7);
            w.on_loss(Psn::new(100), Psn::new(612), fits);
            assert_eq!(w.packets(), expect);
            // A timeout starts small, and comes back to that.
            let mut w = grown(7);
            w.on_timeout(Psn::new(100), Psn::new(612), fits);
            assert_eq!(w.packets(), MIN_PACKETS);
            w.on_limited();
            w.on_ack(1000, Psn::new(612));
            assert_eq!(w.packets(), expect);
        }
    }

    /// A window of 256 packets, which were lost in part; 400 fit.
    fn too_small() -> Window {
        let mut w = grown(7);
        w.on_loss(Psn::new(100), Psn::new(612), 0);
        w.on_ack(1, Psn::new(612));
        w.on_loss(Psn::new(700), Psn::new(956), 400);
        w
    }

    /// Everything before `una` is acknowledged; the window was the limit.
    fn ack(w: &mut Window, una: u32) -> u32 {
        w.on_limited();
        w.on_ack(1, Psn::new(una));
        w.packets()
    }

    #[test]
    fn it_grows_to_what_fits_after_a_loss() {
        let mut w = too_small();
        // Behind what is in flight, and then what is sent while that is acknowledged.
        assert_eq!([956, 1211].map(|una| ack(&mut w, una)), [256; 2]);
        let mut una = 1212;
        for expect in [328, 364, 382, 391, 396, 396] {
            assert_eq!(ack(&mut w, una), expect);
            una += expect;
        }
        // That tells nothing of marks: the first one counts as before.
        assert_eq!(w.round, None);
        w.on_mark(Psn::new(una), Psn::new(una + 396));
        assert_eq!(w.packets(), 198);
        // It doubles at most, and has a maximum.
        let mut w = Window::new(Mtu::M4096, 100 * 4096);
        w.on_timeout(Psn::new(0), Psn::new(64), 0);
        w.on_ack(1, Psn::new(64));
        w.on_loss(Psn::new(64), Psn::new(80), u32::MAX);
        let got = [100, 200, 300, 400, 500, 600].map(|una| ack(&mut w, una));
        assert_eq!(got, [8, 16, 32, 64, 82, 82]);
        assert_eq!(w.target, 100);
    }

    #[test]
    fn it_does_not_grow_to_what_fits_if_it_is_not_the_limit() {
        let mut w = too_small();
        w.on_idle();
        for una in [956, 1212, 1500, 2000] {
            w.on_ack(1, Psn::new(una));
            assert_eq!(w.packets(), 256);
        }
    }

    #[test]
    fn what_ends_the_growth_to_what_fits() {
        let ends: [fn(&mut Window); 5] = [
            |w| w.on_loss(Psn::new(960), Psn::new(1212), 0),
            |w| w.stop_growth(),
            |w| w.on_more_losses(),
            |w| w.on_timeout(Psn::new(960), Psn::new(1212), 400),
            |w| w.on_no_loss(Psn::new(700)),
        ];
        for (i, end) in ends.into_iter().enumerate() {
            let mut w = too_small();
            if i < 4 {
                ack(&mut w, 956);
            }
            end(&mut w);
            let before = w.packets();
            assert!(before <= 256);
            w.on_idle();
            for una in [1211, 1212, 2000, 3000] {
                w.on_ack(1, Psn::new(una));
            }
            assert!(ack(&mut w, 4000) < before + 4, "{i}");
        }
        // Marks say how large it may be, and after them it comes back whatever else is lost.
        let mut w = marked();
        w.stop_growth();
        assert_eq!(ack(&mut w, 1512), 256);
        assert_eq!(ack(&mut w, 1768), 384);
        let mut w = marked();
        let una = 1512;
        w.on_ack(1, Psn::new(una));
        let before = w.packets();
        w.on_loss(Psn::new(una), Psn::new(una + before), 1000);
        assert_eq!(ack(&mut w, una + before), before);
        assert_eq!(ack(&mut w, una + 2 * before), before);
    }

    #[test]
    fn a_loss_that_was_none_is_taken_back() {
        let mut w = grown(7);
        w.on_loss(Psn::new(100), Psn::new(612), 0);
        w.on_limited();
        w.on_ack(20, Psn::new(120));
        w.on_no_loss(Psn::new(200));
        assert_eq!(w.packets(), 512);
        w.on_no_loss(Psn::new(200));
        assert_eq!(w.packets(), 512);
        // The next one is a loss of its own, though those before it may not have come yet.
        w.on_loss(Psn::new(130), Psn::new(612), 0);
        assert_eq!(w.packets(), 256);
        // What belongs to an earlier one tells nothing.
        w.on_no_loss(Psn::new(100));
        assert_eq!(w.packets(), 256);
        // Each packet of a loss has to come.
        w.on_loss(Psn::new(200), Psn::new(612), 0);
        w.on_no_loss(Psn::new(200));
        assert_eq!(w.packets(), 256);
        w.on_no_loss(Psn::new(200));
        assert_eq!(w.packets(), 512);
    }

    #[test]
    fn what_tells_more_than_a_loss_is_not_taken_back() {
        let mut w = grown(7);
        w.on_timeout(Psn::new(100), Psn::new(612), 0);
        w.on_no_loss(Psn::new(200));
        assert_eq!(w.packets(), MIN_PACKETS);
        let mut w = grown(7);
        w.on_loss(Psn::new(100), Psn::new(612), 0);
        w.on_mark(Psn::new(100), Psn::new(612));
        let before = w.packets();
        w.on_no_loss(Psn::new(200));
        assert_eq!(w.packets(), before);
    }

    #[test]
    fn slow_start_after_a_timeout_does_not_wait_for_the_old_flight() {
        let mut w = grown(7);
        w.on_timeout(Psn::new(100), Psn::new(612), 0);
        assert_eq!(w.packets(), MIN_PACKETS);
        let mut una = 100;
        while w.packets() < 256 {
            una += w.packets();
            assert!(una < 612, "stays small until all is acknowledged");
            w.on_limited();
            w.on_ack(w.packets(), Psn::new(una));
        }
        // What was in flight at the timeout counts as one loss.
        w.on_limited();
        w.on_ack(60, Psn::new(una + 1));
        assert_eq!(w.packets(), 256);
        w.on_loss(Psn::new(una + 1), Psn::new(700), 0);
        assert_eq!(w.packets(), 256);
    }

    /// A window of 512, marked at 1000 with all of it in flight.
    fn marked() -> Window {
        let mut w = grown(7);
        assert_eq!(w.packets(), 512);
        w.on_mark(Psn::new(1000), Psn::new(1512));
        w
    }

    #[test]
    fn marks_halve_once_a_round_then_it_comes_back() {
        let mut w = marked();
        assert_eq!(w.packets(), 256);
        w.on_mark(Psn::new(1001), Psn::new(1600));
        w.on_ack(511, Psn::new(1511));
        w.on_ack(1, Psn::new(1767));
        assert_eq!(w.packets(), 256, "the same round, and the next");
        let mut una = 1768;
        for expect in [384, 448, 480, 496, 504, 504] {
            w.on_ack(1, Psn::new(una));
            assert_eq!(w.packets(), expect);
            w.on_ack(1, Psn::new(una + w.packets() - 1));
            assert_eq!(w.packets(), expect);
            una += w.packets();
        }
        // From there a packet a round.
        w.on_limited();
        w.on_ack(600, Psn::new(una));
        assert_eq!(w.packets(), 505);
    }

    #[test]
    fn constant_marks_go_down_to_the_minimum() {
        let mut w = grown(7);
        let mut una = 0;
        for _ in 0..20 {
            w.on_mark(Psn::new(una), Psn::new(una + w.packets()));
            una += w.packets();
        }
        assert_eq!(w.packets(), MIN_PACKETS);
        // Back to more without marks.
        for _ in 0..100 {
            w.on_limited();
            una += w.packets();
            w.on_ack(w.packets(), Psn::new(una));
        }
        assert!(w.packets() > 90 && w.packets() <= 110, "{}", w.packets());
    }

    #[test]
    fn rare_marks_cost_little() {
        let mut w = marked();
        let mut una = 1512;
        for _ in 0..100 {
            w.on_ack(1, Psn::new(una));
            una += w.packets() + 1;
        }
        assert_eq!(w.round, None, "forgotten");
        let before = w.packets();
        w.on_mark(Psn::new(una), Psn::new(una + before));
        assert!(w.packets() < before && w.packets() > before * 9 / 10);
    }

    #[test]
    fn a_loss_ends_fast_recovery() {
        let mut w = marked();
        w.on_loss(Psn::new(1100), Psn::new(1512), 0);
        assert_eq!(w.packets(), 128);
        for una in [1512, 2000, 3000] {
            w.on_ack(1, Psn::new(una));
        }
        assert_eq!(w.packets(), 128);
    }

    #[test]
    fn a_loss_with_nothing_in_flight_holds_nothing_up() {
        // A message to a peer on the same host that did not answer, and then the longest one.
        let mut w = grown(7);
        w.on_timeout(Psn::new(100), Psn::new(100), 0);
        w.on_limited();
        w.on_ack(Psn::HALF, Psn::new(100 + Psn::HALF));
        w.on_limited();
        w.on_ack(1000, Psn::new(1100 + Psn::HALF));
        let before = w.packets();
        assert!(before > 256, "{before}");
        w.on_loss(Psn::new(1100 + Psn::HALF), Psn::new(1200 + Psn::HALF), 0);
        assert_eq!(w.packets(), before / 2);
    }

    #[test]
    fn bounds() {
        let mut w = Window::new(Mtu::M4096, 1);
        assert_eq!(w.packets(), MIN_PACKETS);
        for i in 0..100 {
            w.on_loss(Psn::new(i * 100), Psn::new(i * 100 + 50), 0);
            w.on_timeout(Psn::new(i * 100), Psn::new(i * 100 + 50), 0);
        }
        assert_eq!(w.packets(), MIN_PACKETS);
        assert!(Window::new(Mtu::M256, u32::MAX).max <= MAX_PACKETS);
    }
}
