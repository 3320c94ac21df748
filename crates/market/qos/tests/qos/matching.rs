//! Comparison of offers and requirements: each rule alone, and with a second, simple implementation of the rules.

use std::collections::BTreeSet;

use posthaste_qos::{
    Contract, Custom, Definition, Info, Number, Offer, Party, Priority, Protocols, Requires, Term,
    World, is_adequate, objections,
};
use posthaste_units::{Rate, Ratio, Span};
use proptest::prelude::*;

use super::made::{Known, any_offer, at, custom, definition, euros, offer, term};

/// An offer that states everything, and a requirement for exactly that.
fn pair() -> (Offer, Definition) {
    let mut qos = Definition {
        price: Some(euros("0.40")),
        ..Definition::default()
    };
    let server = &mut qos.default.server;
    server.processing_time = Some(Span::from_millis(200));
    server.requests_per_second = Rate::per_second(50.0);
    server.reliability = Ratio::new(0.9);
    server.availability = Ratio::new(0.99);
    server.custom = vec![custom("age", number(3.0)), custom("depth", number(3.0))];
    let transport = &mut qos.default.transport;
    let five = Priority::new(5);
    (transport.delay, transport.jitter) = (five, five);
    (transport.throughput, transport.packet_loss) = (five, five);
    transport.custom = vec![custom("colour", five.unwrap())];
    (offer(qos.clone()), qos)
}

fn number(value: f64) -> Number {
    Number::new(value).unwrap()
}

/// Mismatches of the pair after `change`.
fn against(change: impl FnOnce(&mut Offer, &mut Definition)) -> Vec<String> {
    let (mut offer, mut wanted) = pair();
    change(&mut offer, &mut wanted);
    let known = Known::new();
    let found = objections(&offer, &wanted, &known.world());
    assert_eq!(
        is_adequate(&offer, &wanted, &known.world()),
        found.is_empty()
    );
    found.iter().map(ToString::to_string).collect()
}

/// A change, and the resulting mismatch.
type Rule = (fn(&mut Offer, &mut Definition), &'static str);

#[test]
fn just_what_is_asked_for_is_enough() {
    assert_eq!(against(|_, _| ()), [""; 0]);
    assert_eq!(
        against(|_, wanted| *wanted = Definition::default()),
        [""; 0]
    );
}

const RULES: [Rule; 21] = [
    (
        |o, _| o.expires = at("2026-01-01T00:00:00Z"),
        "expired at 2026-01-01T00:00:00Z",
    ),
    (
        |o, _| o.qos.price = Some(euros("0.41")),
        "price: 0.41 EUR offered, at most 0.40 EUR wanted",
    ),
    (|o, _| o.qos.price = None, "price: none offered"),
    (
        |o, _| o.qos.price = Some(money("0.81", "USD")),
        "price: 0.81 USD offered, at most 0.40 EUR wanted",
    ),
    (
        |o, _| o.qos.price = Some(money("0", "XTS")),
        "price: the exchange rate of XTS is unknown",
    ),
    (
        |_, w| w.price = Some(money("9", "XTS")),
        "price: the exchange rate of XTS is unknown",
    ),
    (
        |o, _| o.qos.default.server.processing_time = Some(Span::from_micros(200_001)),
        "processing time: 200.001ms offered, at most 200ms wanted",
    ),
    (
        |o, _| o.qos.default.server.processing_time = None,
        "processing time: nothing offered, at most 200ms wanted",
    ),
    (
        |o, _| o.qos.default.server.requests_per_second = Rate::per_second(49.0),
        "requests per second: 49/s offered, at least 50/s wanted",
    ),
    (
        |o, _| o.qos.default.server.requests_per_second = None,
        "requests per second: nothing offered, at least 50/s wanted",
    ),
    (
        |o, _| o.qos.default.server.reliability = Ratio::new(0.8),
        "reliability: 80% offered, at least 90% wanted",
    ),
    (
        |o, _| o.qos.default.server.availability = None,
        "availability: nothing offered, at least 99% wanted",
    ),
    (
        |o, _| o.qos.default.transport.delay = Priority::new(6),
        "priority of delay: 6 offered, at most 5 wanted",
    ),
    (
        |o, _| o.qos.default.transport.jitter = None,
        "priority of jitter: nothing offered, at most 5 wanted",
    ),
    (
        |o, _| o.qos.default.transport.throughput = Priority::new(10),
        "priority of throughput: 10 offered, at most 5 wanted",
    ),
    (
        |o, _| o.qos.default.transport.packet_loss = Priority::new(6),
        "priority of packet loss: 6 offered, at most 5 wanted",
    ),
    (
        |o, _| o.qos.default.transport.custom.clear(),
        "colour: nothing offered, at most 5 wanted",
    ),
    (
        |o, _| o.qos.default.server.custom[0].value = number(3.5),
        "age: 3.5 offered, at most 3 wanted",
    ),
    (
        |o, _| o.qos.default.server.custom[1].value = number(2.5),
        "depth: 2.5 offered, at least 3 wanted",
    ),
    (
        |o, _| o.qos.default.server.custom[1].ontology = "http://other.example/".to_owned(),
        "depth: nothing offered, at least 3 wanted",
    ),
    (
        |_, w| w.default.server.custom.push(custom("taste", number(1.0))),
        "taste: the ontology http://example.org/ontology does not define it, or is not known",
    ),
];

#[test]
fn each_rule_alone() {
    for (change, message) in RULES {
        assert_eq!(against(change), [message]);
    }
}

fn money(amount: &str, code: &str) -> posthaste_qos::Money {
    posthaste_qos::Money::new(amount, super::made::currency(code)).unwrap()
}

#[test]
fn prices_are_compared_in_one_currency() {
    assert_eq!(
        against(|o, _| o.qos.price = Some(money("0.80", "USD"))),
        [""; 0]
    );
    // Without a maximum price, a price that cannot be compared is no mismatch.
    let dear = |o: &mut Offer, w: &mut Definition| {
        (o.qos.price, w.price) = (Some(money("9", "XTS")), None);
    };
    assert_eq!(against(dear), [""; 0]);
}

#[test]
fn an_operation_has_the_default_behind_it() {
    let slow = || time_of(300);
    // Offered slower than the default in one operation, which the requirement does not name.
    let one_slow = |o: &mut Offer, _: &mut Definition| {
        o.qos.operations.insert("Heavy".to_owned(), slow());
    };
    assert_eq!(
        against(one_slow),
        ["Heavy: processing time: 300ms offered, at most 200ms wanted"]
    );
    // The requirement allows it there.
    let allowed = |o: &mut Offer, w: &mut Definition| {
        o.qos.operations.insert("Heavy".to_owned(), slow());
        w.operations.insert("Heavy".to_owned(), slow());
    };
    assert_eq!(against(allowed), [""; 0]);
    // The requirement sets more for an operation that the offer does not name.
    let wants_more = |_: &mut Offer, w: &mut Definition| {
        w.operations.insert("Quick".to_owned(), time_of(100));
    };
    assert_eq!(
        against(wants_more),
        ["Quick: processing time: 200ms offered, at most 100ms wanted"]
    );
    // A better default does not make up for a worse operation.
    let worse = |o: &mut Offer, w: &mut Definition| {
        w.operations.insert("Quick".to_owned(), time_of(100));
        o.qos.operations.insert("Quick".to_owned(), time_of(101));
        o.qos.default.server.processing_time = Some(Span::ZERO);
    };
    assert_eq!(
        against(worse),
        ["Quick: processing time: 101ms offered, at most 100ms wanted"]
    );
}

fn time_of(milliseconds: u64) -> Info {
    let mut info = Info::default();
    info.server.processing_time = Some(Span::from_millis(milliseconds));
    info
}

#[test]
fn protocols_are_required_both_ways() {
    let tls = |requires| Protocols {
        protocols: vec![term("TLS"), term("SAML")],
        requires,
    };
    let none = |_: &mut Offer, w: &mut Definition| w.default.security = vec![tls(Requires::None)];
    assert_eq!(against(none), [""; 0]);
    let one = |_: &mut Offer, w: &mut Definition| w.default.security = vec![tls(Requires::One)];
    assert_eq!(
        against(one),
        ["one of the protocols TLS, SAML required by the client, TLS, SAML lacking"]
    );
    let all = |o: &mut Offer, _: &mut Definition| o.qos.default.security = vec![tls(Requires::All)];
    assert_eq!(
        against(all),
        ["all of the protocols TLS, SAML required by the provider, TLS, SAML lacking"]
    );
    let has = |name| Protocols {
        protocols: vec![term(name)],
        requires: Requires::None,
    };
    let one_is_there = |o: &mut Offer, w: &mut Definition| {
        w.default.security = vec![tls(Requires::One)];
        o.qos.default.security = vec![has("SAML")];
    };
    assert_eq!(against(one_is_there), [""; 0]);
    let not_all = |o: &mut Offer, w: &mut Definition| {
        w.default.security = vec![has("SAML")];
        o.qos.default.security = vec![tls(Requires::All)];
    };
    assert_eq!(
        against(not_all),
        ["all of the protocols TLS, SAML required by the provider, TLS lacking"]
    );
}

#[test]
fn parties_are_known_by_their_address() {
    let contract = |name: &str, url: &str, requires| Contract {
        parties: vec![Party {
            name: name.to_owned(),
            url: url.to_owned(),
        }],
        requires,
        ..Contract::default()
    };
    let url = "http://watch.example/";
    let wants = move |w: &mut Definition| w.contracts = vec![contract("Watch", url, Requires::One)];
    assert_eq!(
        against(|_, w| wants(w)),
        ["one of the trusted parties http://watch.example/ required by the client"]
    );
    let renamed = |o: &mut Offer, w: &mut Definition| {
        wants(w);
        o.qos.contracts = vec![contract("The Watch", url, Requires::All)];
    };
    assert_eq!(against(renamed), [""; 0]);
}

/// The rules again in a simple form: merge the values of each operation, then compare.
fn plainly(offer: &Offer, wanted: &Definition, world: &World<'_>) -> bool {
    let price = match (wanted.price, offer.qos.price) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(most), Some(price)) => {
            let both = world.rates.in_base(price).zip(world.rates.in_base(most));
            both.is_some_and(|(price, most)| price <= most)
        }
    };
    let names = offer.qos.operations.keys().chain(wanted.operations.keys());
    let names: BTreeSet<&str> = names.map(String::as_str).chain([""]).collect();
    let each = names.iter().all(|name| {
        let (offered, wanted) = (joined(&offer.qos, name), joined(wanted, name));
        infos(&offered, &wanted, world)
    });
    let (ours, theirs) = (&offer.qos.contracts, &wanted.contracts);
    price && offer.expires > world.now && each && contracts(ours, theirs) && contracts(theirs, ours)
}

fn joined(definition: &Definition, name: &str) -> Info {
    let mut info = definition.default.clone();
    let Some(own) = definition.operations.get(name) else {
        return info;
    };
    macro_rules! over {
        ($($part:ident . $field:ident),*) => {
            $(if own.$part.$field.is_some() { info.$part.$field = own.$part.$field; })*
        };
    }
    over!(
        server.processing_time,
        server.requests_per_second,
        server.reliability,
        server.availability
    );
    over!(
        transport.delay,
        transport.jitter,
        transport.throughput,
        transport.packet_loss
    );
    join_customs(&mut info.server.custom, &own.server.custom);
    join_customs(&mut info.transport.custom, &own.transport.custom);
    info.security.extend(own.security.clone());
    info
}

fn join_customs<T: Clone>(customs: &mut Vec<Custom<T>>, own: &[Custom<T>]) {
    customs.retain(|custom| !own.iter().any(|other| other.name == custom.name));
    customs.extend(own.iter().cloned());
}

fn infos(offered: &Info, wanted: &Info, world: &World<'_>) -> bool {
    fn most<T: PartialOrd>(offered: Option<T>, wanted: Option<T>) -> bool {
        wanted.is_none_or(|wanted| offered.is_some_and(|offered| offered <= wanted))
    }
    fn least<T: PartialOrd>(offered: Option<T>, wanted: Option<T>) -> bool {
        wanted.is_none_or(|wanted| offered.is_some_and(|offered| offered >= wanted))
    }
    fn value<T: Copy>(customs: &[Custom<T>], name: &str) -> Option<T> {
        customs
            .iter()
            .find(|custom| custom.name == name)
            .map(|custom| custom.value)
    }
    let (o, w) = (&offered.server, &wanted.server);
    let server = most(o.processing_time, w.processing_time)
        && least(o.requests_per_second, w.requests_per_second)
        && least(o.reliability, w.reliability)
        && least(o.availability, w.availability);
    let customs = w.custom.iter().all(|metric| {
        let offered = value(&o.custom, &metric.name);
        let known = world
            .ontologies
            .values()
            .any(|o| o.metrics.contains_key(&metric.name));
        known
            && match metric.name.as_str() {
                "age" => most(offered, Some(metric.value)),
                _ => least(offered, Some(metric.value)),
            }
    });
    let (o, w) = (&offered.transport, &wanted.transport);
    let transport = most(o.delay, w.delay)
        && most(o.jitter, w.jitter)
        && most(o.throughput, w.throughput)
        && most(o.packet_loss, w.packet_loss)
        && most(value(&o.custom, "colour"), value(&w.custom, "colour"));
    let security = |a: &[Protocols], b: &[Protocols]| {
        let has: Vec<&Term> = b.iter().flat_map(|group| &group.protocols).collect();
        a.iter()
            .all(|group| enough(group.requires, &group.protocols, |term| has.contains(&term)))
    };
    server
        && customs
        && transport
        && security(&wanted.security, &offered.security)
        && security(&offered.security, &wanted.security)
}

fn contracts(requiring: &[Contract], other: &[Contract]) -> bool {
    let protocols: Vec<&Term> = other.iter().flat_map(|c| &c.protocols).collect();
    let urls: Vec<&str> = other
        .iter()
        .flat_map(|c| &c.parties)
        .map(|p| p.url.as_str())
        .collect();
    requiring.iter().all(|contract| {
        enough(contract.requires, &contract.protocols, |term| {
            protocols.contains(&term)
        }) && enough(contract.requires, &contract.parties, |party| {
            urls.contains(&party.url.as_str())
        })
    })
}

fn enough<T>(requires: Requires, list: &[T], has: impl Fn(&T) -> bool) -> bool {
    match requires {
        Requires::None => true,
        Requires::One => list.is_empty() || list.iter().any(has),
        Requires::All => list.iter().all(has),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn it_is_as_the_rules_say(offer in any_offer(), wanted in definition()) {
        let known = Known::new();
        let world = known.world();
        let found = objections(&offer, &wanted, &world);
        prop_assert_eq!(found.is_empty(), is_adequate(&offer, &wanted, &world));
        prop_assert_eq!(found.is_empty(), plainly(&offer, &wanted, &world), "{:?}", found);
    }

    #[test]
    fn every_offer_meets_the_requirements_equal_to_it(offer in any_offer()) {
        let known = Known::new();
        let mut offer = offer;
        offer.expires = at("2027-01-01T00:00:00Z");
        offer.qos.price = Some(euros("0.10"));
        let found = objections(&offer, &offer.qos, &known.world());
        prop_assert!(found.is_empty(), "{:?}", found);
    }
}
