//! Senders of a forwarded request: `Forwarded` (RFC 7239) and `X-Forwarded-For`.
//!
//! Each proxy appends its client, so the nearest senders come last. Both readers go from the last line to the first
//! and stop at the first thing that they cannot read: text from a distant sender hides no sender after it. Trust in the
//! senders is for the caller to decide.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::fields::{is_token, split};

/// Maximum number of senders read. Those further away are ignored.
pub const MAX_SENDERS: usize = 64;

/// Parameters that an element has at most once (RFC 7239, section 4).
const SINGLE: [&[u8]; 4] = [b"for", b"by", b"host", b"proto"];

/// A sender of a forwarded request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sender {
    /// Its address. An IPv4 address in IPv6 notation is given as IPv4.
    Address(IpAddr),
    /// A sender that the proxy does not name: `unknown`, an obfuscated identifier, or no `for` parameter.
    Hidden,
}

/// The senders of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Senders {
    /// The nearest first, [`MAX_SENDERS`] at most.
    pub nearest: Vec<Sender>,
    /// True if something was not read, because it is malformed or because there are too many senders.
    pub is_cut: bool,
}

/// Reads the lines of `X-Forwarded-For`: addresses, with or without ports, separated by commas.
pub fn forwarded_for<'a>(lines: impl DoubleEndedIterator<Item = &'a [u8]>) -> Senders {
    let mut senders = Senders::default();
    for line in lines.rev() {
        for element in line.rsplit(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            if !element.is_empty() && !senders.push(bare_or_node(element)) {
                return senders;
            }
        }
    }
    senders
}

/// Reads the lines of `Forwarded`. Of a line with an error nothing is read.
pub fn forwarded<'a>(lines: impl DoubleEndedIterator<Item = &'a [u8]>) -> Senders {
    let mut senders = Senders::default();
    for line in lines.rev() {
        if !split(line, b',').all(|element| read_element(element).is_some()) {
            senders.is_cut = true;
            return senders;
        }
        // Quotation marks can only be read from the left.
        let all = || split(line, b',').filter(|element| !element.is_empty());
        let count = all().count();
        let room = MAX_SENDERS - senders.nearest.len();
        let start = senders.nearest.len();
        let near = all().skip(count.saturating_sub(room));
        senders.nearest.extend(near.filter_map(read_element));
        senders.nearest[start..].reverse();
        if count > room {
            senders.is_cut = true;
            return senders;
        }
    }
    senders
}

impl Senders {
    /// Adds a sender. False if it was not read.
    fn push(&mut self, sender: Option<Sender>) -> bool {
        match sender {
            Some(sender) if self.nearest.len() < MAX_SENDERS => self.nearest.push(sender),
            _ => self.is_cut = true,
        }
        !self.is_cut
    }
}

/// Returns the sender of an element, `Hidden` if it has no `for` parameter. `None` if it is malformed.
fn read_element(element: &[u8]) -> Option<Sender> {
    let (mut sender, mut seen) = (Sender::Hidden, [false; SINGLE.len()]);
    for pair in split(element, b';').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_at(memchr::memchr(b'=', pair)?);
        let value = read_value(&value[1..])?;
        if !is_token(name) {
            return None;
        }
        let single = SINGLE
            .iter()
            .position(|single| name.eq_ignore_ascii_case(single));
        if let Some(index) = single {
            if std::mem::replace(&mut seen[index], true) {
                return None;
            }
            if index == 0 {
                sender = node(value)?;
            }
        }
    }
    Some(sender)
}

/// Returns a token, or the content of a quoted string with its quoted pairs. `None` for anything else.
fn read_value(value: &[u8]) -> Option<&[u8]> {
    let [b'"', inner @ .., b'"'] = value else {
        return is_token(value).then_some(value);
    };
    let mut is_escaped = false;
    for byte in inner {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return None,
            _ => {}
        }
    }
    (!is_escaped).then_some(inner)
}

/// Reads an IPv6 address without brackets, as `X-Forwarded-For` has it, or a node.
fn bare_or_node(text: &[u8]) -> Option<Sender> {
    match std::str::from_utf8(text).ok()?.parse::<Ipv6Addr>() {
        Ok(bare) => Some(Sender::Address(IpAddr::V6(bare).to_canonical())),
        Err(_) => node(text),
    }
}

/// Reads a node (RFC 7239, section 6). Identifiers with quoted pairs are not accepted, nor are IPv6 addresses without
/// brackets: their last group could be a port.
fn node(text: &[u8]) -> Option<Sender> {
    let text = std::str::from_utf8(text).ok()?;
    let address = |address: IpAddr| Sender::Address(address.to_canonical());
    if let Some(rest) = text.strip_prefix('[') {
        let (name, port) = rest.split_once(']')?;
        let bracketed: Ipv6Addr = name.parse().ok()?;
        return is_end(port).then(|| address(bracketed.into()));
    }
    let (name, port) = text.split_at(text.find(':').unwrap_or(text.len()));
    if !is_end(port) {
        return None;
    }
    if name.eq_ignore_ascii_case("unknown") || is_obfuscated(name) {
        return Some(Sender::Hidden);
    }
    let plain: Ipv4Addr = name.parse().ok()?;
    Some(address(plain.into()))
}

/// True for the end of a node: nothing, or a port after a colon.
fn is_end(text: &str) -> bool {
    let is_number =
        |port: &str| (1..=5).contains(&port.len()) && port.bytes().all(|b| b.is_ascii_digit());
    let is_port = |port: &str| is_number(port) || is_obfuscated(port);
    text.is_empty() || text.strip_prefix(':').is_some_and(is_port)
}

/// True for an obfuscated identifier (RFC 7239, section 6.3).
fn is_obfuscated(name: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
    name.strip_prefix('_')
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(is_plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Reader = fn(&[&str]) -> Senders;

    fn by_address(lines: &[&str]) -> Senders {
        forwarded_for(lines.iter().map(|line| line.as_bytes()))
    }

    fn by_element(lines: &[&str]) -> Senders {
        forwarded(lines.iter().map(|line| line.as_bytes()))
    }

    /// The senders as text, `-` for a hidden one, with `!` at the end if something was not read.
    fn shown(senders: &Senders) -> String {
        let names = senders.nearest.iter().map(|sender| match sender {
            Sender::Address(address) => address.to_string(),
            Sender::Hidden => "-".to_owned(),
        });
        let mut shown: Vec<_> = names.collect();
        shown.extend(senders.is_cut.then(|| "!".to_owned()));
        shown.join(" ")
    }

    fn check(read: Reader, cases: &[(&[&str], &str)]) {
        for (lines, wanted) in cases {
            assert_eq!(shown(&read(lines)), *wanted, "{lines:?}");
        }
    }

    #[test]
    fn addresses_are_read_from_the_nearest_on() {
        check(
            by_address,
            &[
                (&[], ""),
                (&[""], ""),
                (&["192.0.2.1"], "192.0.2.1"),
                (
                    &["192.0.2.1, 192.0.2.2", "192.0.2.3"],
                    "192.0.2.3 192.0.2.2 192.0.2.1",
                ),
                (&[", 192.0.2.1 ,,"], "192.0.2.1"),
                (&["192.0.2.1:80"], "192.0.2.1"),
                (
                    &["2001:db8::1, [2001:db8::2], [2001:db8::3]:80"],
                    "2001:db8::3 2001:db8::2 2001:db8::1",
                ),
                (&["::ffff:10.0.0.1"], "10.0.0.1"),
                (&["unknown, _hidden, 192.0.2.1"], "192.0.2.1 - -"),
            ],
        );
    }

    #[test]
    fn an_unreadable_address_hides_none_behind_it() {
        check(
            by_address,
            &[
                (&["192.0.2.1, x, 192.0.2.2"], "192.0.2.2 !"),
                (&["\"192.0.2.1, 192.0.2.2"], "192.0.2.2 !"),
                (&["192.0.2.1", "localhost"], "!"),
                (&["192.0.2.1:"], "!"),
                (&["192.0.2.1:123456"], "!"),
                (&["192.0.2.01"], "!"),
                (&["192.0.2.1.1"], "!"),
                (&["[192.0.2.1]"], "!"),
                (&["[2001:db8::1"], "!"),
                (&["[2001:db8::1]x"], "!"),
                (&["fe80::1%eth0"], "!"),
                (&["192.0.2.1 192.0.2.2"], "!"),
                (&["\u{e4}"], "!"),
                (&["_"], "!"),
            ],
        );
    }

    #[test]
    fn elements_are_read_from_the_nearest_on() {
        check(
            by_element,
            &[
                (&[], ""),
                (&["for=192.0.2.1"], "192.0.2.1"),
                (
                    &[
                        "For=\"192.0.2.1:80\";proto=http;by=_x, for=\"[2001:db8::1]\"",
                        "for=192.0.2.3",
                    ],
                    "192.0.2.3 2001:db8::1 192.0.2.1",
                ),
                (&["for=\"[2001:db8::1]:_port\""], "2001:db8::1"),
                (
                    &["for=unknown, for=_a, proto=https, for=\"_b:9\""],
                    "- - - -",
                ),
                (&["for=192.0.2.1; host=\"a,b;c\\\"d\" ;;, ,"], "192.0.2.1"),
                (&["ext=1;for=192.0.2.1"], "192.0.2.1"),
            ],
        );
    }

    #[test]
    fn of_a_malformed_line_nothing_is_read() {
        check(
            by_element,
            &[
                (&["for=\"", "for=192.0.2.1"], "192.0.2.1 !"),
                (&["for=\", for=192.0.2.1"], "!"),
                (&["x=\", for=192.0.2.1;by=\"192.0.2.2\""], "!"),
                (&["x=\", for=\"[2001:db8::1]\""], "!"),
                (&["for=192.0.2.1;for=192.0.2.2"], "!"),
                (&["proto=http;Proto=https;for=192.0.2.1"], "!"),
                (&["for=192.0.2.1:80"], "!"),
                (&["for=2001:db8::1"], "!"),
                (&["for=[2001:db8::1]"], "!"),
                (&["for=\"2001:db8::1\""], "!"),
                (&["for=\"2001:db8::1:80\""], "!"),
                (&["for=\"::ffff:192.0.2.1\""], "!"),
                (&["for =192.0.2.1"], "!"),
                (&["for= 192.0.2.1"], "!"),
                (&["for"], "!"),
                (&["=192.0.2.1"], "!"),
                (&["for=\"\\192.0.2.1\""], "!"),
                (&["for=\"192.0.2.1\\\""], "!"),
                (&["for=\"192.0.2.1\"x"], "!"),
                (&["for=localhost"], "!"),
                (&["192.0.2.1"], "!"),
            ],
        );
    }

    #[test]
    fn of_a_long_list_the_nearest_are_read() {
        let addresses: Vec<_> = (0..100).map(|n| format!("192.0.2.{n}")).collect();
        let line = addresses.join(", ");
        let elements: Vec<_> = addresses.iter().map(|a| format!("for={a}")).collect();
        let nearest: Vec<_> = addresses.iter().rev().take(MAX_SENDERS).cloned().collect();
        let wanted = nearest.join(" ") + " !";
        let (first, second) = elements.split_at(70);
        let lines = [first.join(","), second.join(",")];
        assert_eq!(shown(&by_address(&[&line])), wanted);
        assert_eq!(shown(&by_element(&[&elements.join(",")])), wanted);
        assert_eq!(shown(&by_element(&[&lines[0], &lines[1]])), wanted);
    }
}
