//! Tests of the market: random histories, plants, and single parts.

mod admissions;
mod configurations;
mod controllers;
mod histories;
mod limits;
mod monitor;
mod parts;
mod plant;
mod tokens;
mod whole;

use posthaste_units::{Instant, Span};
use posthaste_wsqos::market::Amount;
use posthaste_wsqos::qos::{Currency, Money};

fn eur() -> Currency {
    "EUR".parse().expect("a currency")
}

fn price(micros: u64) -> Money {
    Amount::from_micros(micros).of(eur())
}

fn at(ms: u64) -> Instant {
    Instant::ORIGIN + Span::from_millis(ms)
}
