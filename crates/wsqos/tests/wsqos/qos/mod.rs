//! WS-QoS: documents, the match, the ranking.

mod documents;
pub(super) mod made;
mod matching;
mod money;
mod ranking;
