//! Counts of a connection, for reports.

use crate::http2::ErrorCode;
use crate::http2::error::NAMES;

/// Number of events by error code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodeCounts {
    registered: [u64; NAMES.len()],
    other: u64,
}

impl CodeCounts {
    pub(crate) fn add(&mut self, code: ErrorCode) {
        match self.registered.get_mut(code.0 as usize) {
            Some(count) => *count += 1,
            None => self.other += 1,
        }
    }

    /// Events with this code. All codes that RFC 9113 does not register share one count.
    pub fn get(&self, code: ErrorCode) -> u64 {
        let registered = self.registered.get(code.0 as usize);
        registered.copied().unwrap_or(self.other)
    }

    /// Names and counts of the codes that occurred.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let registered = NAMES.into_iter().zip(self.registered);
        let all = registered.chain([("other", self.other)]);
        all.filter(|(_, count)| *count > 0)
    }

    /// Adds the counts of another connection.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.registered.iter_mut().zip(other.registered) {
            *count += more;
        }
        self.other += other.other;
    }

    /// All events.
    pub fn total(&self) -> u64 {
        let all = self.registered.iter().copied().chain([self.other]);
        all.fold(0, u64::saturating_add)
    }
}

/// Counts of a connection since its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientCounters {
    /// Streams opened. Equals streams ended, reset by the caller, and open.
    pub opened: u64,
    /// Streams whose end was reported as an event.
    pub ended: u64,
    /// Streams that the caller reset.
    pub cancelled: u64,
    /// RST_STREAM of the server for open streams, by code.
    pub resets_received: CodeCounts,
    /// RST_STREAM sent, by code. Servers limit their number, and close the connection beyond it.
    pub resets_sent: CodeCounts,
    /// GOAWAY frames received, by code.
    pub goaways: CodeCounts,
    /// Requests whose body waited for a window of the server.
    pub stalled: u64,
    /// Times that the server used up a window of ours. Above 0, the windows limited the measured throughput.
    pub windows_exhausted: u64,
    /// Frames ignored because their stream had been reset before.
    pub late_frames: u64,
    /// Interim replies.
    pub interim: u64,
}
