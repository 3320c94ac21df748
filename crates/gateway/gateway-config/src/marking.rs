//! `[marking]`: DiffServ marks of the packets of replies.

use posthaste_qos::marking::{Marks, Table, Urgencies};
use posthaste_units::Dscp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// DiffServ marks of the packets of replies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Marking {
    /// Replies that are marked.
    pub policy: MarkPolicy,
    /// Mark forwarded requests like their replies.
    pub upstream: bool,
    /// Marks that requests may ask for. Without it, the marks of `table` and `urgency`. Offers and routes may use others.
    pub allow: Option<Vec<Dscp>>,
    /// Rules from priorities to marks. The first matching rule decides; without a match the reply has the default mark.
    pub table: Table,
    /// Marks for urgency 0 to 7 of the field `Priority` (RFC 9218).
    pub urgency: Urgencies,
}

/// Replies that are marked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum MarkPolicy {
    /// Marks nothing.
    #[default]
    Never,
    /// Marks replies for which the client, an offer or the route requests a mark.
    Asked,
}

impl Marking {
    /// The rules of the marks. `None` if nothing is marked.
    pub fn marks(&self) -> Option<Marks> {
        let marks = || Marks::new(self.table.clone(), self.urgency, self.allow.as_deref());
        (self.policy == MarkPolicy::Asked).then(marks)
    }
}
