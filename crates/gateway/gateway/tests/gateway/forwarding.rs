//! Forwarding: unchanged parts of messages, and required changes.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use posthaste_gateway::start;

use crate::support::{TestClient, TestOrigin, config, field, gateway, get};
use crate::watching::{fetch_admin, value};

const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: text/plain\r\n\r\nhello";

#[test]
fn a_reply_passes_and_the_upstream_learns_for_whom_it_was() {
    let origin = TestOrigin::answering(HELLO);
    let gateway = gateway(&origin);
    let reply = get(&gateway, "/a?b=c", "X-Mine: 1\r\n");
    assert_eq!((reply.status, &*reply.body), (200, &b"hello"[..]));
    let request = origin.last_request().to_lowercase();
    assert!(request.starts_with("get /a?b=c http/1.1\r\n"), "{request}");
    assert_eq!(field(&request, "host"), Some("shop"));
    assert_eq!(field(&request, "x-mine"), Some("1"));
    assert_eq!(field(&request, "x-forwarded-for"), Some("127.0.0.1"));
    assert_eq!(field(&request, "x-forwarded-proto"), Some("http"));
    assert_eq!(field(&request, "via"), Some("1.1 posthaste"));
}

#[test]
fn hop_by_hop_fields_are_not_forwarded() {
    let origin = TestOrigin::answering(
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: X-Theirs\r\nX-Theirs: 1\r\nKeep-Alive: timeout=5\r\n\r\nok",
    );
    let gateway = gateway(&origin);
    let reply = get(
        &gateway,
        "/",
        "Connection: keep-alive, X-Ours\r\nX-Ours: 1\r\nUpgrade: websocket\r\nTE: trailers\r\n",
    );
    let request = origin.last_request().to_lowercase();
    for gone in ["connection", "x-ours", "upgrade", "te"] {
        assert_eq!(field(&request, gone), None, "{request}");
    }
    for gone in ["x-theirs", "keep-alive"] {
        assert_eq!(field(&reply.head, gone), None, "{}", reply.head);
    }
}

#[test]
fn connection_takes_away_nothing_that_the_upstream_needs() {
    let origin = TestOrigin::answering(HELLO);
    let gateway = gateway(&origin);
    let named = "Host, Content-Length, Transfer-Encoding, Via, X-Forwarded-For, X-Forwarded-Proto";
    let mut client = TestClient::new(&gateway);
    client.send(format!(
        "POST / HTTP/1.1\r\nHost: shop\r\nConnection: {named}, close\r\nX-Forwarded-For: 192.0.2.1\r\nContent-Length: 5\r\n\r\nhello"
    ));
    assert_eq!(client.reply(false).unwrap().status, 200);
    let request = origin.last_request().to_lowercase();
    assert_eq!(field(&request, "host"), Some("shop"), "{request}");
    assert_eq!(field(&request, "content-length"), Some("5"));
    assert_eq!(field(&request, "transfer-encoding"), None);
    assert_eq!(field(&request, "x-forwarded-for"), Some("127.0.0.1"));
    assert_eq!(field(&request, "x-forwarded-proto"), Some("http"));
    assert_eq!(field(&request, "via"), Some("1.1 posthaste"));
}

#[test]
fn those_before_us_stay_in_the_list_and_cookies_stay_as_sent() {
    let origin = TestOrigin::answering(HELLO);
    let trust = "[trust]\nforwarded = [\"127.0.0.1\"]";
    let gateway = start(config(&[origin.address], trust)).unwrap();
    let fields = "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-For: 192.0.2.2\r\nCookie: a=1\r\nCookie: b=2\r\n";
    get(&gateway, "/", fields);
    let request = origin.last_request().to_lowercase();
    let values = |name: &str| -> Vec<_> {
        let lines = request.lines().filter_map(|line| line.split_once(": "));
        lines
            .filter(|(key, _)| *key == name)
            .map(|(_, value)| value.to_owned())
            .collect()
    };
    assert_eq!(
        values("x-forwarded-for"),
        ["192.0.2.1", "192.0.2.2", "127.0.0.1"]
    );
    assert_eq!(values("cookie"), ["a=1", "b=2"]);
}

#[test]
fn bodies_reach_the_upstream_in_either_framing() {
    let origin = TestOrigin::answering(HELLO);
    let gateway = gateway(&origin);
    let mut client = TestClient::new(&gateway);
    client.send("POST / HTTP/1.1\r\nHost: s\r\nContent-Length: 4\r\n\r\nbody");
    assert_eq!(client.reply(false).unwrap().status, 200);
    assert!(origin.last_request().ends_with("\r\n\r\nbody"));
    client.send("POST / HTTP/1.1\r\nHost: s\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.send("3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n");
    assert_eq!(client.reply(false).unwrap().status, 200);
    let request = origin.last_request();
    assert!(
        request.ends_with("3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n"),
        "{request}"
    );
    client.send("GET / HTTP/1.1\r\nHost: s\r\nTransfer-Encoding: chunked\r\n\r\n");
    client.send("3\r\nabc\r\n0\r\n\r\n");
    assert_eq!(client.reply(false).unwrap().status, 200);
    let request = origin.last_request();
    assert!(request.ends_with("3\r\nabc\r\n0\r\n\r\n"), "{request}");
}

#[test]
fn one_connection_to_the_upstream_serves_many_requests() {
    let chunks = |media: &str, trailers: &str| {
        format!(
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: {media}\r\n\r\n5\r\nhello\r\n0\r\n{trailers}\r\n"
        )
    };
    for reply in [
        HELLO.to_owned(),
        chunks("image/png", ""),
        chunks("image/png", "X-Sum: 7\r\n"),
        // Read ahead, since it might be compressed.
        chunks("text/xml", ""),
        chunks("text/xml", "X-Sum: 7\r\n"),
    ] {
        let origin = TestOrigin::answering(reply);
        let gateway = gateway(&origin);
        for _ in 0..5 {
            let mut client = TestClient::new(&gateway);
            for _ in 0..5 {
                client.send("GET / HTTP/1.1\r\nHost: s\r\nTE: trailers\r\n\r\n");
                assert!(client.reply(false).unwrap().body.starts_with(b"hello"));
            }
        }
        assert_eq!(origin.request_count(), 25);
        assert_eq!(origin.connections.load(SeqCst), 1);
    }
}

#[test]
fn a_crowd_goes_on_to_an_upstream_that_waits_for_all_of_it() {
    const CROWD: usize = 100;
    let all = Barrier::new(CROWD);
    let origin = TestOrigin::start(move |line| {
        while line.request().is_some() {
            all.wait();
            line.write(HELLO);
        }
    });
    let gateway = gateway(&origin);
    let mut crowd: Vec<_> = (0..CROWD).map(|_| TestClient::new(&gateway)).collect();
    for client in &mut crowd {
        client.send("GET / HTTP/1.1\r\nHost: s\r\n\r\n");
    }
    for client in &mut crowd {
        assert_eq!(client.reply(false).unwrap().status, 200);
    }
    // All except the 32 that get permits at once.
    let text = String::from_utf8(fetch_admin(&gateway, "/metrics").body).unwrap();
    assert_eq!(value(&text, "posthaste_gateway_queued_total"), 68.0);
}

#[test]
fn a_connection_that_the_upstream_has_closed_costs_no_request() {
    let origin = TestOrigin::start(|line| {
        // One reply, then silence and a close, like an idle timeout.
        line.request();
        line.write(HELLO);
    });
    let gateway = gateway(&origin);
    for _ in 0..20 {
        assert_eq!(get(&gateway, "/", "").body, b"hello");
    }
}

#[test]
fn pieces_pass_as_they_come() {
    let (seen, may_go_on) = std::sync::mpsc::channel();
    let may_go_on = std::sync::Mutex::new(may_go_on);
    let origin = TestOrigin::start(move |line| {
        line.request();
        line.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
        let _ = may_go_on.lock().unwrap().recv();
        line.write("3\r\ndef\r\n0\r\n\r\n");
    });
    let gateway = gateway(&origin);
    let mut client = TestClient::new(&gateway);
    client.send("GET / HTTP/1.1\r\nHost: s\r\n\r\n");
    let mut reply = Vec::new();
    while !reply.ends_with(b"3\r\nabc\r\n") {
        reply.extend(client.some());
    }
    seen.send(()).unwrap();
    while !reply.ends_with(b"3\r\ndef\r\n0\r\n\r\n") {
        reply.extend(client.some());
    }
}

#[test]
fn trailers_pass() {
    let origin = TestOrigin::answering(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 7\r\n\r\n",
    );
    let gateway = gateway(&origin);
    let reply = get(&gateway, "/", "TE: trailers\r\n");
    assert!(reply.whole);
    assert_eq!(String::from_utf8_lossy(&reply.body), "abc\nx-sum: 7");
}

#[test]
fn trailers_pass_behind_what_might_have_been_compressed() {
    let origin = TestOrigin::answering(
        "HTTP/1.1 200 OK\r\nContent-Type: text/xml\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 7\r\n\r\n",
    );
    let gateway = gateway(&origin);
    let reply = get(&gateway, "/", "TE: trailers\r\n");
    assert!(reply.whole);
    assert_eq!(String::from_utf8_lossy(&reply.body), "abc\nx-sum: 7");
}

#[test]
fn replies_without_a_body_have_none() {
    for (request, reply) in [
        ("HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"),
        ("GET", "HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n"),
    ] {
        let origin = TestOrigin::answering(reply);
        let gateway = gateway(&origin);
        let mut client = TestClient::new(&gateway);
        for _ in 0..2 {
            client.send(format!("{request} / HTTP/1.1\r\nHost: s\r\n\r\n"));
            let got = client.reply(request == "HEAD").unwrap();
            assert!(reply.contains(&got.status.to_string()), "{got:?}");
            let length = field(&got.head, "content-length");
            assert_eq!(length.is_some(), request == "HEAD", "{got:?}");
        }
        assert_eq!(origin.connections.load(SeqCst), 1);
    }
}

#[test]
fn an_old_client_gets_a_reply_that_it_can_read() {
    let origin = TestOrigin::answering(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    );
    let gateway = gateway(&origin);
    let reply = TestClient::new(&gateway)
        .send("GET / HTTP/1.0\r\n\r\n")
        .rest();
    let reply = String::from_utf8_lossy(&reply);
    // The forwarded request is HTTP/1.1 and has a Host.
    let request = origin.last_request().to_lowercase();
    assert_eq!(field(&request, "host"), Some(&*origin.address.to_string()));
    assert!(
        reply.starts_with("HTTP/1.0 200") && reply.ends_with("\r\n\r\nhello"),
        "{reply}"
    );
}

#[test]
fn the_longest_path_decides_in_whole_segments() {
    let (shop, rest) = (
        TestOrigin::answering("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nshop"),
        TestOrigin::answering("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nrest"),
    );
    let text = format!(
        "listen = \"127.0.0.1:0\"
         [[route]]\npath = \"/\"\nupstream = [\"{}\"]
         [[route]]\npath = \"/shop/\"\nupstream = [\"{}\"]",
        rest.address, shop.address
    );
    let config = posthaste_gateway::GatewayConfig::read(&text).unwrap();
    let gateway = posthaste_gateway::start(config).unwrap();
    for (path, whose) in [
        ("/", "rest"),
        ("/shop", "shop"),
        ("/shop/1?a", "shop"),
        ("/shopping", "rest"),
    ] {
        assert_eq!(get(&gateway, path, "").body, whose.as_bytes(), "{path}");
    }
    let mut client = TestClient::new(&gateway);
    client.send("GET http://Shop:80/shop/2 HTTP/1.1\r\nHost: shop\r\n\r\n");
    assert_eq!(client.reply(false).unwrap().body, b"shop");
    let request = shop.last_request();
    assert!(request.starts_with("GET /shop/2 HTTP/1.1\r\n"), "{request}");
    assert_eq!(field(&request.to_lowercase(), "host"), Some("shop:80"));
}

#[test]
fn the_less_busy_upstream_is_asked_and_a_dead_one_is_left_out() {
    let (slow, fast) = (
        // Answers nothing during the test.
        TestOrigin::start(|line| while line.request().is_some() {}),
        TestOrigin::answering(HELLO),
    );
    let dead = crate::support::closed_port();
    let all = [slow.address, fast.address];
    let gateway = posthaste_gateway::start(config(&all, "")).unwrap();
    let mut first = TestClient::new(&gateway);
    first.send("GET / HTTP/1.1\r\nHost: s\r\n\r\n");
    crate::support::wait_until("the slow one is asked", || slow.request_count() == 1);
    for _ in 0..5 {
        get(&gateway, "/", "");
    }
    assert_eq!((slow.request_count(), fast.request_count()), (1, 5));

    let gateway = posthaste_gateway::start(config(&[dead, fast.address], "")).unwrap();
    let statuses: Vec<_> = (0..10).map(|_| get(&gateway, "/", "").status).collect();
    // Requests of which nothing was sent go to the next upstream.
    assert_eq!(statuses, [200; 10]);
    let text = String::from_utf8(fetch_admin(&gateway, "/metrics").body).unwrap();
    let up = |at| {
        let name = format!("posthaste_gateway_upstream_up{{route=\"/\",upstream=\"{at}\"}}");
        value(&text, &name)
    };
    assert_eq!((up(dead), up(fast.address)), (0.0, 1.0));
}

/// One request waits for the silent upstream; the others do not.
#[test]
fn one_request_finds_out_whether_an_upstream_is_back() {
    let origin = TestOrigin::answering(HELLO);
    let hole = posthaste_serve::listen(([127, 0, 0, 1], 0).into(), 0).unwrap();
    let address = hole.local_addr().unwrap();
    let _full = std::net::TcpStream::connect(address).unwrap();
    // Longer than ten requests take on a busy machine.
    let long = Duration::from_secs(2);
    let mut plan = config(&[address, origin.address], "[timeouts]\nconnect = \"2s\"");
    plan.routes[0].health.failures = 1;
    plan.routes[0].health.every = long.into();
    let gateway = posthaste_gateway::start(plan).unwrap();
    let waits = || {
        let since = std::time::Instant::now();
        assert_eq!(get(&gateway, "/", "").status, 200);
        since.elapsed() >= long
    };
    assert!(waits(), "the first finds out");
    assert!(!waits(), "and then it is known");
    std::thread::sleep(long + Duration::from_millis(100));
    let waited = std::thread::scope(|scope| {
        let all: Vec<_> = (0..10).map(|_| scope.spawn(waits)).collect();
        all.into_iter()
            .map(|one| one.join().unwrap())
            .filter(|waited| *waited)
            .count()
    });
    assert_eq!(waited, 1);
}

#[test]
fn a_reply_in_chunks_has_no_other_length() {
    let both =
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\nb\r\nhello world\r\n0\r\n\r\n";
    for media in ["text/plain", "image/png"] {
        let reply = format!("HTTP/1.1 200 OK\r\nContent-Type: {media}\r\n{both}");
        let origin = TestOrigin::answering(reply);
        let gateway = gateway(&origin);
        let mut client = TestClient::new(&gateway);
        for _ in 0..2 {
            client.send("GET / HTTP/1.1\r\nHost: s\r\n\r\n");
            let reply = client.reply(false).unwrap();
            assert_eq!(reply.body, b"hello world", "{media}: {}", reply.head);
        }
    }
    let origin = TestOrigin::answering("HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok");
    let reply = get(&gateway(&origin), "/", "");
    assert_eq!(
        field(&reply.head, "content-length"),
        Some("2"),
        "{}",
        reply.head
    );
}

/// Two routes: a general upstream, and one for `/account` and below.
fn two_routes() -> (TestOrigin, TestOrigin, posthaste_gateway::RunningGateway) {
    let (open, kept) = (TestOrigin::answering(HELLO), TestOrigin::answering(HELLO));
    let mut both = config(&[open.address], "");
    both.routes
        .push(config(&[kept.address], "").routes.remove(0));
    both.routes[1].path = "/acc%6Funt".to_owned();
    let gateway = posthaste_gateway::start(both).unwrap();
    (open, kept, gateway)
}

#[test]
fn a_route_is_found_however_its_characters_are_spelled() {
    let (open, kept, gateway) = two_routes();
    for path in [
        "/account?x",
        "/%61ccount",
        "/account/../account/y",
        "/account//x",
        "/account;id=1",
        "/account/a%2Fb",
    ] {
        assert_eq!(get(&gateway, path, "").status, 200, "{path}");
        let line = format!("GET {path} HTTP/1.1");
        assert!(
            kept.last_request().starts_with(&line),
            "it goes on as it came"
        );
    }
    assert_eq!((open.request_count(), kept.request_count()), (0, 6));
    for path in ["/a/../b", "//b", "/b%2Fc", "/account.", "/accountant/.."] {
        assert_eq!(get(&gateway, path, "").status, 200, "{path}");
    }
    assert_eq!((open.request_count(), kept.request_count()), (5, 6));
}

/// An upstream could read each of these as a path of the other route.
#[test]
fn no_path_leads_out_of_its_route_or_into_another() {
    let (open, kept, gateway) = two_routes();
    for path in [
        "/account/../x",
        "/account/%2e%2E/x",
        "/account/..%2fx",
        "/account/..;a/x",
        "/account//../x",
        "/account/x/../../y",
        "//account",
        "/./account/y",
        "/x/../account/y",
        "/x/..%2Faccount",
        "/x%2f../account",
    ] {
        let reply = get(&gateway, path, "");
        assert_eq!(reply.status, 400, "{path}");
    }
    assert_eq!((open.request_count(), kept.request_count()), (0, 0));
}

#[test]
fn a_health_check_leaves_an_upstream_out_and_takes_it_back() {
    let well = Arc::new(AtomicBool::new(false));
    let state = well.clone();
    // Each request uses a new connection. With checks, a connection alone proves nothing.
    let sick = TestOrigin::start(move |line| {
        let Some(request) = line.request() else {
            return;
        };
        let fails = request.starts_with("GET /health") && !state.load(SeqCst);
        line.write(if fails {
            "HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n"
        } else {
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello"
        });
    });
    let other = TestOrigin::answering(HELLO);
    let text = format!(
        "listen = \"127.0.0.1:0\"\n[[route]]\npath = \"/\"\nupstream = [\"{}\", \"{}\"]\n[route.health]\npath = \"/health\"\nevery = \"50ms\"\nfailures = 2",
        sick.address, other.address
    );
    let gateway =
        posthaste_gateway::start(posthaste_gateway::GatewayConfig::read(&text).unwrap()).unwrap();
    let requests = |origin: &TestOrigin| {
        let requests = origin.requests.lock().unwrap();
        requests
            .iter()
            .filter(|request| request.starts_with("GET /x"))
            .count()
    };
    let is_up = format!(
        "posthaste_gateway_upstream_up{{route=\"/\",upstream=\"{}\"}}",
        sick.address
    );
    crate::support::wait_until("two checks have failed", || {
        assert_eq!(get(&gateway, "/x", "").status, 200);
        let text = String::from_utf8(fetch_admin(&gateway, "/metrics").body).unwrap();
        value(&text, &is_up) == 0.0
    });
    let before = requests(&sick);
    for _ in 0..10 {
        assert_eq!(get(&gateway, "/x", "").status, 200);
    }
    assert_eq!(requests(&sick), before);
    well.store(true, SeqCst);
    crate::support::wait_until("it is asked again", || {
        get(&gateway, "/x", "");
        requests(&sick) > before
    });
    assert!(requests(&other) >= 10);
}

#[test]
fn a_reply_426_names_the_protocols_that_it_requires() {
    let origin = TestOrigin::answering(
        "HTTP/1.1 426 Upgrade Required\r\nConnection: upgrade, x-hop\r\nUpgrade: websocket\r\n\
         X-Hop: 1\r\nContent-Length: 0\r\n\r\n",
    );
    let reply = get(&gateway(&origin), "/", "");
    assert_eq!(field(&reply.head, "upgrade"), Some("websocket"));
    assert_eq!(field(&reply.head, "connection"), Some("upgrade"));
    assert_eq!(field(&reply.head, "x-hop"), None);
}
