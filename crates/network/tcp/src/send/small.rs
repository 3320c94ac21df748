//! The rules against small segments: Nagle's algorithm and silly windows (RFC 9293, sections 3.7.4 and 3.8.6.2.1).

use super::sequence::SendSequence;
use crate::Offset;
use crate::profile::Nagle;

#[derive(Clone, Copy, Debug)]
pub(super) struct SmallSegments {
    rule: Nagle,
    pub(super) no_delay: bool,
    /// Nothing was unacknowledged when the last write began, and no acknowledgement has arrived since.
    pub(super) began_idle: bool,
    /// The end of the last segment that was not full (`snd_sml`).
    pub(super) last_end: Offset,
}

impl SmallSegments {
    pub(super) const fn new(rule: Nagle) -> Self {
        Self {
            rule,
            no_delay: false,
            began_idle: false,
            last_end: 0,
        }
    }

    /// Returns true if the end of the written data may leave in a segment that is not full.
    pub(super) fn frees_end(&self, sequence: &SendSequence) -> bool {
        let exempt = match self.rule {
            Nagle::Any => false,
            Nagle::Later => self.began_idle,
            Nagle::Small => self.last_end <= sequence.una,
        };
        sequence.closing || self.no_delay || sequence.is_idle() || exempt
    }
}
