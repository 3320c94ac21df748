//! WS-QoS: documents, comparison, ranking.

mod documents;
pub(super) mod made;
mod matching;
mod money;
mod ranking;
