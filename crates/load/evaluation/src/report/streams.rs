//! HTTP/2 and HTTP/3 in reports: requests that waited for a stream, and streams that the server reset or rejected.

use std::collections::BTreeMap;

use super::numbers::{millis, thousands};
use crate::multiplexed::StreamReport;

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
        ("requests sent once more", streams.resent),
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
        let told = match offered {
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
        ("early data", vec![told])
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
