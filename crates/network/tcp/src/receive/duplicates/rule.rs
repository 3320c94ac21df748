//! Rule of the adaptive acknowledgements: trigger, waiting time, and limit.

use std::fmt;
use std::str::FromStr;

use posthaste_units::Span;
use thiserror::Error;

use super::DUPLICATES;

/// Condition for the timer to run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trigger {
    /// From the FIN on, as in the paper: the sender has no more data. Misses a hole if the FIN is lost as well, and
    /// does nothing before the sender closes.
    #[default]
    Fin,
    /// On all data: a sender that is silent during a hole seems to have finished, or waits for acknowledgements that
    /// will not come. Serves connections that stay open.
    Silence,
}

impl Trigger {
    /// Both triggers, the paper's first.
    pub const ALL: [Self; 2] = [Self::Fin, Self::Silence];

    /// Name on command lines: `fin` or `silence`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fin => "fin",
            Self::Silence => "silence",
        }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Error: the text names no [`Trigger`].
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} does not say when a hole is looked for: write fin or silence")]
pub struct TriggerError(String);

impl FromStr for Trigger {
    type Err = TriggerError;

    fn from_str(text: &str) -> Result<Self, TriggerError> {
        Self::ALL
            .into_iter()
            .find(|trigger| trigger.name() == text)
            .ok_or_else(|| TriggerError(text.to_owned()))
    }
}

/// Rule of the adaptive acknowledgements. The default is the paper's proposal, for one hole.
///
/// The timer starts at the last segment received and runs for
/// `min(longest, max(shortest, mean + deviations * deviation))`.
/// Mean and mean deviation are those of the gaps between the connection's segments with new data. They are smoothed as
/// RFC 6298 smooths round-trip times (gains 1/8 and 1/4; the first gap g gives g and g/2). With four deviations, RFC
/// 6298's margin for an acknowledgement, a merely late segment has nearly always arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdaptiveAcks {
    /// Condition for the timer to run.
    pub trigger: Trigger,
    /// Number of deviations added to the mean gap.
    pub deviations: u32,
    /// Shortest wait. Segments of one flight overtake each other by milliseconds, however close together they are sent.
    /// Default: 10 ms.
    pub shortest: Span,
    /// Longest wait, and the wait before a gap has been measured. Linux and FreeBSD senders time out 200 ms and a
    /// round-trip time after the last acknowledgement with new information, so repeats after 200 ms would be too late.
    pub longest: Span,
    /// Maximum number of duplicates in the life of a connection. Default: 3, for one hole. NewReno repairs further ones
    /// itself once it has begun (RFC 6582).
    pub per_connection: u32,
}

impl Default for AdaptiveAcks {
    fn default() -> Self {
        Self {
            trigger: Trigger::default(),
            deviations: 4,
            shortest: Span::from_millis(10),
            longest: Span::from_millis(200),
            per_connection: DUPLICATES,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_are_read_as_they_are_written() {
        for trigger in Trigger::ALL {
            assert_eq!(trigger.to_string().parse(), Ok(trigger));
        }
        let error = "ack".parse::<Trigger>().unwrap_err().to_string();
        assert!(error.contains("fin or silence"), "{error}");
    }
}
