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

mod services;
mod tiers;
mod tokens;
mod whole;

use posthaste_admission::{Amount, Limit, LimitBounds, Limiter, ServiceReply};
use posthaste_qos::{Currency, Money};
use posthaste_units::{Instant, Span};

fn eur() -> Currency {
    "EUR".parse().expect("a currency")
}

fn price(micros: u64) -> Money {
    Amount::from_micros(micros).to_money(eur())
}

fn at(ms: u64) -> Instant {
    Instant::ORIGIN + Span::from_millis(ms)
}

/// A limit that starts at its lower bound.
fn limit(limiter: Limiter, least: u32, most: u32) -> Limit {
    let bounds = LimitBounds {
        least,
        start: least,
        most,
    };
    Limit::new(limiter, bounds)
}

const fn reply(time: Span, among: u32, is_failed: bool) -> ServiceReply {
    ServiceReply {
        kind: 0,
        time,
        among,
        is_failed,
    }
}
