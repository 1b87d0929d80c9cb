// SPDX-License-Identifier: GPL-2.0

//! Goodput over wires that delay, lose and disorder, in virtual time, beside that of a flow that
//! stands for TCP. `cargo test --test wires -- --nocapture` prints the table; `ROCE_SIM_RUNS=n`
//! sets the number of wires that are made at random, and `ROCE_SIM_SEED=n` replays one.

#[path = "../sim/mod.rs"]
mod sim;

use roce::requester::SendOp;
use sim::flow::Load;
use sim::rng::Rng;
use sim::wire::{
    Disorder,
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

/// 64 KiB messages, 64 outstanding, so many of them.
const MESSAGES: usize = 1000;

/// A kind of wire, and what is asserted about it: goodput in percent of the reference's, of WRITE
/// and SEND, and of READ. A READ of 64 KiB is also limited by the 16 that may be outstanding: by
/// 1 MiB a round trip.
struct Row {
    name: &'static str,
    wire: WireConfig,
    write: f64,
    read: f64,
}

const fn row(name: &'static str, wire: WireConfig, write: f64, read: f64) -> Row {
    Row {
        name,
        wire,
        write,
        read,
    }
}

/// Wires that programs are tested on.
fn rows() -> Vec<Row> {
    let lossy = |loss| WireConfig { loss, ..WIRE };
    let disordered = |disorder| WireConfig { disorder, ..WIRE };
    let bursts = Loss::Bursts {
        enter: 100,
        leave: 20_000,
        loss: 50_000,
    };
    let runs = Loss::Runs {
        per_100_000: 63,
        packets: 16,
    };
    let behind = Disorder::Behind {
        per_100_000: 2000,
        packets: 3,
    };
    vec![
        row("20 us", WireConfig::new(MS / 50), 95.0, 95.0),
        row("1 ms", WIRE, 95.0, 95.0),
        row("5 ms", WireConfig::new(5 * MS), 95.0, 95.0),
        row("20 ms", WireConfig::new(20 * MS), 90.0, 90.0),
        row("jitter 1 ms", WireConfig { jitter: MS, ..WIRE }, 95.0, 95.0),
        row("queue of 64", WireConfig { queue: 64, ..WIRE }, 85.0, 80.0),
        row("loss 0.1 %", lossy(Loss::Random(100)), 110.0, 140.0),
        // A window of what the wire holds, and no more, has 190 and 270.
        row("loss 1 %", lossy(Loss::Random(1000)), 280.0, 350.0),
        row(
            "20 ms, 0.1 %",
            WireConfig {
                loss: Loss::Random(100),
                ..WireConfig::new(20 * MS)
            },
            280.0,
            170.0,
        ),
        row(
            "1 %, 30 behind",
            WireConfig {
                loss: Loss::Random(1000),
                ..disordered(Disorder::Behind {
                    per_100_000: 2000,
                    packets: 30,
                })
            },
            260.0,
            270.0,
        ),
        row("loss 10 %", lossy(Loss::Random(10_000)), 70.0, 60.0),
        row("bursts", lossy(bursts), 90.0, 115.0),
        row("16 in a row", lossy(runs), 105.0, 120.0),
        row("reorder 2 %", disordered(Disorder::Ahead(2000)), 90.0, 85.0),
        row(
            "reorder 25 %",
            disordered(Disorder::Ahead(25_000)),
            90.0,
            90.0,
        ),
        row("3 behind, 2 %", disordered(behind), 90.0, 90.0),
        row(
            "duplicate 5 %",
            WireConfig {
                duplicate: 5000,
                ..WIRE
            },
            90.0,
            90.0,
        ),
        row(
            "corrupt 1 %",
            WireConfig {
                corrupt: 1000,
                ..WIRE
            },
            280.0,
            350.0,
        ),
    ]
}

/// One connection, the same in both directions of the wire.
fn alone(wire: WireConfig, load: Load, seed: u64) -> Outcome {
    let mut run = run(wire, wire, &[Traffic::Roce(load)], seed);
    run.flows.remove(0)
}

/// The goodput of the reference, MB/s.
fn reference(wire: WireConfig, seed: u64) -> f64 {
    let packets = 16 * MESSAGES as u64;
    run(wire, wire, &[Traffic::Reference(packets)], seed).flows[0].megabytes()
}

#[test]
fn goodput_beside_the_reference() {
    const SEEDS: u64 = 3;
    let mut low = Vec::new();
    println!(
        "{:14} {:>9} {:>9} {:>9} {:>9}",
        "MB/s", "reference", "write", "send", "read"
    );
    for row in rows() {
        let mean = |f: &mut dyn FnMut(u64) -> f64| (1..=SEEDS).map(f).sum::<f64>() / SEEDS as f64;
        let expect = mean(&mut |seed| reference(row.wire, seed));
        let mut line = format!("{:14} {expect:9.1}", row.name);
        for (op, share) in [
            (SendOp::Write, row.write),
            (SendOp::Send, row.write),
            (SendOp::Read, row.read),
        ] {
            let (mut again, mut wrong) = (0, 0);
            let goodput = mean(&mut |seed| {
                let outcome = alone(row.wire, Load::bulk(op, MESSAGES), seed);
                assert_eq!(outcome.failed, None, "{} {op:?}", row.name);
                assert_eq!(outcome.ends.len(), MESSAGES, "{} {op:?}", row.name);
                again += outcome.retransmitted + outcome.probes;
                wrong += outcome.wrong_naks;
                outcome.megabytes()
            });
            line += &format!(" {goodput:9.1} ({} {})", again / SEEDS, wrong / SEEDS);
            if goodput < expect * share / 100.0 {
                low.push(format!("{} {op:?}: {goodput:.1} of {expect:.1}", row.name));
            }
        }
        println!("{line}");
    }
    assert!(low.is_empty(), "{low:?}");
}

#[test]
fn what_is_overtaken_is_not_sent_again() {
    // netem does the first; a network with several ways to a host, the second.
    let behind = |packets| Disorder::Behind {
        per_100_000: 2000,
        packets,
    };
    for disorder in [
        Disorder::Ahead(2000),
        Disorder::Ahead(25_000),
        behind(3),
        behind(30),
    ] {
        for op in [SendOp::Write, SendOp::Send, SendOp::Read] {
            let wire = WireConfig { disorder, ..WIRE };
            let outcome = alone(wire, Load::bulk(op, 2 * MESSAGES), 1);
            let again = outcome.retransmitted + outcome.probes;
            println!(
                "{disorder:?} {op:?}: {again}, {} wrong NAKs",
                outcome.wrong_naks
            );
            // One of a hundred; most of them before the wait is known.
            assert!(again < 32_000 / 100, "{disorder:?} {op:?}: {again}");
            assert_eq!((outcome.failed, outcome.timeouts), (None, 0));
        }
    }
}

/// Hosts without time for a while, or a radio that collects packets, on a wire that disorders
/// them. What is late by milliseconds is not lost, and who is told so knows it soon.
#[test]
fn what_is_late_by_milliseconds_costs_little() {
    const SEEDS: u64 = 3;
    for (every, length, write, read) in [
        (2, 1, 80.0, 80.0),
        (5, 3, 80.0, 80.0),
        (10, 5, 80.0, 60.0),
        (10, 9, 50.0, 25.0),
    ] {
        let wire = WireConfig {
            disorder: Disorder::Ahead(2000),
            stall: Some((every * MS, length * MS)),
            ..WIRE
        };
        let mean = |f: &dyn Fn(u64) -> f64| (1..=SEEDS).map(f).sum::<f64>() / SEEDS as f64;
        let expect = mean(&|seed| reference(wire, seed));
        print!("{length} of {every} ms: {expect:.1}");
        for (op, share) in [(SendOp::Write, write), (SendOp::Read, read)] {
            let goodput = mean(&|seed| {
                let outcome = alone(wire, Load::bulk(op, MESSAGES), seed);
                assert_eq!((outcome.failed, outcome.timeouts), (None, 0));
                outcome.megabytes()
            });
            print!(", {op:?} {goodput:.1}");
            assert!(goodput > expect * share / 100.0, "{goodput} of {expect}");
        }
        println!();
    }
}

/// The responder keeps as much as this load has in flight at most, 64 messages of 16 packets, so
/// that a lost packet costs no other. Its ACKs name what is missing, and nothing else.
#[test]
fn what_was_not_lost_is_not_sent_again() {
    for (ms, loss) in [(1, 100), (5, 100), (20, 100), (1, 1000)] {
        for op in [SendOp::Write, SendOp::Send] {
            let wire = WireConfig {
                loss: Loss::Random(loss),
                ..WireConfig::new(ms * MS)
            };
            let run = run(
                wire,
                WireConfig::new(ms * MS),
                &[Traffic::Roce(Load::bulk(op, 3 * MESSAGES))],
                1,
            );
            let again = run.flows[0].retransmitted + run.flows[0].probes;
            let (lost, dropped) = (run.lost, run.dropped);
            println!("{ms} ms {op:?}: {lost} lost, {again} sent again");
            assert!(lost != 0 && dropped == 0, "{ms} ms {op:?}");
            assert!(
                again <= lost + lost / 5,
                "{ms} ms {op:?}: {again} for {lost}"
            );
        }
    }
}

/// A train is lost as a whole, and hardly more than it is sent again: how long it was is known,
/// wherever in a message it began.
#[test]
fn a_lost_train_is_sent_again_together() {
    for (rate, loss, share) in [(1, 100, 97.0), (1, 1000, 84.0), (4, 100, 92.0)] {
        for op in [SendOp::Write, SendOp::Send] {
            let wire = WireConfig {
                rate: rate * WIRE.rate,
                loss: Loss::Random(loss),
                ..WIRE
            };
            let (load, back) = (Load::in_trains(op, 4 * MESSAGES), WireConfig::new(MS));
            let run = run(wire, back, &[Traffic::Roce(load)], 1);
            let [flow] = &run.flows[..] else {
                panic!("one flow");
            };
            let (lost, again) = (run.missing, flow.retransmitted + flow.probes);
            let (got, full) = (flow.megabytes(), wire.rate as f64 / 1e6);
            println!(
                "{rate} {loss} {op:?}: {lost} lost, {again} sent again, {got:.1} of {full:.1}"
            );
            assert_eq!((flow.failed, flow.timeouts), (None, 0));
            assert!(lost != 0 && run.dropped == 0);
            // While trains were taken to be as long as most are, it was up to 2.7 times as many,
            // and 9 to 40 times while everything was sent again after three packets in a row.
            assert!(again <= lost + lost / 3, "{again} for {lost}");
            assert!(got > full * share / 100.0, "{got} of {full}");
        }
    }
}

/// A responder that keeps fewer packets than the requester would have it costs little.
#[test]
fn a_peer_that_keeps_fewer_is_served_as_well() {
    for (ms, loss) in [(1, 100), (1, 1000), (5, 100), (5, 1000), (20, 100)] {
        let wire = WireConfig {
            loss: Loss::Random(loss),
            ..WireConfig::new(ms * MS)
        };
        let goodput = |kept| {
            let load = Load {
                kept,
                ..Load::bulk(SendOp::Write, MESSAGES)
            };
            let run = |seed| {
                let outcome = alone(wire, load, seed);
                assert_eq!(outcome.failed, None);
                outcome.megabytes() / 3.0
            };
            (1..=3).map(run).sum::<f64>()
        };
        let all = goodput(1024);
        for (kept, share) in [(512, 70.0), (300, 50.0), (100, 40.0)] {
            let got = goodput(kept);
            println!("{ms} ms, {loss}, {kept} kept: {got:.1} of {all:.1}");
            assert!(got > all * share / 100.0, "{ms} ms, {loss}, {kept}");
        }
    }
}

/// rxe and older devices drop what comes early. Their senders lose nothing by what is done for
/// those that keep it.
#[test]
fn a_peer_that_goes_back_is_served_as_one() {
    let lossy = |loss| WireConfig { loss, ..WIRE };
    let disordered = WireConfig {
        disorder: Disorder::Behind {
            per_100_000: 100,
            packets: 3,
        },
        ..WIRE
    };
    for (wire, share) in [
        (WIRE, 95.0),
        (lossy(Loss::Random(100)), 80.0),
        (lossy(Loss::Random(1000)), 80.0),
        (lossy(Loss::Random(10_000)), 65.0),
        (disordered, 70.0),
    ] {
        for op in [SendOp::Write, SendOp::Send] {
            let load = Load {
                kept: 0,
                ..Load::bulk(op, MESSAGES)
            };
            let (mut goodput, mut expect) = (0.0, 0.0);
            for seed in 1..=3 {
                let outcome = alone(wire, load, seed);
                assert_eq!(outcome.failed, None);
                // With a loss of 10 %, there were more than 300 before there were probes.
                assert!(outcome.timeouts < 20, "{}", outcome.timeouts);
                goodput += outcome.megabytes() / 3.0;
                expect += reference(wire, seed) / 3.0;
            }
            println!("{:?} {op:?}: {goodput:.1} of {expect:.1}", wire.loss);
            assert!(goodput > expect * share / 100.0, "{goodput} of {expect}");
        }
    }
}

#[test]
fn a_wire_that_only_takes_time_has_nothing_sent_again() {
    for us in [1, 20, 300, 1000, 5000, 20_000, 100_000] {
        for jitter in [0, us * 500] {
            for op in [SendOp::Write, SendOp::Send, SendOp::Read] {
                let wire = WireConfig {
                    jitter,
                    ..WireConfig::new(us * 1000)
                };
                // A second: more than the longest round trip.
                let load = Load {
                    timeout: 18,
                    ..Load::bulk(op, 300)
                };
                let outcome = alone(wire, load, us);
                let again = outcome.retransmitted + outcome.probes + outcome.timeouts;
                assert_eq!((outcome.failed, again), (None, 0), "{us} us, {op:?}");
            }
        }
    }
}

/// Whatever takes long, and however long: as long as nothing is lost and nothing changes places, no
/// READ and no atomic is sent twice, and nothing else but for probes. rxe ends the connection when
/// it is sent a READ again whose memory was deregistered since.
#[test]
fn what_is_only_late_is_not_sent_again_but_for_probes() {
    use SendOp::*;
    let stalls = |every, length| WireConfig {
        stall: Some((every * MS, length * MS)),
        ..WIRE
    };
    let late = [
        WireConfig::new(MS / 50),
        WireConfig {
            jitter: 40 * MS,
            ..WIRE
        },
        WireConfig {
            rate: 2_000_000,
            ..WIRE
        },
        stalls(20, 5),
        stalls(50, 20),
        stalls(300, 100),
    ];
    let mut probes = 0;
    for there in late {
        for back in late {
            for (op, other) in [
                (Write, Write),
                (Send, Send),
                (Read, Read),
                (Send, Read),
                (Write, FetchAdd),
                (Read, FetchAdd),
            ] {
                for (length, depth) in [(65536, 20), (64, 1), (64, 64), (8192, 3)] {
                    let load = Load {
                        // 17 s
                        timeout: 22,
                        length,
                        depth,
                        other,
                        ..Load::bulk(op, 200)
                    };
                    let run = run(there, back, &[Traffic::Roce(load)], 1);
                    let flow = &run.flows[0];
                    let what = format!("{length} {depth} {there:?} {back:?}: {op:?} {other:?}");
                    assert_eq!((flow.failed, flow.timeouts), (None, 0), "{what}");
                    assert_eq!((flow.repeated, flow.retransmitted), (0, 0), "{what}");
                    assert_eq!((run.lost, run.dropped), (0, 0), "{what}");
                    probes += flow.probes;
                }
            }
        }
    }
    println!("{probes} probes");
    assert_ne!(probes, 0);
}

#[test]
fn a_lost_small_message_costs_a_few_round_trips() {
    let load = Load {
        length: 64,
        depth: 1,
        ..Load::bulk(SendOp::Send, 5000)
    };
    let wire = WireConfig {
        loss: Loss::Random(1000),
        ..WIRE
    };
    let outcome = alone(wire, load, 1);
    let mut took: Vec<u64> = outcome.ends.windows(2).map(|w| w[1] - w[0]).collect();
    took.sort_unstable();
    let at = |per_mille: usize| took[took.len() * per_mille / 1000] / 1000;
    println!("{} {} {} us", at(500), at(990), at(999));
    assert_eq!(at(500), 2000 + 1);
    assert!(at(990) < 5 * 2000, "{} us", at(990));
    assert_eq!(outcome.timeouts, 0);
}

#[test]
fn small_messages_that_tell_nothing_are_done_in_the_end() {
    for loss in [Loss::None, Loss::Random(1000), Loss::Random(10_000)] {
        for disorder in [Disorder::None, Disorder::Ahead(2000)] {
            for (group, depth) in [(0, 64), (0, 5), (16, 64), (7, 20)] {
                for seed in 1..=5 {
                    let wire = WireConfig {
                        loss,
                        disorder,
                        ..WIRE
                    };
                    let load = Load {
                        length: 64,
                        depth,
                        group,
                        ..Load::bulk(SendOp::Write, MESSAGES + 5)
                    };
                    let outcome = alone(wire, load, seed);
                    let what = format!("{wire:?} {load:?} {seed}");
                    assert_eq!(outcome.failed, None, "{what}");
                    assert_eq!(outcome.ends.len(), MESSAGES + 5, "{what}");
                    if matches!((loss, disorder), (Loss::None, Disorder::None)) {
                        let again = (outcome.retransmitted, outcome.probes, outcome.timeouts);
                        assert_eq!(again, (0, 0, 0), "{what}");
                    }
                }
            }
        }
    }
}

#[test]
fn flows_share_a_bottleneck() {
    let load = Traffic::Roce(Load::bulk(SendOp::Write, 2 * MESSAGES));
    for queue in [64, 200, 1000] {
        let wire = WireConfig { queue, ..WIRE };
        let flows = run(wire, wire, &[load; 4], 1).flows;
        let rates: Vec<f64> = flows.iter().map(Outcome::megabytes).collect();
        println!("queue of {queue}: {rates:.1?}");
        let least = rates.iter().copied().fold(f64::MAX, f64::min);
        let most = rates.iter().copied().fold(0.0, f64::max);
        assert!(least > most * 0.8, "{rates:?}");
    }
}

/// The goodput of so many flows through a queue together, MB/s, and the share of the packets that
/// it drops.
fn through(queue: usize, load: Load, flows: usize) -> (f64, f64) {
    let wire = WireConfig { queue, ..WIRE };
    let (mut megabytes, mut share) = (0.0, 0.0);
    for seed in 1..=3 {
        let run = run(wire, wire, &vec![Traffic::Roce(load); flows], seed);
        megabytes += run.flows.iter().map(Outcome::megabytes).sum::<f64>() / 3.0;
        share += run.dropped as f64 / run.sent as f64 / 3.0;
    }
    (megabytes, share)
}

/// A loss that has its cause in a full queue relieves the queue: no large part of what is sent is
/// dropped, and most of the wire is used, with however short a queue. Without pacing, a third of
/// the wire was, with a queue of 16, and a tenth of the packets was dropped.
#[test]
fn a_short_queue_is_not_flooded() {
    // Responses of READs are not paced.
    let (paced, read) = ([SendOp::Write, SendOp::Send], [SendOp::Read]);
    for (ops, queue, flows, goodput, dropped) in [
        (&paced[..], 16, 1, 80.0, 0.01),
        (&paced, 32, 1, 100.0, 0.01),
        (&paced, 64, 1, 110.0, 0.01),
        (&paced, 16, 4, 75.0, 0.07),
        (&paced, 32, 4, 100.0, 0.02),
        (&paced, 64, 4, 110.0, 0.01),
        (&read, 64, 1, 100.0, 0.01),
        (&read, 32, 4, 110.0, 0.02),
        (&read, 64, 4, 110.0, 0.02),
    ] {
        for &op in ops {
            let (megabytes, share) = through(queue, Load::bulk(op, 2 * MESSAGES), flows);
            println!("queue of {queue}, {flows} {op:?}: {megabytes:.1}, {share:.4} dropped");
            assert!(megabytes > goodput, "{op:?} {queue} {flows}: {megabytes}");
            assert!(share < dropped, "{op:?} {queue} {flows}: {share}");
        }
    }
}

/// The same of trains, which a queue takes for one packet each, or which are cut in front of it.
#[test]
fn a_short_queue_is_not_flooded_by_trains() {
    for (cut, queue, flows, goodput, dropped) in [
        // What is sent again takes more room there than the train that was lost.
        (false, 16, 1, 100.0, 0.25),
        (false, 64, 4, 115.0, 0.04),
        (true, 16, 1, 100.0, 0.01),
        (true, 32, 4, 105.0, 0.045),
        (true, 64, 4, 110.0, 0.015),
    ] {
        let load = Load {
            cut,
            ..Load::in_trains(SendOp::Write, 2 * MESSAGES)
        };
        let (megabytes, share) = through(queue, load, flows);
        println!("cut {cut}, queue of {queue}, {flows}: {megabytes:.1}, {share:.4} dropped");
        assert!(megabytes > goodput, "{cut} {queue} {flows}: {megabytes}");
        assert!(share < dropped, "{cut} {queue} {flows}: {share}");
    }
}

#[test]
fn the_reference_gets_its_share() {
    for queue in [200, 1000] {
        let wire = WireConfig { queue, ..WIRE };
        let load = Traffic::Roce(Load::bulk(SendOp::Write, 2 * MESSAGES));
        let both = [load, Traffic::Reference(32 * MESSAGES as u64)];
        let flows = run(wire, wire, &both, 1).flows;
        let (ours, theirs) = (flows[0].megabytes(), flows[1].megabytes());
        println!("queue of {queue}: {ours:.1}, reference {theirs:.1}");
        assert!(theirs > ours * 0.8, "{ours} against {theirs}");
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Any wire that a connection must survive.
fn any_wire(rng: &mut Rng) -> WireConfig {
    let few = |rng: &mut Rng, most| rng.pick(&[0, 0, 1]) * rng.below(most);
    let rate = rng.pick(&[10_000_000, 125_000_000, 1_250_000_000]);
    // What waits for longer than all retries of a packet take, half a second, ends a connection.
    let longest = rate / 4 / 4200;
    WireConfig {
        rate,
        delay: rng.range(1000, 20 * MS),
        jitter: few(rng, 5 * MS),
        queue: rng.range(16, 2000).min(longest) as usize,
        loss: match rng.below(3) {
            0 => Loss::None,
            1 => Loss::Random(rng.below(5000)),
            _ => Loss::Bursts {
                enter: rng.below(300),
                leave: rng.range(20_000, 90_000),
                loss: rng.range(10_000, 90_000),
            },
        },
        disorder: match rng.below(3) {
            0 => Disorder::None,
            1 => Disorder::Ahead(rng.below(20_000)),
            _ => Disorder::Behind {
                per_100_000: rng.below(20_000),
                packets: rng.range(1, 50),
            },
        },
        duplicate: few(rng, 5000),
        corrupt: few(rng, 2000),
        pause: None,
        stall: None,
    }
}

#[test]
fn any_wire_is_survived() {
    let seeds = match number("ROCE_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 1..1 + number("ROCE_SIM_RUNS").unwrap_or(60),
    };
    let (mut sent, mut lost, mut probes, mut early) = (0, 0, 0, 0);
    for seed in seeds {
        let mut rng = Rng::new(seed);
        let (there, back) = (any_wire(&mut rng), any_wire(&mut rng));
        let flows: Vec<Traffic> = (0..rng.range(1, 3))
            .map(|_| {
                let op = rng.pick(&[SendOp::Write, SendOp::Send, SendOp::Read]);
                Traffic::Roce(Load {
                    length: rng.pick(&[0, 64, 5000, 65536, 1 << 20]),
                    depth: rng.range(1, 64) as usize,
                    group: rng.pick(&[1, 1, 0, 7]),
                    ..Load::bulk(op, 40)
                })
            })
            .collect();
        let run = run(there, back, &flows, seed);
        for flow in &run.flows {
            let what = format!("{flows:?} {there:?} {back:?}: ROCE_SIM_SEED={seed}");
            assert_eq!(flow.failed, None, "{what}");
            assert_eq!(flow.ends.len(), 40, "{what}");
            probes += flow.probes;
            early += flow.early_probes;
        }
        sent += run.sent;
        lost += run.lost + run.dropped;
    }
    println!("{sent} packets, {lost} lost, {probes} probes, {early} of them early");
}

/// READ responses in trains, to a host that handles many at a time.
#[test]
fn reads_in_trains() {
    const COUNT: usize = 4 * MESSAGES;
    let lossy = |loss| WireConfig {
        loss: Loss::Random(loss),
        ..WIRE
    };
    let ahead = |per_100_000| WireConfig {
        disorder: Disorder::Ahead(per_100_000),
        ..WIRE
    };
    for (name, wire, share) in [
        // While only one response of a run let the window grow, these were 23 % and 77 %.
        ("20 ms", WireConfig::new(20 * MS), 26.0),
        ("5 ms", WireConfig::new(5 * MS), 91.0),
        ("loss 0.1 %", lossy(100), 80.0),
        ("loss 1 %", lossy(1000), 45.0),
        // While a READ that was only late shrank the window, it was 85 % and 64 %.
        ("reorder 2 %", ahead(2000), 95.0),
        // With trains of eight packets, which are late by less, 70 %.
        ("reorder 25 %", ahead(25_000), 58.0),
    ] {
        const SEEDS: u64 = 6;
        let wire = WireConfig {
            rate: 350_000_000,
            stall: Some((2 * MS, MS)),
            ..wire
        };
        let mut got = 0.0;
        for seed in 1..=SEEDS {
            let flow = alone(wire, Load::in_trains(SendOp::Read, COUNT), seed);
            assert_eq!((flow.failed, flow.timeouts), (None, 0), "{name}");
            got += flow.megabytes() / SEEDS as f64;
        }
        let full = wire.rate as f64 / 1e6;
        println!("{name}: {got:.1} of {full}");
        assert!(got > full * share / 100.0, "{name}");
    }
}
