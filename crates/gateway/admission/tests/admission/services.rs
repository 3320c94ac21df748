//! Kinds of requests on one service: two that hang, their number in service, and the share of each.

use posthaste_admission::{
    Arrival, Limit, LimitBounds, Limiter, Next, ProtectedService, ServiceReply, Ticket, TierShare,
    TierTerms,
};
use posthaste_units::{Instant, Ratio, Span};

use crate::at;

const LIMIT: u32 = 16;

/// A service with a limit that does not change. Nothing waits.
fn service() -> ProtectedService {
    with_tiers(TierTerms::single(Span::ZERO, 0))
}

/// Two tiers with half of the limit each, of which the first keeps this part in reserve. Requests wait.
fn two_tiers(reserve: f64) -> ProtectedService {
    let share = |reserve| TierShare {
        share: Ratio::new(0.5).unwrap(),
        reserve: Ratio::new(reserve).unwrap(),
    };
    with_tiers(TierTerms {
        shares: vec![share(reserve), share(0.0)],
        wait: Span::from_secs(1),
        most_waiting: 100,
    })
}

fn with_tiers(tiers: TierTerms) -> ProtectedService {
    let bounds = LimitBounds {
        least: LIMIT,
        start: LIMIT,
        most: LIMIT,
    };
    let limit = Limit::new(Limiter::default(), bounds);
    ProtectedService::new(Some(limit), tiers, at(0))
}

/// A request of a kind that is answered at once after 5 ms. False if it is rejected.
fn answered(service: &mut ProtectedService, ms: u64, kind: usize) -> bool {
    let Arrival::Admitted(ticket) = service.arrive(at(ms), kind, 0, 0) else {
        return false;
    };
    let among = service.among(at(ms), kind);
    service.reply(ServiceReply {
        kind,
        time: Span::from_millis(5),
        among,
        is_failed: false,
    });
    service.leave(&ticket, at(ms + 5));
    true
}

fn is_admitted(service: &mut ProtectedService, now: Instant, kind: usize) -> bool {
    matches!(service.arrive(now, kind, 0, 0), Arrival::Admitted(_))
}

/// Each kind fills its slots once, and a third kind is served all the time.
#[test]
fn kinds_that_hang_have_at_most_one_and_a_half_limits_each() {
    let mut service = service();
    for ms in (0..1_000).step_by(10) {
        assert!((0..3).all(|kind| answered(&mut service, ms, kind)));
    }
    let mut rejected = 0;
    for ms in (1_000..20_000).step_by(10) {
        for kind in [0, 1] {
            is_admitted(&mut service, at(ms), kind);
            assert!(service.in_service() <= 2 * LIMIT * 3 / 2, "at {ms} ms");
        }
        rejected += u32::from(!answered(&mut service, ms + 1, 2));
    }
    assert!(service.in_service() > LIMIT, "{}", service.in_service());
    assert!(service.hanging(at(20_000)) >= LIMIT);
    assert!(rejected <= 10, "{rejected} of 1,900 of a kind that is well");
}

#[test]
fn one_kind_that_hangs_has_at_most_one_and_a_half_limits() {
    let mut service = service();
    for ms in (0..20_000).step_by(10) {
        is_admitted(&mut service, at(ms), 0);
        assert!(service.in_service() <= LIMIT * 3 / 2, "at {ms} ms");
    }
    assert_eq!(service.in_service(), LIMIT * 3 / 2);
}

/// Whoever asks for a slot without taking it, as a market does, gets the answer of an arrival.
#[test]
fn a_kind_below_its_share_has_a_slot() {
    let mut service = service();
    while is_admitted(&mut service, at(0), 0) {}
    assert_eq!(service.in_service(), LIMIT);
    assert!(!service.has_slot(at(0), 0));
    for _ in 0..LIMIT / 2 {
        assert!(service.has_slot(at(0), 1));
        assert!(is_admitted(&mut service, at(0), 1));
    }
    assert!(!service.has_slot(at(0), 1));
    assert_eq!(service.in_service(), LIMIT * 3 / 2);
}

fn waits(service: &mut ProtectedService, ms: u64, tier: usize) -> Ticket {
    match service.arrive(at(ms), 1, tier, 0) {
        Arrival::Waits(ticket) => ticket,
        other => panic!("{other:?}"),
    }
}

/// Requests that no limit stops fill the service. The share of another kind does not give the reserve away.
#[test]
fn a_share_lends_no_reserve() {
    let mut service = two_tiers(0.5);
    for _ in 0..LIMIT {
        service.enter(at(0), 0, 1, 0);
    }
    let waiting = waits(&mut service, 1, 1);
    assert_eq!(service.pop(at(1)), None);
    assert!(matches!(
        service.arrive(at(2), 1, 0, 0),
        Arrival::Admitted(_)
    ));
    assert!(service.cancel(&waiting));
}

#[test]
fn the_more_important_request_of_a_kind_has_its_share_first() {
    let mut service = two_tiers(0.0);
    for _ in 0..LIMIT {
        service.enter(at(0), 0, 1, 0);
    }
    let shared: Vec<Ticket> = (0..LIMIT / 2)
        .map(|_| match service.arrive(at(1), 1, 1, 0) {
            Arrival::Admitted(ticket) => ticket,
            other => panic!("{other:?}"),
        })
        .collect();
    let _less = waits(&mut service, 2, 1);
    let more = waits(&mut service, 3, 0);
    assert_eq!(service.pop(at(3)), None);
    service.leave(&shared[0], at(4));
    assert_eq!(service.pop(at(4)), Some(Next::Admitted(more)));
}
