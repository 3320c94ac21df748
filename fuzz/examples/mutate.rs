//! Mutates the inputs of a corpus and checks the property of its target, on stable and without a fuzzer.
//!
//! ```sh
//! cargo run --release -p posthaste-fuzz --example mutate -- fleet_message 10000000
//! ```
//!
//! Inputs are not chosen by coverage, so this finds less than `cargo xtask fuzz` in the same number of inputs. A run with
//! the same seed (the third argument, 1 if absent) has the same inputs.

use std::process::ExitCode;

use posthaste_fuzz::{Property, TARGETS, corpus};

/// Maximum length of an input in bytes.
const LONGEST: usize = 1 << 14;
/// Maximum number of mutations of an input.
const MOST_MUTATIONS: usize = 6;
/// Values at which code branches.
const SPECIAL: [u8; 8] = [0, 1, 0x7f, 0x80, 0xff, b'0', b'"', b'\n'];

/// The generator splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `bound`, which is not 0.
    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    /// A range within `length`.
    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        let most = (length - start).min(1 << self.below(8));
        start..start + self.below(most + 1)
    }
}

/// Changes an input at one place. `other` is another input of the corpus.
fn mutate(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let index = random.below(input.len().max(1));
    match random.below(7) {
        0 if !input.is_empty() => input[index] ^= 1 << random.below(8),
        1 if !input.is_empty() => input[index] = SPECIAL[random.below(SPECIAL.len())],
        2 if !input.is_empty() => input[index] = random.next() as u8,
        3 => drop(input.drain(random.range(input.len()))),
        4 => {
            let copy = input[random.range(input.len())].to_vec();
            let at = random.below(input.len() + 1);
            input.splice(at..at, copy);
        }
        5 => {
            let copy = other[random.range(other.len())].to_vec();
            let into = random.range(input.len());
            input.splice(into, copy);
        }
        _ => input.truncate(random.below(input.len() + 1)),
    }
    input.truncate(LONGEST);
}

fn run(target: &str, property: Property, runs: u64, seed: u64) -> std::io::Result<ExitCode> {
    let inputs: Vec<Vec<u8>> = corpus::load(target)?.into_values().collect();
    let mut random = Random(seed);
    for number in 1..=runs {
        let mut input = inputs[random.below(inputs.len())].clone();
        for _ in 0..=random.below(MOST_MUTATIONS) {
            let other = &inputs[random.below(inputs.len())];
            mutate(&mut input, other, &mut random);
        }
        if std::panic::catch_unwind(|| property(&input)).is_err() {
            let found = std::env::temp_dir().join(format!("{target}-{seed}-{number}"));
            std::fs::write(&found, &input)?;
            println!("{target} does not hold for {}", found.display());
            return Ok(ExitCode::FAILURE);
        }
    }
    println!("{target} holds for {runs} mutated inputs");
    Ok(ExitCode::SUCCESS)
}

fn main() -> std::io::Result<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    let target = arguments.next().unwrap_or_default();
    let property = TARGETS.iter().find(|(name, _)| *name == target);
    let mut number = |default| arguments.next().map_or(Ok(default), |text| text.parse());
    let (Some((_, property)), Ok(runs), Ok(seed)) = (property, number(1_000_000), number(1)) else {
        let names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
        eprintln!(
            "usage: mutate TARGET [RUNS] [SEED]; there are {}",
            names.join(", ")
        );
        return Ok(ExitCode::from(2));
    };
    run(&target, *property, runs, seed)
}
