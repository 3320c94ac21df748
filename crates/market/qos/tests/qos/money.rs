//! Money: exact amounts, and comparison between currencies.

use posthaste_qos::{Money, Rates};
use proptest::prelude::*;

use super::made::currency;

#[test]
fn amounts_are_exact() {
    let mut sum = 0;
    for _ in 0..10 {
        sum += Money::new("0.10", currency("EUR")).unwrap().micros();
    }
    let sum = Money::from_micros(sum, currency("EUR")).unwrap();
    assert_eq!(sum, Money::new("1", currency("EUR")).unwrap());
    assert_eq!(sum.to_string(), "1.00 EUR");
    let small = Money::new("0.000001", currency("EUR")).unwrap();
    assert_eq!(small.to_string(), "0.000001 EUR");
    for wrong in [
        "",
        ".",
        "1.",
        ".5",
        "-1",
        "+1",
        "1e3",
        "NaN",
        "0.0000001",
        "1000000000000",
        "1 000",
        "٣",
    ] {
        assert!(Money::new(wrong, currency("EUR")).is_err(), "{wrong:?}");
    }
    assert!(
        Money::new("0.10000000", currency("EUR")).is_ok(),
        "zeros say nothing"
    );
    assert!("eur".parse::<posthaste_qos::Currency>().is_err());
}

#[test]
fn worth_must_be_something_to_reckon_with() {
    let mut rates = Rates::new(currency("EUR"));
    for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
        assert!(rates.set(currency("USD"), wrong).is_err(), "{wrong}");
    }
    rates.set(currency("EUR"), 2.0).unwrap();
    let one = Money::new("1", currency("EUR")).unwrap();
    assert_eq!(
        rates.in_base(one),
        Some(1_000_000),
        "the base stays what it is"
    );
    let dollar = Money::new("1", currency("USD")).unwrap();
    assert_eq!(rates.in_base(dollar), None, "nobody said what it is worth");
}

proptest! {
    #[test]
    fn dearer_stays_dearer(a in 0u64..1_000_000_000_000_000_000, b in 0u64..1_000_000_000_000_000_000, worth in 1e-6f64..1e6) {
        let mut rates = Rates::new(currency("EUR"));
        rates.set(currency("USD"), worth).unwrap();
        let in_base = |micros| rates.in_base(Money::from_micros(micros, currency("USD")).unwrap()).unwrap();
        prop_assert!(a > b || in_base(a) <= in_base(b));
    }

    #[test]
    fn amounts_are_read_back_as_printed(micros in 0u64..1_000_000_000_000_000_000) {
        let money = Money::from_micros(micros, currency("EUR")).unwrap();
        prop_assert_eq!(Money::new(&money.amount(), currency("EUR")), Ok(money));
    }
}
