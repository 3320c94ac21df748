//! Services with limits of their own: the fault of one upstream, or of one route, leaves the others alone.

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread;
use std::time::Duration;

use posthaste_gateway::{RunningGateway, start};
use posthaste_gateway_config::GatewayConfig;

use crate::priced::metrics;
use crate::support::{OK, TestClient, TestOrigin, get, wait_until};

/// A gateway with the policy `limit` and routes with these paths, upstreams and keys.
fn gateway(more: &str, routes: &[(&str, &TestOrigin, &str)]) -> RunningGateway {
    let mut text =
        format!("listen = \"127.0.0.1:0\"\n[protection]\npolicy = \"limit\"\nmost = 8\n{more}\n");
    for (path, origin, keys) in routes {
        let upstream = origin.address;
        text += &format!("[[route]]\npath = \"{path}\"\nupstream = [\"{upstream}\"]\n{keys}\n");
    }
    start(GatewayConfig::read(&text).unwrap()).unwrap()
}

/// Sends so many requests that the origin holds back.
fn hang(gateway: &RunningGateway, path: &str, count: u32) -> Vec<TestClient> {
    let ask = |_| {
        let mut client = TestClient::new(gateway);
        client.send(format!("GET {path} HTTP/1.1\r\nHost: s\r\n\r\n"));
        client
    };
    let clients = (0..count).map(ask).collect();
    let is_in = || metrics(gateway)("in_service ") == f64::from(count.min(8));
    wait_until("they are in service", is_in);
    clients
}

#[test]
fn an_upstream_that_hangs_takes_no_slot_of_another() {
    let (hung, release) = TestOrigin::holding();
    let healthy = TestOrigin::answering(OK);
    let gateway = gateway("", &[("/slow", &hung, ""), ("/", &healthy, "")]);
    let _held = hang(&gateway, "/slow", 8);
    assert_eq!(get(&gateway, "/slow", "").status, 503);
    for _ in 0..100 {
        assert_eq!(get(&gateway, "/", "").status, 200);
    }
    let limit = |origin: &TestOrigin| {
        let service = format!("service_limit{{service=\"{}\"}}", origin.address);
        metrics(&gateway)(&service)
    };
    assert_eq!((limit(&hung), limit(&healthy)), (8.0, 8.0));
    release.tell();
}

/// Both routes have the same upstream: requests that take longer than usual for the quick one do not count for it.
#[test]
fn a_route_that_hangs_takes_no_slot_of_another_of_its_upstream() {
    let (origin, release) = TestOrigin::holding();
    let gateway = gateway("", &[("/slow", &origin, ""), ("/", &origin, "")]);
    for _ in 0..20 {
        assert_eq!(get(&gateway, "/", "").status, 200);
    }
    let _held = hang(&gateway, "/slow", 8);
    let rejected = AtomicU32::new(0);
    for _ in 0..100 {
        let status = get(&gateway, "/", "").status;
        rejected.fetch_add(u32::from(status != 200), SeqCst);
    }
    assert_eq!(rejected.into_inner(), 0);
    thread::sleep(Duration::from_millis(1_200));
    let service = format!("service_hanging{{service=\"{}\"}}", origin.address);
    wait_until("they count as hanging", || {
        metrics(&gateway)(&service) == 8.0
    });
    release.tell();
}

#[test]
fn a_name_joins_services_and_separates_them() {
    let (first, release) = TestOrigin::holding();
    let (second, other_release) = TestOrigin::holding();
    let joined = "service = \"shop\"";
    let gateway = gateway(
        "wait = \"0s\"",
        &[
            ("/slow/a", &first, joined),
            ("/slow/b", &second, joined),
            ("/slow/c", &first, "service = \"other\""),
        ],
    );
    let _held = hang(&gateway, "/slow/a", 8);
    // The equal share of a second kind is four slots; the fifth request is rejected.
    let ask = |_| {
        let mut client = TestClient::new(&gateway);
        client.send("GET /slow/b HTTP/1.1\r\nHost: s\r\n\r\n");
        client
    };
    let _shared: Vec<_> = (0..4).map(ask).collect();
    wait_until("they are in service", || {
        metrics(&gateway)("service_in_service{service=\"shop\"}") == 12.0
    });
    assert_eq!(get(&gateway, "/slow/b", "").status, 503);
    let mut other = TestClient::new(&gateway);
    other.send("GET /slow/c HTTP/1.1\r\nHost: s\r\n\r\n");
    wait_until("it is in service", || {
        metrics(&gateway)("service_in_service{service=\"other\"}") == 1.0
    });
    release.tell();
    other_release.tell();
}

#[test]
fn exempt_routes_are_served_at_a_full_limit() {
    let (origin, release) = TestOrigin::holding();
    let gateway = gateway(
        "wait = \"0s\"",
        &[("/slow", &origin, ""), ("/login", &origin, "exempt = true")],
    );
    let _held = hang(&gateway, "/slow", 8);
    assert_eq!(get(&gateway, "/slow", "").status, 503);
    for _ in 0..20 {
        assert_eq!(get(&gateway, "/login", "").status, 200);
    }
    release.tell();
}

#[test]
fn a_reserve_is_never_lent() {
    let (origin, release) = TestOrigin::holding();
    let tiers = "[[protection.tier]]\nname = \"high\"\nshare = \"50%\"\nreserve = \"25%\"\n\
                 match = [{ route = \"/\" }]\n\
                 [[protection.tier]]\nname = \"low\"\nshare = \"50%\"\n";
    let gateway = gateway(
        &format!("wait = \"0s\"\n{tiers}"),
        &[("/slow", &origin, ""), ("/", &origin, "")],
    );
    let _held = hang(&gateway, "/slow", 6);
    assert_eq!(get(&gateway, "/slow", "").status, 503);
    assert_eq!(get(&gateway, "/", "").status, 200);
    release.tell();
}

/// Requests of an exempt route fill the limit. One that waits beside the reserve gets no slot, and leaves none behind.
#[test]
fn a_request_that_waits_beside_a_reserve_leaves_no_slot_behind() {
    let (origin, release) = TestOrigin::holding();
    let tiers = "[[protection.tier]]\nname = \"high\"\nshare = \"50%\"\nreserve = \"50%\"\n\
                 match = [{ route = \"/high\" }]\n\
                 [[protection.tier]]\nname = \"low\"\nshare = \"50%\"\n";
    let gateway = gateway(
        &format!("wait = \"200ms\"\n{tiers}"),
        &[
            ("/slow", &origin, "exempt = true"),
            ("/high", &origin, ""),
            ("/", &origin, ""),
        ],
    );
    let _held = hang(&gateway, "/slow", 8);
    assert_eq!(get(&gateway, "/", "").status, 503);
    release.tell();
    wait_until("nothing is in service", || {
        metrics(&gateway)("in_service ") == 0.0
    });
}
