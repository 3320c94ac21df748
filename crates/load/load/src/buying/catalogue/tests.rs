//! Choices after each kind of news from a broker.

use super::*;
use crate::buying::{Buyer, WithoutOffers};
use posthaste_broker_client::{Error, Event, Put};
use posthaste_qos::{Definition, Offer};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn money(text: &str) -> Money {
    let (amount, currency) = text.split_once(' ').unwrap();
    Money::new(amount, currency.parse().unwrap()).unwrap()
}

fn buying(kind: Option<&str>, most: Option<&str>, without: WithoutOffers) -> Buying {
    Buying {
        broker: "http://127.0.0.1:9".to_owned(),
        kind: kind.map(str::to_owned),
        wanted: Definition {
            price: most.map(money),
            ..Definition::default()
        },
        without,
        ask_every: None,
    }
}

/// A buyer of books for 0.40 EUR at most, whose broker has reported that there are no offers.
fn buyer_of_books(without: WithoutOffers) -> Catalogue {
    let catalogue = Catalogue::new(buying(Some("books"), Some("0.40 EUR"), without));
    tell(&catalogue, 0, [Event::Begin, Event::Ready(1)]);
    catalogue
}

fn tell(catalogue: &Catalogue, second: i64, events: impl IntoIterator<Item = Event>) {
    for event in events {
        catalogue
            .apply(FollowerEvent::Told(event), at(second))
            .unwrap();
    }
}

fn lose(catalogue: &Catalogue) {
    let error = Error::Senseless("gone".into());
    catalogue.apply(FollowerEvent::Lost(error), at(0)).unwrap();
}

fn change(kind: &str, name: &str, offer: Option<Offer>) -> Event {
    let put = Put {
        kind: kind.to_owned(),
        provider: "ada".to_owned(),
        name: name.to_owned(),
        at: None,
        offer,
    };
    Event::Changed {
        number: Some(2),
        put: Box::new(put),
    }
}

fn offer(kind: &str, name: &str, price: &str, expires: i64) -> Event {
    let offer = Offer {
        endpoint: None,
        name: name.to_owned(),
        expires: at(expires),
        qos: Definition {
            price: Some(money(price)),
            ..Definition::default()
        },
    };
    change(kind, name, Some(offer))
}

fn book(name: &str, price: &str, expires: i64) -> Event {
    offer("books", name, price, expires)
}

/// The choice: the name of an offer, nothing known, or a reason.
fn choice(catalogue: &Catalogue, second: i64) -> String {
    match catalogue.choose(at(second)).1 {
        OfferChoice::Buy { name, .. } => name,
        OfferChoice::Unknown => "unknown".to_owned(),
        OfferChoice::Decline(reason) => reason,
    }
}

#[test]
fn the_cheapest_of_the_moment_is_chosen() {
    let catalogue = buyer_of_books(WithoutOffers::Decline);
    assert_eq!(choice(&catalogue, 1), "no offer for books");
    tell(
        &catalogue,
        1,
        [
            book("Gold", "0.50 EUR", 90),
            offer("maps", "Cheap", "0.10 EUR", 90),
        ],
    );
    assert_eq!(
        choice(&catalogue, 1),
        "no offer for books is enough; the cheapest, Gold: price: 0.50 EUR offered, at most 0.40 EUR wanted"
    );
    tell(&catalogue, 1, [book("Silver", "0.40 EUR", 50)]);
    assert_eq!(choice(&catalogue, 1), "Silver");
    tell(&catalogue, 1, [book("Gold", "0.30 EUR", 40)]);
    assert_eq!(choice(&catalogue, 39), "Gold");
    assert_eq!(choice(&catalogue, 40), "Silver");
    tell(&catalogue, 1, [change("books", "Silver", None)]);
    assert_eq!(choice(&catalogue, 40), "no offer for books");
}

#[test]
fn unfinished_updates_of_offers_do_not_count() {
    let catalogue = buyer_of_books(WithoutOffers::Decline);
    tell(
        &catalogue,
        1,
        [
            book("Old", "0.30 EUR", 90),
            Event::Begin,
            book("New", "0.20 EUR", 90),
        ],
    );
    assert_eq!(choice(&catalogue, 1), "Old");
    // A break in the middle of an update: the old offers stand, and the next news refers to them.
    lose(&catalogue);
    assert_eq!(choice(&catalogue, 1), "Old");
    tell(
        &catalogue,
        1,
        [book("Newer", "0.25 EUR", 90), Event::Ready(3)],
    );
    assert_eq!(choice(&catalogue, 1), "Newer");
    tell(
        &catalogue,
        1,
        [Event::Begin, book("New", "0.35 EUR", 90), Event::Ready(3)],
    );
    assert_eq!(choice(&catalogue, 1), "New");
}

#[test]
fn without_a_broker_the_last_offers_count_until_they_expire() {
    for (without, then) in [
        (
            WithoutOffers::Decline,
            "no offer for books: the reply is invalid: gone",
        ),
        (WithoutOffers::Send, "unknown"),
    ] {
        let catalogue = buyer_of_books(without);
        tell(
            &catalogue,
            1,
            [book("Silver", "0.40 EUR", 50), book("Gold", "0.50 EUR", 60)],
        );
        lose(&catalogue);
        assert_eq!(choice(&catalogue, 49), "Silver");
        let known = choice(&catalogue, 50);
        assert!(known.contains("the cheapest, Gold"), "{without:?}: {known}");
        assert_eq!(choice(&catalogue, 60), then);
        // The broker is back, and nothing is known until it has reported everything.
        tell(&catalogue, 60, [Event::Begin]);
        assert_eq!(choice(&catalogue, 60), then);
        lose(&catalogue);
        // The broker is back and reports no offers: now that is known.
        tell(&catalogue, 61, [Event::Ready(2)]);
        assert_eq!(choice(&catalogue, 61), "no offer for books");
    }
}

#[test]
fn a_buyer_looks_again_when_something_has_changed_or_expired() {
    let catalogue = buyer_of_books(WithoutOffers::Send);
    let mut buyer = Buyer::new(&catalogue, 1.0);
    let mut request = |second| {
        let mut request = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec();
        let declines = buyer.choose(at(second)).is_err();
        buyer.insert_fields(Some("t"), &mut request);
        let text = String::from_utf8(request).unwrap();
        let fields = text.strip_prefix("GET / HTTP/1.1\r\n").unwrap();
        let fields = fields.strip_suffix("Quote: t\r\nHost: a\r\n\r\n").unwrap();
        (!declines).then(|| fields.to_owned())
    };
    let names = |name: &str| Some(format!("Selected-Offer: {name}\r\nMax-Price: 0.40 EUR\r\n"));
    assert_eq!(request(1), None);
    tell(
        &catalogue,
        1,
        [book("Silver", "0.40 EUR", 50), book("Gold", "0.30 EUR", 40)],
    );
    assert_eq!(request(39), names("Gold"));
    assert_eq!(request(40), names("Silver"));
    tell(&catalogue, 40, [book("Silver", "0.50 EUR", 50)]);
    assert_eq!(request(40), None);
    lose(&catalogue);
    assert_eq!(request(40), None, "one that is too dear is known");
    catalogue.apply(FollowerEvent::Second, at(50)).unwrap();
    assert_eq!(request(50), Some("Max-Price: 0.40 EUR\r\n".to_owned()));
}

#[test]
fn polling_buyers_know_old_offers_and_those_in_refusals() {
    let catalogue = Catalogue::new(Buying {
        ask_every: Some(Span::from_secs(10)),
        ..buying(Some("books"), Some("0.40 EUR"), WithoutOffers::Decline)
    });
    let gold = book("Gold", "0.30 EUR", 3);
    tell(&catalogue, 0, [Event::Begin, gold, Event::Ready(1)]);
    let mut buyer = Buyer::new(&catalogue, 0.5);
    let fields = |buyer: &mut Buyer<'_>, second| match buyer.choose(at(second)) {
        Ok(()) => buyer.fields.replace("Max-Price: 0.40 EUR\r\n", ""),
        Err(reason) => reason.to_owned(),
    };
    assert_eq!(fields(&mut buyer, 0), "Selected-Offer: Gold\r\n");
    tell(&catalogue, 1, [book("Silver", "0.20 EUR", 90)]);
    let half = fields(&mut buyer, 4);
    assert_eq!(half, "Selected-Offer: Gold\r\n", "although it has expired");
    assert_eq!(fields(&mut buyer, 5), "Selected-Offer: Silver\r\n");
    assert!(buyer.apply_current_offer(b"Bronze;price=\"0.40 EUR\""));
    assert_eq!(fields(&mut buyer, 6), "Selected-Offer: Bronze\r\n");
    for dear in ["Brass;price=\"0.41 EUR\"", "Brass;price=\"0.10 USD\""] {
        assert!(buyer.apply_current_offer(dear.as_bytes()));
        let reason = fields(&mut buyer, 14);
        assert!(reason.starts_with("the service refuses"), "{reason}");
    }
    assert!(!buyer.apply_current_offer(b"nonsense"));
    assert_eq!(fields(&mut buyer, 15), "Selected-Offer: Silver\r\n");
    // A client that follows the broker ignores refusals.
    let catalogue = buyer_of_books(WithoutOffers::Decline);
    tell(&catalogue, 1, [book("Silver", "0.20 EUR", 90)]);
    let mut buyer = Buyer::new(&catalogue, 0.5);
    assert_eq!(fields(&mut buyer, 1), "Selected-Offer: Silver\r\n");
    assert!(buyer.apply_current_offer(b"Bronze;price=\"0.40 EUR\""));
    assert_eq!(fields(&mut buyer, 1), "Selected-Offer: Silver\r\n");
}

#[test]
fn a_type_is_said_unless_there_is_but_one() {
    let fixed = |events: Vec<Event>| {
        let catalogue = Catalogue::new(buying(None, None, WithoutOffers::Decline));
        tell(&catalogue, 0, events);
        let fixed = catalogue.offers().fix_kind("http://broker");
        fixed.map(|()| choice(&catalogue, 1))
    };
    let maps = || offer("maps", "Cheap", "0.10 USD", 90);
    // Without a price limit, the first offer sets the currency of comparison.
    assert_eq!(fixed(vec![maps()]).unwrap(), "Cheap");
    let several = fixed(vec![maps(), offer("books", "Gold", "0.20 USD", 90)]).unwrap_err();
    assert!(
        several.contains("offers for books, maps: say with --type"),
        "{several}"
    );
    let kinds = |count: u64| (0..count).map(|n| offer(&n.to_string(), "Any", "0.20 USD", 90));
    let ten = fixed(kinds(10).collect()).unwrap_err();
    assert!(ten.contains(" 8, 9: say"), "{ten}");
    let eleven = fixed(kinds(11).collect()).unwrap_err();
    assert!(eleven.contains(" 8, ...: say"), "{eleven}");
    let none = fixed(Vec::new()).unwrap_err();
    assert!(none.contains("--type"), "{none}");
}

#[test]
fn offers_that_cannot_be_compared_or_named_are_not_chosen() {
    let catalogue = buyer_of_books(WithoutOffers::Decline);
    tell(
        &catalogue,
        1,
        [book("Gold", "0.20 EUR", 90), book("Gold", "0.20 USD", 90)],
    );
    let reason = choice(&catalogue, 1);
    assert!(
        reason.starts_with("no offer for books: Gold by ada is omitted, the exchange rate"),
        "{reason}"
    );
    tell(
        &catalogue,
        1,
        [
            book("a\r\nX: y", "0.20 EUR", 90),
            book(" a", "0.30 EUR", 90),
        ],
    );
    let reason = choice(&catalogue, 1);
    assert!(
        reason.ends_with("a name that cannot stand in a header field"),
        "{reason}"
    );
    tell(&catalogue, 1, [book("Silver", "0.40 EUR", 90)]);
    assert_eq!(choice(&catalogue, 1), "Silver");
}

#[test]
fn the_currency_comes_from_the_price_or_the_first_offer() {
    let catalogue = Catalogue::new(buying(
        Some("books"),
        Some("0.40 USD"),
        WithoutOffers::Decline,
    ));
    let offers = || {
        [
            Event::Begin,
            offer("maps", "Cheap", "0.10 EUR", 90),
            book("Gold", "0.20 EUR", 90),
            book("Silver", "0.30 USD", 90),
            Event::Ready(1),
        ]
    };
    tell(&catalogue, 1, offers());
    assert_eq!(choice(&catalogue, 1), "Silver");
    let catalogue = Catalogue::new(buying(Some("books"), None, WithoutOffers::Decline));
    tell(
        &catalogue,
        1,
        offers()
            .into_iter()
            .filter(|event| !matches!(event, Event::Changed { put, .. } if put.name == "Gold")),
    );
    assert_eq!(choice(&catalogue, 1), "Silver");
}

#[test]
fn news_that_change_nothing_make_nobody_choose_anew() {
    let catalogue = buyer_of_books(WithoutOffers::Decline);
    tell(&catalogue, 1, [book("Silver", "0.40 EUR", 50)]);
    let before = catalogue.version();
    tell(
        &catalogue,
        2,
        [Event::Alive, Event::Begin, book("Gold", "0.30 EUR", 50)],
    );
    catalogue.apply(FollowerEvent::Second, at(2)).unwrap();
    assert_eq!(catalogue.version(), before);
    tell(&catalogue, 2, [Event::Ready(2)]);
    assert_ne!(catalogue.version(), before);
}

#[test]
fn a_broker_that_tells_too_much_is_given_up() {
    let catalogue = buyer_of_books(WithoutOffers::Send);
    catalogue.offers().limits.offers = 2;
    tell(
        &catalogue,
        0,
        ["Gold", "Silver", "Gold"].map(|name| book(name, "0.30 EUR", 90)),
    );
    let third = book("Iron", "0.30 EUR", 90);
    let error = catalogue
        .apply(FollowerEvent::Told(third), at(0))
        .unwrap_err();
    assert!(error.to_string().contains("is reached"), "{error}");
}
