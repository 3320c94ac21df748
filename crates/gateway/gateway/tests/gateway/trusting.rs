//! Statements of proxies about clients: believed from trusted networks only.

use std::path::Path;

use posthaste_gateway::{RunningGateway, start};

use crate::priced::metrics;
use crate::support::{OK, TestOrigin, config, field, get, wait_until};

/// A gateway that trusts these networks and logs to `log`.
fn trusting(networks: &str, log: Option<&Path>) -> (RunningGateway, TestOrigin) {
    let origin = TestOrigin::answering(OK);
    let log = log.map_or(String::new(), |log| format!("access_log = {log:?}\n"));
    let more = format!("{log}[trust]\nforwarded = [{networks}]");
    let gateway = start(config(&[origin.address], &more)).unwrap();
    (gateway, origin)
}

/// The lines of a field that the upstream gets.
fn lines(origin: &TestOrigin, name: &str) -> Vec<String> {
    let request = origin.last_request().to_lowercase();
    let lines = request.lines().filter_map(|line| line.split_once(": "));
    lines
        .filter(|(key, _)| *key == name)
        .map(|(_, value)| value.to_owned())
        .collect()
}

const SPOOFED: &str = "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-For: 192.0.2.2\r\nx-forwarded-proto: https\r\nX-Forwarded-Host: evil\r\nX-Forwarded-Port: 443\r\nForwarded: for=192.0.2.1\r\n";

#[test]
fn from_others_the_fields_about_the_client_are_replaced() {
    for networks in ["", "\"192.0.2.0/24\", \"::1\""] {
        let (gateway, origin) = trusting(networks, None);
        for connection in [
            "",
            "Connection: x-forwarded-for, X-Forwarded-Proto, x-forwarded-host, forwarded\r\n",
        ] {
            get(&gateway, "/", &format!("{SPOOFED}{connection}"));
            assert_eq!(lines(&origin, "x-forwarded-for"), ["127.0.0.1"]);
            assert_eq!(lines(&origin, "x-forwarded-proto"), ["http"]);
            assert_eq!(lines(&origin, "x-forwarded-host"), ["shop"]);
            assert!(lines(&origin, "x-forwarded-port").is_empty());
            assert!(lines(&origin, "forwarded").is_empty());
        }
    }
}

/// CGI does not tell them from hyphens, and a trusted proxy may pass those of its client.
#[test]
fn fields_with_underscores_go_no_further_from_anyone() {
    for networks in ["", "\"127.0.0.1\""] {
        let (gateway, origin) = trusting(networks, None);
        let fields = "X_Forwarded_For: 192.0.2.1\r\nX-Forwarded_Proto: https\r\nX_Other: 1\r\n";
        get(&gateway, "/", fields);
        assert_eq!(lines(&origin, "x-forwarded-for"), ["127.0.0.1"]);
        assert!(lines(&origin, "x_forwarded_for").is_empty());
        assert!(lines(&origin, "x-forwarded_proto").is_empty());
        assert_eq!(lines(&origin, "x_other"), ["1"]);
    }
}

#[test]
fn from_trusted_proxies_they_are_kept_and_extended() {
    let (gateway, origin) = trusting("\"127.0.0.0/8\"", None);
    let fields = "X-Forwarded-For: 192.0.2.1\r\nX-Forwarded-For: 192.0.2.2\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: shop.example\r\nX-Forwarded-Port: 443\r\nForwarded: for=192.0.2.2;proto=https\r\nConnection: x-forwarded-for, forwarded\r\n";
    get(&gateway, "/", fields);
    let chain = ["192.0.2.1", "192.0.2.2", "127.0.0.1"];
    assert_eq!(lines(&origin, "x-forwarded-for"), chain);
    assert_eq!(lines(&origin, "x-forwarded-proto"), ["https"]);
    assert_eq!(lines(&origin, "x-forwarded-host"), ["shop.example"]);
    assert_eq!(lines(&origin, "x-forwarded-port"), ["443"]);
    let elements = ["for=192.0.2.2;proto=https", "for=127.0.0.1;proto=http"];
    assert_eq!(lines(&origin, "forwarded"), elements);

    get(&gateway, "/", "");
    assert_eq!(lines(&origin, "x-forwarded-for"), ["127.0.0.1"]);
    assert_eq!(lines(&origin, "x-forwarded-proto"), ["http"]);
    assert_eq!(lines(&origin, "x-forwarded-host"), ["shop"]);
    assert!(lines(&origin, "forwarded").is_empty());

    get(&gateway, "/", "Forwarded: for=\"[2001:db8::1]:80\"\r\n");
    assert_eq!(
        lines(&origin, "x-forwarded-for"),
        ["2001:db8::1, 127.0.0.1"]
    );
    assert_eq!(lines(&origin, "forwarded").len(), 2);

    let unclear =
        "X-Forwarded-Proto: https, http\r\nX-Forwarded-Host: a\r\nX-Forwarded-Host: b\r\n";
    get(&gateway, "/", unclear);
    assert_eq!(lines(&origin, "x-forwarded-proto"), ["http"]);
    assert_eq!(lines(&origin, "x-forwarded-host"), ["shop"]);
}

#[test]
fn unreadable_forwarding_fields_are_not_passed_on() {
    let (gateway, origin) = trusting("\"127.0.0.1\"", None);
    let long = vec!["192.0.2.1"; 65].join(",");
    for (fields, chain) in [
        (
            "X-Forwarded-For: x, 192.0.2.1".to_owned(),
            "192.0.2.1, 127.0.0.1",
        ),
        (
            "X-Forwarded-For: 192.0.2.1, x".to_owned(),
            "unknown, 127.0.0.1",
        ),
        (format!("X-Forwarded-For: {long}"), "192.0.2.1, 127.0.0.1"),
        (
            "Forwarded: for=\", for=192.0.2.1".to_owned(),
            "unknown, 127.0.0.1",
        ),
        // They disagree.
        (
            "X-Forwarded-For: 192.0.2.1\r\nForwarded: for=192.0.2.2".to_owned(),
            "192.0.2.1, 127.0.0.1",
        ),
    ] {
        get(&gateway, "/", &format!("{fields}\r\n"));
        assert_eq!(
            lines(&origin, "x-forwarded-for").join(", "),
            chain,
            "{fields}"
        );
        assert!(lines(&origin, "forwarded").is_empty(), "{fields}");
    }
    let count = metrics(&gateway);
    assert_eq!(count("fields_unread_total{field=\"x-forwarded-for\"}"), 3.0);
    assert_eq!(count("fields_unread_total{field=\"forwarded\"}"), 2.0);
}

/// A load balancer that appends to `X-Forwarded-For` passes a `Forwarded` of its client.
#[test]
fn a_client_leaves_its_limit_by_no_field_of_its_own() {
    let origin = TestOrigin::answering(OK);
    let more = "[trust]\nforwarded = [\"127.0.0.1\"]\n[protection]\nclient_limits = { rate = \"1/h\", burst = 2 }";
    let gateway = start(config(&[origin.address], more)).unwrap();
    let ask = |own: &str| {
        let fields = format!("X-Forwarded-For: 203.0.113.66\r\n{own}");
        get(&gateway, "/", &fields).status
    };
    assert_eq!([ask(""), ask("Forwarded: x\r\n")], [200; 2]);
    for own in [
        "",
        "Forwarded: x\r\n",
        "Forwarded: for=198.51.100.1\r\n",
        "Forwarded: for=unknown\r\n",
        "Forwarded: for=127.0.0.1\r\n",
    ] {
        assert_eq!(ask(own), 429, "{own}");
    }
}

#[test]
fn the_addresses_of_one_ipv6_network_are_one_client() {
    let origin = TestOrigin::answering(OK);
    for (more, last) in [("", 429), ("ipv6_prefix = 128\n", 200)] {
        let more = format!(
            "[trust]\nforwarded = [\"127.0.0.1\"]\n[protection]\n{more}client_limits = {{ rate = \"1/h\", burst = 2 }}"
        );
        let gateway = start(config(&[origin.address], &more)).unwrap();
        let ask =
            |address: &str| get(&gateway, "/", &format!("X-Forwarded-For: {address}\r\n")).status;
        let all = ["2001:db8:1:1::1", "2001:db8:1:1::2", "2001:db8:1:1:ffff::3"].map(ask);
        assert_eq!(all, [200, 200, last]);
        assert_eq!(ask("2001:db8:1:2::1"), 200, "another network");
    }
}

#[test]
fn the_log_names_the_nearest_sender_that_is_not_trusted() {
    for (networks, fields, wanted) in [
        ("\"192.0.2.0/24\"", SPOOFED, "127.0.0.1"),
        ("\"127.0.0.1\"", "", "127.0.0.1"),
        (
            "\"127.0.0.1\"",
            "X-Forwarded-For: 198.51.100.9, 192.0.2.1\r\n",
            "192.0.2.1",
        ),
        (
            "\"127.0.0.1\", \"10.0.0.0/8\"",
            "X-Forwarded-For: 198.51.100.9, 192.0.2.1, ::ffff:10.1.1.1\r\n",
            "192.0.2.1",
        ),
        (
            "\"127.0.0.1\", \"10.0.0.0/8\"",
            "Forwarded: for=198.51.100.9, for=\"192.0.2.1:99\", for=10.0.0.1\r\n",
            "192.0.2.1",
        ),
        (
            "\"127.0.0.1\"",
            "X-Forwarded-For: 192.0.2.1\r\nForwarded: for=192.0.2.2\r\n",
            "192.0.2.1",
        ),
        ("\"127.0.0.1\"", "X-Forwarded-For: unknown\r\n", "unknown"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let (gateway, _origin) = trusting(networks, Some(&log));
        get(&gateway, "/", fields);
        let text = || std::fs::read_to_string(&log).unwrap_or_default();
        wait_until("the line is written", || text().ends_with('\n'));
        let client = format!("\"client\":\"{wanted}\"");
        assert!(text().contains(&client), "{fields}: {}", text());
    }
}

#[test]
fn trust_changes_with_the_configuration() {
    let (gateway, origin) = trusting("", None);
    let chain = || {
        get(&gateway, "/", "X-Forwarded-For: 192.0.2.1\r\n");
        lines(&origin, "x-forwarded-for")
    };
    assert_eq!(chain(), ["127.0.0.1"]);
    let trust = "[trust]\nforwarded = [\"127.0.0.1\"]";
    gateway.reload(config(&[origin.address], trust)).unwrap();
    wait_until("the peer is trusted", || {
        chain() == ["192.0.2.1", "127.0.0.1"]
    });
}

/// The client that the page of offers names in its report, by the promises to it.
fn is_known_to(gateway: &RunningGateway, fields: &str) -> bool {
    let page = get(gateway, "/.well-known/wsqos", fields);
    let page: serde_json::Value = serde_json::from_slice(&page.body).unwrap();
    page["you"]
        .as_array()
        .is_some_and(|offers| !offers.is_empty())
}

#[test]
fn only_trusted_proxies_can_name_the_client() {
    let ann = "X-Client: ann\r\n";
    for (networks, is_believed) in [("\"127.0.0.1\"", true), ("\"192.0.2.1\"", false)] {
        let origin = TestOrigin::answering(OK);
        let more = format!(
            "[trust]\nforwarded = [{networks}]\n[protection]\npolicy = \"prices\"\nclient = \"X-Client\""
        );
        let gateway = start(config(&[origin.address], &more)).unwrap();
        // The first offer is published soon after the start.
        wait_until("the client has a report", || {
            assert_eq!(get(&gateway, "/", ann).status, 200);
            is_known_to(&gateway, ann)
        });
        // Without trust, all requests are of one client: the address.
        assert_eq!(is_known_to(&gateway, "X-Client: eve\r\n"), !is_believed);
        assert_eq!(is_known_to(&gateway, ""), !is_believed);
        // Of two lines, one may be the client's own.
        let twice = "X-Client: ann\r\nX-Client: eve\r\n";
        assert_eq!(is_known_to(&gateway, twice), !is_believed);
    }
}

#[test]
fn without_a_name_the_client_behind_the_proxy_counts() {
    let origin = TestOrigin::answering(OK);
    let more = "[trust]\nforwarded = [\"127.0.0.1\"]\n[protection]\npolicy = \"prices\"";
    let gateway = start(config(&[origin.address], more)).unwrap();
    let (ann, eve) = (
        "X-Forwarded-For: 192.0.2.1\r\n",
        "X-Forwarded-For: 192.0.2.1, 192.0.2.2\r\n",
    );
    // The first offer is published soon after the start.
    wait_until("the client has a report", || {
        assert_eq!(get(&gateway, "/", ann).status, 200);
        is_known_to(&gateway, ann)
    });
    assert!(!is_known_to(&gateway, eve));
    assert!(!is_known_to(&gateway, ""));
    let request = origin.last_request().to_lowercase();
    assert_eq!(field(&request, "x-forwarded-for"), Some("192.0.2.1"));
}
