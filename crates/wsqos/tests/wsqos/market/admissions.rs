//! What is published, who enters and why not.

use posthaste_units::Span;
use posthaste_wsqos::market::{Ask, By, Controller, Key, Market, Observed, Terms, Why};
use posthaste_wsqos::qos::Money;

use super::{at, eur, price};

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

fn why(market: &mut Market, ms: u64, ask: &Ask<'_>, room: bool) -> Why {
    match market.admit(at(ms), ask, room) {
        Ok(admitted) => panic!("let in by {:?}", admitted.by),
        Err(refused) => refused.why,
    }
}

const ADA: Ask<'_> = Ask {
    client: "ada",
    selected: None,
    most: None,
    token: None,
    rate: None,
};

#[test]
fn without_a_quote_the_present_price_must_be_accepted() {
    let mut market = nimble();
    observe(&mut market, 0, 0.75);
    let entered = market.admit(at(1), &ADA, true);
    assert_eq!(entered.map(|admitted| admitted.by), Ok(By::Free));
    assert_eq!(why(&mut market, 1, &ADA, false), Why::Full);
    observe(&mut market, 10, 1.0);
    assert_eq!(why(&mut market, 11, &ADA, true), Why::NoOffer);
    let poor = Ask {
        most: Some(price(99_999)),
        ..ADA
    };
    assert_eq!(why(&mut market, 11, &poor, true), Why::TooCheap);
    let most = Money::from_micros(9_000_000, "USD".parse().expect("dollars"));
    assert_eq!(
        why(&mut market, 11, &Ask { most, ..ADA }, true),
        Why::OtherCurrency
    );
}

#[test]
fn a_quote_passes_the_price_and_the_room_and_nothing_else() {
    let mut market = nimble();
    observe(&mut market, 0, 0.75);
    let accepts = Ask {
        most: Some(price(500_000)),
        ..ADA
    };
    let admitted = market.admit(at(1), &accepts, true).expect("let in");
    let (_, token) = admitted.quote.expect("a quote");
    observe(&mut market, 10, 1.0);
    let quoted = Ask {
        token: Some(&token),
        ..ADA
    };
    assert_eq!(
        why(
            &mut market,
            11,
            &Ask {
                client: "eve",
                ..quoted
            },
            true
        ),
        Why::Forged
    );
    let by = |market: &mut Market, ask: &Ask<'_>, room| {
        let admitted = market.admit(at(12), ask, room).expect("let in");
        (admitted.by, admitted.price.micros())
    };
    assert_eq!(
        by(&mut market, &quoted, false),
        (By::Quote, 0),
        "the price it was given"
    );
    assert_eq!(why(&mut market, 13, &quoted, true), Why::Overused);
    let both = Ask {
        token: Some(&token),
        ..accepts
    };
    assert_eq!(by(&mut market, &both, true), (By::Offer, 100_000));
    assert_eq!(why(&mut market, 13, &both, false), Why::Full);
    assert_eq!(why(&mut market, 2001, &quoted, true), Why::Expired);
    let poor = Ask {
        most: Some(price(99_999)),
        ..quoted
    };
    assert_eq!(why(&mut market, 2001, &poor, true), Why::TooCheap);
}

#[test]
fn a_quote_dearer_than_what_is_accepted_is_not_used() {
    let mut market = nimble();
    observe(&mut market, 0, 0.75);
    observe(&mut market, 10, 1.0);
    let accepts = Ask {
        most: Some(price(100_000)),
        ..ADA
    };
    let admitted = market.admit(at(11), &accepts, true).expect("let in");
    let (quote, token) = admitted.quote.expect("a quote");
    assert_eq!(quote.price, price(100_000));
    observe(&mut market, 20, 0.0);
    let thrifty = Ask {
        most: Some(price(50_000)),
        token: Some(&token),
        ..ADA
    };
    let admitted = market.admit(at(21), &thrifty, true).expect("let in");
    assert_eq!((admitted.by, admitted.price), (By::Offer, price(0)));
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
