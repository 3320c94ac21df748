//! Changes of limits, rates and terms while they are in use.

use posthaste_admission::controller::{ProportionalIntegral, Rajomon, Steps};
use posthaste_admission::limit::Aimd;
use posthaste_admission::{
    Admitted, Amount, Ask, Bucket, By, Controller, Key, Limiter, Market, Observed, Terms, Why,
};
use posthaste_units::{Ratio, Span};

use crate::{at, eur, price};

#[test]
fn a_limit_is_kept_within_the_new_bounds() {
    let mut limit = crate::limit(Limiter::default(), 4, 1000);
    while limit.now() < 60 {
        limit.push(crate::reply(Span::from_millis(10), limit.now(), false));
    }
    let found = limit.now();
    let aimd = || Limiter::Aimd(Aimd::default());
    for (next, expected) in [
        (crate::limit(Limiter::default(), 4, 1000), found),
        (crate::limit(Limiter::default(), 4, 20), 20),
        (crate::limit(Limiter::default(), 200, 1000), 200),
        (crate::limit(aimd(), 1, 1000), found),
        (crate::limit(aimd(), 1, 30), 30),
    ] {
        let mut next = next.continuing(limit.clone());
        assert_eq!(next.now(), expected);
        // The new rule applies to the next round.
        (0..2_000).for_each(|_| next.push(crate::reply(Span::from_millis(10), next.now(), false)));
        assert!(next.now() >= expected);
    }
}

/// A reload every 10 ms must not keep a probe from its end, nor end it.
#[test]
fn repeated_reloads_do_not_change_how_a_limit_adapts() {
    let mut steady = crate::limit(Limiter::default(), 4, 1000);
    let mut changed = steady.clone();
    for reply in 0_u64..50_000 {
        let latency = Span::from_micros(5_000 + reply % 7 * 1_000 + u64::from(steady.now()) * 50);
        steady.push(crate::reply(latency, steady.now(), false));
        changed = crate::limit(Limiter::default(), 4, 1000).continuing(changed);
        changed.push(crate::reply(latency, changed.now(), false));
        assert_eq!(changed.now(), steady.now(), "reply {reply}");
    }
}

/// Requests that the bucket admits at once.
fn left(mut bucket: Bucket, ms: u64) -> usize {
    std::iter::repeat_with(|| bucket.take(at(ms)))
        .take_while(Result::is_ok)
        .count()
}

#[test]
fn a_bucket_keeps_its_level() {
    let mut bucket = Bucket::new(10.0, 20);
    (0..15).for_each(|_| bucket.take(at(1_000)).unwrap());
    assert_eq!(left(bucket, 1_000), 5);
    for (rate, burst, expected) in [
        (10.0, 20, 5),
        (1_000.0, 20, 5),
        (0.1, 20, 5),
        (10.0, 3, 3),
        (10.0, 50, 5),
    ] {
        let mut changed = bucket;
        changed.change(at(1_000), rate, burst);
        assert_eq!(left(changed, 1_000), expected, "{rate}/s, {burst} at once");
        // From then on the new rate applies.
        if rate == 10.0 && burst == 50 {
            assert_eq!(left(changed, 2_000), 15);
        }
    }
}

#[test]
fn changes_all_the_time_admit_no_more_than_the_rate() {
    let mut bucket = Bucket::new(10.0, 5);
    let mut admitted = 0;
    for ms in 0..10_000 {
        admitted += usize::from(bucket.take(at(ms)).is_ok());
        // Alternates between two bursts at each request.
        bucket.change(at(ms), 10.0, if ms % 2 == 0 { 6 } else { 5 });
    }
    assert!((100..=106).contains(&admitted), "{admitted}");
}

fn terms() -> Terms {
    Terms {
        controller: Controller::Steps(Steps {
            window: Span::from_millis(1),
            period: Span::ZERO,
            ..Steps::default()
        }),
        capacity: Some(100.0),
        life: Span::from_secs(10),
        ..Terms::new("standard", eur())
    }
}

fn seen(ms: u64, busy: f64) -> Observed {
    Observed {
        at: at(ms),
        busy,
        delay: Span::ZERO,
    }
}

/// A market at 0.30, with a quote at 0.10 for `ada`.
fn market() -> (Market, String) {
    let mut market = Market::new(terms(), Key::new(&[3; 32]));
    market.observe(seen(0, 1.0), 1.0);
    market.observe(seen(100, 1.0), 1.0);
    let ask = Ask {
        client: "ada",
        most: Some(price(900_000)),
        ..Ask::default()
    };
    let (_, token) = market.admit(at(150), &ask, true).unwrap().quote.unwrap();
    market.observe(seen(200, 1.0), 1.0);
    market.observe(seen(300, 1.0), 1.0);
    assert_eq!(market.current(false).price, price(300_000));
    (market, token)
}

fn by_quote(market: &mut Market, ms: u64, token: &str) -> Result<Admitted, Why> {
    let ask = Ask {
        client: "ada",
        token: Some(token),
        ..Ask::default()
    };
    market
        .admit(at(ms), &ask, false)
        .map_err(|refused| refused.why)
}

#[test]
fn price_quotes_and_offers_outlive_a_change_of_terms() {
    let (mut market, token) = market();
    let open = Ratio::new(0.2).unwrap();
    market.change(Terms {
        offer: "gold".to_owned(),
        discount: open,
        burst: 7,
        life: Span::from_secs(1),
        ..terms()
    });
    assert_eq!(market.current(false).name, "gold@0.30");
    assert_eq!(market.current(true).name, "gold-open@0.24");
    let admitted = by_quote(&mut market, 400, &token).unwrap();
    assert_eq!((admitted.by, admitted.price), (By::Quote, price(100_000)));
    let select = |market: &mut Market, ms, name| {
        let ask = Ask {
            client: "bob",
            selected: Some(name),
            unquoted: true,
            ..Ask::default()
        };
        market
            .admit(at(ms), &ask, true)
            .map_err(|refused| refused.why)
    };
    assert!(select(&mut market, 400, "standard@0.30").is_ok());
    assert!(select(&mut market, 400, "gold@0.30").is_ok());
    // It was published at 300 ms, for 10 s.
    assert!(select(&mut market, 10_200, "standard@0.30").is_ok());
    assert_eq!(
        select(&mut market, 10_400, "standard@0.30"),
        Err(Why::Expired)
    );
    // The new offers are published at the next sample.
    assert_eq!(market.observe(seen(10_500, 0.75), 1.0).len(), 2);
    assert_eq!(by_quote(&mut market, 10_600, &token), Err(Why::Expired));
}

/// A queue of quotes must end in the order of issue.
#[test]
fn quotes_with_a_shorter_life_end_no_earlier_than_those_before() {
    let (mut market, _) = market();
    market.change(Terms {
        life: Span::from_millis(500),
        ..terms()
    });
    let ask = Ask {
        client: "bob",
        most: Some(price(900_000)),
        ..Ask::default()
    };
    let (quote, _) = market.admit(at(400), &ask, true).unwrap().quote.unwrap();
    assert_eq!(quote.until, at(10_150));
    assert_eq!(market.quoted(at(10_149)), 2.0);
    assert_eq!(market.quoted(at(10_150)), 0.0);
    let ask = Ask {
        client: "eve",
        ..ask
    };
    let (quote, _) = market.admit(at(11_000), &ask, true).unwrap().quote.unwrap();
    assert_eq!(quote.until, at(11_500));
}

#[test]
fn another_controller_continues_at_the_price_as_far_as_it_may() {
    let most = Amount::from_micros(200_000);
    for (controller, expected) in [
        (
            Controller::ProportionalIntegral(ProportionalIntegral::default()),
            300_000,
        ),
        (Controller::Rajomon(Rajomon::default()), 300_000),
        (Controller::Steps(Steps::default()), 300_000),
        (
            Controller::Rajomon(Rajomon {
                most,
                ..Rajomon::default()
            }),
            200_000,
        ),
    ] {
        let (mut market, _) = market();
        market.change(Terms {
            controller: controller.clone(),
            ..terms()
        });
        market.observe(seen(400, 0.75), 1.0);
        assert_eq!(
            market.current(false).price,
            price(expected),
            "{}",
            controller.name()
        );
    }
}

#[test]
fn another_currency_starts_at_0_and_ends_every_quote() {
    let (mut market, token) = market();
    let usd = "USD".parse().unwrap();
    let terms = Terms {
        currency: usd,
        ..terms()
    };
    market.change(terms);
    assert_eq!(market.current(false).price, Amount::ZERO.to_money(usd));
    // The price is 0, but a request with an expired quote is admitted on another ground only.
    let ask = Ask {
        client: "ada",
        token: Some(&token),
        ..Ask::default()
    };
    assert_eq!(market.admit(at(400), &ask, true).unwrap().by, By::Free);
    assert_eq!(market.quoted(at(400)), 0.0);
    // A new quote does not make the old token valid.
    let rich = Ask {
        client: "ada",
        most: Some(Amount::from_micros(900_000).to_money(usd)),
        ..Ask::default()
    };
    assert!(market.admit(at(400), &rich, true).unwrap().quote.is_some());
    assert_eq!(market.admit(at(400), &ask, true).unwrap().by, By::Free);
}

#[test]
fn an_overused_quote_states_when_it_can_be_used_again() {
    let (mut market, token) = market();
    let ask = Ask {
        client: "ada",
        token: Some(&token),
        ..Ask::default()
    };
    while market.admit(at(400), &ask, false).is_ok() {}
    let wait = market.wait(at(400), &ask).unwrap();
    assert!(!wait.is_zero());
    assert!(market.admit(at(400) + wait, &ask, false).is_ok());
    assert_eq!(market.wait(at(20_000), &ask), None);
}
