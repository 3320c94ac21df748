//! Permitted targets.

use std::net::IpAddr;

use posthaste_fleet::agent::allow::{AllowEntry, AllowList, NotAllowed};
use posthaste_load::AddressSource::{self, LookedUp as Resolved, Stated};

fn list(entries: &[&str]) -> AllowList {
    AllowList::new(entries.iter().map(|entry| entry.parse().unwrap()).collect())
}

fn allows(
    list: &AllowList,
    host: &str,
    port: u16,
    addresses: &[&str],
    source: AddressSource,
) -> bool {
    let addresses: Vec<IpAddr> = addresses.iter().map(|text| text.parse().unwrap()).collect();
    list.check(host, port, &addresses, source).is_ok()
}

#[test]
fn only_loopback_is_allowed_by_default() {
    let list = list(&[]);
    assert_eq!(list, AllowList::default());
    assert_eq!(list.to_string(), "127.0.0.0/8, ::1");
    for (host, address) in [
        ("localhost", "127.0.0.1"),
        ("localhost", "::1"),
        ("127.0.0.2", "127.0.0.2"),
        ("[::1]", "::1"),
        ("::1", "::1"),
        ("anything.example", "127.0.0.1"),
        ("::ffff:127.0.0.1", "::ffff:127.0.0.1"),
    ] {
        assert!(
            allows(&list, host, 80, &[address], Resolved),
            "{host} {address}"
        );
        assert!(
            allows(&list, host, 80, &[address], Stated),
            "{host} {address}"
        );
    }
    for (host, address) in [
        ("localhost", "192.0.2.1"),
        ("192.0.2.1", "192.0.2.1"),
        ("0.0.0.0", "0.0.0.0"),
        ("::", "::"),
        ("::ffff:192.0.2.1", "::ffff:192.0.2.1"),
    ] {
        assert!(
            !allows(&list, host, 80, &[address], Resolved),
            "{host} {address}"
        );
    }
}

#[test]
fn every_address_must_be_allowed() {
    let list = list(&["10.0.0.0/8"]);
    assert!(allows(
        &list,
        "shop.example",
        80,
        &["10.1.1.1", "10.2.2.2"],
        Resolved
    ));
    assert!(!allows(
        &list,
        "shop.example",
        80,
        &["10.1.1.1", "192.0.2.1"],
        Resolved
    ));
    assert!(!allows(&list, "shop.example", 80, &[], Resolved));
}

#[test]
fn a_name_allows_what_the_agent_resolves_and_nothing_stated() {
    let list = list(&["Shop.Example."]);
    assert!(allows(&list, "shop.example", 80, &["192.0.2.1"], Resolved));
    assert!(allows(
        &list,
        "SHOP.example.",
        8080,
        &["192.0.2.1"],
        Resolved
    ));
    assert!(!allows(&list, "shop.example", 80, &["192.0.2.1"], Stated));
    assert!(!allows(
        &list,
        "www.shop.example",
        80,
        &["192.0.2.1"],
        Resolved
    ));
    assert!(!allows(&list, "example", 80, &["192.0.2.1"], Resolved));
}

#[test]
fn a_stated_address_needs_a_network() {
    let list = list(&["shop.example", "192.0.2.0/24"]);
    assert!(allows(&list, "shop.example", 80, &["192.0.2.1"], Stated));
    assert!(!allows(
        &list,
        "shop.example",
        80,
        &["198.51.100.1"],
        Stated
    ));
    // An address as a host must be allowed itself, and so must the stated one.
    assert!(!allows(&list, "198.51.100.1", 80, &["192.0.2.1"], Stated));
    assert!(!allows(&list, "192.0.2.1", 80, &["198.51.100.1"], Stated));
}

#[test]
fn ports_restrict_entries() {
    let list = list(&["shop.example:443", "192.0.2.1:80", "[2001:db8::1]:80"]);
    assert!(allows(
        &list,
        "shop.example",
        443,
        &["198.51.100.1"],
        Resolved
    ));
    assert!(!allows(
        &list,
        "shop.example",
        80,
        &["198.51.100.1"],
        Resolved
    ));
    assert!(allows(&list, "192.0.2.1", 80, &["192.0.2.1"], Resolved));
    assert!(!allows(&list, "192.0.2.1", 81, &["192.0.2.1"], Resolved));
    assert!(allows(
        &list,
        "[2001:db8::1]",
        80,
        &["2001:db8::1"],
        Resolved
    ));
    assert!(!allows(
        &list,
        "[2001:db8::1]",
        443,
        &["2001:db8::1"],
        Resolved
    ));
}

#[test]
fn texts_with_several_meanings_are_no_entries() {
    for text in [
        "",
        "*",
        ":80",
        "shop.example:",
        "shop.example:0",
        "shop.example:080",
        "shop.example:+80",
        "shop.example:65536",
        "http://shop.example",
        "shop.example/",
        "10.0.0.0/33",
        "10.0.0.0/8:80",
        "[10.0.0.1]:80",
        "[::1]",
        "127.1",
        "127.1:80",
        "1.2.3.4.5",
        "2130706433",
        "0x7f000001",
        "a..b",
        "a b",
        "user@shop.example",
    ] {
        let error = text.parse::<AllowEntry>().map(|entry| entry.to_string());
        assert!(error.is_err(), "{text} is {error:?}");
    }
    for text in [
        "shop",
        "shop.example",
        "a_b:1",
        "::1",
        "2001:db8::/32",
        "1.example",
    ] {
        assert_eq!(text.parse::<AllowEntry>().unwrap().to_string(), text);
    }
}

#[test]
fn refusals_name_target_address_and_list() {
    let address = "192.0.2.1".parse().unwrap();
    let error = list(&["10.0.0.0/8"])
        .check("shop.example", 80, &[address], Resolved)
        .unwrap_err();
    assert!(matches!(error, NotAllowed::Address { .. }));
    assert_eq!(
        error.to_string(),
        "192.0.2.1 of shop.example:80 is not allowed here; the agent allows 10.0.0.0/8"
    );
}
