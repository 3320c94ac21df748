//! Random tests by seed: any two stacks, buffers, segment sizes and programs, over a link that loses, delays, reorders
//! and duplicates. No byte is lost, duplicated or out of order, and everything ends.
//!
//! Every run has a few hundred. `POSTHASTE_WORLDS=1000000` runs that number on all cores, and `POSTHASTE_WORLD=SEED`
//! runs one and prints its segments.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use posthaste_tcp::remedy::Remedy;
use posthaste_tcp::{ConnectionEnd, Endpoint, Profile, TcpState};
use posthaste_units::{Seed, Span, Stream};
use rand::RngExt as _;

use crate::mixture::{mixed, named, one};
use crate::play::{Play, Program, TestLink};

/// Default number of tests.
const FEW: u64 = 300;
/// Longer than any stack waits between two actions: two days.
const LONG: Span = Span::from_secs(48 * 3600);
/// Many more steps than the written data needs.
const STEPS: usize = 4_000_000;

fn stack(stream: &mut Stream) -> Arc<Profile> {
    let mut profile = if stream.random_bool(0.5) {
        named(stream)
    } else {
        mixed(stream)
    };
    if stream.random_bool(0.3) {
        profile.offer.mss = one(stream, &[128, 536, 1000, 1460, 8960]);
    }
    if stream.random_bool(0.3) {
        profile.receive_buffer = one(stream, &[1_000, 3_000, 8_192, 20_000, 300_000]);
        // A stack chooses a scale whose unit is smaller than its buffer.
        let scale = profile.offer.window_scale;
        profile.offer.window_scale = scale.map(|scale| scale.min(7));
    }
    if stream.random_bool(0.3) {
        profile.send_buffer = one(stream, &[500, 4_000, 30_000]);
    }
    profile.offer.sack &= stream.random_bool(0.8);
    profile.offer.timestamps &= stream.random_bool(0.8);
    if stream.random_bool(0.2) {
        profile.offer.window_scale = None;
    }
    if stream.random_bool(0.3) {
        let remedies = [0; 3].map(|_| one(stream, &Remedy::ALL));
        profile = profile.with(&remedies[..stream.random_range(1..=3)]);
    }
    Arc::new(profile)
}

/// Draws a link. Returns true with it if it loses packets.
fn line(stream: &mut Stream, seed: Seed) -> (TestLink, bool) {
    let mut draws = seed.stream("line");
    let loses = stream.random_bool(0.8);
    let loss = if loses {
        one(stream, &[0.01, 0.05, 0.15, 0.25])
    } else {
        0.0
    };
    // Some losses are single, some include the following packets.
    let (burst, mut left) = (one(stream, &[0, 0, 3, 12]), 0);
    let copies = one(stream, &[0.0, 0.0, 0.02, 0.2]);
    let delay = one(stream, &[0_u64, 5, 40, 200]) * 1_000_000;
    let jitter = one(stream, &[0_u64, 0, 1, 10, 100]) * 1_000_000;
    let line = TestLink::new(Box::new(move |_, _| {
        // A copy may be late by seconds.
        let late = one(&mut draws, &[1_000_000, 50_000_000, 5_000_000_000]);
        let mut way = |most: u64| Span::from_nanos(delay + draws.random_range(0..=most));
        let (first, ghost) = (way(jitter), way(late));
        let lost = draws.random_bool(loss);
        left = if lost {
            draws.random_range(0..=burst)
        } else if left > 0 {
            left - 1
        } else {
            0
        };
        match (lost || left > 0, draws.random_bool(copies)) {
            (true, _) => Vec::new(),
            (false, true) => vec![first, ghost],
            (false, false) => vec![first],
        }
    }));
    match one(stream, &[0, 0, 64_000, 1_000_000, 50_000_000]) {
        0 => (line, loses),
        rate => (line.at_rate(rate), loses),
    }
}

fn program(stream: &mut Stream) -> Program {
    let mut program = Program::writing(one(stream, &[0, 1, 300, 1448, 13_000, 100_000]));
    program.closes_first = stream.random_bool(0.6);
    program.wait = Span::from_millis(one(stream, &[0, 0, 10, 200, 5_000]));
    if stream.random_bool(0.3) {
        program.chunk = one(stream, &[1, 100, 5_000]).max(program.bytes / 200);
        program.pause = Span::from_millis(one(stream, &[0, 1, 30, 700]));
    }
    program
}

/// Creates a simulation at its start. Returns true with it if its links lose packets.
fn world(seed: Seed) -> (Play, bool) {
    let mut stream = seed.stream("world");
    let stacks = [stack(&mut stream), stack(&mut stream)];
    let (up, up_loses) = line(&mut stream, seed.child("up"));
    let (down, down_loses) = line(&mut stream, seed.child("down"));
    let isn = |stream: &mut Stream| one(stream, &[0, u32::MAX, u32::MAX - 5_000, 1 << 31, 77]);
    let isns = [isn(&mut stream), isn(&mut stream)];
    let mut play = Play::new([&stacks[0], &stacks[1]], isns, [up, down]);
    play.programs = [program(&mut stream), program(&mut stream)];
    if stream.random_bool(0.5) {
        // Request and reply. If both ends wanted to close last, they would wait for each other for ever.
        play.programs[1].after = play.programs[0].bytes;
    }
    play.programs[1].closes_first |= !play.programs[0].closes_first;
    if stream.random_bool(0.1) {
        play.open_both();
    }
    if stream.random_bool(0.1) {
        let after = Span::from_millis(stream.random_range(0..3_000));
        play.programs[stream.random_range(0..2)].quits = Some(play.now + after);
    }
    (play, up_loses || down_loses)
}

/// Bytes received by both ends.
fn moved(play: &Play) -> u64 {
    play.ends.iter().map(Endpoint::received).sum()
}

/// Runs a simulation to its end. Returns true if no end gave up.
fn outlive(play: &mut Play, loses: bool) -> bool {
    let ended = loop {
        let before = moved(play);
        let ended = play.run(play.now + LONG, STEPS);
        // A hundred thousand bytes in pieces of thirty take a long time if half of them are lost.
        if ended || moved(play) == before {
            break ended;
        }
    };
    let states = [0, 1].map(|end: usize| play.ends[end].state());
    assert!(ended, "it does not end: {states:?} at {:?}", play.now);
    if states.contains(&TcpState::Closed(ConnectionEnd::Aborted)) {
        return true;
    }
    let given_up = states.contains(&TcpState::Closed(ConnectionEnd::TimedOut));
    assert!(loses || !given_up, "nothing was lost, and yet {states:?}");
    if given_up {
        return false;
    }
    // The last acknowledgement may be lost more often than the other end waits for it. The result is a reset without
    // missing data.
    let fine = |state| {
        matches!(
            state,
            TcpState::TimeWait | TcpState::Closed(ConnectionEnd::Finished | ConnectionEnd::Reset)
        )
    };
    assert!(states.into_iter().all(fine), "{states:?}");
    for end in [0, 1] {
        let (wrote, read) = (&play.programs[end], &play.programs[1 - end]);
        assert_eq!(wrote.written, wrote.bytes);
        assert_eq!(read.read, wrote.bytes, "bytes from end {end}");
    }
    true
}

/// Runs one test and prints its segments.
fn show(seed: u64) {
    let (mut play, loses) = world(Seed(seed));
    let lived = catch_unwind(AssertUnwindSafe(|| outlive(&mut play, loses)));
    let profiles = play.ends.each_ref().map(Endpoint::profile);
    println!("{profiles:#?}\n{:#?}\n{}", play.programs, play.ladder());
    assert!(lived.is_ok(), "the panic stands above");
}

/// Message of a panic.
fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_default()
}

#[test]
fn no_byte_is_lost_and_everything_ends() {
    if let Ok(seed) = std::env::var("POSTHASTE_WORLD") {
        return show(seed.parse().expect("a seed"));
    }
    let count = std::env::var("POSTHASTE_WORLDS");
    let count = count.map_or(FEW, |count| count.parse().expect("a number"));
    let (next, whole) = (AtomicU64::new(0), AtomicU64::new(0));
    let work = || {
        let mut broken = Vec::new();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count || broken.len() > 3 {
                return broken;
            }
            let lived = catch_unwind(|| {
                let (mut play, loses) = world(Seed(number));
                outlive(&mut play, loses)
            });
            match lived {
                Ok(lived) => {
                    whole.fetch_add(u64::from(lived), Ordering::Relaxed);
                }
                Err(panic) => {
                    // A long run reports a failure before its end.
                    eprintln!("world {number} broke");
                    broken.push((number, message(&*panic)));
                }
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let broken: Vec<(u64, String)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let joined = workers
            .into_iter()
            .map(|worker| worker.join().expect("it catches"));
        joined.flatten().collect()
    });
    assert!(broken.is_empty(), "worlds that broke: {broken:#?}");
    let whole = whole.into_inner();
    assert!(whole * 10 > count * 8, "{whole} of {count} came to an end");
}

/// The same seed gives the same simulation.
#[test]
fn a_world_can_be_had_again() {
    for seed in [3, 5, 8] {
        let ladder = |_| {
            let (mut play, loses) = world(Seed(seed));
            outlive(&mut play, loses);
            play.ladder()
        };
        let [one, other] = [0, 1].map(ladder);
        assert_eq!(one, other);
    }
}
