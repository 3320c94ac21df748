//! Cost of a slot of the limit: for a request that finds one free, and at a flood of clients that wait.
//!
//! `cargo run --release -p posthaste-admission --example tiers -- [TIMES]`

use std::collections::VecDeque;
use std::hint::black_box;
use std::time;

use posthaste_admission::{
    Arrival, ClientLimits, Next, RequestLimits, Slots, TierShare, TierTerms, Tiers,
};
use posthaste_units::{Instant, Ratio, Span};

const LIMIT: u32 = 32;

fn main() {
    let times = std::env::args()
        .nth(1)
        .map_or(1_000_000, |text| text.parse().expect("a number"));
    free(times);
    for clients in [1, 100, 1000] {
        flood(times, clients);
    }
    limits(times);
}

fn tiers() -> Tiers {
    let share = |share| TierShare::lent(Ratio::new(share).expect("a share"));
    Tiers::new(TierTerms {
        shares: vec![share(0.5), share(0.3), share(0.2)],
        wait: Span::from_millis(100),
        most_waiting: 1000,
    })
}

const fn at(number: u64) -> Instant {
    Instant::from_nanos(1_000_000_000 + number * 1000)
}

fn free(times: u64) {
    let mut tiers = tiers();
    measured("a free slot, and its end", times, |number| {
        match tiers.push(
            at(number),
            Slots::equal(LIMIT),
            (number % 3) as usize,
            number % 100,
            0,
        ) {
            Arrival::Admitted(ticket) => tiers.leave(&ticket),
            _ => unreachable!("the slot is free"),
        }
    });
}

/// Each time one request arrives and one ends. The queue is full, so most are rejected.
fn flood(times: u64, clients: u64) {
    let mut tiers = tiers();
    let mut serving = VecDeque::new();
    let title =
        format!("a flood of {clients} clients: an arrival, and in one of five the end of another");
    measured(&title, times, |number| {
        let now = at(number);
        let tier = (number % 3) as usize;
        if let Arrival::Admitted(ticket) =
            tiers.push(now, Slots::equal(LIMIT), tier, number % clients, 0)
        {
            serving.push_back(ticket);
        }
        if number % 5 == 0
            && let Some(ticket) = serving.pop_front()
        {
            tiers.leave(&ticket);
        }
        while let Some(next) = tiers.pop(now, LIMIT) {
            if let Next::Admitted(ticket) = next {
                serving.push_back(ticket);
            }
        }
    });
}

fn limits(times: u64) {
    let mut clients = ClientLimits::new(RequestLimits {
        rate: Some((1e9, 1000)),
        concurrency: Some(10),
    });
    measured("limits of 10,000 clients", times, |number| {
        if let Ok(client) = clients.enter(at(number), number % 10_000) {
            clients.leave(black_box(client));
        }
    });
}

fn measured(title: &str, times: u64, mut step: impl FnMut(u64)) {
    let begun = time::Instant::now();
    (0..times).for_each(&mut step);
    let each = begun.elapsed().as_nanos() / u128::from(times.max(1));
    println!("{title}: {each} ns");
}
