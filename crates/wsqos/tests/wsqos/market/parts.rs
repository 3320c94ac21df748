//! The market's parts by themselves: bucket, tokens, ledger, offers, configurations.

use posthaste_units::{Instant, Span};
use posthaste_wsqos::market::{
    Amount, Ask, Bucket, By, Controller, Key, Ledger, Limiter, Market, Observed, Quote,
    TOKEN_LENGTH, Terms, Unpaid, Why,
};
use posthaste_wsqos::qos::{Currency, Money};
use proptest::prelude::*;

fn eur() -> Currency {
    "EUR".parse().expect("a currency")
}

fn price(micros: u64) -> Money {
    Amount::from_micros(micros).of(eur())
}

fn at(ms: u64) -> Instant {
    Instant::ORIGIN + Span::from_millis(ms)
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
    /// However requests come, no stretch of time sees more than its rate and a burst, and one that waits
    /// as long as it is told is let in.
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

    #[test]
    fn a_token_says_what_was_signed_to_whom_it_was_given_and_to_nobody_else(
        number: u64,
        micros in 0u64..1_000_000_000_000_000_000,
        rate in 0.0f64..1e9,
        until: u64,
        client in ".{0,40}",
        other in ".{0,40}",
    ) {
        let key = Key::new(&[7; 32]);
        let until = Instant::from_nanos(until);
        let quote = Quote { number, client: client.clone(), price: price(micros), rate, until };
        let token = key.sign(&quote);
        prop_assert_eq!(token.len(), TOKEN_LENGTH);
        prop_assert_eq!(key.read(&token, &client), Ok(quote));
        prop_assert_eq!(key.read(&token, &other).is_ok(), client == other);
        prop_assert!(Key::new(&[8; 32]).read(&token, &client).is_err());
    }

    #[test]
    fn what_is_no_token_is_forged(text in ".{0,200}") {
        prop_assert!(Key::new(&[7; 32]).read(&text, "ada").is_err());
    }
}

#[test]
fn a_token_with_any_bit_flipped_is_forged() {
    let key = Key::new(&std::array::from_fn(|place| place as u8));
    let until = at(2000);
    let client = "ada".to_owned();
    let quote = Quote {
        number: 3,
        client,
        price: price(300_000),
        rate: 1.5,
        until,
    };
    let token = key.sign(&quote);
    for place in 0..token.len() {
        for bit in 0..8 {
            let mut bytes = token.clone().into_bytes();
            bytes[place] ^= 1 << bit;
            if let Ok(text) = String::from_utf8(bytes) {
                assert!(
                    key.read(&text, "ada").is_err(),
                    "bit {bit} of character {place}"
                );
            }
        }
    }
    for cut in [&token[1..], &token[..token.len() - 1], ""] {
        assert!(key.read(cut, "ada").is_err());
    }
    assert!(key.read(&format!("{token}="), "ada").is_err());
}

/// The code is HMAC-SHA256 over what is said and the client's name, so that it can be checked elsewhere.
#[test]
fn a_token_is_the_same_in_every_release() {
    let until = Instant::from_nanos(5);
    let client = "ada".to_owned();
    let quote = Quote {
        number: 1,
        client,
        price: price(400_000),
        rate: 2.0,
        until,
    };
    let token = Key::new(&[0x0b; 32]).sign(&quote);
    assert_eq!(token, PINNED);
}

/// Computed by another implementation.
const PINNED: &str =
    "AAAAAAAAAAEAAAAAAAYagEVVUkAAAAAAAAAAAAAAAAAAAAXX5QDZPp-W50bDqdodohNGsX9l_dnVSoepihBwBi9zdQ";

#[test]
fn a_ledger_gives_no_more_than_there_is() {
    let mut ledger = Ledger::new(Span::from_secs(2), 1, 3.0);
    let give =
        |ledger: &mut Ledger, ms, client: &str, rate| ledger.give(at(ms), client, price(0), rate);
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
    let quote = ledger.give(at(0), "ada", price(0), 2.0).expect("a quote");
    let later = ledger
        .give(at(100), "grace", price(0), 2.0)
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
    // Signed by the same key, and of another ledger's book.
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
                .give(at(ms), &number.to_string(), price(0), 1.0)
                .is_some()
        };
        (0..70_000).filter(give).count()
    };
    assert_eq!(given(&mut ledger, 0), 1 << 16);
    assert_eq!(given(&mut ledger, 1999), 0);
    assert_eq!(given(&mut ledger, 2000), 1 << 16);
}

/// A market whose price moves by 0.10 at every observation, 10 ms apart.
fn nimble() -> Market {
    let controller: Controller =
        serde_json::from_str(r#"{"policy": "steps", "window": "1ms", "period": "1ms"}"#)
            .expect("a controller");
    let terms = Terms {
        controller,
        capacity: Some(5.0),
        ..Terms::new("standard", eur())
    };
    Market::new(terms, Key::new(&[1; 32]))
}

fn observe(market: &mut Market, ms: u64, busy: f64) -> Option<String> {
    let seen = Observed {
        at: at(ms),
        busy,
        delay: Span::ZERO,
    };
    market.observe(seen, 1e6).map(|offer| offer.name)
}

#[test]
fn an_offer_is_published_when_it_changes_and_before_it_ends() {
    let mut market = nimble();
    assert_eq!(market.current().name, "standard@0.00");
    assert_eq!(
        observe(&mut market, 0, 0.75).as_deref(),
        Some("standard@0.00")
    );
    assert_eq!(observe(&mut market, 500, 0.75), None);
    assert_eq!(observe(&mut market, 999, 0.75), None);
    assert_eq!(
        observe(&mut market, 1000, 0.75).as_deref(),
        Some("standard@0.00")
    );
    assert_eq!(
        observe(&mut market, 1010, 1.0).as_deref(),
        Some("standard@0.10")
    );
    assert_eq!(
        observe(&mut market, 1020, 1.0).as_deref(),
        Some("standard@0.20")
    );
    assert_eq!(
        observe(&mut market, 1030, 0.0).as_deref(),
        Some("standard@0.10")
    );
}

#[test]
fn a_selected_offer_says_what_is_accepted_while_it_lives() {
    let mut market = nimble();
    for (ms, busy) in [(0, 0.75), (10, 1.0), (20, 1.0), (30, 1.0), (40, 0.0)] {
        observe(&mut market, ms, busy);
    }
    let mut ask = |ms, name| {
        let ask = Ask {
            client: "ada",
            selected: Some(name),
            ..Ask::default()
        };
        let answer = market.admit(at(ms), &ask, true);
        answer
            .map(|admitted| admitted.price.micros())
            .map_err(|refused| refused.why)
    };
    assert_eq!(ask(50, "standard@0.20"), Ok(200_000));
    assert_eq!(
        ask(50, "standard@0.30"),
        Ok(200_000),
        "dearer than now: pays what holds now"
    );
    assert_eq!(ask(50, "standard@0.10"), Err(Why::TooCheap));
    assert_eq!(
        ask(50, "standard@0.40"),
        Err(Why::Expired),
        "never published"
    );
    assert_eq!(ask(2029, "standard@0.30"), Ok(200_000));
    assert_eq!(ask(2030, "standard@0.30"), Err(Why::Expired));
    assert_eq!(
        ask(99_999, "standard@0.20"),
        Ok(200_000),
        "the present offer never ends"
    );
    for name in [
        "",
        "standard",
        "standard@",
        "gold@0.30",
        "standard@-1",
        "standard@0.3x",
    ] {
        assert_eq!(ask(50, name), Err(Why::Expired), "{name}");
    }
}

#[test]
fn refusals_say_why() {
    let mut market = nimble();
    observe(&mut market, 0, 0.75);
    let why = |market: &mut Market, ms, ask: &Ask<'_>, room| match market.admit(at(ms), ask, room) {
        Ok(admitted) => panic!("let in by {:?}", admitted.by),
        Err(refused) => refused.why,
    };
    let ada = Ask {
        client: "ada",
        ..Ask::default()
    };
    assert_eq!(
        market.admit(at(1), &ada, true).map(|admitted| admitted.by),
        Ok(By::Free)
    );
    assert_eq!(why(&mut market, 1, &ada, false), Why::Full);
    let accepts = Ask {
        most: Some(price(500_000)),
        ..ada
    };
    let (_, token) = market
        .admit(at(1), &accepts, true)
        .ok()
        .and_then(|in_| in_.quote)
        .expect("a quote");
    observe(&mut market, 10, 1.0);
    assert_eq!(why(&mut market, 11, &ada, true), Why::NoOffer);
    let poor = Ask {
        most: Some(price(99_999)),
        ..ada
    };
    assert_eq!(why(&mut market, 11, &poor, true), Why::TooCheap);
    let foreign = Ask {
        most: Money::from_micros(9_000_000, "USD".parse().expect("dollars")),
        ..ada
    };
    assert_eq!(why(&mut market, 11, &foreign, true), Why::OtherCurrency);
    let quoted = Ask {
        token: Some(&token),
        ..ada
    };
    let thief = Ask {
        client: "eve",
        ..quoted
    };
    assert_eq!(why(&mut market, 11, &thief, true), Why::Forged);
    let by = |market: &mut Market, ms, ask: &Ask<'_>, room| {
        market.admit(at(ms), ask, room).map(|in_| in_.by)
    };
    assert_eq!(
        by(&mut market, 12, &quoted, false),
        Ok(By::Quote),
        "no room, and a higher price by now"
    );
    assert_eq!(why(&mut market, 13, &quoted, true), Why::Overused);
    assert_eq!(
        by(
            &mut market,
            14,
            &Ask {
                token: Some(&token),
                ..accepts
            },
            true
        ),
        Ok(By::Offer)
    );
    assert_eq!(why(&mut market, 2001, &quoted, true), Why::Expired);
    assert_eq!(
        why(
            &mut market,
            2001,
            &Ask {
                token: Some(&token),
                ..poor
            },
            true
        ),
        Why::TooCheap
    );
}

#[test]
fn who_states_nothing_is_given_no_quote() {
    let mut market = nimble();
    observe(&mut market, 0, 0.75);
    let mut quote = |client, most, rate| {
        let ask = Ask {
            client,
            most,
            rate,
            ..Ask::default()
        };
        market
            .admit(at(1), &ask, true)
            .expect("let in")
            .quote
            .map(|(quote, _)| quote.rate)
    };
    assert_eq!(quote("a", None, None), None);
    assert_eq!(quote("a", Some(price(0)), None), Some(1.0));
    assert_eq!(quote("b", None, Some(0.5)), Some(0.5));
    assert_eq!(
        quote("c", Some(price(0)), Some(99.0)),
        None,
        "10 at most, of which 3.5 are left"
    );
}

#[test]
fn controllers_and_limits_are_read_by_name() {
    for name in ["steps", "proportional-integral", "rajomon"] {
        let text = format!(r#"{{"policy": "{name}", "most": "2.50"}}"#);
        let read: Controller = serde_json::from_str(&text).expect("a controller");
        assert_eq!(read.name(), name);
        assert_eq!(read.check(), Ok(()));
        let written = serde_json::to_string(&read).expect("JSON");
        assert_eq!(
            serde_json::from_str::<Controller>(&written).expect("again"),
            read
        );
        let unknown = format!(r#"{{"policy": "{name}", "mots": "2.50"}}"#);
        let error = serde_json::from_str::<Controller>(&unknown).expect_err("no such key");
        assert!(error.to_string().contains("`mots`"), "{error}");
    }
    for name in ["gradient", "aimd"] {
        let read: Limiter =
            serde_json::from_str(&format!(r#"{{"policy": "{name}"}}"#)).expect("a limit");
        assert_eq!(read.name(), name);
        assert_eq!(read.check(), Ok(()));
    }
    let error =
        serde_json::from_str::<Controller>(r#"{"policy": "guess"}"#).expect_err("no such policy");
    assert!(
        error.to_string().contains("proportional-integral"),
        "{error}"
    );
}

#[test]
fn parameters_that_cannot_work_are_named() {
    let wrong = [
        (r#"{"policy": "steps", "low": "90%"}"#, "low"),
        (r#"{"policy": "steps", "up": "0"}"#, "up"),
        (r#"{"policy": "steps", "window": "0"}"#, "window"),
        (
            r#"{"policy": "proportional-integral", "integral": -1}"#,
            "integral",
        ),
        (
            r#"{"policy": "proportional-integral", "tick": "0.00"}"#,
            "tick",
        ),
        (r#"{"policy": "rajomon", "threshold": "0"}"#, "threshold"),
        (r#"{"policy": "rajomon", "most": "0"}"#, "most"),
    ];
    for (text, key) in wrong {
        let controller: Controller = serde_json::from_str(text).expect("a controller");
        let error = controller.check().expect_err(text).to_string();
        assert!(error.starts_with(key), "{error}");
    }
}
