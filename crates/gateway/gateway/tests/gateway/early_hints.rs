//! Early hints (103) of upstreams on their way to clients.

use posthaste_gateway::{GatewayConfig, RunningGateway, start};

use crate::http2_support::{Call, Http2Origin};
use crate::support::{OK, TestClient, TestOrigin, field};

const HINTS: &str = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\
                     Connection: x-hop\r\nX-Hop: 1\r\nX-Node: 7\r\n\r\n";

fn gateway(upstream: &str, protocol: &str) -> RunningGateway {
    let text = format!(
        "listen = \"127.0.0.1:0\"\n[[route]]\npath = \"/\"\nupstream = [\"{upstream}\"]\n\
         protocol = \"{protocol}\"\nreply_headers = {{ remove = [\"X-Node\"] }}\n"
    );
    start(GatewayConfig::read(&text).unwrap()).unwrap()
}

/// Sends requests on one connection, of which each gets hints and a reply.
fn exchange(gateway: &RunningGateway, requests: usize) {
    let mut client = TestClient::new(gateway);
    client.send("GET / HTTP/1.1\r\nHost: s\r\n\r\n".repeat(requests));
    for _ in 0..requests {
        let hints = client.reply(true).unwrap();
        assert_eq!(hints.status, 103);
        let link = field(&hints.head, "link");
        assert_eq!(link, Some("</style.css>; rel=preload"));
        assert_eq!(field(&hints.head, "x-hop"), None);
        assert_eq!(field(&hints.head, "x-node"), None);
        let reply = client.reply(false).unwrap();
        assert_eq!((reply.status, &*reply.body), (200, &b"ok"[..]));
    }
}

#[test]
fn hints_precede_the_reply_of_their_request() {
    let origin = TestOrigin::answering(format!("{HINTS}{OK}"));
    let gateway = gateway(&origin.address.to_string(), "http1");
    exchange(&gateway, 3);
}

/// The client gets the hints while the upstream still works on the reply.
#[test]
fn hints_do_not_wait_for_the_reply() {
    let (seen, may_go_on) = std::sync::mpsc::channel();
    let may_go_on = std::sync::Mutex::new(may_go_on);
    let origin = TestOrigin::start(move |line| {
        line.request();
        line.write(HINTS);
        may_go_on.lock().unwrap().recv().unwrap();
        line.write(OK);
        line.request();
    });
    let gateway = gateway(&origin.address.to_string(), "http1");
    let mut client = TestClient::new(&gateway);
    client.send("GET / HTTP/1.1\r\nHost: s\r\n\r\n");
    assert_eq!(client.reply(true).unwrap().status, 103);
    seen.send(()).unwrap();
    assert_eq!(client.reply(false).unwrap().status, 200);
}

#[test]
fn a_client_of_http_1_0_gets_no_hints() {
    let origin = TestOrigin::answering(format!("{HINTS}{OK}"));
    let gateway = gateway(&origin.address.to_string(), "http1");
    let mut client = TestClient::new(&gateway);
    client.send("GET / HTTP/1.0\r\n\r\n");
    assert_eq!(client.reply(false).unwrap().status, 200);
}

#[test]
fn hints_of_http2_reach_a_client_of_http1() {
    let origin = Http2Origin::start(async |mut call: Call| {
        let mut hints = hyper::Response::new(());
        *hints.status_mut() = hyper::StatusCode::EARLY_HINTS;
        let link = "</style.css>; rel=preload".parse().unwrap();
        hints.headers_mut().insert("link", link);
        call.respond.send_informational(hints).unwrap();
        call.answer("ok");
    });
    let gateway = gateway(&origin.address.to_string(), "http2");
    exchange(&gateway, 2);
}
