// SPDX-License-Identifier: GPL-2.0

//! What is sent in bursts because a round trip takes long.

use super::*;

const ROUND_TRIP: u64 = 50_000 * US;

/// A peer that answers whatever asks after a round trip.
struct Peer {
    host: Host,
    /// When an answer comes, and to which packet.
    answers: Vec<(u64, u32)>,
    /// Times at which something was sent.
    bursts: usize,
    /// How late timers are.
    late: u64,
}

impl Peer {
    /// Sends what is to be sent until all is answered.
    fn finish(&mut self) {
        loop {
            let h = &mut self.host;
            let mut last = None;
            for (_, number, asks, _) in h.sent() {
                last = Some(number);
                if asks {
                    self.answers.push((h.now + ROUND_TRIP, number));
                }
            }
            self.bursts += usize::from(last.is_some());
            let deadline = h.requester.next_deadline().map(|t| t + self.late);
            match self.answers.first() {
                Some(&(at, number)) if deadline.is_none_or(|t| at <= t) => {
                    self.answers.remove(0);
                    h.now = at;
                    h.ack(number);
                }
                None if h.requester.outstanding() == 0 => return,
                _ => h.time(deadline.expect("stuck")),
            }
        }
    }
}

/// A connection whose round trips all take as long, and which is not in slow start any more.
fn steady() -> Peer {
    let mut c = config();
    c.timeout = 18;
    c.max_window = 0;
    let mut peer = Peer {
        host: Host::with(&c),
        answers: Vec::new(),
        bursts: 0,
        late: 0,
    };
    for _ in 0..20 {
        peer.host.post(SendOp::Send, 256 * 40);
        peer.finish();
    }
    // One is lost, and is sent again.
    let h = &mut peer.host;
    h.post(SendOp::Send, 256 * 4);
    let lost = h.numbers()[0];
    h.now += ROUND_TRIP;
    h.nak(lost, 0x60);
    assert_eq!(h.numbers()[0], lost);
    h.now += ROUND_TRIP;
    h.ack(lost + 3);
    peer.finish();
    peer
}

#[test]
fn a_burst_asks_at_its_end() {
    let mut peer = steady();
    for _ in 0..8 {
        peer.host.now += 20 * ROUND_TRIP;
        let before = *peer.host.requester.stats();
        peer.bursts = 0;
        peer.host.post(SendOp::Write, 256 * 100);
        peer.finish();
        assert!(peer.bursts > 3, "{}", peer.bursts);
        let after = peer.host.requester.stats();
        // Each burst was answered in time: nothing was taken for lost.
        assert_eq!(after.probes, before.probes);
        assert_eq!(after.retransmitted, before.retransmitted);
    }
    assert!(peer.host.statuses().iter().all(|s| *s == Success));
}

#[test]
fn a_window_grows_while_the_pace_holds_back() {
    let mut peer = steady();
    // Each burst is sent late, so that the window is not full when its first answer comes.
    peer.late = ROUND_TRIP / 4;
    let mut time = || {
        let before = peer.host.now;
        peer.host.post(SendOp::Write, 256 * 1000);
        peer.finish();
        peer.host.now - before
    };
    let (first, second) = (time(), time());
    assert!(second < first - first / 8, "{first} {second}");
}

#[test]
fn a_window_does_not_grow_while_it_is_never_used() {
    let mut peer = steady();
    // Until a burst is most of a message below.
    let burst = |peer: &mut Peer| {
        peer.host.now += 20 * ROUND_TRIP;
        peer.host.post(SendOp::Write, 256 * 1000);
        let burst = peer.host.numbers().len();
        peer.finish();
        burst
    };
    let before = (0..100)
        .map(|_| burst(&mut peer))
        .find(|n| *n >= 15)
        .expect("the window grows");
    for _ in 0..1000 {
        peer.host.now += 20 * ROUND_TRIP;
        peer.host.post(SendOp::Write, 256 * 20);
        let sent = peer.host.numbers().len();
        assert!((15..20).contains(&sent), "{sent}");
        // A doorbell finds that the rest has to wait.
        assert_eq!(peer.host.numbers(), []);
        peer.finish();
    }
    let after = burst(&mut peer);
    assert!(after <= before + 2, "{before} {after}");
}

/// How long a message takes whose timers are so late; nanoseconds.
fn time_of_late(late: u64) -> u64 {
    let mut peer = steady();
    peer.late = late;
    let before = peer.host.now;
    peer.host.post(SendOp::Write, 256 * 1000);
    peer.finish();
    peer.host.now - before
}

#[test]
fn what_a_late_timer_held_back_is_sent_with_the_next_burst() {
    let exact = time_of_late(0);
    // A burst is an eighth of the window, and due after a tenth of a round trip.
    let late = time_of_late(ROUND_TRIP / 12);
    assert!(late < exact + exact / 16, "{late} {exact}");
}

#[test]
fn no_more_than_a_burst_is_made_up_for() {
    let mut peer = steady();
    let h = &mut peer.host;
    h.now += 20 * ROUND_TRIP;
    h.post(SendOp::Write, 256 * 1000);
    let burst = h.numbers().len();
    let due = h.requester.next_deadline().unwrap();
    h.time(due + 2 * ROUND_TRIP / 3);
    let made_up = h.numbers().len();
    assert!(
        (2 * burst - 1..=2 * burst + 1).contains(&made_up),
        "{burst} {made_up}"
    );
    // Who had nothing to send makes up for nothing.
    peer.finish();
    let h = &mut peer.host;
    h.now += 20 * ROUND_TRIP;
    h.post(SendOp::Write, 256 * 1000);
    let after = h.numbers().len();
    assert!(after <= burst + 2, "{burst} {after}");
}

#[test]
fn pauses_that_late_timers_make_too_long_are_left_out() {
    let mut peer = steady();
    // Packets that go out at once, after some messages.
    let mut burst = |late| {
        peer.late = late;
        for _ in 0..20 {
            peer.host.post(SendOp::Write, 256 * 1000);
            peer.finish();
        }
        peer.host.now += 20 * ROUND_TRIP;
        peer.host.post(SendOp::Write, 256 * 1000);
        let burst = peer.host.numbers().len();
        peer.finish();
        burst
    };
    let paced = burst(0);
    // A burst takes a tenth of a round trip.
    assert!(burst(ROUND_TRIP / 100) < 2 * paced, "{paced}");
    let all = burst(ROUND_TRIP / 10);
    assert!(all > 4 * paced, "{all} {paced}");
    let again = burst(0);
    assert!(again < 2 * paced, "{again} {paced}");
}

#[test]
fn a_recovery_is_paced_where_the_window_may_double() {
    let mut peer = steady();
    for _ in 0..10 {
        peer.host.post(SendOp::Write, 256 * 1000);
        peer.finish();
    }
    let h = &mut peer.host;
    h.post(SendOp::Write, 256 * 10_000);
    let sent = h.numbers();
    // Three of the first five are lost. At the third, the window shrinks once more.
    h.now += ROUND_TRIP;
    h.nak(sent[0], 0x60);
    for hole in [sent[2], sent[4]] {
        h.numbers();
        h.now += ROUND_TRIP;
        h.ack(hole - 1);
    }
    let burst = h.numbers();
    assert_eq!(burst[0], sent[4]);
    assert!((8..30).contains(&burst.len()), "{burst:?}");
}
