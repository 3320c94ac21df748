//! The choice of an offer for one request, compared with the simplest implementation, and measured quality.

use jiff::{SignedDuration, Timestamp};
use posthaste_qos::selection::{
    Ground, LatencyBound, MIN_REQUESTS, MeasuredEnd, MeasuredQuality, OfferTable, PassReason,
    Percentile, Promised, QualityWindow, RequestTerms, RoutedOffer, TermBounds,
};
use posthaste_qos::{Definition, Info, Money, Offer, Protocols, Requires, is_adequate};
use posthaste_units::{Instant, Ratio, Span};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;

use super::made::{Known, at, currency, euros, term};

/// An offer before it is in a table: the offer, its endpoint and its measurement.
type Given = (Offer, u32, MeasuredQuality);

fn ratio() -> impl Strategy<Value = Ratio> {
    (0..=4_u32).prop_map(|quarters| Ratio::new(f64::from(quarters) / 4.0).unwrap())
}

fn time() -> impl Strategy<Value = Span> {
    (1..5_u64).prop_map(|tens| Span::from_millis(tens * 10))
}

fn price() -> impl Strategy<Value = Money> {
    (0..4_u64).prop_map(|micros| Money::from_micros(micros, currency("EUR")).unwrap())
}

fn info() -> impl Strategy<Value = Info> {
    (option::of(time()), option::of(ratio())).prop_map(|(time, reliability)| {
        let mut info = Info::default();
        info.server.processing_time = time;
        info.server.reliability = reliability;
        info
    })
}

fn definition() -> impl Strategy<Value = Definition> {
    (info(), btree_map("[ab]", info(), 0..3)).prop_map(|(default, operations)| Definition {
        default,
        operations,
        ..Definition::default()
    })
}

fn measured() -> impl Strategy<Value = MeasuredQuality> {
    let requests = prop_oneof![
        Just(MIN_REQUESTS - 1),
        Just(MIN_REQUESTS),
        Just(4 * MIN_REQUESTS)
    ];
    (requests, 0..=4_u32, time(), time()).prop_map(|(requests, quarters, p50, more)| {
        MeasuredQuality {
            requests,
            failures: requests * quarters / 4,
            p50,
            p99: p50 + more,
            ..MeasuredQuality::default()
        }
    })
}

/// Ends before and after the moment of the tests.
fn expiry() -> impl Strategy<Value = Timestamp> {
    (-1..3_i64).prop_map(|seconds| Known::new().world().now + SignedDuration::from_secs(seconds))
}

fn given() -> impl Strategy<Value = Given> {
    let offer = ("[xyz]", expiry(), definition(), price());
    (offer, 0..3_u32, measured()).prop_map(
        |((name, expires, mut qos, price), endpoint, quality)| {
            qos.price = Some(price);
            let offer = Offer {
                name,
                expires,
                endpoint: None,
                qos,
            };
            (offer, endpoint, quality)
        },
    )
}

fn bound() -> impl Strategy<Value = LatencyBound> {
    let percentile = prop_oneof![Just(Percentile::P50), Just(Percentile::P99)];
    (time(), percentile).prop_map(|(most, percentile)| LatencyBound { most, percentile })
}

fn terms() -> impl Strategy<Value = RequestTerms> {
    (
        option::of(price()),
        option::of(bound()),
        option::of(ratio()),
        option::of("[wxyz]"),
    )
        .prop_map(
            |(max_price, max_latency, min_reliability, selected)| RequestTerms {
                max_price,
                max_latency,
                min_reliability,
                selected,
            },
        )
}

fn table(given: &[Given]) -> OfferTable<usize> {
    let routed = |(position, (offer, endpoint, measured)): (usize, &Given)| RoutedOffer {
        name: offer.name.clone(),
        price: offer.qos.price.unwrap(),
        promised: Promised::from_definition(&offer.qos),
        expires: offer.expires,
        endpoint: *endpoint,
        measured: *measured,
        data: position,
    };
    let offers = given.iter().enumerate().map(routed).collect();
    OfferTable::new(currency("EUR"), offers)
}

/// The terms as a requirement, for the comparison of WS-QoS.
fn requirement(terms: &RequestTerms) -> Definition {
    let mut wanted = Definition {
        price: terms.max_price,
        ..Definition::default()
    };
    wanted.default.server.processing_time = terms.max_latency.map(|bound| bound.most);
    wanted.default.server.reliability = terms.min_reliability;
    wanted
}

/// True if the measurement contradicts the terms. `least` is the least share of success.
fn contradicts(quality: &MeasuredQuality, terms: &RequestTerms, least: f64) -> bool {
    let slow = terms.max_latency.is_some_and(|bound| {
        let time = match bound.percentile {
            Percentile::P50 => quality.p50,
            Percentile::P99 => quality.p99,
        };
        time > bound.most
    });
    quality.requests >= MIN_REQUESTS && (slow || quality.success() < least)
}

/// Every usable offer by the rules, or those that only the measurement is against.
fn usable(given: &[Given], terms: &RequestTerms, busy: &[Option<usize>]) -> Vec<usize> {
    let known = Known::new();
    let wanted = requirement(terms);
    let with_least = |least: f64| -> Vec<usize> {
        let is_usable = |position: &usize| {
            let (offer, endpoint, quality) = &given[*position];
            is_adequate(offer, &wanted, &known.world())
                && !contradicts(quality, terms, least)
                && busy[*endpoint as usize].is_some()
        };
        (0..given.len()).filter(is_usable).collect()
    };
    match terms.min_reliability {
        Some(least) => with_least(least.get()),
        None => {
            let strict = with_least(0.5);
            if strict.is_empty() {
                with_least(0.0)
            } else {
                strict
            }
        }
    }
}

proptest! {
    #[test]
    fn the_choice_is_that_of_the_rules_spelt_out(
        // Several steps of the scan, whole and partial.
        given in vec(given(), 0..60),
        terms in terms(),
        busy in vec(option::of(0..3_usize), 3),
        rotation in 0..20_usize,
    ) {
        let table = table(&given);
        let world = Known::new();
        let bounds = TermBounds::new(&terms, world.world().now);
        let in_flight = |endpoint: u32| busy[endpoint as usize];
        let chosen = table.choose(&bounds, terms.selected.as_deref(), rotation, in_flight);
        let right = usable(&given, &terms, &busy);
        let price = |position: usize| given[position].0.qos.price.unwrap().micros();
        let strict = |position: &usize| {
            let least = terms.min_reliability.map_or(0.5, Ratio::get);
            !contradicts(&given[*position].2, &terms, least)
        };
        let named: Vec<usize> = match &terms.selected {
            Some(name) => {
                let of_name = right.iter().copied().filter(|position| given[*position].0.name == *name);
                of_name.filter(strict).collect()
            }
            None => Vec::new(),
        };
        match chosen {
            Ok(choice) if choice.ground == Ground::Selected => {
                let position = table.offers()[choice.position].data;
                prop_assert!(named.contains(&position));
                prop_assert_eq!(price(position), named.iter().map(|p| price(*p)).min().unwrap());
            }
            Ok(choice) => {
                prop_assert_eq!(choice.ground, Ground::Cheapest);
                prop_assert!(named.is_empty());
                let position = table.offers()[choice.position].data;
                prop_assert!(right.contains(&position), "an inadequate offer is chosen");
                let cheapest = right.iter().map(|p| price(*p)).min().unwrap();
                prop_assert_eq!(price(position), cheapest);
                let load = |position: usize| busy[given[position].1 as usize].unwrap();
                let equal = right.iter().filter(|p| price(**p) == cheapest);
                let least = equal.clone().map(|p| load(*p)).min().unwrap();
                // More are not compared.
                prop_assert!(load(position) == least || equal.count() > 16);
            }
            Err(none) => {
                prop_assert!(right.is_empty());
                let any_price = RequestTerms { max_price: None, ..terms.clone() };
                let right = usable(&given, &any_price, &busy);
                let right: Vec<_> = right.into_iter().filter(strict).collect();
                let position = none.too_expensive.map(|position| table.offers()[position].data);
                prop_assert_eq!(position.is_some(), !right.is_empty());
                if let Some(position) = position {
                    prop_assert!(right.contains(&position));
                    prop_assert_eq!(Some(price(position)), right.iter().map(|p| price(*p)).min());
                }
            }
        }
    }

    #[test]
    fn every_offer_has_an_objection_or_is_adequate(
        given in vec(given(), 1..12),
        terms in terms(),
        busy in vec(option::of(0..3_usize), 3),
    ) {
        let table = table(&given);
        let known = Known::new();
        let bounds = TermBounds::new(&terms, known.world().now);
        let in_flight = |endpoint: u32| busy[endpoint as usize];
        let wanted = requirement(&terms);
        let least = terms.min_reliability.map_or(0.5, Ratio::get);
        for (position, routed) in table.offers().iter().enumerate() {
            let (offer, endpoint, quality) = &given[routed.data];
            let promise = is_adequate(offer, &wanted, &known.world());
            let measured = contradicts(quality, &terms, least);
            let is_reachable = busy[*endpoint as usize].is_some();
            let objection = table.objection(&bounds, position, in_flight);
            prop_assert_eq!(objection.is_none(), promise && !measured && is_reachable);
            let is_measured = objection.is_some_and(PassReason::is_measured);
            prop_assert_eq!(is_measured, promise && measured);
        }
    }

    #[test]
    fn probes_take_turns_among_offers_that_were_measured_as_bad(
        given in vec(given(), 1..12),
        terms in terms(),
        end in 0..14_usize,
    ) {
        let table = table(&given);
        let bounds = TermBounds::new(&terms, Known::new().world().now);
        let reachable = |_: u32| Some(0);
        let bad = |position: &usize| {
            let objection = table.objection(&bounds, *position, reachable);
            objection.is_some_and(PassReason::is_measured)
        };
        let bad: Vec<usize> = (0..end.min(given.len())).filter(bad).collect();
        let mut last = usize::MAX - 1;
        let mut seen = Vec::new();
        for _ in 0..bad.len() {
            let choice = table.probe(&bounds, end, last, reachable).unwrap();
            prop_assert_eq!(choice.ground, Ground::Probe);
            last = choice.position;
            seen.push(last);
        }
        prop_assert_eq!(&seen, &bad);
        prop_assert!(bad.is_empty() == table.probe(&bounds, end, last, reachable).is_none());
    }

    #[test]
    fn a_window_summarises_the_requests_of_the_last_minutes(
        events in vec((0..4_000_u64, option::of(0..400_u64), any::<bool>()), 0..120),
        rest in 0..30_000_u64,
    ) {
        let window = Span::from_secs(8);
        let mut quality = QualityWindow::new(window);
        let mut now = Instant::ORIGIN + Span::from_secs(1_000);
        let mut ended = Vec::new();
        for (wait, millis, judged) in events {
            now += Span::from_millis(wait);
            let start = quality.start(now);
            let end = match millis {
                _ if !judged => MeasuredEnd::Unjudged,
                Some(millis) => MeasuredEnd::Served(Span::from_millis(millis)),
                None => MeasuredEnd::Failed,
            };
            if judged {
                ended.push((now, millis.map(Span::from_millis)));
            }
            quality.end(start, now, end);
        }
        now += Span::from_millis(rest);
        let summary = quality.quality(now);
        // The window covers its current second and the seven before.
        let slot = |at: Instant| at.as_nanos() / Span::from_secs(1).as_nanos();
        ended.retain(|(at, _)| slot(*at) + 8 > slot(now));
        let mut times: Vec<Span> = ended.iter().map(|(_, time)| time.unwrap_or(Span::MAX)).collect();
        times.sort();
        prop_assert_eq!(summary.requests as usize, times.len());
        prop_assert_eq!(summary.failures as usize, ended.iter().filter(|(_, time)| time.is_none()).count());
        for (percent, summary) in [(50, summary.p50), (99, summary.p99)] {
            let rank = (times.len() * percent).div_ceil(100);
            let Some(exact) = rank.checked_sub(1).map(|position| times[position]) else {
                prop_assert_eq!(summary, Span::ZERO);
                continue;
            };
            // Never below the exact value, and above it by a sixteenth, or by the first bucket.
            prop_assert!(summary >= exact, "{summary} for {exact}");
            let most = exact.as_nanos().saturating_add((exact.as_nanos() / 16).max(1 << 17) + 1);
            prop_assert!(exact == Span::MAX || summary.as_nanos() <= most, "{summary} for {exact}");
        }
    }
}

#[test]
fn an_endpoint_that_hangs_is_noticed_before_its_requests_end() {
    let mut quality = QualityWindow::new(Span::from_secs(120));
    let mut now = Instant::ORIGIN + Span::from_secs(500);
    let started: Vec<_> = (0..30).map(|_| quality.start(now)).collect();
    assert_eq!(quality.quality(now).seen(), 0, "they are new");
    now += Span::from_millis(700);
    let seen = quality.quality(now);
    assert_eq!((seen.requests, seen.overdue), (0, 30));
    assert!(seen.p50 >= Span::from_millis(400), "{seen:?}");
    // Longer than the requests are counted by their tick.
    now += Span::from_secs(60);
    let seen = quality.quality(now);
    assert!(
        seen.overdue == 30 && seen.p50 >= Span::from_secs(40),
        "{seen:?}"
    );
    for start in started {
        quality.end(start, now, MeasuredEnd::Unjudged);
    }
    assert_eq!(quality.quality(now), MeasuredQuality::default());
}

/// Whatever has failed before: the failures must not hide the requests in flight, or these the failures.
#[test]
fn an_endpoint_that_hangs_looks_no_better_than_before() {
    for failed in [0, 2, 60] {
        let mut quality = QualityWindow::new(Span::from_secs(120));
        let mut now = Instant::ORIGIN + Span::from_secs(500);
        for number in 0..100 {
            let start = quality.start(now);
            let end = if number < failed {
                MeasuredEnd::Failed
            } else {
                MeasuredEnd::Served(Span::from_millis(10))
            };
            quality.end(start, now, end);
        }
        let before = quality.quality(now);
        for _ in 0..1_000 {
            let _ = quality.start(now);
        }
        now += Span::from_secs(2);
        let seen = quality.quality(now);
        assert_eq!((seen.requests, seen.overdue), (100, 1_000));
        assert_eq!(seen.success(), before.success(), "{failed} failed");
        assert!(seen.p50 >= before.p50.max(Span::from_secs(1)), "{seen:?}");
        assert!(seen.p99 >= before.p99.max(Span::from_secs(1)), "{seen:?}");
        let usual = seen.usual.expect("some were served");
        assert!(usual < Span::from_millis(20), "{usual}");
    }
}

#[test]
fn requests_under_way_do_not_make_an_endpoint_look_faster() {
    let mut quality = QualityWindow::new(Span::from_secs(120));
    let now = Instant::ORIGIN + Span::from_secs(500);
    for _ in 0..20 {
        let start = quality.start(now);
        quality.end(start, now, MeasuredEnd::Served(Span::from_secs(5)));
    }
    let before = quality.quality(now);
    let _under_way: Vec<_> = (0..100).map(|_| quality.start(now)).collect();
    assert_eq!(quality.quality(now + Span::from_secs(1)), before);
}

#[test]
fn offers_of_one_price_take_turns() {
    let qos = |price| Definition {
        price: Some(euros(price)),
        ..Definition::default()
    };
    let offer = |name: &str, price| Offer {
        name: name.to_owned(),
        expires: at("2026-01-01T00:01:00Z"),
        endpoint: None,
        qos: qos(price),
    };
    let given: Vec<Given> = [("a", "0.1"), ("b", "0.1"), ("c", "0.1"), ("d", "0.2")]
        .iter()
        .zip(0..)
        .map(|((name, price), endpoint)| (offer(name, price), endpoint, MeasuredQuality::default()))
        .collect();
    let table = table(&given);
    let bounds = TermBounds::new(&RequestTerms::default(), at("2026-01-01T00:00:00Z"));
    let chosen = |rotation| {
        let choice = table.choose(&bounds, None, rotation, |_| Some(7)).unwrap();
        table.offers()[choice.position].name.clone()
    };
    let names: Vec<String> = (0..6).map(chosen).collect();
    assert_eq!(names, ["a", "b", "c", "a", "b", "c"]);
}

#[test]
fn an_offer_that_requires_something_of_its_client_is_recognised() {
    let protocols = |requires| Protocols {
        protocols: vec![term("secret")],
        requires,
    };
    let with = |requires| {
        let mut definition = Definition::default();
        definition.default.security.push(protocols(requires));
        definition
    };
    assert!(!with(Requires::None).requires_of_client());
    assert!(with(Requires::One).requires_of_client());
    assert!(with(Requires::All).requires_of_client());
    let mut in_operation = Definition::default();
    let own = with(Requires::All).default;
    in_operation.operations.insert("buy".to_owned(), own);
    assert!(in_operation.requires_of_client());
}
