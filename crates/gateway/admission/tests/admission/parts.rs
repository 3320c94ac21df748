//! The bucket and the ledger alone.

use posthaste_admission::{Bucket, Ledger, Published, Quote, Unpaid};
use posthaste_units::{Instant, Span};
use proptest::prelude::*;

use super::{at, price};

fn free() -> Published {
    Published {
        name: "standard@0.00".to_owned(),
        price: price(0),
        life: Span::from_secs(2),
        open: false,
    }
}

#[test]
fn a_bucket_says_when_it_will_do() {
    let mut bucket = Bucket::new(10.0, 2);
    let start = at(5000);
    assert_eq!(bucket.take(start), Ok(()));
    assert_eq!(bucket.take(start), Ok(()));
    assert_eq!(bucket.take(start), Err(Span::from_millis(100)));
    let soon = start + Span::from_millis(60);
    assert_eq!(bucket.take(soon), Err(Span::from_millis(40)));
    assert_eq!(bucket.take(soon + Span::from_millis(40)), Ok(()));
}

#[test]
fn a_bucket_of_no_rate_admits_one() {
    for rate in [0.0, -1.0, f64::NAN] {
        let mut bucket = Bucket::new(rate, 7);
        assert!(bucket.take(at(1)).is_ok());
        assert!(bucket.take(at(1)).is_err() && bucket.take(at(1 << 40)).is_err());
    }
}

proptest! {
    /// At any arrivals, no interval of time admits more than its rate and a burst. A request that waits for the
    /// returned time is admitted.
    #[test]
    fn a_bucket_keeps_its_rate(
        rate in 0.5f64..200.0,
        burst in 1u32..6,
        pauses in proptest::collection::vec(0u64..300, 1..80),
    ) {
        let mut bucket = Bucket::new(rate, burst);
        let (mut now, mut taken) = (at(1000), Vec::<Instant>::new());
        for pause in pauses {
            now += Span::from_millis(pause);
            match bucket.take(now) {
                Ok(()) => taken.push(now),
                Err(wait) => {
                    let mut later = bucket;
                    prop_assert!(later.take(now + wait.saturating_sub(Span::from_nanos(1))).is_err());
                    prop_assert!(later.take(now + wait).is_ok());
                }
            }
            for (first, from) in taken.iter().enumerate() {
                let allowed = rate * now.since(*from).as_secs_f64() + f64::from(burst);
                prop_assert!((taken.len() - first) as f64 <= allowed + 1e-6);
            }
        }
    }

}

#[test]
fn a_ledger_gives_no_more_than_there_is() {
    let mut ledger = Ledger::new(Span::from_secs(2), 1, 3.0);
    let give =
        |ledger: &mut Ledger, ms, client: &str, rate| ledger.give(at(ms), client, &free(), rate);
    assert!(give(&mut ledger, 0, "a", 2.0).is_some());
    assert!(
        give(&mut ledger, 0, "a", 1.0).is_none(),
        "one quote at a time"
    );
    assert!(
        give(&mut ledger, 0, "b", 1.1).is_none(),
        "more than is left"
    );
    assert!(give(&mut ledger, 1, "b", 1.0).is_some());
    assert_eq!(ledger.quoted(at(1999)), 3.0);
    assert_eq!(ledger.quoted(at(2000)), 1.0);
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(give(&mut ledger, 2000, "c", rate).is_none(), "{rate}");
    }
    ledger.set_capacity(1.5);
    assert!(
        give(&mut ledger, 2000, "a", 1.0).is_none(),
        "less capacity than before"
    );
    assert!(give(&mut ledger, 2001, "a", 1.0).is_some());
    let long = "x".repeat(257);
    assert!(
        give(&mut ledger, 2001, &long, 0.1).is_none(),
        "a name without end"
    );
}

#[test]
fn a_ledger_knows_its_quotes() {
    let mut ledger = Ledger::new(Span::from_secs(2), 1, 10.0);
    let quote = ledger.give(at(0), "ada", &free(), 2.0).expect("a quote");
    let later = ledger
        .give(at(100), "grace", &free(), 2.0)
        .expect("another");
    assert_eq!(
        ledger.take(at(499), &quote),
        Err(Unpaid::Overused),
        "the request it came with counts"
    );
    assert_eq!(ledger.take(at(500), &quote), Ok(()));
    assert_eq!(ledger.take(at(600), &later), Ok(()));
    assert_eq!(ledger.take(at(2000), &quote), Err(Unpaid::Expired));
    assert_eq!(ledger.take(at(2000), &later), Ok(()));
    // Signed by the same key, but from another ledger.
    let stranger = Quote {
        number: 77,
        ..later.clone()
    };
    assert_eq!(ledger.take(at(2050), &stranger), Err(Unpaid::Expired));
    let stranger = Quote {
        until: at(2200),
        ..later
    };
    assert_eq!(ledger.take(at(2050), &stranger), Err(Unpaid::Expired));
}

#[test]
fn a_ledger_is_bounded() {
    let mut ledger = Ledger::new(Span::from_secs(2), 1, 1e12);
    let given = |ledger: &mut Ledger, ms| {
        let give = |number: &u32| {
            ledger
                .give(at(ms), &number.to_string(), &free(), 1.0)
                .is_some()
        };
        (0..70_000).filter(give).count()
    };
    assert_eq!(given(&mut ledger, 0), 1 << 16);
    assert_eq!(given(&mut ledger, 1999), 0);
    assert_eq!(given(&mut ledger, 2000), 1 << 16);
}
