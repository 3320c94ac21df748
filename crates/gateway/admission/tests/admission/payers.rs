//! Admission of requests that are paid from accounts.

use posthaste_admission::{Admitted, Ask, By, Key, Market, Observed, Payer, Refused, Terms, Why};
use posthaste_qos::Money;
use posthaste_units::Span;

use crate::{at, eur, price};

/// A market with a price above 0, 10 s after the origin, and this price.
fn expensive() -> (Market, Money) {
    let terms = Terms {
        capacity: Some(100.0),
        ..Terms::new("standard", eur())
    };
    let mut market = Market::new(terms, Key::new(&[7; 32]));
    for sample in 1..=50 {
        let seen = Observed {
            at: at(sample * 200),
            busy: 1.0,
            delay: Span::from_millis(100),
        };
        market.observe(seen, 100.0);
    }
    let current = market.current(false).price;
    assert!(current.micros() > 0);
    (market, current)
}

fn ask(payer: Payer) -> Ask<'static> {
    Ask {
        client: "ada",
        payer,
        ..Ask::default()
    }
}

fn account(left: Money, max_price: Option<Money>) -> Payer {
    Payer::Account { left, max_price }
}

fn admit(market: &mut Market, ask: &Ask<'_>) -> Result<Admitted, Why> {
    let admitted = market.admit(at(10_000), ask, true);
    admitted.map_err(|Refused { why, .. }| why)
}

#[test]
fn without_a_payer_statements_buy_nothing() {
    let (mut market, current) = expensive();
    let offer = market.current(false).name.clone();
    for (payer, why) in [
        (Payer::Nobody, Why::NoAccount),
        (Payer::Broke, Why::NoBudget),
    ] {
        for stated in [
            ask(payer),
            Ask {
                most: Some(current),
                ..ask(payer)
            },
            Ask {
                selected: Some(&offer),
                ..ask(payer)
            },
            Ask {
                most: Some(Money::new("9", "USD".parse().unwrap()).unwrap()),
                ..ask(payer)
            },
        ] {
            assert_eq!(admit(&mut market, &stated), Err(why), "{stated:?}");
        }
    }
    let believed = Ask {
        most: Some(current),
        ..ask(Payer::Anyone)
    };
    assert_eq!(admit(&mut market, &believed).unwrap().price, current);
}

#[test]
fn while_the_price_is_0_everyone_is_admitted_and_nobody_quoted() {
    let terms = Terms {
        capacity: Some(100.0),
        ..Terms::new("standard", eur())
    };
    for payer in [Payer::Nobody, Payer::Broke] {
        let mut market = Market::new(terms.clone(), Key::new(&[7; 32]));
        let stated = Ask {
            rate: Some(5.0),
            most: Some(price(1)),
            ..ask(payer)
        };
        let admitted = admit(&mut market, &stated).unwrap();
        assert_eq!((admitted.by, admitted.quote), (By::Free, None));
        let full = market.admit(at(10_000), &stated, false).unwrap_err();
        assert_eq!(full.why, Why::Full);
    }
}

#[test]
fn an_account_pays_what_it_accepts_and_has() {
    let (mut market, current) = expensive();
    let more = price(current.micros() + 1);
    let less = price(current.micros() - 1);
    let offer = market.current(false).name.clone();
    let rich = account(more, Some(more));
    assert_eq!(admit(&mut market, &ask(rich)).unwrap().price, current);
    for (stated, outcome) in [
        (ask(account(more, None)), Err(Why::NoOffer)),
        (ask(account(more, Some(less))), Err(Why::TooCheap)),
        (ask(account(less, Some(more))), Err(Why::NoBudget)),
        (
            Ask {
                most: Some(less),
                ..ask(rich)
            },
            Err(Why::TooCheap),
        ),
        (
            Ask {
                most: Some(more),
                ..ask(account(more, None))
            },
            Ok(current),
        ),
        (
            Ask {
                most: Some(more),
                ..ask(account(less, None))
            },
            Err(Why::NoBudget),
        ),
        (
            Ask {
                selected: Some(&offer),
                ..ask(account(more, None))
            },
            Ok(current),
        ),
        (
            Ask {
                selected: Some(&offer),
                ..ask(account(less, None))
            },
            Err(Why::NoBudget),
        ),
        (
            Ask {
                selected: Some("standard@9"),
                ..ask(rich)
            },
            Err(Why::Expired),
        ),
    ] {
        let found = admit(&mut market, &stated).map(|admitted| admitted.price);
        assert_eq!(found, outcome, "{stated:?}");
    }
}

#[test]
fn a_quote_is_paid_too() {
    let (mut market, current) = expensive();
    let rich = account(price(current.micros() * 2), Some(current));
    let quote = admit(&mut market, &ask(rich)).unwrap().quote.unwrap();
    let shown = |payer| Ask {
        token: Some(&quote.1),
        ..ask(payer)
    };
    let by = |market: &mut Market, payer| admit(market, &shown(payer)).map(|found| found.by);
    assert_eq!(by(&mut market, rich), Ok(By::Quote));
    assert_eq!(by(&mut market, account(price(1), None)), Err(Why::NoOffer));
    assert_eq!(by(&mut market, Payer::Broke), Err(Why::NoBudget));
}
