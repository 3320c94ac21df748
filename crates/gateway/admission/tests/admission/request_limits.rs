//! Limits of a route and of clients.

use posthaste_admission::{ClientLimits, Exceeded, Limited, RequestLimits};
use posthaste_units::Span;

use crate::at;

fn limits(rate: Option<(f64, u32)>, concurrency: Option<u32>) -> RequestLimits {
    RequestLimits { rate, concurrency }
}

#[test]
fn a_rate_and_a_number_in_service_are_limited() {
    let both = limits(Some((10.0, 2)), Some(2));
    let mut route = Limited::new(&both);
    assert_eq!(route.enter(at(0), &both), Ok(()));
    assert_eq!(route.enter(at(0), &both), Ok(()));
    assert_eq!(route.enter(at(500), &both), Err(Exceeded::Concurrency));
    route.leave();
    assert_eq!(route.enter(at(500), &both), Ok(()));
    route.leave();
    assert_eq!(route.enter(at(500), &both), Ok(()));
    route.leave();
    let wait = Exceeded::Rate(Span::from_millis(100));
    assert_eq!(route.enter(at(500), &both), Err(wait));
    assert_eq!(route.enter(at(600), &both), Ok(()));
}

#[test]
fn each_client_has_limits_of_its_own() {
    let mut clients = ClientLimits::new(limits(Some((1.0, 1)), Some(1)));
    let first = clients.enter(at(0), 1).expect("the first request");
    assert_eq!(clients.enter(at(0), 1), Err(Exceeded::Concurrency));
    clients.leave(first);
    let wait = Exceeded::Rate(Span::from_millis(1000));
    assert_eq!(clients.enter(at(0), 1), Err(wait));
    assert!(clients.enter(at(0), 2).is_ok());
}

#[test]
fn changes_keep_what_is_used_up() {
    let mut clients = ClientLimits::new(limits(Some((1.0, 1)), None));
    let first = clients.enter(at(0), 1).expect("the first request");
    clients.change(at(0), limits(Some((10.0, 1)), Some(1)));
    assert_eq!(clients.enter(at(0), 1), Err(Exceeded::Concurrency));
    clients.leave(first);
    assert!(matches!(clients.enter(at(0), 1), Err(Exceeded::Rate(_))));
    assert!(clients.enter(at(100), 1).is_ok());
}

/// The state of a client that used nothing up is not needed, so the clients that came first do not keep others out.
#[test]
fn too_many_clients_share_one_state_until_others_are_idle() {
    let mut clients = ClientLimits::new(limits(Some((1.0, 1)), None));
    for client in 0..1 << 16 {
        let entered = clients.enter(at(0), client).expect("its first request");
        clients.leave(entered);
    }
    let other = clients.enter(at(0), 1 << 20).expect("the first beyond");
    clients.leave(other);
    assert!(clients.enter(at(0), 1 << 21).is_err(), "the second beyond");
    assert_eq!(clients.beyond(), 2);
    for client in 0..1024 {
        let _ = clients.enter(at(2_000), (1 << 22) + client);
    }
    let (before, entered) = (clients.beyond(), clients.enter(at(2_000), 1 << 23));
    assert!(entered.is_ok());
    assert_eq!(clients.beyond(), before, "it has a state of its own");
}
