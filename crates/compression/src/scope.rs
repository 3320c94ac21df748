//! Namespace declarations in scope, down to header blocks and their priorities: six levels.
//!
//! Only the relevant namespaces are distinguished. A namespace written with character references is not recognised.

use memchr::memchr;
use posthaste_soap::{Limits, Version};

use posthaste_qos::NAMESPACES;
use posthaste_soap::EXTENSION_NAMESPACE;

/// Meaning of a namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// A SOAP envelope.
    Soap(Version),
    /// posthaste's extensions.
    Posthaste,
    /// WS-QoS, by either of its names.
    WsQos,
    /// No namespace.
    Nothing,
    /// Any other namespace, or an undeclared prefix.
    Other,
}

/// The declarations in scope.
#[derive(Debug)]
pub(crate) struct Scope {
    bindings: Vec<Binding>,
    /// The prefixes, concatenated.
    prefixes: Vec<u8>,
    of_one: usize,
    in_all: usize,
}

#[derive(Debug)]
struct Binding {
    depth: usize,
    /// Start of its prefix, which ends at the start of the next.
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

    /// Adds the declarations of the tag `inner` at `depth`. Returns the meaning of its namespace and its local name, or
    /// `None` if there are too many declarations.
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

    /// Removes the declarations of the element at `depth`, which ends.
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
        None if namespace == EXTENSION_NAMESPACE.as_bytes() => Meaning::Posthaste,
        None if namespace.is_empty() => Meaning::Nothing,
        None if NAMESPACES.iter().any(|name| name.as_bytes() == namespace) => Meaning::WsQos,
        None => Meaning::Other,
    }
}

/// Value of the attribute with the literal name `name` in the tag `inner`.
pub(crate) fn attribute<'a>(inner: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let end = inner.iter().position(u8::is_ascii_whitespace)?;
    let mut attributes = Attributes(&inner[end..]);
    attributes.find_map(|(found, value)| (found == name).then_some(value))
}

/// Attributes of a tag, with their values not decoded. Stops at a syntax error.
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
