//! The law of an event stream: number of events, time before the first, gaps between them.
//!
//! Times are offsets from the start of the stream and are fixed before it begins: an event that is late does not delay
//! the next. A client that knows the law can tell its own lateness from the service's.

use posthaste_units::{Seed, Span, Stream};
use rand::RngExt as _;
use rand_distr::Exp1;
use thiserror::Error;

/// Maximum number of events of a stream.
const MOST_EVENTS: u32 = 100_000;

/// Maximum time before the first event and maximum mean gap.
const LONGEST: Span = Span::from_secs(600);

/// Maximum expected duration of a stream.
const LONGEST_STREAM: Span = Span::from_secs(3600);

/// The law of an event stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventLaw {
    /// Number of events, at least one.
    pub events: u32,
    /// Time before the first event.
    pub first: Span,
    /// Gaps between events.
    pub gap: GapLaw,
    /// Seed of exponential gaps.
    pub seed: u64,
}

/// Gaps between events, written `50ms` or `exp:50ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapLaw {
    /// The same gap each time.
    Constant(Span),
    /// Independent gaps with an exponential distribution of this mean.
    Exponential(Span),
}

/// The reason why a parameter of a law is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{name}={value:?}: {reason}")]
pub struct EventLawError {
    /// Name of the parameter.
    pub name: &'static str,
    value: String,
    reason: String,
}

impl GapLaw {
    /// The mean gap.
    pub const fn mean(self) -> Span {
        match self {
            Self::Constant(gap) | Self::Exponential(gap) => gap,
        }
    }

    fn draw(self, random: &mut Stream) -> u64 {
        match self {
            Self::Constant(gap) => gap.as_nanos(),
            Self::Exponential(mean) => {
                (random.sample::<f64, _>(Exp1) * mean.as_nanos() as f64) as u64
            }
        }
    }
}

impl EventLaw {
    /// Creates a law of so many events without gaps.
    pub const fn new(events: u32) -> Self {
        Self {
            events,
            first: Span::ZERO,
            gap: GapLaw::Constant(Span::ZERO),
            seed: 0,
        }
    }

    /// Sets a parameter: `events`, `first`, `gap` or `seed`. Returns false for another name.
    pub fn set(&mut self, name: &str, value: &str) -> Result<bool, EventLawError> {
        match name {
            "events" => {
                let events = value.parse().ok().filter(|n| (1..=MOST_EVENTS).contains(n));
                self.events = events.ok_or_else(|| {
                    wrong(
                        "events",
                        value,
                        format!("write a number from 1 to {MOST_EVENTS}"),
                    )
                })?;
            }
            "first" => self.first = time("first", value, value)?,
            "gap" => {
                self.gap = match value.strip_prefix("exp:") {
                    Some(mean) => GapLaw::Exponential(time("gap", value, mean)?),
                    None => GapLaw::Constant(time("gap", value, value)?),
                }
            }
            "seed" => {
                self.seed = value.parse().map_err(|_| {
                    wrong("seed", value, "write a whole number below 2^64".to_owned())
                })?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Rejects a law whose stream would take too long.
    pub fn check(self) -> Result<Self, EventLawError> {
        let gaps = u64::from(self.events - 1).saturating_mul(self.gap.mean().as_nanos());
        if gaps > LONGEST_STREAM.as_nanos() {
            let reason = format!(
                "{} events with this gap take more than {LONGEST_STREAM}: ask for fewer or a shorter gap",
                self.events
            );
            return Err(wrong("gap", &self.gap.mean().to_string(), reason));
        }
        Ok(self)
    }

    /// The offset of each event from the start of the stream, in ns.
    pub fn offsets(self) -> impl Iterator<Item = u64> {
        let mut random = Seed(self.seed).stream("gaps");
        let mut offset = self.first.as_nanos();
        (0..self.events).map(move |number| {
            if number > 0 {
                offset = offset.saturating_add(self.gap.draw(&mut random));
            }
            offset
        })
    }
}

fn time(name: &'static str, value: &str, text: &str) -> Result<Span, EventLawError> {
    let span: Span = text
        .parse()
        .map_err(|error| wrong(name, value, format!("{error}")))?;
    if span <= LONGEST {
        Ok(span)
    } else {
        Err(wrong(name, value, format!("the maximum is {LONGEST}")))
    }
}

fn wrong(name: &'static str, value: &str, reason: String) -> EventLawError {
    EventLawError {
        name,
        value: value.chars().take(64).collect(),
        reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law(parameters: &[(&str, &str)]) -> Result<EventLaw, EventLawError> {
        let mut law = EventLaw::new(10);
        for (name, value) in parameters {
            assert!(law.set(name, value)?, "{name}");
        }
        law.check()
    }

    #[test]
    fn constant_gaps_follow_the_time_before_the_first_event() {
        let law = law(&[("events", "3"), ("first", "1ms"), ("gap", "20us")]).unwrap();
        let offsets: Vec<u64> = law.offsets().collect();
        assert_eq!(offsets, [1_000_000, 1_020_000, 1_040_000]);
    }

    #[test]
    fn exponential_gaps_have_their_mean_and_repeat_with_their_seed() {
        let offsets_for = |seed: &str| {
            let law = law(&[("events", "50000"), ("gap", "exp:1ms"), ("seed", seed)]);
            law.unwrap().offsets().collect::<Vec<u64>>()
        };
        let offsets = offsets_for("7");
        let gaps: Vec<f64> = offsets
            .windows(2)
            .map(|two| (two[1] - two[0]) as f64 / 1e6)
            .collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        // Five standard errors.
        assert!((mean - 1.0).abs() < 0.0224, "{mean}");
        assert!((variance - 1.0).abs() < 0.0633, "{variance}");
        assert_eq!(offsets, offsets_for("7"));
        assert_ne!(offsets, offsets_for("8"));
    }

    #[test]
    fn wrong_parameters_name_themselves_and_the_remedy() {
        for (name, value, remedy) in [
            ("events", "0", "1 to 100000"),
            ("events", "100001", "1 to 100000"),
            ("events", "-1", "1 to 100000"),
            ("gap", "5", "unit"),
            ("gap", "exp:", ""),
            ("gap", "3600s", "maximum"),
            ("first", "-1ms", ""),
            ("seed", "x", "whole number"),
        ] {
            let error = law(&[(name, value)]).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{name}=")), "{error}");
            assert!(error.contains(remedy), "{error}");
        }
        let long = law(&[("events", "100000"), ("gap", "1s")]).unwrap_err();
        assert!(long.to_string().contains("fewer"), "{long}");
        assert_eq!(EventLaw::new(1).set("size", "lite"), Ok(false));
    }
}
