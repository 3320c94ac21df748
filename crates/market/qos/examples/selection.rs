//! Cost of the choice of an offer in processor time, by the place of the cheapest adequate one, and of the other parts
//! of a request.
//!
//! `cargo run --release -p posthaste-qos --example selection -- [OFFERS] [TIMES]`

use std::hint::black_box;

use jiff::{SignedDuration, Timestamp};
use posthaste_qos::selection::{
    LatencyBound, MeasuredEnd, MeasuredQuality, OfferTable, Promised, QualityWindow, RequestTerms,
    RoutedOffer, TermBounds,
};
use posthaste_qos::{Currency, Money};
use posthaste_units::{Instant, Ratio, Span};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| {
        let argument = arguments.next();
        argument.map_or(default, |text| text.parse().expect("a number"))
    };
    let (offers, times) = (number(1000), number(200_000));
    let cases = [
        ("the first is adequate", 0, false),
        ("half of them are too slow", offers / 2, false),
        ("only the last is fast enough", offers - 1, false),
        (
            "only the last is fast enough, all at one price",
            offers - 1,
            true,
        ),
        ("none is fast enough", offers, false),
    ];
    println!("{offers} offers, {times} choices each");
    for (case, slow, one_price) in cases {
        let table = table(offers, slow, one_price);
        println!("{case}: {} ns", cost(&table, times));
    }
    println!("a request is measured: {} ns", measured(times));
    println!("three fields are read: {} ns", read(times));
}

/// Nanoseconds of the start and the end of a measured request.
fn measured(times: u64) -> u64 {
    let mut window = QualityWindow::new(Span::from_secs(120));
    let mut now = Instant::ORIGIN + Span::from_secs(1000);
    let begun = processor_nanos();
    for number in 0..times {
        now += Span::from_micros(100);
        let start = window.start(black_box(now));
        let time = Span::from_micros(number % 50_000);
        window.end(start, now, MeasuredEnd::Served(time));
    }
    black_box(window.quality(now));
    (processor_nanos() - begun) / times.max(1)
}

/// Nanoseconds of reading a bound, a price and a share.
fn read(times: u64) -> u64 {
    let begun = processor_nanos();
    for _ in 0..times {
        let _ = black_box(black_box("200ms;p=99").parse::<LatencyBound>());
        let _ = black_box(black_box("0.40 EUR").parse::<Money>());
        let _ = black_box(black_box("99.9%").parse::<Ratio>());
    }
    (processor_nanos() - begun) / times.max(1)
}

/// Offers of which the first `slow` are measured as slower than they promise.
fn table(offers: u64, slow: u64, one_price: bool) -> OfferTable<()> {
    let currency: Currency = "EUR".parse().expect("a currency");
    let offer = |position: u64| {
        let p99 = Span::from_millis(if position < slow { 900 } else { 20 });
        RoutedOffer {
            name: format!("offer-{position}"),
            price: Money::from_micros(if one_price { 1 } else { position }, currency)
                .expect("an amount"),
            promised: Promised {
                time: Some(Span::from_millis(50)),
                reliability: Ratio::new(0.999),
            },
            expires: Timestamp::UNIX_EPOCH + SignedDuration::from_hours(1),
            endpoint: (position % 256) as u32,
            measured: MeasuredQuality {
                requests: 100,
                failures: 0,
                p50: p99 / 2,
                p99,
                ..MeasuredQuality::default()
            },
            data: (),
        }
    };
    OfferTable::new(currency, (0..offers).map(offer).collect())
}

/// Nanoseconds of a choice, with the preparation of the terms.
fn cost(table: &OfferTable<()>, times: u64) -> u64 {
    let terms = RequestTerms {
        max_latency: Some("200ms".parse().expect("a bound")),
        min_reliability: Ratio::new(0.99),
        ..RequestTerms::default()
    };
    let in_flight = vec![Some(0); 256];
    let begun = processor_nanos();
    for rotation in 0..times {
        let bounds = TermBounds::new(black_box(&terms), Timestamp::UNIX_EPOCH);
        let usable = |endpoint: u32| in_flight[endpoint as usize];
        let _ = black_box(table.choose(&bounds, None, rotation as usize, usable));
    }
    (processor_nanos() - begun) / times.max(1)
}

/// Processor time of this process: other processes of a busy machine do not count.
fn processor_nanos() -> u64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").expect("Linux with schedstats");
    let first = text.split(' ').next().expect("a number");
    first.parse().expect("nanoseconds")
}
