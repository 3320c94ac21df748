//! When a receiver looks for a hole, how long it waits, and how much it sends.

use std::fmt;
use std::str::FromStr;

use posthaste_units::Span;
use thiserror::Error;

use super::DUPLICATES;

/// When a hole is looked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trigger {
    /// From the FIN on, as the paper has it: the sender has nothing more to say. A hole is not
    /// seen where the FIN is lost as well, and not before the sender closes.
    #[default]
    Fin,
    /// On all data: a sender that is silent while there is a hole seems to have finished, or
    /// waits for acknowledgements that will not come. Serves connections that stay open.
    Silence,
}

impl Trigger {
    /// Both, the paper's first.
    pub const ALL: [Self; 2] = [Self::Fin, Self::Silence];

    /// `fin` or `silence`.
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

/// A text that names no [`Trigger`].
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

/// The rule of the receiver's help. The default is the paper's proposal, for one hole.
///
/// The timer runs from the last segment that came. It is set to
/// `min(longest, max(shortest, mean + deviations * deviation))`, all in time: mean and mean
/// deviation are those of the gaps between the connection's segments with new data, smoothed as
/// RFC 6298 smooths round-trip times (gains 1/8 and 1/4; the first gap g gives g and g/2). With
/// four deviations a segment that is merely late has nearly always come: that is what RFC 6298
/// gives an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AdaptiveAcks {
    /// When a hole is looked for.
    pub trigger: Trigger,
    /// How many deviations beyond the mean gap are waited.
    pub deviations: u32,
    /// Shortest wait. Segments of one flight overtake each other by milliseconds, however close
    /// together they are sent; 10 ms.
    pub shortest: Span,
    /// Longest wait, and the wait while no gap has been measured. Linux and FreeBSD senders time
    /// out 200 ms and a round-trip time after the last acknowledgement that said something new:
    /// later than 200 ms the help would come too late anyway.
    pub longest: Span,
    /// Most duplicates for one connection in its life; 3, which is one hole. NewReno repairs
    /// further ones by itself once it has begun (RFC 6582).
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
