//! `[marking]`: which mark the packets of replies get.

use posthaste_units::Dscp;
use posthaste_wsqos::{Marks, Table, Urgencies};
use serde::Deserialize;

/// Which mark the packets of replies get.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Marking {
    /// By default nothing is marked.
    pub policy: MarkPolicy,
    /// Whether requests carry the mark of their replies towards upstreams, too. Default no.
    pub upstream: bool,
    /// The marks that may be asked for; default those that `table` and `urgency` give. Offers and routes may have others.
    pub allow: Option<Vec<Dscp>>,
    /// Priorities to marks: the first rule that holds decides.
    pub table: Table,
    /// The marks for urgency 0 to 7 of `Priority`.
    pub urgency: Urgencies,
}

/// Which replies are marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MarkPolicy {
    /// None.
    #[default]
    Never,
    /// Those for which a client, an offer or the route asks.
    Asked,
}

impl Marking {
    /// By what is decided; none where nothing is marked.
    pub(crate) fn marks(&self) -> Option<Marks> {
        let marks = || Marks::new(self.table.clone(), self.urgency, self.allow.as_deref());
        (self.policy == MarkPolicy::Asked).then(marks)
    }
}
