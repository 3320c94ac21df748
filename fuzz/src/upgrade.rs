//! Requests to switch protocols: only what a plain reader finds beyond doubt switches, and only to what is allowed.

use posthaste_http::fields::upgrade::{
    MAX_UPGRADE, SwitchObstacle, connected, requested, switches_to,
};

use crate::within;

/// Lines of fields, as parsers give them: names in lower case.
pub fn upgrade(bytes: &[u8]) {
    let lines = bytes.split(|byte| *byte == b'\n').map(field);
    let fields: Vec<(Vec<u8>, &[u8])> = lines.collect();
    let fields = || fields.iter().map(|(name, value)| (&**name, *value));
    let allowed = ["websocket".to_owned(), "Chat".to_owned()];
    let none: [String; 0] = [];
    let found = within("requested", bytes.len(), 0, 0, || {
        requested(fields(), &allowed)
    });
    assert!(requested(fields(), &none).is_err());
    let closed = [(&b"connection"[..], &b"close"[..])];
    assert!(requested(fields().chain(closed), &allowed).is_err());
    let text = bytes.escape_ascii();
    if let Ok(chosen) = found {
        assert!(allowed.iter().any(|name| name == chosen));
        assert!(
            list(fields(), b"connection").any(|option| option.eq_ignore_ascii_case(b"upgrade"))
        );
        let first = list(fields(), b"upgrade").find(|protocol| is_in(protocol, &allowed));
        let first = first.expect("the protocol is in the list");
        assert!(first.eq_ignore_ascii_case(chosen.as_bytes()), "{text}");
        let length: usize = elements(fields(), b"upgrade").map(<[u8]>::len).sum();
        assert!(length <= MAX_UPGRADE);
        if chosen == "websocket" {
            assert_eq!(
                elements(fields(), b"sec-websocket-key").count(),
                1,
                "{text}"
            );
            let versions: Vec<_> = elements(fields(), b"sec-websocket-version").collect();
            assert_eq!(versions, [b"13"], "{text}");
        }
    }
    let stream = connected(b"WebSocket", fields(), &allowed);
    let versions: Vec<_> = elements(fields(), b"sec-websocket-version").collect();
    if versions == [b"13"] {
        assert_eq!(stream, Ok("websocket"), "{text}");
    } else {
        assert_eq!(stream, Err(SwitchObstacle::Version), "{text}");
    }
    let switches = within("switches_to", bytes.len(), 0, 0, || {
        switches_to(fields(), "chat")
    });
    if switches {
        let protocols: Vec<_> = list(fields(), b"upgrade").collect();
        assert_eq!(protocols.len(), 1, "{text}");
        assert!(protocols[0].eq_ignore_ascii_case(b"chat"), "{text}");
        assert!(!switches_to(fields(), "websocket"), "{text}");
        let again = [(&b"upgrade"[..], &b"chat"[..])];
        assert!(!switches_to(fields().chain(again), "chat"), "{text}");
    }
}

fn field(line: &[u8]) -> (Vec<u8>, &[u8]) {
    let at = line.iter().position(|byte| *byte == b':');
    let (name, value) = line.split_at(at.unwrap_or(line.len()));
    let value = value.strip_prefix(b":").unwrap_or(value);
    (name.to_ascii_lowercase(), value.trim_ascii())
}

/// The lines of a field.
fn elements<'a>(
    fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    wanted: &'static [u8],
) -> impl Iterator<Item = &'a [u8]> {
    fields.filter_map(move |(name, value)| (name == wanted).then_some(value))
}

/// The entries of a list without quotation marks.
fn list<'a>(
    fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    wanted: &'static [u8],
) -> impl Iterator<Item = &'a [u8]> {
    let entries = elements(fields, wanted).flat_map(|line| line.split(|byte| *byte == b','));
    entries
        .map(<[u8]>::trim_ascii)
        .filter(|entry| !entry.is_empty())
}

fn is_in(protocol: &[u8], allowed: &[String]) -> bool {
    let is_it = |name: &String| name.as_bytes().eq_ignore_ascii_case(protocol);
    allowed.iter().any(is_it)
}
