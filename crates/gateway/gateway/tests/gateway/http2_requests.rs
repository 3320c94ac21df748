//! Requests of clients that HTTP/2 cannot carry as they are.

use bytes::Bytes;
use posthaste_gateway::{GatewayConfig, start};

use crate::http2_support::{Http2Client, Http2Origin, http2_config, run};
use crate::support::{OK, TestClient, TestOrigin, field, gateway};
use crate::watching::fetch_admin;

/// HTTP/2 forbids some of them, and the request must end nevertheless.
#[test]
fn trailers_lose_hop_by_hop_fields_and_those_on_the_client() {
    let origin = Http2Origin::start(async |mut call| {
        let (_, trailers) = call.receive().await.unwrap();
        let trailers = trailers.unwrap();
        let mut names: Vec<_> = trailers.keys().map(|name| name.as_str()).collect();
        names.sort_unstable();
        call.reply(&[("x-seen", &names.join(","))])
            .send_data(Bytes::new(), true)
            .unwrap();
    });
    let gateway = origin.gateway("[trust]\nforwarded = [\"127.0.0.1\"]\n");
    let mut client = TestClient::new(&gateway);
    client.send("POST / HTTP/1.1\r\nHost: s\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n");
    client.send("Connection: x-named\r\nX-Named: 1\r\nKeep-Alive: 1\r\nTE: gzip\r\nUpgrade: x\r\n");
    client
        .send("X-Forwarded-For: 192.0.2.1\r\nX_Forwarded_Host: e\r\nForwarded: for=192.0.2.1\r\n");
    client.send("Client-Cert: :AAAA:\r\nClient_Cert_Chain: :AAAA:\r\nX-Sum: 7\r\n\r\n");
    let reply = client.reply(false).unwrap();
    assert_eq!(reply.status, 200, "{}", reply.head);
    assert_eq!(field(&reply.head, "x-seen"), Some("x-sum"));
}

#[test]
fn a_host_that_http2_cannot_carry_is_the_fault_of_the_client() {
    let origin = Http2Origin::start(async |mut call| call.answer("ok"));
    let mut config = http2_config(&origin.address.to_string(), "http2", "");
    let rules = "listen = \"127.0.0.1:0\"\n[[route]]\npath = \"/\"\nupstream = [\"127.0.0.1:1\"]\n[route.ejection]\nfailures = 1\n";
    let rules = GatewayConfig::read(rules).unwrap();
    config.routes[0].ejection = rules.routes[0].ejection.clone();
    let gateway = start(config).unwrap();
    for host in ["a%20b", "shop", "a%20b"] {
        let request = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let reply = TestClient::new(&gateway).send(request).reply(false);
        let wanted = if host == "shop" { 200 } else { 400 };
        assert_eq!(reply.unwrap().status, wanted, "{host}");
    }
    assert_eq!(origin.request_count(), 1);
    let text = String::from_utf8(fetch_admin(&gateway, "/metrics").body).unwrap();
    let counts = [
        "gateway_upstream_failures_total{",
        "gateway_ejections_total{",
    ];
    for count in counts {
        let mut lines = text.lines().filter(|line| line.contains(count)).peekable();
        assert!(lines.peek().is_some(), "{text}");
        assert!(lines.all(|line| line.ends_with(" 0.0")), "{text}");
    }
}

/// HTTP/2 splits Cookie for its compression.
#[test]
fn several_cookies_of_http2_become_one() {
    let origin = TestOrigin::answering(OK);
    let gateway = gateway(&origin);
    run(async {
        let mut client = Http2Client::new(&gateway).await;
        let cookies = [("cookie", "a=1"), ("cookie", "b=2")];
        let reply = client.call("/", &cookies, "").await.unwrap();
        assert_eq!(reply.status, 200);
    });
    assert!(origin.last_request().contains("\r\ncookie: a=1; b=2\r\n"));
}
