//! Counts of a connection, for reports.

use crate::streams::error_code::{StreamErrorCode, http2, http3};

/// Number of events by error code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CodeCounts {
    http2: [u64; http2::NAMES.len()],
    http3: [u64; http3::NAMES.len()],
    other: u64,
}

impl CodeCounts {
    pub(crate) fn add(&mut self, code: impl Into<StreamErrorCode>) {
        let count = match code.into() {
            StreamErrorCode::Http2(code) => code.position().map(|at| &mut self.http2[at]),
            StreamErrorCode::Http3(code) => code.position().map(|at| &mut self.http3[at]),
        };
        *count.unwrap_or(&mut self.other) += 1;
    }

    /// Events with this code. All codes that are not registered share one count.
    pub fn get(&self, code: impl Into<StreamErrorCode>) -> u64 {
        let count = match code.into() {
            StreamErrorCode::Http2(code) => code.position().map(|at| self.http2[at]),
            StreamErrorCode::Http3(code) => code.position().map(|at| self.http3[at]),
        };
        count.unwrap_or(self.other)
    }

    /// Names and counts of the codes that occurred.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let http2 = http2::NAMES.into_iter().zip(self.http2);
        let http3 = http3::NAMES.into_iter().zip(self.http3);
        let all = http2.chain(http3).chain([("other", self.other)]);
        all.filter(|(_, count)| *count > 0)
    }

    /// Adds the counts of another connection.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.http2.iter_mut().zip(other.http2) {
            *count += more;
        }
        for (count, more) in self.http3.iter_mut().zip(other.http3) {
            *count += more;
        }
        self.other += other.other;
    }

    /// All events.
    pub fn total(&self) -> u64 {
        let registered = self.http2.into_iter().chain(self.http3);
        registered.chain([self.other]).fold(0, u64::saturating_add)
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
    /// Resets by the server of open streams, by code.
    pub resets_received: CodeCounts,
    /// Streams that the client reset, by code. Servers limit their number, and close the connection beyond it.
    pub resets_sent: CodeCounts,
    /// GOAWAY frames received, by code. In HTTP/3 they have none and count as H3_NO_ERROR.
    pub goaways: CodeCounts,
    /// Requests whose body waited for a window of the server, or in HTTP/3 for the transport.
    pub stalled: u64,
    /// Times that the server used up a window of ours. Above 0, the windows limited the measured throughput. 0 in
    /// HTTP/3, where the windows belong to the transport.
    pub windows_exhausted: u64,
    /// Frames ignored because their stream had been reset before. 0 in HTTP/3.
    pub late_frames: u64,
    /// Interim replies.
    pub interim: u64,
}

impl ClientCounters {
    /// True if the counts of streams are consistent with the number of open ones.
    pub(crate) const fn add_up(&self, open: usize) -> bool {
        self.opened == self.ended + self.cancelled + open as u64
    }
}
