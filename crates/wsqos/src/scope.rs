//! Which namespace a prefix means, as far as what stands in header blocks: six levels of declarations.
//!
//! Only whether a namespace is one that matters is kept of its name. A namespace that is written with
//! character references is not recognised.

use memchr::memchr;
use posthaste_soap::{Limits, Version};

use crate::qos::NAMESPACES;
use crate::scan::NAMESPACE;

/// What a namespace stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// A SOAP envelope.
    Soap(Version),
    /// Ours.
    Posthaste,
    /// WS-QoS, by either of its names.
    WsQos,
    /// No namespace.
    Nothing,
    /// None of these, or a prefix that nobody declared.
    Other,
}

/// The declarations in force.
#[derive(Debug)]
pub(crate) struct Scope {
    bindings: Vec<Binding>,
    /// The prefixes, one behind the other.
    prefixes: Vec<u8>,
    of_one: usize,
    in_all: usize,
}

#[derive(Debug)]
struct Binding {
    depth: usize,
    /// Where its prefix begins; it ends where the next begins.
    start: usize,
    meaning: Meaning,
}

impl Scope {
    pub(crate) const fn new(limits: &Limits) -> Self {
        Self {
            bindings: Vec::new(),
            prefixes: Vec::new(),
            of_one: limits.namespaces,
            in_all: limits.scope,
        }
    }

    /// Takes the declarations of the tag `inner` at `depth`; what its namespace means and its local name.
    /// None where there are more declarations than allowed.
    pub(crate) fn enter<'a>(
        &mut self,
        depth: usize,
        inner: &'a [u8],
    ) -> Option<(Meaning, &'a [u8])> {
        let end = inner.iter().position(u8::is_ascii_whitespace);
        let (name, attributes) = inner.split_at(end.unwrap_or(inner.len()));
        let outer = self.bindings.len();
        for (attribute, value) in Attributes(attributes) {
            let prefix: &[u8] = match attribute {
                b"xmlns" => b"",
                [b'x', b'm', b'l', b'n', b's', b':', prefix @ ..] => prefix,
                _ => continue,
            };
            if self.bindings.len() - outer >= self.of_one || self.bindings.len() >= self.in_all {
                return None;
            }
            self.bindings.push(Binding {
                depth,
                start: self.prefixes.len(),
                meaning: meaning(value),
            });
            self.prefixes.extend_from_slice(prefix);
        }
        let (prefix, local) = match memchr(b':', name) {
            Some(colon) => (&name[..colon], &name[colon + 1..]),
            None => (&b""[..], name),
        };
        Some((self.lookup(prefix), local))
    }

    /// Drops the declarations of the element at `depth` that ends.
    pub(crate) fn leave(&mut self, depth: usize) {
        while let Some(last) = self.bindings.pop_if(|last| last.depth == depth) {
            self.prefixes.truncate(last.start);
        }
    }

    fn lookup(&self, prefix: &[u8]) -> Meaning {
        let mut end = self.prefixes.len();
        for binding in self.bindings.iter().rev() {
            if self.prefixes[binding.start..end] == *prefix {
                return binding.meaning;
            }
            end = binding.start;
        }
        match prefix {
            b"" => Meaning::Nothing,
            _ => Meaning::Other,
        }
    }
}

fn meaning(namespace: &[u8]) -> Meaning {
    let versions = [Version::Soap11, Version::Soap12];
    let version = versions
        .into_iter()
        .find(|version| namespace == version.namespace().as_bytes());
    match version {
        Some(version) => Meaning::Soap(version),
        None if namespace == NAMESPACE.as_bytes() => Meaning::Posthaste,
        None if namespace.is_empty() => Meaning::Nothing,
        None if NAMESPACES.iter().any(|name| name.as_bytes() == namespace) => Meaning::WsQos,
        None => Meaning::Other,
    }
}

/// The value of the attribute that is written as `name` in the tag `inner`.
pub(crate) fn attribute<'a>(inner: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let end = inner.iter().position(u8::is_ascii_whitespace)?;
    let mut attributes = Attributes(&inner[end..]);
    attributes.find_map(|(found, value)| (found == name).then_some(value))
}

/// The attributes of a tag, their values as they are written; it ends where they are none.
struct Attributes<'a>(&'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let sign = memchr(b'=', self.0)?;
        let name = self.0[..sign].trim_ascii();
        let value = self.0[sign + 1..].trim_ascii_start();
        let (quote, value) = value.split_first()?;
        if !matches!(quote, b'"' | b'\'') {
            return None;
        }
        let end = memchr(*quote, value)?;
        self.0 = &value[end + 1..];
        Some((name, &value[..end]))
    }
}
