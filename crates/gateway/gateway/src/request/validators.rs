//! Validators in the conditions of a request (RFC 9110, section 13.1), for routes that compress.
//!
//! Replies compressed here got a weak validator from a strong one. The upstream knows the strong one.

use hyper::HeaderMap;
use hyper::header::{HeaderValue, IF_MATCH, IF_NONE_MATCH};

/// Longest line of If-None-Match that is extended, in bytes.
const LONGEST: usize = 4096;

/// Adapts If-Match and If-None-Match, whose lines are `none_match`.
pub(crate) fn state_strongly(headers: &mut HeaderMap, none_match: &[HeaderValue]) {
    match_strongly(headers);
    if none_match.iter().any(has_weak) {
        name_strongly(headers, none_match);
    }
}

/// False if no validator in the line can be weak.
fn has_weak(line: &HeaderValue) -> bool {
    line.as_bytes().contains(&b'W')
}

/// Turns weak validators in If-Match into strong ones. Weak ones never match (RFC 9110, section 13.1.1). Validators that
/// were weak at the upstream still do not match.
fn match_strongly(headers: &mut HeaderMap) {
    if !headers.get_all(IF_MATCH).iter().any(has_weak) {
        return;
    }
    let strong = |line: &HeaderValue| HeaderValue::from_bytes(&strengthen(line.as_bytes()));
    let strong = headers.get_all(IF_MATCH).iter().map(strong);
    if let Ok(strong) = strong.collect::<Result<Vec<_>, _>>() {
        headers.remove(IF_MATCH);
        for line in strong {
            headers.append(IF_MATCH, line);
        }
    }
}

/// Adds the strong form of the weak validators in If-None-Match: `W/"x"` becomes `W/"x", "x"`. Both mean the same (RFC
/// 9110, section 13.1.2), but some upstreams compare texts.
fn name_strongly(headers: &mut HeaderMap, lines: &[HeaderValue]) {
    headers.remove(IF_NONE_MATCH);
    for line in lines {
        let extended = (line.len() <= LONGEST).then(|| extend(line.as_bytes()));
        let extended = extended.and_then(|line| HeaderValue::from_bytes(&line).ok());
        headers.append(IF_NONE_MATCH, extended.unwrap_or_else(|| line.clone()));
    }
}

/// Returns a list of validators with the strong form of each weak one that is not in it.
fn extend(list: &[u8]) -> Vec<u8> {
    let (mut weak, mut strong) = (Vec::new(), Vec::new());
    let mut rest = list;
    while let Some(start) = position(b'"', rest) {
        let Some(length) = position(b'"', &rest[start + 1..]) else {
            break;
        };
        let end = start + length + 2;
        let tags = if rest[..start].ends_with(b"W/") {
            &mut weak
        } else {
            &mut strong
        };
        tags.push(&rest[start..end]);
        rest = &rest[end..];
    }
    let mut extended = list.to_vec();
    for tag in weak {
        if !strong.contains(&tag) {
            extended.extend_from_slice(b", ");
            extended.extend_from_slice(tag);
            strong.push(tag);
        }
    }
    extended
}

/// Returns a list of validators without the prefix `W/` of weak ones.
fn strengthen(list: &[u8]) -> Vec<u8> {
    let mut is_quoted = false;
    let (mut strong, mut rest) = (Vec::with_capacity(list.len()), list);
    while let [first, behind @ ..] = rest {
        if let (false, [b'W', b'/', b'"', ..]) = (is_quoted, rest) {
            rest = &rest[2..];
            continue;
        }
        is_quoted ^= *first == b'"';
        strong.push(*first);
        rest = behind;
    }
    strong
}

/// Position of the first `byte`.
fn position(byte: u8, bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|other| *other == byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validators_of_if_match_are_strong() {
        for (list, wanted) in [
            (&b"W/\"7\""[..], &b"\"7\""[..]),
            (b"\"7\", W/\"8\",W/\"9\"", b"\"7\", \"8\",\"9\""),
            // Quoted text stays unchanged.
            (b"\"W/\", \"aW/\"", b"\"W/\", \"aW/\""),
            (b"*", b"*"),
            (b"W/", b"W/"),
        ] {
            assert_eq!(strengthen(list), wanted);
        }
    }

    #[test]
    fn weak_validators_of_if_none_match_are_named_in_both_forms() {
        for (list, wanted) in [
            (&b"W/\"x\""[..], &b"W/\"x\", \"x\""[..]),
            (
                b"W/\"7\", \"8\", W/\"9,W/\"",
                b"W/\"7\", \"8\", W/\"9,W/\", \"7\", \"9,W/\"",
            ),
            (b"W/\"7\",\"7\"", b"W/\"7\",\"7\""),
            (b"\"W/\"", b"\"W/\""),
            (b"*", b"*"),
            (b"W/\"7", b"W/\"7"),
        ] {
            assert_eq!(extend(list), wanted);
        }
    }
}
