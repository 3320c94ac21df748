//! Requests to switch the protocol of a connection (RFC 9110, section 7.8), and the handshake of WebSocket (RFC 6455).
//!
//! Pure: fields in, decision out. A switch that is not recognised beyond doubt is ignored, as every server may do. The
//! request is then an ordinary one.

use crate::fields::{is_token, split};

/// Maximum length of a request's `Upgrade` fields in all, and of its `Connection` fields.
pub const MAX_UPGRADE: usize = 1024;

/// The protocol with a handshake of its own.
pub const WEBSOCKET: &str = "websocket";

/// Reasons why a request does not switch its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchObstacle {
    /// Only GET switches.
    Method,
    /// The request has a body.
    Body,
    /// `Connection` does not contain `upgrade`, or contains `close`.
    Connection,
    /// `Upgrade` or `Connection` is no list of protocols or options, or too long.
    Malformed,
    /// None of the protocols is allowed.
    Protocol,
    /// WebSocket: no single `Sec-WebSocket-Key` with 16 bytes in base64.
    Key,
    /// WebSocket: no single `Sec-WebSocket-Version: 13`.
    Version,
}

impl SwitchObstacle {
    /// Every obstacle.
    pub const ALL: [Self; 7] = [
        Self::Method,
        Self::Body,
        Self::Connection,
        Self::Malformed,
        Self::Protocol,
        Self::Key,
        Self::Version,
    ];

    /// The name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::Body => "body",
            Self::Connection => "connection",
            Self::Malformed => "malformed",
            Self::Protocol => "protocol",
            Self::Key => "key",
            Self::Version => "version",
        }
    }
}

/// Returns the first requested protocol of a request that `allowed` contains. `fields` are the request's lines, with
/// names in lower case.
pub fn requested<'h, 'a>(
    fields: impl Iterator<Item = (&'h [u8], &'h [u8])>,
    allowed: &'a [String],
) -> Result<&'a str, SwitchObstacle> {
    let mut connection = FieldList::default();
    let mut chosen = None;
    let mut upgrade = FieldList::default();
    let mut handshake = Handshake::default();
    let (mut switches, mut closes) = (false, false);
    for (name, value) in fields {
        match name {
            b"connection" => connection.read(value, |option| {
                switches |= option.eq_ignore_ascii_case(b"upgrade");
                closes |= option.eq_ignore_ascii_case(b"close");
                is_token(option)
            })?,
            b"upgrade" => upgrade.read(value, |protocol| {
                chosen = chosen.or_else(|| find(protocol, allowed));
                is_protocol(protocol)
            })?,
            _ => handshake.read(name, value),
        }
    }
    if !switches || closes {
        return Err(SwitchObstacle::Connection);
    }
    let chosen = chosen.ok_or(SwitchObstacle::Protocol)?;
    if chosen.eq_ignore_ascii_case(WEBSOCKET) {
        handshake.check_key()?;
        handshake.check_version()?;
    }
    Ok(chosen)
}

/// Returns the entry of `allowed` for the protocol of an extended CONNECT (RFC 8441). WebSocket needs its version, and
/// no key.
pub fn connected<'h, 'a>(
    protocol: &[u8],
    fields: impl Iterator<Item = (&'h [u8], &'h [u8])>,
    allowed: &'a [String],
) -> Result<&'a str, SwitchObstacle> {
    let chosen = find(protocol, allowed).ok_or(SwitchObstacle::Protocol)?;
    if chosen.eq_ignore_ascii_case(WEBSOCKET) {
        let mut handshake = Handshake::default();
        for (name, value) in fields {
            handshake.read(name, value);
        }
        handshake.check_version()?;
    }
    Ok(chosen)
}

/// True if the fields of a 101 reply switch to `protocol` and to nothing else.
pub fn switches_to<'h>(fields: impl Iterator<Item = (&'h [u8], &'h [u8])>, protocol: &str) -> bool {
    let (mut connection, mut upgrade) = (FieldList::default(), FieldList::default());
    let (mut switches, mut protocols) = (false, 0);
    let mut read = |name: &[u8], value: &[u8]| match name {
        b"connection" => connection.read(value, |option| {
            switches |= option.eq_ignore_ascii_case(b"upgrade");
            is_token(option)
        }),
        b"upgrade" => upgrade.read(value, |other| {
            protocols += 1;
            other.eq_ignore_ascii_case(protocol.as_bytes())
        }),
        _ => Ok(()),
    };
    for (name, value) in fields {
        if read(name, value).is_err() {
            return false;
        }
    }
    switches && protocols == 1
}

fn find<'a>(protocol: &[u8], allowed: &'a [String]) -> Option<&'a str> {
    let is_it = |name: &&String| name.as_bytes().eq_ignore_ascii_case(protocol);
    allowed.iter().find(is_it).map(String::as_str)
}

/// True for a name with or without a version: `token` or `token/token`.
fn is_protocol(text: &[u8]) -> bool {
    match memchr::memchr(b'/', text) {
        Some(at) => is_token(&text[..at]) && is_token(&text[at + 1..]),
        None => is_token(text),
    }
}

/// The lines of a list field, with their length in all.
#[derive(Default)]
struct FieldList {
    length: usize,
}

impl FieldList {
    /// Reads a line. Every entry has to be valid; empty ones do not count (RFC 9110, section 5.6.1).
    fn read(
        &mut self,
        line: &[u8],
        mut is_valid: impl FnMut(&[u8]) -> bool,
    ) -> Result<(), SwitchObstacle> {
        self.length = self.length.saturating_add(line.len());
        let mut entries = split(line, b',').filter(|entry| !entry.is_empty());
        if self.length <= MAX_UPGRADE && entries.all(&mut is_valid) {
            Ok(())
        } else {
            Err(SwitchObstacle::Malformed)
        }
    }
}

/// The fields of a WebSocket handshake: lines of each, and validity of the last.
#[derive(Default)]
struct Handshake {
    keys: (u32, bool),
    versions: (u32, bool),
}

impl Handshake {
    fn read(&mut self, name: &[u8], value: &[u8]) {
        let (seen, is_valid) = match name {
            b"sec-websocket-key" => (&mut self.keys, is_key(value)),
            b"sec-websocket-version" => (&mut self.versions, value == b"13"),
            _ => return,
        };
        *seen = (seen.0.saturating_add(1), is_valid);
    }

    fn check_key(&self) -> Result<(), SwitchObstacle> {
        (self.keys == (1, true))
            .then_some(())
            .ok_or(SwitchObstacle::Key)
    }

    fn check_version(&self) -> Result<(), SwitchObstacle> {
        (self.versions == (1, true))
            .then_some(())
            .ok_or(SwitchObstacle::Version)
    }
}

/// True for 16 bytes in base64.
fn is_key(value: &[u8]) -> bool {
    let is_sign = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    // The last of 22 signs has two bits, and zeros after them.
    matches!(value, [signs @ .., last, b'=', b'='] if signs.len() == 21
        && signs.iter().all(is_sign) && b"AQgw".contains(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: (&str, &str) = ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
    const VERSION: (&str, &str) = ("sec-websocket-version", "13");
    const CONNECTION: (&str, &str) = ("connection", "keep-alive, Upgrade");

    fn bytes<'a>(fields: &'a [(&'a str, &'a str)]) -> impl Iterator<Item = (&'a [u8], &'a [u8])> {
        fields.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes()))
    }

    fn choose(fields: &[(&str, &str)]) -> Result<String, SwitchObstacle> {
        let allowed = ["websocket".to_owned(), "chat".to_owned()];
        requested(bytes(fields), &allowed).map(str::to_owned)
    }

    #[test]
    fn the_first_allowed_protocol_is_chosen() {
        let upgrade = |value| choose(&[CONNECTION, ("upgrade", value), KEY, VERSION]);
        for (value, wanted) in [
            ("websocket", Ok("websocket")),
            ("WebSocket", Ok("websocket")),
            ("h2c, chat, websocket", Ok("chat")),
            ("foo/2, , websocket", Ok("websocket")),
            ("chat/1", Err(SwitchObstacle::Protocol)),
            ("h2c", Err(SwitchObstacle::Protocol)),
            ("", Err(SwitchObstacle::Protocol)),
            ("web socket", Err(SwitchObstacle::Malformed)),
            ("websocket, \"x\"", Err(SwitchObstacle::Malformed)),
            ("websocket, a/b/c", Err(SwitchObstacle::Malformed)),
        ] {
            assert_eq!(upgrade(value), wanted.map(str::to_owned), "{value}");
        }
        let long = "x,".repeat(MAX_UPGRADE / 2) + "chat";
        assert_eq!(upgrade(&long), Err(SwitchObstacle::Malformed));
        let lines = [CONNECTION, ("upgrade", "h2c"), ("upgrade", "chat")];
        assert_eq!(choose(&lines), Ok("chat".to_owned()));
    }

    #[test]
    fn connection_must_say_so() {
        let connection = |value| choose(&[("connection", value), ("upgrade", "chat")]);
        assert_eq!(connection("close"), Err(SwitchObstacle::Connection));
        assert_eq!(connection("upgrade x"), Err(SwitchObstacle::Malformed));
        assert_eq!(
            connection("close, upgrade"),
            Err(SwitchObstacle::Connection)
        );
        assert_eq!(connection("x,UPGRADE"), Ok("chat".to_owned()));
        assert_eq!(
            choose(&[("upgrade", "chat")]),
            Err(SwitchObstacle::Connection)
        );
    }

    #[test]
    fn websocket_needs_its_handshake() {
        let upgrade = ("upgrade", "websocket");
        let with = |more: &[(&str, &str)]| choose(&[&[CONNECTION, upgrade], more].concat());
        assert_eq!(with(&[KEY]), Err(SwitchObstacle::Version));
        assert_eq!(with(&[VERSION]), Err(SwitchObstacle::Key));
        assert_eq!(with(&[KEY, KEY, VERSION]), Err(SwitchObstacle::Key));
        assert_eq!(with(&[KEY, VERSION, VERSION]), Err(SwitchObstacle::Version));
        for key in [
            "",
            "x",
            "dGhlIHNhbXBsZSBub25jZQ=",
            "dGhlIHNhbXBsZSBub25jZR==",
        ] {
            let key = ("sec-websocket-key", key);
            assert_eq!(with(&[key, VERSION]), Err(SwitchObstacle::Key));
        }
        let other = ("sec-websocket-version", "8, 13");
        assert_eq!(with(&[KEY, other]), Err(SwitchObstacle::Version));
        let allowed = ["websocket".to_owned()];
        assert_eq!(
            connected(b"websocket", bytes(&[VERSION]), &allowed),
            Ok("websocket")
        );
        let without = connected(b"websocket", bytes(&[]), &allowed);
        assert_eq!(without, Err(SwitchObstacle::Version));
        let other = connected(b"chat", bytes(&[]), &allowed);
        assert_eq!(other, Err(SwitchObstacle::Protocol));
    }

    #[test]
    fn a_reply_switches_to_one_protocol() {
        let to = |fields: &[(&str, &str)]| switches_to(bytes(fields), "websocket");
        let connection = ("connection", "Upgrade");
        assert!(to(&[connection, ("upgrade", "WebSocket")]));
        assert!(!to(&[connection]));
        assert!(!to(&[("upgrade", "websocket")]));
        assert!(!to(&[connection, ("upgrade", "chat")]));
        assert!(!to(&[connection, ("upgrade", "websocket, chat")]));
        assert!(!to(&[
            connection,
            ("upgrade", "websocket"),
            ("upgrade", "websocket")
        ]));
    }
}
