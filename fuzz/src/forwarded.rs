//! The senders of a forwarded request: text from far away never changes what is read of those nearer, what a proxy
//! appends is read or the line is refused, and memory is bounded whatever the length.

use std::net::IpAddr;

use posthaste_http::fields::forwarded::{MAX_SENDERS, Sender, Senders, forwarded, forwarded_for};

use crate::within;

/// Client that a proxy appends to a list.
const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));

/// Bytes for the senders. The memory grows with their number up to the maximum.
const MEMORY: usize = 8 * 1024;

/// Any bytes as lines of X-Forwarded-For and of Forwarded.
pub fn forwarded_fields(bytes: &[u8]) {
    let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let by_address = |lines: &[&[u8]]| forwarded_for(lines.iter().copied());
    let by_element = |lines: &[&[u8]]| forwarded(lines.iter().copied());
    for (read, write) in [
        (
            &by_address as &dyn Fn(&[&[u8]]) -> Senders,
            written as fn(&Senders) -> String,
        ),
        (&by_element, elements),
    ] {
        let senders = within("senders", 0, 0, MEMORY, || read(&lines));
        assert!(senders.nearest.len() <= MAX_SENDERS);
        // A line further away adds senders, and changes none.
        for near in 0..lines.len().min(8) {
            let nearer = read(&lines[near..]);
            assert!(senders.nearest.starts_with(&nearer.nearest));
            assert!(!nearer.is_cut || senders == nearer);
        }
        let again = read(&[write(&senders).as_bytes()]);
        assert_eq!(again.nearest, senders.nearest);
        assert!(!again.is_cut);
    }
    appended(bytes);
}

/// An appended client is the nearest sender. Only the quotation marks of Forwarded may hide it, and then the whole line
/// is refused.
fn appended(bytes: &[u8]) {
    let line = [bytes, b", 192.0.2.1"].concat();
    let senders = forwarded_for([&*line].into_iter());
    assert_eq!(senders.nearest.first(), Some(&Sender::Address(CLIENT)));
    for end in [
        &b",for=192.0.2.1"[..],
        b", for=192.0.2.1;proto=https",
        b", for=\"192.0.2.1:80\";host=\"a,b\"",
        b", by=\"[2001:db8::1]\";for=192.0.2.1",
    ] {
        let line = [bytes, end].concat();
        let senders = forwarded([&*line].into_iter());
        match senders.nearest.first() {
            Some(first) => assert_eq!(*first, Sender::Address(CLIENT)),
            None => assert!(senders.is_cut),
        }
    }
}

/// The senders as a line of X-Forwarded-For.
fn written(senders: &Senders) -> String {
    let name = |sender: &Sender| match sender {
        Sender::Address(address) => address.to_string(),
        Sender::Hidden => "unknown".to_owned(),
    };
    let names: Vec<_> = senders.nearest.iter().rev().map(name).collect();
    names.join(", ")
}

/// The senders as a line of Forwarded.
fn elements(senders: &Senders) -> String {
    let element = |sender: &Sender| match sender {
        Sender::Address(IpAddr::V6(address)) => format!("for=\"[{address}]\""),
        Sender::Address(address) => format!("for={address}"),
        Sender::Hidden => "for=_hidden".to_owned(),
    };
    let elements: Vec<_> = senders.nearest.iter().rev().map(element).collect();
    elements.join(",")
}
