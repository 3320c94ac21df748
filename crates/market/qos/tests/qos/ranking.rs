//! Ranking: cheapest, weighted, and skyline.

use posthaste_qos::{Definition, Offer, Ranking, Weights};
use posthaste_units::{Ratio, Span};
use proptest::collection::vec;
use proptest::prelude::*;

use super::made::{Known, any_offer, at, euros, offer};

fn promising(name: &str, price: &str, milliseconds: u64, availability: f64) -> Offer {
    let mut qos = Definition {
        price: Some(euros(price)),
        ..Definition::default()
    };
    qos.default.server.processing_time = Some(Span::from_millis(milliseconds));
    qos.default.server.availability = Ratio::new(availability);
    Offer {
        name: name.to_owned(),
        ..offer(qos)
    }
}

fn three() -> [Offer; 3] {
    [
        promising("quick", "0.50", 10, 0.9),
        promising("cheap", "0.10", 200, 0.9),
        promising("worse", "0.20", 200, 0.9),
    ]
}

fn names(ranking: &Ranking, offers: &[Offer]) -> Vec<String> {
    let known = Known::new();
    let ranked = ranking.rank(offers, &known.world());
    ranked.iter().map(|offer| offer.name.clone()).collect()
}

#[test]
fn the_cheapest_offer_is_first_then_the_longest_valid_one() {
    let mut offers = three().to_vec();
    let mut longer = offers[1].clone();
    (longer.name, longer.expires) = ("longer".to_owned(), at("2026-01-01T00:03:00Z"));
    offers.push(longer);
    assert_eq!(
        names(&Ranking::Cheapest, &offers),
        ["longer", "cheap", "worse", "quick"]
    );
}

#[test]
fn weights_say_what_counts() {
    let offers = three();
    let only = |price, processing_time| {
        Ranking::Weighted(Weights {
            price,
            processing_time,
            ..Weights::default()
        })
    };
    assert_eq!(names(&only(1.0, 0.0), &offers)[0], "cheap");
    assert_eq!(names(&only(0.0, 1.0), &offers)[0], "quick");
    assert_eq!(names(&only(1.0, 2.0), &offers), ["quick", "cheap", "worse"]);
    assert_eq!(names(&only(2.0, 1.0), &offers), ["cheap", "worse", "quick"]);
}

#[test]
fn surpassed_offers_are_not_in_the_skyline() {
    assert_eq!(names(&Ranking::Skyline, &three()), ["cheap", "quick"]);
}

/// Returns true if `a` is at least as good in all values and better in one, read from the offers themselves.
fn surpasses(a: &Offer, b: &Offer, price: impl Fn(&Offer) -> Option<u64>) -> bool {
    let (x, y) = (&a.qos.default.server, &b.qos.default.server);
    // `None` is the worst value if less is better. If more is better, it already sorts below `Some`.
    let less = |a: Option<f64>, b: Option<f64>| {
        let worst = f64::INFINITY;
        b.unwrap_or(worst).total_cmp(&a.unwrap_or(worst))
    };
    let more = |a: Option<f64>, b: Option<f64>| {
        let worst = f64::NEG_INFINITY;
        a.unwrap_or(worst).total_cmp(&b.unwrap_or(worst))
    };
    let orders = [
        less(price(a).map(|m| m as f64), price(b).map(|m| m as f64)),
        less(
            x.processing_time.map(|t| t.as_secs_f64()),
            y.processing_time.map(|t| t.as_secs_f64()),
        ),
        more(
            x.requests_per_second.map(|r| r.as_per_second()),
            y.requests_per_second.map(|r| r.as_per_second()),
        ),
        more(
            x.reliability.map(|r| r.get()),
            y.reliability.map(|r| r.get()),
        ),
        more(
            x.availability.map(|r| r.get()),
            y.availability.map(|r| r.get()),
        ),
    ];
    orders.iter().all(|order| order.is_ge()) && orders.iter().any(|order| order.is_gt())
}

proptest! {
    #[test]
    fn the_skyline_is_what_nothing_surpasses(offers in vec(any_offer(), 0..12)) {
        let known = Known::new();
        let world = known.world();
        let price = |offer: &Offer| offer.qos.price.and_then(|price| world.rates.in_base(price));
        let skyline = Ranking::Skyline.rank(&offers, &world);
        for offer in &offers {
            let surpassed = offers.iter().any(|other| surpasses(other, offer, price));
            let kept = skyline.iter().any(|kept| std::ptr::eq(*kept, offer));
            prop_assert_eq!(kept, !surpassed);
        }
    }

    #[test]
    fn nothing_gets_lost_and_nothing_cheaper_comes_later(offers in vec(any_offer(), 0..12)) {
        let known = Known::new();
        let world = known.world();
        let ranked = Ranking::Cheapest.rank(&offers, &world);
        prop_assert_eq!(ranked.len(), offers.len());
        let price = |offer: &&Offer| offer.qos.price.and_then(|price| world.rates.in_base(price)).unwrap_or(u64::MAX);
        prop_assert!(ranked.is_sorted_by_key(price));
    }
}
