//! HTTP/2 and HTTP/3 in reports: requests that waited for a stream, and streams that the server reset or rejected.

use std::collections::BTreeMap;

use posthaste_units::thousands;

use super::numbers::millis;

use posthaste_load::{CodeCounts, EarlyDataCounts, StreamCounts};
use serde::{Deserialize, Serialize};

/// Counts of streams in a report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamReport {
    /// Requests that waited for their connection.
    pub queued_for_handshake: u64,
    /// Requests that waited because of `--streams`.
    pub queued_for_own_limit: u64,
    /// Requests that waited because of the server's limit of streams.
    pub queued_for_server_limit: u64,
    /// The longest wait for a stream.
    pub longest_queue_ms: f64,
    /// Requests sent once more after a rejection.
    pub resent: u64,
    /// Connections that ended with open streams.
    pub connections_lost: u64,
    /// RST_STREAM of the server by code.
    pub resets: BTreeMap<String, u64>,
    /// RST_STREAM sent by code.
    pub resets_sent: BTreeMap<String, u64>,
    /// GOAWAY of the server by code.
    pub goaways: BTreeMap<String, u64>,
    /// Requests whose body waited for flow control of the server.
    pub stalled: u64,
    /// Times that the server used up a receive window of the generator.
    pub windows_exhausted: u64,
    /// Early data, if the plan sends some.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub early_data: Option<EarlyDataCounts>,
}

impl StreamReport {
    /// `has_early_data` states that the plan sends early data.
    pub(super) fn new(counts: &StreamCounts, has_early_data: bool) -> Self {
        let by_code = |codes: &CodeCounts| {
            let codes = codes.iter();
            codes
                .map(|(name, count)| (name.to_owned(), count))
                .collect()
        };
        Self {
            queued_for_handshake: counts.queued.handshake,
            queued_for_own_limit: counts.queued.own_limit,
            queued_for_server_limit: counts.queued.server_limit,
            longest_queue_ms: counts.queued.longest.as_millis_f64(),
            resent: counts.resent,
            connections_lost: counts.connections_lost,
            resets: by_code(&counts.resets_received),
            resets_sent: by_code(&counts.resets_sent),
            goaways: by_code(&counts.goaways),
            stalled: counts.stalled,
            windows_exhausted: counts.windows_exhausted,
            early_data: has_early_data.then_some(counts.early_data),
        }
    }
}

/// Facts about the streams of a run, each with its name. Counts of zero are left out, except of early data.
pub(super) fn facts(streams: &StreamReport) -> Vec<(&'static str, String)> {
    let waits = [
        ("for the handshake", streams.queued_for_handshake),
        ("for --streams", streams.queued_for_own_limit),
        (
            "for the server's limit of streams",
            streams.queued_for_server_limit,
        ),
    ];
    let mut waits = counted(&waits);
    if !waits.is_empty() {
        waits.push(format!("longest {} ms", millis(streams.longest_queue_ms)));
    }
    let ends = [
        ("requests resent after a rejection", streams.resent),
        ("connections lost", streams.connections_lost),
        ("bodies stalled by flow control", streams.stalled),
        ("receive windows exhausted", streams.windows_exhausted),
    ];
    let facts = [
        ("queued", waits),
        ("GOAWAY", by_code("received", &streams.goaways)),
        ("resets", by_code("received", &streams.resets)),
        ("resets", by_code("sent", &streams.resets_sent)),
        ("streams", counted(&ends)),
    ];
    let early_data = streams.early_data.iter().map(|counts| {
        let [offered, accepted, rejected, again] = counts.counts();
        let fact = match offered {
            0 => "never offered: no connection began with a session ticket that permits it"
                .to_owned(),
            _ => {
                let [offered, accepted, rejected, again] =
                    [offered, accepted, rejected, again].map(thousands);
                format!(
                    "{offered} offered, {accepted} accepted, {rejected} rejected (connections); \
                     {again} requests sent again"
                )
            }
        };
        ("early data", vec![fact])
    });
    let known = facts
        .into_iter()
        .chain(early_data)
        .filter(|(_, parts)| !parts.is_empty());
    known
        .map(|(name, parts)| (name, parts.join(", ")))
        .collect()
}

/// The counts above zero with their names.
fn counted(counts: &[(&str, u64)]) -> Vec<String> {
    let counts = counts.iter().filter(|(_, count)| *count > 0);
    counts
        .map(|(name, count)| format!("{} {name}", thousands(*count)))
        .collect()
}

fn by_code(direction: &str, codes: &BTreeMap<String, u64>) -> Vec<String> {
    let codes = codes.iter();
    codes
        .map(|(code, count)| format!("{} {code} {direction}", thousands(*count)))
        .collect()
}
