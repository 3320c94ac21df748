//! Configured changes of header fields, ready to be applied.

use hyper::header::{HeaderMap, HeaderName, HeaderValue};

use posthaste_gateway_config::FieldEdits;

/// Fields to remove and to set.
#[derive(Debug)]
pub(crate) struct FieldChanges {
    remove: Vec<HeaderName>,
    set: Vec<(HeaderName, HeaderValue)>,
}

impl FieldChanges {
    /// Returns the changes of a checked configuration. `None` if there are none.
    pub(crate) fn new(edits: &FieldEdits) -> Option<Self> {
        let name = |name: &String| name.parse::<HeaderName>().expect("names are checked");
        let set = |(field, value): (&String, &String)| {
            let value = HeaderValue::from_str(value).expect("values are checked");
            (name(field), value)
        };
        let changes = Self {
            remove: edits.remove.iter().map(name).collect(),
            set: edits.set.iter().map(set).collect(),
        };
        (!changes.remove.is_empty() || !changes.set.is_empty()).then_some(changes)
    }

    /// Names of the removed and set fields.
    pub(crate) fn names(&self) -> impl Iterator<Item = HeaderName> {
        let set = self.set.iter().map(|(name, _)| name);
        self.remove.iter().chain(set).cloned()
    }

    pub(crate) fn apply(&self, headers: &mut HeaderMap) {
        for name in &self.remove {
            headers.remove(name);
        }
        for (name, value) in &self.set {
            headers.insert(name, value.clone());
        }
    }
}
