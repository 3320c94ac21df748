//! The status page: its first sentence, its rows, and its protection against other pages.

use posthaste_gateway::{GatewayConfig, RunningGateway, start};

use crate::support::{OK, TestClient, TestOrigin, config, field, get, wait_until};
use crate::watching::fetch_admin;

fn page(gateway: &RunningGateway) -> String {
    String::from_utf8(fetch_admin(gateway, "/status").body).unwrap()
}

/// The first paragraph.
fn headline(gateway: &RunningGateway) -> String {
    let page = page(gateway);
    let start = page.find("<p class=\"lead").unwrap();
    let end = start + page[start..].find("</p>").unwrap();
    page[start..end].to_owned()
}

#[test]
fn the_first_sentence_says_what_protection_does() {
    let (origin, release) = TestOrigin::holding();
    let route = |path: &str| {
        let address = origin.address;
        format!("[[route]]\npath = \"{path}\"\nupstream = [\"{address}\"]\n")
    };
    let limits = "limits.concurrency = 1\n";
    let routes = route("/slow") + limits + &route("/");
    let text = format!("listen = \"127.0.0.1:0\"\n{routes}");
    let gateway = start(GatewayConfig::read(&text).unwrap()).unwrap();
    assert_eq!(headline(&gateway), "<p class=\"lead\">Rejecting nothing.");
    let mut held = TestClient::new(&gateway);
    held.send("GET /slow HTTP/1.1\r\nHost: s\r\n\r\n");
    wait_until("it is in service", || origin.request_count() == 1);
    assert_eq!(get(&gateway, "/slow", "").status, 503);
    release.tell();
    assert_eq!(held.reply(false).unwrap().status, 200);
    assert_eq!(get(&gateway, "/", "").status, 200);
    let rejecting = "<p class=\"lead rejecting\">Rejecting 50 % on /slow.";
    assert_eq!(headline(&gateway), rejecting);
    wait_until("nothing was rejected for 10 s", || {
        headline(&gateway).contains("Rejecting nothing")
    });
}

#[test]
fn slots_and_a_dry_run_are_in_the_first_sentence() {
    let origin = TestOrigin::answering(OK);
    let sentence = |keys: &str| {
        let keys = format!("[protection]\n{keys}");
        let gateway = start(config(&[origin.address], &keys)).unwrap();
        headline(&gateway)
    };
    let limit = sentence("policy = \"limit\"");
    assert!(limit.contains("Rejecting nothing: 0 of "), "{limit}");
    let dry = sentence("policy = \"limit\"\ndry_run = true");
    assert!(dry.contains("Dry run: rejecting nothing: 0 of "), "{dry}");
    let none = sentence("policy = \"none\"");
    assert!(none.contains("No protection"), "{none}");
}

#[test]
fn no_row_is_there_twice() {
    let origin = TestOrigin::answering(OK);
    let gateway = start(config(&[origin.address], "")).unwrap();
    get(&gateway, "/", "");
    let page = page(&gateway);
    let rows: Vec<&str> = page.split("<tr>").skip(1).collect();
    for (index, row) in rows.iter().enumerate() {
        assert!(!rows[..index].contains(row), "{row}");
    }
}

#[test]
fn other_pages_cannot_use_the_page() {
    let origin = TestOrigin::answering(OK);
    let names = "admin_hosts = [\"gateway.internal\"]";
    let gateway = start(config(&[origin.address], names)).unwrap();
    let policy = fetch_admin(&gateway, "/status").head;
    let policy = field(&policy, "content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'"), "{policy}");
    assert!(!page(&gateway).contains("<script"));
    let status = |path: &str, host: &str| {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let mut client = TestClient::to(gateway.admin);
        client.send(request).reply(false).unwrap().status
    };
    for path in ["/status", "/status.json", "/metrics"] {
        assert_eq!(status(path, "127.0.0.1"), 200);
        assert_eq!(status(path, "Gateway.internal:8081"), 200);
        assert_eq!(status(path, "rebound.example"), 421);
    }
    assert_eq!(status("/healthz", "rebound.example"), 200);
}
