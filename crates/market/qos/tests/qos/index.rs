//! The index gives the same results as a linear search, after any sequence of operations.

use jiff::Timestamp;
use posthaste_qos::index::{Index, PutError};
use posthaste_qos::{Definition, Offer, World, is_adequate};
use proptest::collection::vec;
use proptest::prelude::*;

use super::made::{Known, any_offer, at, currency, definition, euros, offer};

const KINDS: [&str; 2] = ["books", "weather"];
const PROVIDERS: [&str; 3] = ["ada", "bob", "eve"];

/// An operation on an index.
#[derive(Clone, Debug)]
enum Act {
    Put(usize, usize, Box<Offer>),
    Remove(usize, usize, String),
    Expire(Timestamp),
    Ask(usize, Box<Definition>, Timestamp),
    /// Asks for a part of the promises of one of the offers, one bit for each promise.
    AskFor(usize, u16, Timestamp),
}

fn moment() -> impl Strategy<Value = Timestamp> {
    (0i64..5).prop_map(|second| Timestamp::from_second(1_767_225_599 + second).unwrap())
}

prop_compose! {
    fn named_offer()(mut offer in any_offer(), name in "[a-d]") -> Box<Offer> {
        offer.name = name;
        Box::new(offer)
    }
}

fn act() -> impl Strategy<Value = Act> {
    let (kind, provider) = (0..KINDS.len(), 0..PROVIDERS.len());
    prop_oneof![
        6 => (kind.clone(), provider.clone(), named_offer()).prop_map(|(k, p, o)| Act::Put(k, p, o)),
        1 => (kind.clone(), provider, "[a-d]").prop_map(|(k, p, n)| Act::Remove(k, p, n)),
        1 => moment().prop_map(Act::Expire),
        1 => (kind, definition(), moment()).prop_map(|(k, d, t)| Act::Ask(k, Box::new(d), t)),
        4 => (any::<usize>(), any::<u16>(), moment()).prop_map(|(n, p, t)| Act::AskFor(n, p, t)),
    ]
}

/// The parts of `promised` with their bit set.
fn part_of(promised: &Definition, bits: u16) -> Definition {
    let mut wanted = promised.clone();
    let mut places = 0..;
    let mut is_kept = || bits & (1 << places.next().unwrap_or(0)) != 0;
    let (server, transport) = (&mut wanted.default.server, &mut wanted.default.transport);
    server.processing_time = server.processing_time.filter(|_| is_kept());
    server.requests_per_second = server.requests_per_second.filter(|_| is_kept());
    server.reliability = server.reliability.filter(|_| is_kept());
    server.availability = server.availability.filter(|_| is_kept());
    transport.delay = transport.delay.filter(|_| is_kept());
    transport.jitter = transport.jitter.filter(|_| is_kept());
    transport.throughput = transport.throughput.filter(|_| is_kept());
    transport.packet_loss = transport.packet_loss.filter(|_| is_kept());
    server.custom.retain(|_| is_kept());
    transport.custom.retain(|_| is_kept());
    wanted.operations.retain(|_, _| is_kept());
    wanted.price = wanted.price.filter(|_| is_kept());
    wanted
}

/// Offers in a list: kind, provider, offer.
type Plainly = Vec<(usize, usize, Offer)>;

fn forget(plainly: &mut Plainly, kind: usize, provider: usize, name: &str) -> bool {
    let before = plainly.len();
    plainly.retain(|(k, p, o)| (*k, *p) != (kind, provider) || o.name != name);
    plainly.len() < before
}

/// Prices and names of the adequate offers, from a linear search.
fn walk<'o>(
    plainly: &'o Plainly,
    kind: usize,
    wanted: &Definition,
    world: &World<'_>,
) -> Vec<(u64, Timestamp, &'o str, &'o Offer)> {
    let price = |offer: &Offer| world.rates.in_base(offer.qos.price.unwrap()).unwrap();
    let mut found: Vec<_> = plainly
        .iter()
        .filter(|(k, _, offer)| *k == kind && is_adequate(offer, wanted, world))
        .map(|(_, p, offer)| (price(offer), offer.expires, PROVIDERS[*p], offer))
        .collect();
    found.sort_by_key(|(price, ends, provider, offer)| {
        (*price, std::cmp::Reverse(*ends), *provider, &*offer.name)
    });
    found
}

fn check(index: &Index, plainly: &Plainly, kind: usize, wanted: &Definition, now: Timestamp) {
    let expected = walk(plainly, kind, wanted, &index.world(now));
    let mut found: Vec<_> = index.adequate(KINDS[kind], wanted, now).collect();
    let best = index.best(KINDS[kind], wanted, now);
    assert_eq!(best.as_ref(), found.first());
    let key = |offer: &Offer| {
        let price = index.world(now).rates.in_base(offer.qos.price.unwrap());
        (price, std::cmp::Reverse(offer.expires))
    };
    assert!(
        found.is_sorted_by_key(|found| key(&found.offer)),
        "in the order of preference"
    );
    // The order of offers with the same price and expiry is not defined.
    found.sort_by(|a, b| {
        let names = (a.provider, &a.offer.name).cmp(&(b.provider, &b.offer.name));
        key(&a.offer).cmp(&key(&b.offer)).then(names)
    });
    let found: Vec<_> = found
        .iter()
        .map(|found| (found.provider, &found.offer))
        .collect();
    let expected: Vec<_> = expected
        .iter()
        .map(|(_, _, provider, offer)| (*provider, *offer))
        .collect();
    assert_eq!(found, expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn it_answers_as_a_plain_walk_does(acts in vec(act(), 0..160)) {
        let known = Known::new();
        let mut index = known.index();
        let mut plainly = Plainly::new();
        for act in acts {
            match act {
                Act::Put(kind, provider, offer) => {
                    match index.put(KINDS[kind], PROVIDERS[provider], &offer) {
                        Ok(replaced) => {
                            prop_assert_eq!(replaced, forget(&mut plainly, kind, provider, &offer.name));
                            plainly.push((kind, provider, *offer));
                        }
                        Err(PutError::NoPrice) => prop_assert!(offer.qos.price.is_none()),
                        Err(PutError::Currency(unknown)) => prop_assert_eq!(unknown, currency("XTS")),
                    }
                }
                Act::Remove(kind, provider, name) => {
                    let removed = index.remove(KINDS[kind], PROVIDERS[provider], &name);
                    prop_assert_eq!(removed, forget(&mut plainly, kind, provider, &name));
                }
                Act::Expire(now) => {
                    let before = plainly.len();
                    plainly.retain(|(_, _, offer)| offer.expires > now);
                    prop_assert_eq!(index.expire(now), before - plainly.len());
                }
                Act::Ask(kind, wanted, now) => check(&index, &plainly, kind, &wanted, now),
                Act::AskFor(number, parts, now) => {
                    let like = number.checked_rem(plainly.len()).map(|number| &plainly[number]);
                    if let Some((kind, _, offer)) = like {
                        check(&index, &plainly, *kind, &part_of(&offer.qos, parts), now);
                    }
                }
            }
            prop_assert_eq!(index.len(), plainly.len());
        }
    }

    #[test]
    fn filled_at_once_it_is_the_same(offers in vec(named_offer(), 0..150), wanted in definition()) {
        let known = Known::new();
        let (mut one, mut many) = (known.index(), known.index());
        let mut offers = offers;
        offers.iter_mut().enumerate().for_each(|(i, offer)| {
            offer.name = i.to_string();
            offer.qos.price = Some(euros(["0.1", "0.2"][i % 2]));
        });
        for offer in &offers {
            one.put("books", "ada", offer).unwrap();
        }
        let all = offers.iter().map(|offer| ("ada", &**offer));
        many.fill("books", all, |_, offer, error| panic!("{}: {error}", offer.name));
        let now = at("2026-01-01T00:00:00Z");
        prop_assert!(one.adequate("books", &wanted, now).eq(many.adequate("books", &wanted, now)));
        prop_assert!(one.offers("books").eq(many.offers("books")));
    }

    #[test]
    fn pages_hold_all_that_stays_whatever_else_comes_and_goes(
        offers in vec(named_offer(), 0..40),
        most in 1usize..8,
        acts in vec((0usize..40, any::<bool>()), 0..10),
    ) {
        let mut index = Known::new().index();
        let mut offers = offers;
        for (i, offer) in offers.iter_mut().enumerate() {
            offer.name = i.to_string();
            offer.qos.price = Some(euros(["0.1", "0.2", "0.3"][i % 3]));
            index.put("books", "ada", offer).unwrap();
        }
        let touched = |name: &str| acts.iter().any(|(i, _)| i.to_string() == name);
        let stays: Vec<String> = index
            .offers("books")
            .map(|found| found.offer.name)
            .filter(|name| !touched(name))
            .collect();
        let mut acts = acts.iter();
        let (mut listed, mut after) = (Vec::new(), None);
        loop {
            let (page, last) = index.page("books", after, most);
            prop_assert!(page.len() <= most);
            listed.extend(page.into_iter().map(|found| found.offer.name));
            let Some(last) = last else { break };
            after = Some(last);
            // Between two pages one offer is removed, or gets the lowest price.
            if let Some((i, goes)) = acts.next().filter(|(i, _)| *i < offers.len()) {
                if *goes {
                    index.remove("books", "ada", &i.to_string());
                } else {
                    offers[*i].qos.price = Some(euros("0.01"));
                    index.put("books", "ada", &offers[*i]).unwrap();
                }
            }
        }
        listed.retain(|name| !touched(name));
        prop_assert_eq!(listed, stays);
    }
}

#[test]
fn filling_passes_over_what_is_refused_and_keeps_its_order() {
    let known = Known::new();
    let mut index = known.index();
    let priced = |name: &str, price: Option<&str>| {
        let qos = Definition {
            price: price.map(euros),
            ..Definition::default()
        };
        Offer {
            name: name.to_owned(),
            ..offer(qos)
        }
    };
    let offers = [
        priced("dear", Some("2")),
        priced("none", None),
        priced("cheap", Some("1")),
    ];
    let mut refused = Vec::new();
    let all = offers.iter().map(|offer| ("ada", offer));
    index.fill("books", all, |provider, offer, error| {
        refused.push((provider, offer.name.clone(), error))
    });
    assert_eq!(refused, [("ada", "none".to_owned(), PutError::NoPrice)]);
    let order: Vec<String> = index
        .offers("books")
        .map(|found| found.offer.name)
        .collect();
    assert_eq!(order, ["cheap", "dear"]);
    let from = |first| index.offers_from("books", first).count();
    assert_eq!([0, 1, 2, 9].map(from), [2, 1, 0, 0]);
    assert_eq!((index.len_of("books"), index.len_of("maps")), (2, 0));
    assert_eq!(index.get("books", "ada", "dear").as_ref(), Some(&offers[0]));
    assert_eq!(index.get("books", "bob", "dear"), None);
    assert_eq!(index.kinds().collect::<Vec<_>>(), ["books"]);
}

#[test]
fn an_offer_without_a_price_that_is_known_is_not_taken() {
    let mut index = Known::new().index();
    let refused = index.put("books", "ada", &offer(Definition::default()));
    assert_eq!(refused, Err(PutError::NoPrice));
    assert!(index.is_empty());
    assert_eq!(
        index.best("books", &Definition::default(), at("2026-01-01T00:00:00Z")),
        None
    );
}
