//! Integration tests of the crate's public interface: random histories, plants, and single parts.

mod accounts;
mod admit;
mod changes;
mod configurations;
mod controllers;
mod histories;
mod limits;
mod monitor;
mod parts;
mod payers;
mod plant;
mod request_limits;
mod rests;

mod tiers;
mod tokens;
mod whole;

use posthaste_admission::Amount;
use posthaste_qos::{Currency, Money};
use posthaste_units::{Instant, Span};

fn eur() -> Currency {
    "EUR".parse().expect("a currency")
}

fn price(micros: u64) -> Money {
    Amount::from_micros(micros).of(eur())
}

fn at(ms: u64) -> Instant {
    Instant::ORIGIN + Span::from_millis(ms)
}
