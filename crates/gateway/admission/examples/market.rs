//! Cost of an admission, by its reason.
//!
//! `cargo run --release -p posthaste-admission --example market -- [TIMES]`

use std::hint::black_box;
use std::time;

use posthaste_admission::{Ask, Key, Market, Observed, Terms};
use posthaste_qos::{Currency, Money};
use posthaste_units::{Instant, Span};

fn main() {
    let times = std::env::args()
        .nth(1)
        .map_or(1_000_000, |text| text.parse().expect("a number"));
    let currency: Currency = "EUR".parse().expect("a currency");
    let mut terms = Terms::new("standard", currency);
    terms.capacity = Some(1e6);
    terms.rate = 1e6;
    terms.most_rate = 1e6;
    terms.life = Span::from_secs(1_000_000);
    let mut market = Market::new(terms, Key::new(&[7; 32]));
    let at = Instant::ORIGIN;
    market.observe(
        Observed {
            at,
            busy: 0.5,
            delay: Span::ZERO,
        },
        1e6,
    );
    let most = Some(Money::new("0.40", currency).expect("a price"));
    let ask = Ask {
        client: "192.0.2.17",
        most,
        ..Ask::default()
    };
    // The first request gets the only quote within the capacity.
    let (_, token) = market
        .admit(at, &ask, true)
        .ok()
        .and_then(|first| first.quote)
        .expect("a quote");
    let name = market.current(false).name.clone();
    let cases = [
        (
            "states nothing, price 0",
            Ask {
                client: ask.client,
                ..Ask::default()
            },
        ),
        ("accepts a price", ask),
        (
            "selects an offer",
            Ask {
                most: None,
                selected: Some(&name),
                ..ask
            },
        ),
        (
            "shows its quote",
            Ask {
                token: Some(&token),
                ..ask
            },
        ),
        (
            "shows another's quote",
            Ask {
                token: Some(&token),
                client: "192.0.2.18",
                ..ask
            },
        ),
    ];
    for (title, ask) in cases {
        repeat(&mut market, times, title, &ask);
    }
    quotes(times, currency, most);
}

/// Repeats the same request.
fn repeat(market: &mut Market, times: u64, title: &str, ask: &Ask<'_>) {
    let begun = time::Instant::now();
    for number in 0..times {
        let now = Instant::from_nanos(1_000_000 + number * 1000);
        let _ = black_box(market.admit(now, black_box(ask), true));
    }
    let each = begun.elapsed().as_nanos() / u128::from(times.max(1));
    println!("{title}: {each} ns");
}

/// New clients that each get a quote.
fn quotes(times: u64, currency: Currency, most: Option<Money>) {
    let begun = time::Instant::now();
    let mut given = 0u64;
    for round in 0..times.div_ceil(1 << 15) {
        let mut terms = Terms::new("standard", currency);
        terms.capacity = Some(1e9);
        let mut market = Market::new(terms, Key::new(&[7; 32]));
        for number in 0..1u32 << 15 {
            let client = number.to_string();
            let ask = Ask {
                client: &client,
                most,
                ..Ask::default()
            };
            let admitted = market.admit(Instant::from_nanos(round + 1), &ask, true);
            given += u64::from(admitted.is_ok_and(|admitted| admitted.quote.is_some()));
        }
    }
    println!(
        "is given a quote: {} ns",
        begun.elapsed().as_nanos() / u128::from(given.max(1))
    );
}
