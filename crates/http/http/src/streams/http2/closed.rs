//! Streams that were reset recently: frames of the server that it sent before it knew are no error (RFC 9113, section
//! 5.1).

use std::collections::VecDeque;

/// Number of remembered streams. Older ones count as remembered, because nothing is known about them.
const REMEMBERED: usize = 1024;

/// Identifiers of streams that ended without END_STREAM of the server.
#[derive(Debug, Default)]
pub(super) struct ResetStreams {
    recent: VecDeque<u32>,
    /// Highest identifier that was forgotten.
    forgotten: u32,
}

impl ResetStreams {
    pub(super) fn add(&mut self, stream: u32) {
        if self.recent.len() == REMEMBERED
            && let Some(oldest) = self.recent.pop_front()
        {
            self.forgotten = self.forgotten.max(oldest);
        }
        self.recent.push_back(stream);
    }

    /// True if late frames of a closed stream are permitted.
    pub(super) fn permits_late_frames(&self, stream: u32) -> bool {
        stream <= self.forgotten || self.recent.contains(&stream)
    }
}
