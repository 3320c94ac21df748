//! Published offers, admissions, and reasons for rejections.

use posthaste_admission::{Ask, By, Controller, Key, Market, Observed, Payer, Terms, Why};
use posthaste_qos::{Money, Requires};
use posthaste_units::Span;

use super::{at, eur, price};

/// A market with a price that moves by 0.10 at every observation, 10 ms apart.
fn nimble() -> Market {
    reducing("0%")
}

/// The same, with a discount for requests that leave compression to the server.
fn reducing(discount: &str) -> Market {
    let controller: Controller =
        serde_json::from_str(r#"{"policy": "steps", "window": "1ms", "period": "1ms"}"#)
            .expect("a controller");
    let terms = Terms {
        controller,
        discount: discount.parse().expect("a share"),
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
    let offers = market.observe(seen, 1e6);
    offers.first().map(|offer| offer.name.clone())
}

#[test]
fn an_offer_is_published_when_it_changes_and_before_it_ends() {
    let mut market = nimble();
    assert_eq!(market.current(false).name, "standard@0.00");
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
    open: false,
    unquoted: false,
    payer: Payer::Anyone,
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
fn requests_with_neither_price_nor_rate_get_no_quote() {
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

const OPEN: Ask<'_> = Ask { open: true, ..ADA };

#[test]
fn requests_that_leave_compression_open_have_their_own_offer() {
    let mut market = reducing("20%");
    let mut names = |ms, busy| {
        let seen = Observed {
            at: at(ms),
            busy,
            delay: Span::ZERO,
        };
        let offers = market.observe(seen, 1e6).iter();
        let named = offers.map(|offer| (offer.name.clone(), offer.price, offer.condition()));
        named.collect::<Vec<_>>()
    };
    assert_eq!(names(0, 0.75).len(), 2);
    let offers = names(10, 1.0);
    let [full, reduced] = &offers[..] else {
        panic!("{offers:?}")
    };
    assert_eq!(
        (full.0.as_str(), full.1, &full.2),
        ("standard@0.10", price(100_000), &None)
    );
    assert_eq!(
        (reduced.0.as_str(), reduced.1),
        ("standard-open@0.08", price(80_000))
    );
    let condition = reduced.2.as_ref().expect("a condition");
    assert_eq!(condition.requires, Requires::All);
    assert_eq!(condition.protocols[0].name, "open-compression");
    assert_eq!(condition.protocols[0].ontology, "urn:posthaste:wsqos");
    assert_eq!(names(20, 1.0)[1].0, "standard-open@0.16");
}

#[test]
fn the_price_due_follows_from_the_request_not_from_its_offer() {
    let mut market = reducing("20%");
    for (ms, busy) in [(0, 0.75), (10, 1.0), (20, 1.0)] {
        observe(&mut market, ms, busy);
    }
    let mut enter = |ms, ask: &Ask<'_>| {
        let answer = market.admit(at(ms), ask, true);
        answer
            .map(|admitted| admitted.price.micros())
            .map_err(|refused| (refused.why, refused.current.micros()))
    };
    let selects = |selected, ask| Ask {
        selected: Some(selected),
        ..ask
    };
    let pays = |micros, ask| Ask {
        most: Some(price(micros)),
        ..ask
    };
    assert_eq!(enter(30, &selects("standard-open@0.16", OPEN)), Ok(160_000));
    assert_eq!(enter(30, &selects("standard@0.20", OPEN)), Ok(160_000));
    assert_eq!(enter(30, &pays(160_000, OPEN)), Ok(160_000));
    assert_eq!(
        enter(30, &pays(159_999, OPEN)),
        Err((Why::TooCheap, 160_000))
    );
    assert_eq!(enter(30, &selects("standard@0.20", ADA)), Ok(200_000));
    assert_eq!(
        enter(30, &selects("standard-open@0.16", ADA)),
        Err((Why::NotOpen, 200_000))
    );
    assert_eq!(
        enter(30, &selects("standard-open@0.08", ADA)),
        Err((Why::NotOpen, 200_000))
    );
    assert_eq!(
        enter(30, &pays(160_000, ADA)),
        Err((Why::TooCheap, 200_000))
    );
    assert_eq!(
        enter(30, &selects("standard-open@0.08", OPEN)),
        Err((Why::TooCheap, 160_000))
    );
    assert_eq!(
        enter(3000, &selects("standard-open@0.08", OPEN)),
        Err((Why::Expired, 160_000))
    );
}

#[test]
fn a_reduced_quote_is_valid_only_with_open_compression() {
    let mut market = reducing("20%");
    observe(&mut market, 0, 0.75);
    observe(&mut market, 10, 1.0);
    let take = |market: &mut Market, ask: Ask<'_>| {
        let asks = Ask {
            most: Some(price(100_000)),
            rate: Some(2.0),
            ..ask
        };
        let admitted = market.admit(at(11), &asks, true).expect("let in");
        let (quote, token) = admitted.quote.expect("a quote");
        assert_eq!(quote.price, admitted.price);
        token
    };
    let eve = |ask| Ask {
        client: "eve",
        ..ask
    };
    let reduced = take(&mut market, OPEN);
    let full = take(&mut market, eve(ADA));
    observe(&mut market, 20, 1.0);
    let mut enter = |ms, token: &str, ask: Ask<'_>| {
        let token = Some(token);
        let answer = market.admit(at(ms), &Ask { token, ..ask }, true);
        answer
            .map(|admitted| (admitted.by, admitted.price.micros()))
            .map_err(|refused| refused.why)
    };
    assert_eq!(enter(100, &reduced, ADA), Err(Why::NotOpen));
    let pays = Ask {
        most: Some(price(200_000)),
        ..ADA
    };
    assert_eq!(
        enter(100, &reduced, pays),
        Ok((By::Offer, 200_000)),
        "the present price, which it accepts"
    );
    assert_eq!(
        enter(100, &reduced, OPEN),
        Ok((By::Quote, 80_000)),
        "it has not been used up by those whom it was not for"
    );
    assert_eq!(enter(100, &full, eve(OPEN)), Ok((By::Quote, 80_000)));
    let thrifty = Ask {
        most: Some(price(80_000)),
        ..eve(OPEN)
    };
    assert_eq!(enter(1000, &full, thrifty), Ok((By::Quote, 80_000)));
    assert_eq!(enter(1500, &full, eve(ADA)), Ok((By::Quote, 100_000)));
}

#[test]
fn a_discount_is_needed_to_pay_less_and_leaves_a_price() {
    let mut market = nimble();
    observe(&mut market, 0, 0.75);
    observe(&mut market, 10, 1.0);
    let asks = Ask {
        most: Some(price(100_000)),
        ..OPEN
    };
    let admitted = market.admit(at(11), &asks, true).expect("let in");
    assert_eq!(admitted.price, price(100_000));
    assert!(!admitted.quote.expect("a quote").0.open);
    assert_eq!(market.offer_at(price(100_000), true), "standard@0.10");

    let terms = |discount: &str| {
        let discount = discount.parse().expect("a share");
        let controller = serde_json::from_str(
            r#"{"policy": "steps", "up": "0.000001", "window": "1ms", "period": "1ms"}"#,
        );
        Terms {
            discount,
            controller: controller.expect("a controller"),
            ..Terms::new("standard", eur())
        }
    };
    let mut market = Market::new(terms("90%"), Key::new(&[1; 32]));
    observe(&mut market, 0, 1.0);
    observe(&mut market, 10, 1.0);
    assert!(market.current(true).price.micros() > 0);
    assert_eq!(terms("90%").check(), Ok(()));
    let error = terms("91%").check().expect_err("too much");
    assert!(error.to_string().starts_with("discount"), "{error}");
}
