// SPDX-License-Identifier: GPL-2.0

//! Drives the fuzz target without libFuzzer, which cannot be linked with Debian's rustc. Inputs are
//! created at random and by mutating earlier inputs that reached something new, for a limited time.
//!
//! `ROCE_FUZZ_SECONDS=n` (default 5) sets the time. `ROCE_FUZZ_SEED=n` sets the seed of the random
//! numbers (default: from the clock; it is printed). A failing input is printed in hexadecimal;
//! `ROCE_FUZZ_INPUT=hex` replays it.

#[path = "../sim/mod.rs"]
mod sim;

use std::panic::{
    catch_unwind,
    AssertUnwindSafe, //
};
use std::time::{
    Duration,
    Instant,
    SystemTime, //
};

use sim::fuzz::fuzz;
use sim::rng::Rng;

const MAX_LEN: usize = 1200;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn random(rng: &mut Rng) -> Vec<u8> {
    let len = rng.below(MAX_LEN as u64) as usize;
    let mut v: Vec<u8> = (0..len).map(|_| rng.next() as u8).collect();
    // Without this, one environment in two refuses so often that little works.
    if rng.below(2) == 0 {
        for b in v.iter_mut().skip(24) {
            if rng.below(8) == 0 {
                *b = 0;
            }
        }
    }
    v
}

fn mutate(rng: &mut Rng, from: &[u8], other: &[u8]) -> Vec<u8> {
    let mut v = from.to_vec();
    for _ in 0..rng.range(1, 8) {
        if v.is_empty() {
            v.push(0);
        }
        let at = rng.below(v.len() as u64) as usize;
        match rng.below(7) {
            0 => v[at] = rng.next() as u8,
            1 => v[at] ^= 1 << rng.below(8),
            2 => v[at] = v[at].wrapping_add(rng.range(1, 4) as u8),
            3 => {
                v.truncate(at);
            }
            4 => {
                let n = rng.range(1, 16);
                let at = at.min(v.len());
                v.splice(at..at, (0..n).map(|_| rng.next() as u8));
            }
            5 => {
                // Repeat a piece.
                let end = (at + rng.range(1, 40) as usize).min(v.len());
                let piece = v[at..end].to_vec();
                v.splice(at..at, piece);
            }
            _ => {
                if !other.is_empty() {
                    let from = rng.below(other.len() as u64) as usize;
                    v.truncate(at);
                    v.extend_from_slice(&other[from..]);
                }
            }
        }
    }
    v.truncate(MAX_LEN);
    v
}

fn main() {
    if let Ok(hex) = std::env::var("ROCE_FUZZ_INPUT") {
        let input: Vec<u8> = (0..hex.len() / 2)
            .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).expect("not hexadecimal"))
            .collect();
        fuzz(&input);
        println!("the input passes");
        return;
    }
    let seconds = number("ROCE_FUZZ_SECONDS").unwrap_or(5);
    let seed = number("ROCE_FUZZ_SEED").unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        now.map_or(0, |d| d.as_nanos() as u64)
    });
    println!("fuzz: ROCE_FUZZ_SEED={seed}, {seconds} s");
    let mut rng = Rng::new(seed);
    let mut corpus: Vec<Vec<u8>> = vec![Vec::new()];
    let mut seen = std::collections::HashSet::new();
    let mut all = 0u128;
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut runs = 0u64;
    while runs < 1000 || Instant::now() < end {
        let input = if rng.below(4) == 0 {
            random(&mut rng)
        } else {
            let a = rng.below(corpus.len() as u64) as usize;
            let b = rng.below(corpus.len() as u64) as usize;
            mutate(&mut rng, &corpus[a], &corpus[b])
        };
        match catch_unwind(AssertUnwindSafe(|| fuzz(&input))) {
            Ok(trace) => {
                if corpus.len() < 5000 && seen.insert(trace) {
                    corpus.push(input);
                }
                all |= trace;
            }
            Err(_) => {
                let hex: String = input.iter().map(|b| format!("{b:02x}")).collect();
                println!("ROCE_FUZZ_INPUT={hex}");
                println!("test result: FAILED. 0 passed; 1 failed (after {runs} inputs)");
                std::process::exit(1);
            }
        }
        runs += 1;
    }
    println!(
        "fuzz: {runs} inputs, {} kept, {} kinds of events",
        corpus.len(),
        all.count_ones()
    );
    println!("test result: ok. 1 passed; 0 failed");
}
