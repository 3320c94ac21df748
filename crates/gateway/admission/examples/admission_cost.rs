//! Identification and payment of one request, repeated, for counting instructions.
//!
//! `cargo run --release -p posthaste-admission --example admission_cost -- identify|pay TIMES`

use std::hint::black_box;

use posthaste_admission::Amount;
use posthaste_admission::accounts::{Accounts, Budget, Definition, KeyHasher};
use posthaste_qos::Currency;
use posthaste_units::{Instant, Span};

/// Accounts, as many as a broker keeps by default.
const ACCOUNTS: u32 = 100_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |index: usize| arguments.get(index).map(String::as_str).unwrap_or_default();
    let times: u64 = argument(1).parse().unwrap_or(1);
    let (mut accounts, hasher) = accounts();
    let key = "pha_0123456789012345678901234567890123456789012";
    match argument(0) {
        "identify" => (0..times).for_each(|_| {
            let tag = hasher.of_key(black_box(key).as_bytes());
            black_box(accounts.with_key(&tag));
        }),
        "pay" => {
            let account = accounts.with_subject("7").expect("it is there");
            for _ in 0..times {
                let price = black_box(Amount::from_micros(1));
                let hold = accounts.hold(Instant::ORIGIN, &account, price);
                black_box(accounts.charge(hold.expect("the budget is large")));
            }
        }
        _ => panic!("identify or pay"),
    }
}

fn accounts() -> (Accounts, KeyHasher) {
    let eur: Currency = "EUR".parse().expect("a currency");
    let much = Amount::from_micros(u64::MAX);
    let hasher = KeyHasher::new(&[7; 32]);
    let mut accounts = Accounts::new(eur, much, hasher.clone());
    let budget = Budget {
        amount: much.to_money(eur),
        period: Span::from_secs(3_600),
        spent: Amount::ZERO.to_money(eur),
        ends_in: Span::from_secs(3_600),
        max_price: None,
    };
    let definitions = (0..ACCOUNTS).map(|number| {
        let mut key = [0; 32];
        key[..4].copy_from_slice(&number.to_be_bytes());
        Definition {
            name: format!("a{number}"),
            key: Some(key),
            subject: Some(number.to_string()),
            budget: Some(budget),
            is_closed: false,
        }
    });
    accounts.apply(Instant::ORIGIN, definitions.collect(), 1, false);
    (accounts, hasher)
}
