// SPDX-License-Identifier: GPL-2.0

//! The runs of the simulator. A failure prints the seed;
//! `ROCE_SIM_SEED=n cargo test --test sim NAME` replays it. `ROCE_SIM_RUNS=n` sets the number of
//! seeds to try.

#[path = "../sim/mod.rs"]
mod sim;

use std::panic::{
    catch_unwind,
    AssertUnwindSafe, //
};

use sim::network::Faults;
use sim::run::{
    run,
    Report,
    Scenario, //
};
use sim::workload::Mix;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Runs many seeds; returns the sum of the reports.
fn runs(name: &str, scenario: &Scenario, default: u64) -> Report {
    let seeds = match number("ROCE_SIM_SEED") {
        Some(seed) => seed..seed + 1,
        None => 1..1 + number("ROCE_SIM_RUNS").unwrap_or(default),
    };
    let mut sum = Report::default();
    for seed in seeds {
        match catch_unwind(AssertUnwindSafe(|| run(scenario, seed))) {
            Ok(r) => {
                sum.packets += r.packets;
                sum.lost += r.lost;
                sum.retransmitted += r.retransmitted;
                sum.rnr_naks += r.rnr_naks;
                sum.local_messages += r.local_messages;
                sum.virtual_ns += r.virtual_ns;
                sum.failures += r.failures;
                sum.jumps += r.jumps;
            }
            Err(_) => panic!("replay: ROCE_SIM_SEED={seed} cargo test --test sim {name}"),
        }
    }
    println!("{name}: {sum:?}");
    assert!(sum.jumps != 0, "sequence numbers never came round");
    sum
}

const CLEAN: Faults = Faults {
    loss: 0,
    duplicate: 0,
    reorder: 0,
    corrupt: 0,
};
const BAD: Faults = Faults {
    loss: 15,
    duplicate: 15,
    reorder: 15,
    corrupt: 10,
};

const fn scenario(mix: Mix, faults: Faults) -> Scenario {
    Scenario {
        mix,
        is_rewriting: false,
        faults,
        is_slow_receiver: false,
        is_local: false,
        count: 120,
        big: 100,
        is_disaster: false,
    }
}

#[test]
fn rc_on_a_clean_network_sends_nothing_twice() {
    let sum = runs("rc_on_a_clean_network", &scenario(Mix::Rc, CLEAN), 60);
    assert_eq!(sum.retransmitted, 0);
    assert_eq!(sum.rnr_naks, 0);
}

#[test]
fn rc_on_a_bad_network() {
    let sum = runs("rc_on_a_bad_network", &scenario(Mix::Rc, BAD), 150);
    assert!(sum.retransmitted != 0);
}

#[test]
fn rc_with_loss_only() {
    let faults = Faults { loss: 30, ..CLEAN };
    runs("rc_with_loss_only", &scenario(Mix::Rc, faults), 100);
}

#[test]
fn rc_with_duplicates_only() {
    let faults = Faults {
        duplicate: 200,
        ..CLEAN
    };
    runs("rc_with_duplicates_only", &scenario(Mix::Rc, faults), 100);
}

#[test]
fn rc_with_reordering_only() {
    let faults = Faults {
        reorder: 50,
        ..CLEAN
    };
    runs("rc_with_reordering_only", &scenario(Mix::Rc, faults), 100);
}

#[test]
fn rc_with_receives_posted_late() {
    let mut s = scenario(Mix::Rc, BAD);
    s.is_slow_receiver = true;
    let sum = runs("rc_with_receives_posted_late", &s, 150);
    assert!(sum.rnr_naks != 0);
}

#[test]
fn rc_long_messages() {
    let mut s = scenario(Mix::Rc, BAD);
    s.count = 30;
    s.big = 500;
    runs("rc_long_messages", &s, 60);
}

#[test]
fn rc_between_wire_and_same_host() {
    let mut s = scenario(Mix::Rc, BAD);
    s.is_local = true;
    s.is_slow_receiver = true;
    let sum = runs("rc_between_wire_and_same_host", &s, 120);
    assert!(sum.local_messages != 0 && sum.packets != 0);
}

#[test]
fn xrc_on_a_clean_network_sends_nothing_twice() {
    let sum = runs("xrc_on_a_clean_network", &scenario(Mix::Xrc, CLEAN), 60);
    assert_eq!(sum.retransmitted, 0);
}

#[test]
fn xrc_on_a_bad_network() {
    runs("xrc_on_a_bad_network", &scenario(Mix::Xrc, BAD), 150);
}

#[test]
fn xrc_with_receives_posted_late() {
    let mut s = scenario(Mix::Xrc, BAD);
    s.is_slow_receiver = true;
    let sum = runs("xrc_with_receives_posted_late", &s, 150);
    assert!(sum.rnr_naks != 0);
}

#[test]
fn xrc_between_wire_and_same_host() {
    let mut s = scenario(Mix::Xrc, BAD);
    s.is_local = true;
    s.is_slow_receiver = true;
    let sum = runs("xrc_between_wire_and_same_host", &s, 120);
    assert!(sum.local_messages != 0 && sum.packets != 0);
}

#[test]
fn what_is_written_is_read_back() {
    for (name, mix) in [("rc_rewriting", Mix::Rc), ("xrc_rewriting", Mix::Xrc)] {
        let mut s = scenario(mix, BAD);
        s.is_rewriting = true;
        s.count = 60;
        s.big = 40;
        runs(name, &s, 120);
    }
}

#[test]
fn uc_on_a_clean_network_loses_nothing() {
    runs("uc_on_a_clean_network", &scenario(Mix::Uc, CLEAN), 60);
}

#[test]
fn uc_on_a_bad_network_alters_nothing() {
    runs("uc_on_a_bad_network", &scenario(Mix::Uc, BAD), 150);
}

#[test]
fn rc_with_a_failure_in_the_middle() {
    let mut s = scenario(Mix::Rc, BAD);
    s.is_disaster = true;
    s.is_slow_receiver = true;
    let sum = runs("rc_with_a_failure_in_the_middle", &s, 150);
    assert!(sum.failures != 0);
}

#[test]
fn xrc_with_a_failure_in_the_middle() {
    let mut s = scenario(Mix::Xrc, BAD);
    s.is_disaster = true;
    s.is_local = true;
    let sum = runs("xrc_with_a_failure_in_the_middle", &s, 150);
    assert!(sum.failures != 0);
}
