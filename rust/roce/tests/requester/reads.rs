// SPDX-License-Identifier: GPL-2.0

//! Many READs at a time: how many are asked for, and what becomes of that when one is missing.

use super::*;

/// The first of the parts that a READ without end is cut into: half of the window.
fn first_part(h: &mut Host) -> u32 {
    h.post(SendOp::Read, 256 * 4000);
    let all = h.numbers();
    assert!(all.len() > 1, "{all:?}");
    all[1] - all[0]
}

fn with_large_window() -> Host {
    Host::with(&RequesterConfig {
        max_window: 256 * 4096,
        ..config()
    })
}

#[test]
fn the_window_doubles_when_all_responses_come_at_once() {
    let mut h = with_large_window();
    assert_eq!(first_part(&mut h), 32);
    for at in 0..64 {
        h.answer(Raw::new(0x0e, at).data(256));
    }
    assert_eq!(h.numbers(), [64, 128]);
}

/// The window after a READ that it has limited, and `count` requests that their number has: only
/// four may wait for a response.
fn window_after(op: SendOp, count: u32) -> u32 {
    let mut h = with_large_window();
    h.post(SendOp::Read, 256 * 200);
    let mut at = 0;
    let mut left = count;
    loop {
        while left != 0 && h.requester.room() != 0 {
            h.post(op, 8);
            left -= 1;
        }
        h.numbers();
        if at == 200 + count {
            break;
        }
        h.answer(match op {
            SendOp::FetchAdd if at >= 200 => Raw::new(0x12, at).aeth(0x1f),
            _ => Raw::new(0x0e, at).data(if at >= 200 { 8 } else { 256 }),
        });
        at += 1;
    }
    assert_eq!(h.statuses().len() as u32, 1 + count);
    first_part(&mut h)
}

#[test]
fn the_window_grows_when_it_cuts_the_one_read_that_may_wait() {
    for (max_rd_atomic, parts) in [(1, vec![192]), (2, vec![192, 320])] {
        let mut h = Host::with(&RequesterConfig {
            max_window: 256 * 4096,
            max_rd_atomic,
            ..config()
        });
        h.post(SendOp::Read, 256 * 4000);
        let mut at = 0;
        for until in [64, 192] {
            h.numbers();
            // A doorbell finds that the rest has to wait.
            assert_eq!(h.numbers(), []);
            while at < until {
                h.answer(Raw::new(0x0e, at).data(256));
                at += 1;
            }
        }
        assert_eq!(h.numbers(), parts, "{max_rd_atomic}");
    }
}

#[test]
fn parts_that_are_no_longer_because_they_could_not_be_kept_need_no_larger_window() {
    let mut h = with_large_window();
    h.post(SendOp::Read, 256 * 20_000);
    for at in 0..20_000 {
        h.numbers();
        h.answer(Raw::new(0x0e, at).data(256));
    }
    assert_eq!(h.statuses(), [Success]);
    h.post(SendOp::Write, 256 * 20_000);
    let window = h.numbers().len();
    // Four parts of 256 may be asked for at a time.
    assert!((1024..1500).contains(&window), "{window}");
}

#[test]
fn a_window_that_is_not_the_limit_does_not_grow() {
    for op in [SendOp::Read, SendOp::FetchAdd] {
        assert_eq!(window_after(op, 300), window_after(op, 20), "{op:?}");
    }
}

/// What was found to be missing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Lost,
    Late,
    /// It was so little late that nothing was sent again when its response came.
    AtOnce,
}

/// The window after a READ was found to be missing at a responder that `keeps` what is behind it.
fn window_after_gap(keeps: bool, missing: Missing) -> u32 {
    let mut h = with_large_window();
    h.post(SendOp::Send, 8);
    h.numbers();
    h.now += ROUND_TRIP;
    h.ack(0);
    let mut next = 1;
    if keeps {
        h.post(SendOp::Send, 256 * 3);
        h.numbers();
        h.nak(2, 0x60);
        h.numbers();
        h.now += ROUND_TRIP;
        h.ack(3);
        next = 4;
    }
    // It has grown.
    h.post(SendOp::Read, 256 * 300);
    h.numbers();
    for at in 0..300 {
        h.now += ROUND_TRIP;
        h.answer(Raw::new(0x0e, next + at).data(256));
        h.numbers();
    }
    next += 300;
    for _ in 0..4 {
        h.post(SendOp::Read, 256);
    }
    h.numbers();
    h.nak(next, 0x60);
    if missing != Missing::AtOnce {
        assert_eq!(h.numbers().len(), if keeps { 1 } else { 4 });
    }
    h.now += match missing {
        Missing::Lost => ROUND_TRIP,
        Missing::Late | Missing::AtOnce => ROUND_TRIP / 2,
    };
    let mut answer = |at| h.answer(Raw::new(0x10, next + at).aeth(0x1f).data(256));
    (0..4).for_each(&mut answer);
    match missing {
        // Those behind it were kept, and are answered twice in any case.
        Missing::Lost if !keeps => (1..3).for_each(answer),
        Missing::Late if !keeps => (0..3).for_each(answer),
        _ => {}
    }
    first_part(&mut h)
}

#[test]
fn a_read_that_was_only_late_does_not_shrink_the_window() {
    for keeps in [false, true] {
        let lost = window_after_gap(keeps, Missing::Lost);
        for late in [Missing::Late, Missing::AtOnce] {
            let late = window_after_gap(keeps, late);
            assert!(late > lost + lost / 2, "{keeps}: {lost} {late}");
        }
    }
}
