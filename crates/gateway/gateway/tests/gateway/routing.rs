//! Routes by host and path, with limits and time limits of their own.

use std::io::Write as _;
use std::time::Instant;

use posthaste_gateway::{GatewayConfig, RunningGateway, start};

use crate::http2_support::{Call, Http2Origin};
use crate::support::{OK, PATIENCE, TestClient, TestOrigin, config, get, wait_until};
use crate::watching::fetch_admin;

/// An upstream that replies with its name.
fn named(name: &str) -> TestOrigin {
    let length = name.len();
    TestOrigin::answering(format!(
        "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{name}"
    ))
}

/// The text of a route, with `more` keys.
pub(crate) fn route(host: Option<&str>, path: &str, origin: &TestOrigin, more: &str) -> String {
    let host = host.map_or(String::new(), |host| format!("host = {host:?}\n"));
    let upstream = origin.address;
    format!("[[route]]\n{host}path = {path:?}\nupstream = [\"{upstream}\"]\n{more}\n")
}

pub(crate) fn read(text: &str) -> GatewayConfig {
    GatewayConfig::read(&format!("listen = \"127.0.0.1:0\"\n{text}")).unwrap()
}

/// Sends a request with these lines and returns the status and the body.
fn ask(gateway: &RunningGateway, lines: &str) -> (u16, String) {
    let reply = TestClient::new(gateway)
        .send(format!("{lines}\r\n\r\n"))
        .reply(false)
        .unwrap();
    (reply.status, String::from_utf8(reply.body).unwrap())
}

/// A gateway with routes of several hosts, and the upstreams.
fn shops() -> (RunningGateway, [TestOrigin; 6]) {
    let origins = ["any", "any-a", "shop", "shop-a", "below", "address"].map(named);
    let [any, any_a, shop, shop_a, below, address] = &origins;
    let text = [
        route(None, "/", any, ""),
        route(None, "/a", any_a, ""),
        route(Some("Shop.Example"), "/b", shop, ""),
        route(Some("shop.example"), "/b/a", shop_a, ""),
        route(Some("*.shop.example"), "/", below, ""),
        route(Some("127.0.0.1"), "/", address, ""),
        route(Some("::1"), "/", address, ""),
    ];
    (start(read(&text.concat())).unwrap(), origins)
}

#[test]
fn the_most_specific_host_and_the_longest_path_win() {
    let (gateway, _origins) = shops();
    for (target, host, wanted) in [
        ("/", "other", "any"),
        ("/a/1", "other", "any-a"),
        ("/b", "shop.example", "shop"),
        ("/b/a", "shop.example", "shop-a"),
        ("/b/ab", "shop.example", "shop"),
        ("/b", "SHOP.example", "shop"),
        ("/b", "shop.example:8080", "shop"),
        ("/b", "shop.example:", "shop"),
        ("/b", "shop.example.", "shop"),
        ("/b", "shop.example.:80", "shop"),
        ("http://Shop.example/b", "shop.example", "shop"),
        ("http://shop.example:80/b", "shop.example", "shop"),
        ("/b", "a.shop.example", "below"),
        ("/b", "b.a.shop.example", "below"),
        ("/b", "myshop.example", "any"),
        ("/b", "shop.example.org", "any"),
        ("/b", "shop%2eexample", "any"),
        ("/b", "127.0.0.1:99", "address"),
        ("/b", "[::1]", "address"),
        ("/b", "[0:0::1]:99", "address"),
        ("/b", "[::2]", "any"),
    ] {
        let found = ask(&gateway, &format!("GET {target} HTTP/1.1\r\nHost: {host}"));
        assert_eq!(found, (200, wanted.to_owned()), "{target} {host}");
    }
    // HTTP/1.0 requires no Host.
    let found = ask(&gateway, "GET /a HTTP/1.0");
    assert_eq!(found, (200, "any-a".to_owned()));
}

#[test]
fn a_host_with_routes_does_not_fall_back_to_others() {
    let (gateway, origins) = shops();
    let (status, text) = ask(&gateway, "GET /a HTTP/1.1\r\nHost: shop.example");
    assert_eq!(status, 404);
    assert!(!text.contains("shop") && !text.contains("/a"), "{text}");
    let only = [
        route(Some("shop.example"), "/", &origins[2], ""),
        route(Some("other.example"), "/", &origins[4], ""),
    ];
    let gateway = start(read(&only.concat())).unwrap();
    assert_eq!(
        ask(&gateway, "GET / HTTP/1.1\r\nHost: third.example").0,
        404
    );
    assert_eq!(ask(&gateway, "GET / HTTP/1.0").0, 404);
    assert_eq!(ask(&gateway, "GET / HTTP/1.1\r\nHost: shop.example").0, 200);
}

#[test]
fn paths_are_compared_with_routes_of_the_same_host_only() {
    let (public, private) = (named("public"), named("private"));
    let text = [
        route(Some("a.example"), "/", &public, ""),
        route(Some("a.example"), "/private", &private, ""),
        route(Some("b.example"), "/", &public, ""),
    ];
    let gateway = start(read(&text.concat())).unwrap();
    let ask =
        |path: &str, host: &str| ask(&gateway, &format!("GET {path} HTTP/1.1\r\nHost: {host}"));
    assert_eq!(ask("/x/..%2fprivate", "a.example").0, 400);
    assert_eq!(ask("/x/..%2fprivate", "b.example").1, "public");
    assert_eq!(ask("/x/../private", "a.example").0, 400);
    assert_eq!(ask("/%70rivate", "a.example").1, "private");
}

#[test]
fn ambiguous_hosts_select_no_route() {
    let (gateway, origins) = shops();
    for lines in [
        "GET http://a.shop.example/ HTTP/1.1\r\nHost: shop.example",
        "GET / HTTP/1.1\r\nHost: shop.example\r\nHost: a.shop.example",
        "GET / HTTP/1.1\r\nHost: shop.example, a.shop.example",
        "GET / HTTP/1.1\r\nHost: .shop.example",
        "GET / HTTP/1.1\r\nHost: a@shop.example",
    ] {
        assert_eq!(ask(&gateway, lines).0, 400, "{lines}");
    }
    assert!(origins.iter().all(|origin| origin.request_count() == 0));
}

#[test]
fn the_authority_of_http_2_selects_the_route() {
    let (gateway, _origins) = shops();
    for (authority, wanted) in [("Shop.example:80", "shop"), ("x.shop.example", "below")] {
        let mut client = TestClient::new(&gateway);
        client.send(http2_get(authority, "/b"));
        let mut seen = Vec::new();
        wait_until("the upstream's name arrives", || {
            seen.extend(client.some());
            seen.windows(wanted.len())
                .any(|window| window == wanted.as_bytes())
        });
    }
}

/// The start of an HTTP/2 connection with one GET. Names and values are literals without indexing (RFC 7541, section
/// 6.2.2).
fn http2_get(authority: &str, path: &str) -> Vec<u8> {
    let mut block = vec![0x82, 0x86];
    for (index, value) in [(1, authority), (4, path)] {
        block.extend([index, u8::try_from(value.len()).unwrap()]);
        block.extend(value.as_bytes());
    }
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0".to_vec();
    bytes.extend([0, 0, u8::try_from(block.len()).unwrap(), 1, 5, 0, 0, 0, 1]);
    bytes.extend(block);
    bytes
}

#[test]
fn routes_are_shown_with_their_hosts() {
    let (gateway, _origins) = shops();
    let status = String::from_utf8(fetch_admin(&gateway, "/status.json").body).unwrap();
    let metrics = String::from_utf8(fetch_admin(&gateway, "/metrics").body).unwrap();
    let page = String::from_utf8(fetch_admin(&gateway, "/status").body).unwrap();
    for label in ["/a", "Shop.Example/b", "*.shop.example/", "[::1]/"] {
        assert!(
            status.contains(&format!("\"route\":\"{label}\"")),
            "{status}"
        );
        assert!(metrics.contains(&format!("route=\"{label}\"")), "{metrics}");
        assert!(page.contains(&format!("<td>{label}</td>")), "{page}");
    }
}

#[test]
fn hosts_change_with_the_configuration() {
    let (old, new) = (named("old"), named("new"));
    let gateway = start(read(&route(Some("a.example"), "/", &old, ""))).unwrap();
    let ask = || ask(&gateway, "GET / HTTP/1.1\r\nHost: b.example").0;
    assert_eq!(ask(), 404);
    let both = [
        route(Some("a.example"), "/", &old, ""),
        route(Some("b.example"), "/", &new, ""),
    ];
    gateway.reload(read(&both.concat())).unwrap();
    wait_until("the new host has a route", || ask() == 200);
}

#[test]
fn a_route_has_its_own_body_limit() {
    let origin = named("ok");
    let text = [
        "[limits]\nbody = \"8B\"\n".to_owned(),
        route(None, "/", &origin, ""),
        route(None, "/large", &origin, "[route.limits]\nbody = \"1kB\""),
        route(None, "/small", &origin, "[route.limits]\nbody = \"2B\""),
    ];
    let gateway = start(read(&text.concat())).unwrap();
    let body = |length: usize| {
        let chunk = "x".repeat(length);
        (
            format!("Content-Length: {length}\r\n\r\n{chunk}"),
            format!("Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n{chunk}\r\n0\r\n\r\n"),
        )
    };
    for (path, length, wanted) in [
        ("/", 8, 200),
        ("/", 9, 413),
        ("/large", 9, 200),
        ("/large", 1001, 413),
        ("/small", 2, 200),
        ("/small", 3, 413),
    ] {
        let (sized, chunked) = body(length);
        for body in [sized, chunked] {
            let mut client = TestClient::new(&gateway);
            client.send(format!("POST {path} HTTP/1.1\r\nHost: s\r\n{body}"));
            let status = client.reply(false).unwrap().status;
            assert_eq!(status, wanted, "{path} {length}");
        }
    }
}

#[test]
fn a_route_has_its_own_time_limits() {
    let silent = TestOrigin::start(|line| while line.request().is_some() {});
    let stalled = TestOrigin::start(|line| {
        while line.request().is_some() {
            line.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nx");
            let _ = line.stream.flush();
        }
    });
    let text = [
        "[timeouts]\nreply = \"600s\"\nreply_body = \"600s\"\n".to_owned(),
        route(
            None,
            "/reply",
            &silent,
            "[route.timeouts]\nreply = \"50ms\"",
        ),
        route(
            None,
            "/body",
            &stalled,
            "[route.timeouts]\nreply_body = \"50ms\"",
        ),
    ];
    let gateway = start(read(&text.concat())).unwrap();
    let start = Instant::now();
    assert_eq!(get(&gateway, "/reply", "").status, 504);
    let reply = TestClient::new(&gateway)
        .send("GET /body HTTP/1.1\r\nHost: s\r\n\r\n")
        .reply(false);
    assert!(reply.is_none_or(|reply| !reply.whole || reply.status == 504));
    assert!(start.elapsed() < PATIENCE);
}

#[test]
fn options_for_the_whole_server_has_the_route_of_its_root() {
    let origin = TestOrigin::answering(OK);
    let http2 = Http2Origin::start(async |mut call: Call| call.answer("ok"));
    let ask = |gateway: &RunningGateway, method: &str| {
        let request = format!("{method} * HTTP/1.1\r\nHost: s\r\n\r\n");
        let reply = TestClient::new(gateway).send(request).reply(false);
        reply.unwrap().status
    };
    let gateway = start(config(&[origin.address], "")).unwrap();
    assert_eq!(ask(&gateway, "OPTIONS"), 200);
    assert!(origin.last_request().starts_with("OPTIONS * HTTP/1.1\r\n"));
    assert_eq!(ask(&gateway, "GET"), 400);
    let gateway = http2.gateway("");
    assert_eq!(ask(&gateway, "OPTIONS"), 200);
    assert_eq!(http2.requests.lock().unwrap()[0].uri().path(), "*");
}
