// SPDX-License-Identifier: GPL-2.0

//! The model in all orders of its steps, for small scripts, and in random orders for large scripts.

use std::collections::HashSet;

use proptest::prelude::*;

use crate::model::{
    Receive,
    Step,
    World, //
};

/// Visits every state that can be reached; the naive list stands for the device,
/// since it can be copied and compared. (The real one is equal to it: see
/// `list.rs`, and the random runs below, which lead both.)
fn explore(world: &World, seen: &mut HashSet<World>) -> Result<(), String> {
    let steps = world.steps();
    if steps.is_empty() {
        return world.verify();
    }
    for step in steps {
        let mut next = world.clone();
        let mut device = next.device(false);
        next.step(step, &mut device)
            .map_err(|e| format!("{e}\nby {step:?} in {world:?}"))?;
        if seen.insert(next.clone()) {
            explore(&next, seen)?;
        }
    }
    Ok(())
}

const KINDS: [Receive; 3] = [
    Receive {
        tag: 1,
        mask: u64::MAX,
    },
    Receive {
        tag: 2,
        mask: u64::MAX,
    },
    // Any.
    Receive { tag: 0, mask: 0 },
];

fn receives(n: usize) -> impl Iterator<Item = Vec<Receive>> {
    (0..3usize.pow(n as u32)).map(move |mut code| {
        (0..n)
            .map(|_| {
                let r = KINDS[code % 3];
                code /= 3;
                r
            })
            .collect()
    })
}

/// One sender: which message goes where does not depend on any order of steps.
#[test]
fn one_sender() {
    let mut states = 0;
    for r in receives(3) {
        for tags in 0..8u64 {
            let messages: Vec<_> = (0..3).map(|i| (1 + (tags >> i & 1), i == 0)).collect();
            let world = World::new(&r, &[(&messages, false)], true);
            let mut seen = HashSet::new();
            explore(&world, &mut seen).unwrap();
            states += seen.len();
        }
    }
    assert!(states > 50_000, "{states} states only");
}

/// Two senders, whose messages have several packets, and of whom one can break
/// off.
#[test]
fn two_senders() {
    let mut states = 0;
    for r in receives(2) {
        for tags in 0..8u64 {
            let tag = |i: u64| 1 + (tags >> i & 1);
            let first = [(tag(0), true), (tag(1), false)];
            let second = [(tag(2), true)];
            let world = World::new(&r, &[(&first, false), (&second, true)], true);
            let mut seen = HashSet::new();
            explore(&world, &mut seen).unwrap();
            states += seen.len();
        }
    }
    assert!(states > 50_000, "{states} states only");
}

/// The exploration sees what phases are for.
#[test]
fn without_phases_messages_are_overtaken() {
    let world = World::new(&[KINDS[0]], &[(&[(1, false), (1, false)], false)], false);
    let e = explore(&world, &mut HashSet::new()).unwrap_err();
    assert!(
        e.contains("took") || e.contains("taken back") || e.contains("got"),
        "{e}"
    );
}

#[derive(Clone, Debug)]
struct Script {
    receives: Vec<Receive>,
    senders: Vec<(Vec<(u64, bool)>, bool)>,
    choices: Vec<u16>,
}

fn script() -> impl Strategy<Value = Script> {
    let receive = prop_oneof![
        4 => (0u64..6).prop_map(|tag| Receive { tag, mask: u64::MAX }),
        1 => (0u64..3).prop_map(|tag| Receive { tag: tag << 1, mask: !1 }),
        1 => Just(Receive { tag: 0, mask: 0 }),
    ];
    let message = (0u64..6, prop::bool::weighted(0.3));
    let sender = (
        prop::collection::vec(message, 0..25),
        prop::bool::weighted(0.2),
    );
    (
        prop::collection::vec(receive, 1..60),
        prop::collection::vec(sender, 1..4),
        prop::collection::vec(any::<u16>(), 64..256),
    )
        .prop_map(|(receives, senders, choices)| Script {
            receives,
            senders,
            choices,
        })
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(2000)
    })]

    #[test]
    fn random_orders(s in script()) {
        let senders: Vec<(&[(u64, bool)], bool)> =
            s.senders.iter().map(|(m, b)| (m.as_slice(), *b)).collect();
        let mut world = World::new(&s.receives, &senders, true);
        let mut device = world.device(true);
        for i in 0.. {
            let mut steps = world.steps();
            // Connections break seldom.
            let choice = usize::from(s.choices[i % s.choices.len()]) ^ i;
            if choice % 16 != 0 {
                steps.retain(|s| !matches!(s, Step::Break(_)));
            }
            if steps.is_empty() {
                if world.steps().is_empty() {
                    break;
                }
                continue;
            }
            let step = steps[choice / 16 % steps.len()];
            world.step(step, &mut device).map_err(TestCaseError::fail)?;
        }
        world.verify().map_err(TestCaseError::fail)?;
    }
}
