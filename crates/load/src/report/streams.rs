//! HTTP/2 in the report on a terminal.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::numbers::{millis, thousands};
use crate::multiplexed::StreamReport;

/// Lines about streams: requests that waited for one, and what the server reset or closed.
pub(super) fn lines(streams: &StreamReport, out: &mut String) -> std::fmt::Result {
    let waits = [
        ("the handshake", streams.queued_for_handshake),
        ("--streams", streams.queued_for_own_limit),
        (
            "the server's limit of streams",
            streams.queued_for_server_limit,
        ),
    ];
    let waits: Vec<String> = waits
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(reason, count)| format!("{} for {reason}", thousands(count)))
        .collect();
    if !waits.is_empty() {
        let longest = millis(streams.longest_queue_ms);
        writeln!(out, "queued     {}; longest {longest} ms", waits.join(", "))?;
    }
    by_code(out, "GOAWAY", "received", &streams.goaways)?;
    by_code(out, "resets", "received", &streams.resets)?;
    by_code(out, "resets", "sent", &streams.resets_sent)?;
    let counts = [
        ("requests sent once more", streams.resent),
        ("connections lost", streams.connections_lost),
        ("bodies stalled by flow control", streams.stalled),
        ("receive windows exhausted", streams.windows_exhausted),
    ];
    let counts: Vec<String> = counts
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| format!("{} {name}", thousands(count)))
        .collect();
    match counts.is_empty() {
        true => Ok(()),
        false => writeln!(out, "streams    {}", counts.join("   ")),
    }
}

fn by_code(
    out: &mut String,
    name: &str,
    direction: &str,
    codes: &BTreeMap<String, u64>,
) -> std::fmt::Result {
    if codes.is_empty() {
        return Ok(());
    }
    let codes = codes.iter();
    let codes = codes.map(|(code, count)| format!("{code}: {}", thousands(*count)));
    let codes: Vec<String> = codes.collect();
    writeln!(out, "{name:<10} {direction} {}", codes.join("   "))
}
