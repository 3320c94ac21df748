//! Compression preferences in a service's description: defaults for calls that state none.
//!
//! The papers leave open how a WSDL carries the options. Here the element of the SOAP header stands in a binding, for
//! all its operations, or in one operation: `<x:compression xmlns:x="urn:posthaste:wsqos">if-possible</x:compression>`.
//! Its presence also tells a client that it may state a preference of its own, with the same element in the SOAP
//! header.

use std::collections::HashMap;

use posthaste_soap::wsdl::{Description, Extension};

use crate::preference_block::COMPRESSION;
use crate::wish::Wish;
use posthaste_soap::EXTENSION_NAMESPACE;

/// Default wishes by the action of an operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Described {
    /// `None` if operations with the same action differ.
    wishes: HashMap<String, Option<Wish>>,
    unknown: usize,
}

impl Described {
    /// Reads `description`. A preference at an operation takes precedence over one at its binding.
    pub fn from_description(description: &Description) -> Self {
        let mut described = Self::default();
        let ports = description.services.iter().flat_map(|s| &s.ports);
        for port in ports {
            let common = described.read(&port.extensions);
            for operation in &port.operations {
                let wish = described.read(&operation.extensions).or(common);
                let action = operation.action.clone();
                let known = described.wishes.entry(action).or_insert(wish);
                *known = known.filter(|known| Some(*known) == wish);
            }
        }
        described
    }

    /// Preference for calls of the operation with this action (SOAPAction in SOAP 1.1, the parameter `action` in 1.2).
    /// `None` if none is stated or operations with this action differ.
    pub fn wish(&self, action: &str) -> Option<Wish> {
        self.wishes.get(action).copied().flatten()
    }

    /// Number of our elements with an unknown word. They state nothing.
    pub const fn unknown(&self) -> usize {
        self.unknown
    }

    fn read(&mut self, extensions: &[Extension]) -> Option<Wish> {
        let is_ours = |e: &&Extension| e.namespace == EXTENSION_NAMESPACE && e.name == COMPRESSION;
        let found = extensions.iter().find(is_ours)?;
        let wish = Wish::from_word(found.text.as_bytes());
        self.unknown += usize::from(wish.is_none());
        wish
    }
}
