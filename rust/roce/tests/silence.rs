// SPDX-License-Identifier: GPL-2.0

//! What a requester does when nothing comes: it goes on soon after a wire was interrupted, and it
//! repeats no READ that is only late. In virtual time; `ROCE_SIM_RUNS=n` sets the number of wires
//! that are made at random, and `ROCE_SIM_SEED=n` replays one.

#[path = "../sim/mod.rs"]
mod sim;

use roce::requester::SendOp::{
    self,
    FetchAdd,
    Read,
    Send,
    Write, //
};
use sim::flow::Load;
use sim::rng::Rng;
use sim::wire::{
    Loss,
    WireConfig, //
};
use sim::wires::{
    run,
    Outcome,
    Traffic, //
};

const MS: u64 = 1_000_000;

/// 1 Gbit/s, a millisecond each way.
const WIRE: WireConfig = WireConfig::new(MS);

/// Operations of every other message each, and what they are used for.
const MIXES: [(SendOp, SendOp); 6] = [
    (Write, Write),
    (Send, Send),
    (Read, Read),
    (Write, Read),
    (Send, FetchAdd),
    (Read, FetchAdd),
];

/// One connection, the same in both directions of the wire.
fn alone(wire: WireConfig, load: Load, seed: u64) -> Outcome {
    let mut run = run(wire, wire, &[Traffic::Roce(load)], seed);
    run.flows.remove(0)
}

fn paused(delay: u64, begin: u64, end: u64) -> WireConfig {
    WireConfig {
        pause: Some((begin, end)),
        ..WireConfig::new(delay)
    }
}

/// The whole wire does nothing for a second. All goes on within three round trips of its end, and 4
/// ms.
#[test]
fn the_end_of_a_pause_is_noticed_at_once() {
    let mut longest = 0;
    for (op, other) in MIXES {
        for (length, depth) in [(65536, 64), (64, 1), (8192, 3)] {
            // 1.07 s, which is no timeout; and 268 ms, which is three.
            for (timeout, timeouts) in [(18, 0), (16, 3)] {
                for (delay, phase) in [(MS / 2, 0), (MS / 2, 400), (MS, 0), (MS, 700)] {
                    let begin = 100 * MS + phase * 1000;
                    let end = begin + 1000 * MS;
                    let load = Load {
                        timeout,
                        length,
                        depth,
                        other,
                        ..Load::bulk(op, 1000)
                    };
                    let flow = alone(paused(delay, begin, end), load, phase + 1);
                    let what = format!("{op:?} {other:?} {length} {depth} {timeout} {delay}");
                    assert_eq!((flow.failed, flow.ends.len()), (None, 1000), "{what}");
                    assert!(flow.timeouts <= timeouts, "{what}: {}", flow.timeouts);
                    // What was sent before the pause ends may arrive, but no answer.
                    let after = |at: &&u64| **at >= end + 2 * delay;
                    let next = flow.ends.iter().find(after).expect("goes on") - end;
                    let most = 6 * delay + 4 * MS + WIRE.time_of(length.into());
                    assert!(next <= most, "{what}: {next}");
                    longest = longest.max(next);
                }
            }
        }
    }
    println!("{} us at most", longest / 1000);
}

#[test]
fn a_pause_is_survived_within_the_attributes_and_ends_the_connection_beyond() {
    for op in [Write, Read] {
        // Where round trips are longer, READs take four: there is one more to tell a loss.
        for (length, timeout) in [(100, 14), (400, 14), (1000, 18)] {
            for delay in [MS, 10 * MS] {
                let (begin, end) = (100 * MS, (100 + length) * MS);
                let load = Load {
                    timeout,
                    ..Load::bulk(op, 1000)
                };
                let flow = alone(paused(delay, begin, end), load, 1);
                assert_eq!(flow.failed, None);
                let next = flow.ends.iter().find(|at| **at > end).expect("goes on") - end;
                println!("{op:?} {length} ms: goes on after {} us", next / 1000);
                assert!(next < length * MS);
                assert!(length < 1000 || next < 8 * delay + 4 * MS);
            }
        }
        // 4.096 us times 2^14, eight times.
        let flow = alone(paused(MS, 100 * MS, 1100 * MS), Load::bulk(op, 1000), 1);
        assert!(flow.failed.is_some());
        assert_eq!(flow.timeouts, 8);
    }
}

#[test]
fn a_lost_small_read_costs_a_few_round_trips() {
    for (op, other) in [(Read, Read), (FetchAdd, FetchAdd), (Send, Read)] {
        let load = Load {
            length: 64,
            depth: 1,
            other,
            ..Load::bulk(op, 5000)
        };
        let wire = WireConfig {
            loss: Loss::Random(1000),
            ..WIRE
        };
        let flow = alone(wire, load, 1);
        let mut took: Vec<u64> = flow.ends.windows(2).map(|w| w[1] - w[0]).collect();
        took.sort_unstable();
        let at = |per_mille: usize| took[took.len() * per_mille / 1000] / 1000;
        println!("{op:?} {other:?}: {} {} {} us", at(500), at(990), at(999));
        assert!(at(500) < 2100, "{}", at(500));
        // The time of a probe, and three round trips.
        assert!(at(990) < 4000 + 3 * 2000 + 1000, "{}", at(990));
        assert_eq!((flow.failed, flow.timeouts), (None, 0));
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// A direction of a wire that loses nothing and keeps the order, whatever time it takes.
fn slow_wire(rng: &mut Rng) -> WireConfig {
    let every = rng.range(5, 400);
    let stall = (
        every * MS + rng.below(MS),
        rng.range(1, every) * MS - rng.below(MS),
    );
    WireConfig {
        jitter: rng.pick(&[0, 0, 5, 40]) * MS,
        rate: rng.pick(&[125_000_000, 125_000_000, 2_000_000]),
        stall: rng.pick(&[true, true, false]).then_some(stall),
        ..WireConfig::new(rng.pick(&[MS / 50, MS, 5 * MS]))
    }
}

/// rxe ends the connection when it is sent a READ again whose memory was deregistered since.
#[test]
fn no_read_is_sent_twice_on_any_wire_that_loses_nothing() {
    let seeds = match number("ROCE_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 1..1 + number("ROCE_SIM_RUNS").unwrap_or(400),
    };
    let (mut probes, mut again) = (0, 0);
    // The last one has an answer to an echo come late, and few others do.
    for seed in seeds.chain([9442]) {
        let mut rng = Rng::new(seed);
        let (there, back) = (slow_wire(&mut rng), slow_wire(&mut rng));
        let (op, other) = rng.pick(&MIXES);
        let (length, depth) = rng.pick(&[(65536, 20), (64, 1), (64, 2), (64, 64), (8192, 3)]);
        let load = Load {
            // 69 s
            timeout: 24,
            length,
            depth,
            other,
            ..Load::bulk(op, 200)
        };
        let run = run(there, back, &[Traffic::Roce(load)], seed);
        if run.dropped != 0 {
            continue;
        }
        let flow = &run.flows[0];
        let what = format!("{load:?} {there:?} {back:?}: ROCE_SIM_SEED={seed}");
        assert_eq!((flow.failed, flow.timeouts), (None, 0), "{what}");
        assert_eq!(flow.repeated, 0, "{what}");
        probes += flow.probes;
        again += flow.retransmitted;
    }
    println!("{probes} probes, {again} packets of SENDs and WRITEs sent again");
}
