//! Splits a whole message at its Body.

use memchr::{memchr, memrchr};

use super::markup_end::MarkupEnd;
use super::{Head, HeadScan};
use crate::Limits;
use crate::xml::{Markup, Piece};

/// A whole SOAP message, split at its Body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnvelopeParts<'a> {
    /// Bytes up to the end of the Body's start tag.
    pub before: &'a [u8],
    /// Content of the Body.
    pub content: &'a [u8],
    /// Bytes from the Body's end tag on.
    pub after: &'a [u8],
}

impl<'a> EnvelopeParts<'a> {
    /// Splits a message. Returns `None` if it is not SOAP, its Body is empty, more precedes its Body than `limits`
    /// allows, or anything but white space follows one of the last two end tags.
    pub fn split(message: &'a [u8], limits: &Limits) -> Option<Self> {
        let mut scan = HeadScan::new(limits, ());
        let mut rest = message;
        while scan.wants_more() && !rest.is_empty() && message.len() - rest.len() < limits.header {
            rest = scan.read(rest);
        }
        if !matches!(scan.head(), Head::Soap(_)) {
            return None;
        }
        if scan.in_header {
            rest = to_body(&mut scan, rest)?;
        }
        let start = message.len() - rest.len();
        let envelope = start + last_end_tag(&message[start..], b"Envelope")?;
        let body = start + last_end_tag(&message[start..envelope], b"Body")?;
        (body > start && !message[..start].ends_with(b"/>")).then_some(Self {
            before: &message[..start],
            content: &message[start..body],
            after: &message[body..],
        })
    }
}

/// Skips comments and the Body's start tag. Returns `None` if another tag follows.
fn to_body<'a>(scan: &mut HeadScan<()>, mut rest: &'a [u8]) -> Option<&'a [u8]> {
    loop {
        rest = &rest[memchr(b'<', rest)?..];
        let (tag, after) = rest.split_at(MarkupEnd::default().find(rest)?);
        rest = after;
        let tag = std::str::from_utf8(tag).ok()?;
        let mut markup = Markup::new(tag);
        match markup.piece().ok()? {
            Piece::Comment => {}
            Piece::Start(name) if name.local == "Body" => {
                scan.scope.leave(2);
                scan.scope.enter(2, &mut markup).ok()?;
                let namespace = scan.scope.namespace(name.prefix);
                return (namespace == Some(scan.version.namespace())).then_some(rest);
            }
            _ => return None,
        }
    }
}

/// Position of the end tag of `local`, if only white space follows it.
fn last_end_tag(text: &[u8], local: &[u8]) -> Option<usize> {
    let text = text.trim_ascii_end();
    let start = memrchr(b'<', text)?;
    let name = text[start..].strip_prefix(b"</")?.strip_suffix(b">")?;
    let name = name.trim_ascii_end();
    let found = memchr(b':', name).map_or(name, |colon| &name[colon + 1..]);
    (found == local).then_some(start)
}
