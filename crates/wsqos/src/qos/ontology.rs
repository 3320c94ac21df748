//! Ontologies: what custom metrics, priorities and protocols mean.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

/// Whether more or less of a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Direction {
    /// More is better: `inc`.
    #[serde(rename = "inc")]
    Increasing,
    /// Less is better: `dec`.
    #[serde(rename = "dec")]
    Decreasing,
}

/// What a metric is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Metric {
    /// Which way is better.
    pub direction: Direction,
    /// What it is counted in.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// The percentile that a value is, where it is one: 0 to 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percentile: Option<f64>,
}

/// The names that one document defines.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ontology {
    /// By name.
    #[serde(rename = "metricDefinition")]
    pub metrics: BTreeMap<String, Metric>,
    /// By name.
    #[serde(rename = "priorityDefinition")]
    pub priorities: BTreeSet<String>,
    /// By name.
    #[serde(rename = "protocolDefinition")]
    pub protocols: BTreeSet<String>,
}

/// Ontologies by the URL under which documents refer to them.
pub type Ontologies = HashMap<String, Ontology>;
