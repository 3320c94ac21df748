//! Rewritten paths, and header fields that routes set and remove.

use posthaste_gateway::{GatewayConfig, RunningGateway, start};

use crate::routing::{read, route};
use crate::support::{OK, ReceivedReply, TestClient, TestOrigin, field, get};

/// A gateway with a rewriting route, and one for all other paths.
fn rewriting(rewrite: &str) -> (RunningGateway, [TestOrigin; 2]) {
    let origins = [TestOrigin::answering(OK), TestOrigin::answering(OK)];
    let [shop, other] = &origins;
    let text = [
        route(None, "/shop", shop, &format!("rewrite = {rewrite:?}")),
        route(None, "/", other, ""),
    ];
    (start(read(&text.concat())).unwrap(), origins)
}

fn target(origin: &TestOrigin) -> String {
    let request = origin.last_request();
    request.split(' ').nth(1).unwrap_or_default().to_owned()
}

#[test]
fn the_prefix_is_removed_and_the_rest_of_the_path_kept() {
    let (gateway, [shop, _]) = rewriting("/");
    for (path, wanted) in [
        ("/shop", "/"),
        ("/shop/", "/"),
        ("/shop?a=/shop/b", "/?a=/shop/b"),
        ("/shop/1?", "/1?"),
        ("/shop/a%2fb%20c;d?e=%2F#", "/a%2fb%20c;d?e=%2F"),
        ("/%73hop/1", "/1"),
        ("/shop/a/../b", "/a/../b"),
        ("http://s/shop/1", "/1"),
    ] {
        let path = path.trim_end_matches('#');
        let request = format!("GET {path} HTTP/1.1\r\nHost: s\r\n\r\n");
        let reply = TestClient::new(&gateway)
            .send(request)
            .reply(false)
            .unwrap();
        assert_eq!(reply.status, 200, "{path}");
        assert_eq!(target(&shop), wanted, "{path}");
    }
}

#[test]
fn a_prefix_can_become_another() {
    let (gateway, [shop, other]) = rewriting("/v2/store/");
    for (path, wanted) in [
        ("/shop", "/v2/store"),
        ("/shop/", "/v2/store/"),
        ("/shop/1", "/v2/store/1"),
    ] {
        get(&gateway, path, "");
        assert_eq!(target(&shop), wanted, "{path}");
    }
    get(&gateway, "/shopping", "");
    assert_eq!(target(&other), "/shopping");
}

#[test]
fn rewritten_targets_that_are_too_long_are_rejected_with_414() {
    let (gateway, [shop, _]) = rewriting(&format!("/{}", "longer".repeat(10)));
    let mut client = TestClient::new(&gateway);
    let long = "x".repeat(65_500);
    client.send(format!("GET /shop/{long}?q HTTP/1.1\r\nHost: s\r\n\r\n"));
    assert_eq!(client.reply(false).unwrap().status, 414);
    client.send("GET /shop/1 HTTP/1.1\r\nHost: s\r\n\r\n");
    assert_eq!(client.reply(false).unwrap().status, 200);
    assert_eq!(shop.request_count(), 1);
}

#[test]
fn no_spelling_of_a_path_leaves_its_route_by_the_rewrite() {
    for rewrite in ["/", "/v2"] {
        let (gateway, [shop, other]) = rewriting(rewrite);
        for path in [
            "/shop/..%2fadmin",
            "/shop/../admin",
            "/shop/%2e%2e/admin",
            "/shop/..;/admin",
            "/shop/..%2fshop/../admin",
            "/shop/a/../../shop/b",
            "/shop/..%2fshop/b",
            "/shop/..%2Fshop",
            "//shop/1",
            "/shop%2f1",
            "/shop;a=1/2",
            "/shop%3Ba/2",
        ] {
            assert_eq!(get(&gateway, path, "").status, 400, "{rewrite} {path}");
        }
        assert_eq!(
            (shop.request_count(), other.request_count()),
            (0, 0),
            "{rewrite}"
        );
    }
    // The target would begin with the name of a host.
    let (gateway, [shop, _]) = rewriting("/");
    assert_eq!(get(&gateway, "/shop//evil.example/", "").status, 400);
    assert_eq!(shop.request_count(), 0);
}

/// Sends a request to an upstream that replies with these fields, over a route with these keys.
fn ask(keys: &str, fields: &str, lines: &str) -> (ReceivedReply, String) {
    let origin = TestOrigin::answering(format!(
        "HTTP/1.1 302 Found\r\nContent-Length: 2\r\n{fields}\r\nok"
    ));
    let gateway = start(read(&route(None, "/shop", &origin, keys))).unwrap();
    let reply = TestClient::new(&gateway)
        .send(format!("GET /shop/1 HTTP/1.1\r\n{lines}\r\n"))
        .reply(false);
    (reply.unwrap(), origin.last_request().to_lowercase())
}

#[test]
fn locations_of_replies_get_the_prefix_back() {
    let keys = "rewrite = \"/\"";
    for (location, wanted) in [
        ("/2", "/shop/2"),
        ("http://s.example:81/2", "http://s.example:81/shop/2"),
        ("http://other.example/2", "http://other.example/2"),
        ("//other.example/2", "//other.example/2"),
        ("2", "2"),
    ] {
        let fields = format!("Location: {location}\r\nContent-Location: {location}\r\n");
        let (reply, _) = ask(keys, &fields, "Host: s.example:81\r\n");
        assert_eq!(field(&reply.head, "location"), Some(wanted));
        assert_eq!(field(&reply.head, "content-location"), Some(wanted));
    }
    // The client does not know the name that the upstream gets.
    let keys = "rewrite = \"/\"\nrequest_headers = { set = { host = \"inner\" } }";
    let (reply, _) = ask(keys, "Location: http://inner/2\r\n", "Host: s\r\n");
    assert_eq!(field(&reply.head, "location"), Some("/shop/2"));
    let cookie = "Set-Cookie: a=1; Path=/\r\nLocation: /2\r\n";
    let (reply, _) = ask("", cookie, "Host: s\r\n");
    assert_eq!(field(&reply.head, "location"), Some("/2"));
    assert_eq!(field(&reply.head, "set-cookie"), Some("a=1; path=/"));
}

#[test]
fn fields_of_requests_are_removed_and_set_last() {
    let keys = "request_headers = { remove = [\"X-Old\", \"Cookie\", \"via\"], set = { host = \"inner\", x-forwarded-for = \"192.0.2.9\", X-New = \"n\" } }"
        .replace(", \"via\"", "");
    let lines = "Host: s\r\nX-Old: 1\r\nX-Old: 2\r\nCookie: a\r\nX-New: a\r\nX-New: b\r\nConnection: X-New\r\nX-Other: 1\r\n";
    let (reply, request) = ask(&keys, "", lines);
    assert_eq!(reply.status, 302);
    for (name, wanted) in [
        ("host", Some("inner")),
        ("x-old", None),
        ("cookie", None),
        ("x-new", Some("n")),
        ("x-other", Some("1")),
        ("x-forwarded-for", Some("192.0.2.9")),
    ] {
        assert_eq!(field(&request, name), wanted, "{request}");
    }
    assert_eq!(request.matches("x-new:").count(), 1);
    assert_eq!(request.matches("x-forwarded-for:").count(), 1);
}

#[test]
fn a_removed_host_becomes_the_name_of_the_upstream() {
    let origin = TestOrigin::answering(OK);
    let keys = "request_headers = { remove = [\"Host\"] }";
    let gateway = start(read(&route(None, "/", &origin, keys))).unwrap();
    assert_eq!(get(&gateway, "/", "").status, 200);
    let request = origin.last_request().to_lowercase();
    let address = origin.address.to_string();
    assert_eq!(field(&request, "host"), Some(&*address));
    assert_eq!(field(&request, "x-forwarded-host"), Some("shop"));
}

#[test]
fn fields_of_replies_are_removed_and_set_last() {
    let keys = "reply_headers = { remove = [\"Server\", \"ETag\"], set = { X-Frame-Options = \"DENY\", compression-decision = \"none\" } }";
    let fields = "Server: a\r\nETag: \"1\"\r\nX-Frame-Options: a\r\nX-Frame-Options: b\r\n";
    let lines = "Host: s\r\nPrefer: compression-reason\r\n";
    let (reply, _) = ask(keys, fields, lines);
    assert_eq!(field(&reply.head, "server"), None);
    assert_eq!(field(&reply.head, "etag"), None);
    assert_eq!(field(&reply.head, "x-frame-options"), Some("deny"));
    assert_eq!(reply.head.matches("x-frame-options:").count(), 1);
    assert_eq!(field(&reply.head, "compression-decision"), Some("none"));
}

#[test]
fn rejections_of_a_route_get_its_fields_too() {
    let origin = TestOrigin::answering(OK);
    let keys = "reply_headers = { set = { x-set = \"1\" } }\n[route.limits]\nbody = \"1B\"";
    let gateway = start(read(&route(None, "/shop", &origin, keys))).unwrap();
    let mut client = TestClient::new(&gateway);
    client.send("POST /shop HTTP/1.1\r\nHost: s\r\nContent-Length: 2\r\n\r\nxx");
    let reply = client.reply(false).unwrap();
    assert_eq!(reply.status, 413);
    assert_eq!(field(&reply.head, "x-set"), Some("1"));
    // Without a route, no configuration is selected.
    let reply = get(&gateway, "/", "");
    assert_eq!((reply.status, field(&reply.head, "x-set")), (404, None));
}

#[test]
fn changes_that_would_break_messages_are_not_configurable() {
    let wrong = |key: &str| {
        let route = "[[route]]\npath = \"/\"\nupstream = [\"127.0.0.1:9000\"]";
        let text = format!("listen = \"127.0.0.1:0\"\n{route}\n{key}");
        GatewayConfig::read(&text).unwrap_err().to_string()
    };
    for (key, message) in [
        ("rewrite = \"x\"", "rewrite begins with /"),
        ("rewrite = \"/x?y\"", "without ?, #, ; or"),
        ("rewrite = \"/x#y\"", "without ?, #, ; or"),
        ("rewrite = \"/x;y\"", "without ?, #, ; or \\"),
        ("rewrite = '/x\\y'", "without ?, #, ; or \\"),
        ("rewrite = \"/x/..\"", "dot segments"),
        ("rewrite = \"/x/%2e%2e/y\"", "dot segments"),
        ("rewrite = \"//x\"", "empty segments"),
        ("rewrite = \"/x%2fy\"", "encoded slashes"),
        (
            "request_headers = { remove = [\"Connection\"] }",
            "is written by the gateway",
        ),
        (
            "request_headers = { set = { content-encoding = \"gzip\" } }",
            "is written",
        ),
        (
            "request_headers = { set = { expect = \"100-continue\" } }",
            "is written",
        ),
        (
            "request_headers = { remove = [\"Sec-WebSocket-Key\"] }",
            "is written",
        ),
        (
            "reply_headers = { set = { sec-websocket-accept = \"x\" } }",
            "is written",
        ),
        (
            "request_headers = { set = { a = \"1\", A = \"2\" } }",
            "names a twice",
        ),
        (
            "request_headers = { set = { a = \"1\\n\" } }",
            "is no value of a",
        ),
        (
            "reply_headers = { set = { Content-Encoding = \"gzip\" } }",
            "is written",
        ),
        ("reply_headers = { remove = [\"vary\"] }", "is written"),
        (
            "reply_headers = { set = { accept-ranges = \"bytes\" } }",
            "is written",
        ),
        ("reply_headers = { remove = [\"a b\"] }", "is not the name"),
    ] {
        let error = wrong(key);
        assert!(error.contains(message), "{key}: {error}");
    }
}

#[test]
fn paths_are_prefixes_without_wildcards() {
    for (path, message) in [
        (
            "/*",
            "path is \"/*\": a path is a prefix and has no wildcards: write \"/\"",
        ),
        ("/shop/*", "write \"/shop/\""),
        ("/a\\b", "has / instead of \\"),
    ] {
        let text = format!(
            "listen = \"127.0.0.1:0\"\n[[route]]\npath = '{path}'\nrewrite = \"/\"\nupstream = [\"127.0.0.1:9000\"]"
        );
        let error = GatewayConfig::read(&text).unwrap_err().to_string();
        assert!(error.contains(message), "{path}: {error}");
    }
}
