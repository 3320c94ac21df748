//! Ontologies: definitions of custom metrics, priorities and protocols.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

/// Better direction of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Direction {
    /// More is better: `inc`.
    #[serde(rename = "inc")]
    Increasing,
    /// Less is better: `dec`.
    #[serde(rename = "dec")]
    Decreasing,
}

/// Definition of a metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// Better direction.
    pub direction: Direction,
    /// Unit of the values.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// Percentile that a value represents, if any: 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percentile: Option<f64>,
}

/// The names that one document defines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ontology {
    /// Metrics by name.
    #[serde(rename = "metricDefinition")]
    pub metrics: BTreeMap<String, Metric>,
    /// Names of priorities.
    #[serde(rename = "priorityDefinition")]
    pub priorities: BTreeSet<String>,
    /// Names of protocols.
    #[serde(rename = "protocolDefinition")]
    pub protocols: BTreeSet<String>,
}

/// Ontologies by the URL under which documents refer to them.
pub type Ontologies = HashMap<String, Ontology>;
