//! What a lookup costs: `lookups [OFFERS] [KINDS] [LOOKUPS]`.
//!
//! Offers in the shape of the QWS list (response time, availability, throughput and reliability of real
//! services), dearer ones better on the whole. Asked are bounds that half of the offers or more meet
//! (typical), that few do (selective), that only dear ones do (cheap is inadequate) and that none does. Each
//! lookup is timed by itself; one core.

use std::time::Instant;

use jiff::Timestamp;
use posthaste_units::{Rate, Ratio, Seed, Span};
use posthaste_wsqos::index::Index;
use posthaste_wsqos::qos::{Currency, Definition, Money, Offer, Ontologies, Rates};
use rand::{Rng, RngExt as _};
use rand_distr::{Distribution as _, LogNormal, Normal};

/// What a question is called, and how it is asked.
type Asked = (&'static str, fn(&mut Definition));

const QUESTIONS: [Asked; 4] = [
    ("typical", |wanted| {
        wanted.default.server.processing_time = Some(Span::from_millis(400));
        wanted.default.server.availability = Ratio::new(0.8);
    }),
    ("selective", |wanted| {
        wanted.default.server.processing_time = Some(Span::from_millis(60));
        wanted.default.server.availability = Ratio::new(0.95);
        wanted.default.server.reliability = Ratio::new(0.8);
    }),
    ("cheap is inadequate", |wanted| {
        wanted.default.server.reliability = Ratio::new(0.87);
    }),
    ("none", |wanted| {
        wanted.default.server.processing_time = Some(Span::from_millis(400));
        wanted.default.server.requests_per_second = Rate::per_second(1e4);
    }),
];

fn main() {
    let mut numbers = std::env::args()
        .skip(1)
        .map(|text| text.parse().expect("a number"));
    let offers: usize = numbers.next().unwrap_or(100_000);
    let kinds: usize = numbers.next().unwrap_or(200);
    let lookups: usize = numbers.next().unwrap_or(200_000);

    let euro: Currency = "EUR".parse().expect("a currency");
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
    let mut draws = Seed(1).stream("offers");
    let names: Vec<String> = (0..kinds).map(|kind| format!("uddi:kind:{kind}")).collect();
    let mut made: Vec<Vec<(String, Offer)>> = vec![Vec::new(); kinds];
    for number in 0..offers {
        let provider = format!("provider-{}", number / 7 % 4_000);
        made[number % kinds].push((provider, offer(number, euro, now, &mut draws)));
    }
    let before = memory();
    let start = Instant::now();
    let mut index = Index::new(Rates::new(euro), Ontologies::new());
    for (kind, made) in names.iter().zip(&made) {
        let made = made
            .iter()
            .map(|(provider, offer)| (provider.as_str(), offer));
        index.fill(kind, made, |_, _, error| panic!("{error}"));
    }
    println!(
        "{} offers of {kinds} kinds: built in {:.2?}, {} MB",
        index.len(),
        start.elapsed(),
        (memory() - before) / 1_000_000
    );
    drop(made);

    let mut order = Seed(2).stream("lookups");
    for (question, ask) in QUESTIONS {
        let mut wanted = Definition::default();
        ask(&mut wanted);
        let mut took = Vec::with_capacity(lookups);
        let mut found = 0;
        let start = Instant::now();
        for _ in 0..lookups {
            let kind = &names[order.random_range(0..kinds)];
            let begin = Instant::now();
            found += usize::from(index.best(kind, &wanted, now).is_some());
            took.push(begin.elapsed().as_nanos());
        }
        let rate = lookups as f64 / start.elapsed().as_secs_f64();
        took.sort_unstable();
        println!(
            "{question}: {:.0} k/s, p50 {} ns, p99 {} ns, max {} ns; {:.1} % found one",
            rate / 1e3,
            took[lookups / 2],
            took[lookups / 100 * 99],
            took[lookups - 1],
            100.0 * found as f64 / lookups as f64
        );
    }
    let mut published = Vec::new();
    for number in 0..1_000 {
        let kind = &names[number % kinds];
        let new = offer(number, euro, now, &mut draws);
        let begin = Instant::now();
        index.put(kind, "newcomer", &new).expect("a price in euros");
        published.push(begin.elapsed().as_nanos());
    }
    published.sort_unstable();
    println!("put: p50 {} ns, p99 {} ns", published[500], published[990]);
}

/// Response time p50 227 ms, p95 1,342; availability p50 87 %, p95 99; throughput p50 6.9/s, p95 24.6;
/// reliability p50 73 %, p95 83.
fn offer(number: usize, euro: Currency, now: Timestamp, draws: &mut impl Rng) -> Offer {
    let log = |median: f64, p95: f64| {
        LogNormal::new(median.ln(), (p95 / median).ln() / 1.645).expect("a distribution")
    };
    let normal = |median: f64, p95: f64| {
        Normal::new(median, (p95 - median) / 1.645).expect("a distribution")
    };
    let milliseconds = log(227.0, 1_342.0).sample(draws).clamp(37.0, 4_990.0);
    let reliability = normal(0.73, 0.83).sample(draws).clamp(0.33, 0.89);
    let mut qos = Definition::default();
    let server = &mut qos.default.server;
    server.processing_time = Some(Span::from_secs_f64(milliseconds / 1e3));
    server.availability = Ratio::new(normal(0.87, 0.99).sample(draws).clamp(0.07, 1.0));
    server.requests_per_second = Rate::per_second(log(6.9, 24.6).sample(draws).clamp(0.1, 43.0));
    server.reliability = Ratio::new(reliability);
    // What is more reliable costs more, and chance does the rest.
    let euros = 0.05 + (reliability - 0.33) * draws.random_range(0.5..1.5);
    qos.price = Money::from_micros((euros * 1e6) as u64, euro);
    Offer {
        name: format!("Gold {number}"),
        expires: now + jiff::SignedDuration::from_secs(60 + number as i64 % 60),
        qos,
    }
}

/// Bytes that are resident.
fn memory() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages = text
        .split(' ')
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok());
    pages.expect("a number of pages") * 4096
}
