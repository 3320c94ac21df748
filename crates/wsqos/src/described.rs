//! What a service's description says about compression: the wish that holds for calls that state none.
//!
//! The papers left it open how a WSDL could carry the options. Here the element of the SOAP header stands
//! in a binding, for all its operations, or in one of them:
//! `<x:compression xmlns:x="urn:posthaste:wsqos">if-possible</x:compression>`. Its presence also tells a
//! client that it may state a wish of its own, and where.

use std::collections::HashMap;

use posthaste_soap::wsdl::{Description, Extension};

use crate::scan::{COMPRESSION, NAMESPACE};
use crate::wish::Wish;

/// Default wishes by the action of an operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Described {
    /// None where operations of one action differ.
    wishes: HashMap<String, Option<Wish>>,
    unknown: usize,
}

impl Described {
    /// What `description` states; what stands at an operation counts before what stands at its binding.
    pub fn of(description: &Description) -> Self {
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

    /// The wish for calls of the operation with this action (SOAPAction in SOAP 1.1, the parameter
    /// `action` in 1.2); none where none is stated, or where operations that share it differ.
    pub fn wish(&self, action: &str) -> Option<Wish> {
        self.wishes.get(action).copied().flatten()
    }

    /// Elements of ours whose words are none of the three; they state nothing.
    pub const fn unknown(&self) -> usize {
        self.unknown
    }

    fn read(&mut self, extensions: &[Extension]) -> Option<Wish> {
        let is_ours = |e: &&Extension| e.namespace == NAMESPACE && e.name == COMPRESSION;
        let found = extensions.iter().find(is_ours)?;
        let wish = Wish::of(found.text.as_bytes());
        self.unknown += usize::from(wish.is_none());
        wish
    }
}
