//! Demand of the clients relative to the capacity of a shop: its course over time, and the age of known prices.

use std::f64::consts::TAU;

use posthaste_load::{Arrivals, Pace, RateStep};
use posthaste_study::Failure;
use posthaste_units::{Rate, Span};

/// Demand that can be served, as a share of the capacity.
pub(super) const EASY: f64 = 0.8;
/// Number of straight lines per period of a sine.
const CHORDS: u64 = 16;

/// Behaviour of clients.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum ClientBehaviour {
    /// Demand steps up and remains.
    Step,
    /// Demand swings between [`EASY`] and the maximum.
    Sine,
    /// Demand steps up, and clients request prices only at this interval.
    Old(Span),
}

/// A scenario of demand.
#[derive(Clone, Copy, Debug)]
pub(super) struct DemandScenario {
    pub(super) kind: ClientBehaviour,
    /// Maximum demand, as a multiple of the capacity.
    pub(super) most: f64,
}

/// Lengths of the phases of a course.
#[derive(Clone, Copy, Debug)]
pub(super) struct PhaseLengths {
    pub(super) before: Span,
    /// The life of a quote, plus the time until the last previously admitted request has its reply.
    pub(super) life: Span,
    pub(super) length: Span,
    /// Period of a sine. The evaluation starts with its second period. `length` is a whole multiple of it.
    pub(super) period: Span,
}

/// A section with linear demand, in multiples of the capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stretch {
    from: f64,
    to: f64,
    length: Span,
}

/// Course of demand.
pub(super) struct DemandCourse {
    stretches: Vec<Stretch>,
    /// Number of the last sections, which are evaluated.
    pub(super) judged: usize,
}

impl ClientBehaviour {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::Sine => "sine",
            Self::Old(_) => "old",
        }
    }

    /// Interval of price requests of clients that do not follow prices.
    pub(super) const fn ask_every(self) -> Option<Span> {
        match self {
            Self::Old(every) => Some(every),
            _ => None,
        }
    }
}

impl DemandScenario {
    pub(super) fn demand(self, times: &PhaseLengths) -> DemandCourse {
        let steady = |level: f64, length| Stretch {
            from: level,
            to: level,
            length,
        };
        let mut stretches = vec![steady(EASY.min(self.most), times.before)];
        let judged = match self.kind {
            ClientBehaviour::Step | ClientBehaviour::Old(_) => {
                stretches.push(steady(self.most, times.life));
                stretches.push(steady(self.most, times.length));
                1
            }
            ClientBehaviour::Sine => {
                let judged = CHORDS * times.length.as_nanos() / times.period.as_nanos().max(1);
                stretches.extend((0..CHORDS + judged).map(|number| Stretch {
                    from: self.level(number),
                    to: self.level(number + 1),
                    length: times.period / CHORDS,
                }));
                judged as usize
            }
        };
        DemandCourse { stretches, judged }
    }

    /// Level of a sine after this number of its lines, starting at the minimum.
    fn level(self, number: u64) -> f64 {
        let part = number as f64 / CHORDS as f64;
        EASY + (self.most - EASY) * (1.0 - (TAU * part).cos()) / 2.0
    }
}

impl DemandCourse {
    /// Pace of one of `clients` clients, with a capacity of `capacity` requests per second.
    pub(super) fn pace(&self, capacity: f64, clients: usize) -> Result<Pace, Failure> {
        let rate =
            |level: f64| Rate::per_second(level * capacity / clients as f64).ok_or("no rate");
        let step = |stretch: &Stretch| {
            Ok::<_, Failure>(RateStep {
                from: rate(stretch.from)?,
                to: rate(stretch.to)?,
                length: stretch.length,
            })
        };
        Ok(Pace::Open {
            arrivals: Arrivals::Poisson,
            steps: self.stretches.iter().map(step).collect::<Result<_, _>>()?,
        })
    }

    /// Work that can be done in the evaluated part, in seconds of work.
    pub(super) fn possible(&self) -> f64 {
        let judged = self.stretches.iter().rev().take(self.judged);
        let work = judged.map(|part| {
            let level = f64::midpoint(part.from, part.to);
            level.min(1.0) * part.length.as_secs_f64()
        });
        work.sum()
    }

    /// Start of the evaluated part, in seconds.
    pub(super) fn judged_from(&self) -> f64 {
        let before = self.stretches.iter().rev().skip(self.judged);
        before.map(|part| part.length.as_secs_f64()).sum()
    }

    /// Demand after `seconds`, as a multiple of the capacity.
    pub(super) fn at(&self, seconds: f64) -> f64 {
        let mut begins = 0.0;
        for part in &self.stretches {
            let length = part.length.as_secs_f64();
            if seconds < begins + length {
                return part.from + (part.to - part.from) * (seconds - begins) / length;
            }
            begins += length;
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: PhaseLengths = PhaseLengths {
        before: Span::from_secs(1),
        life: Span::from_secs(1),
        length: Span::from_secs(4),
        period: Span::from_secs(2),
    };

    fn demand(kind: ClientBehaviour, most: f64) -> DemandCourse {
        DemandScenario { kind, most }.demand(&TIMES)
    }

    #[test]
    fn a_sine_swings_between_what_can_be_served_and_the_most() {
        let sine = demand(ClientBehaviour::Sine, 2.0);
        let at = [0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.999, 7.0].map(|second| sine.at(second));
        let meant = [EASY, EASY, 1.4, 2.0, EASY, 2.0, EASY, 0.0];
        for (is, meant) in at.iter().zip(meant) {
            assert!((is - meant).abs() < 1e-2, "{at:?}");
        }
        assert_eq!((sine.judged, sine.judged_from()), (32, 3.0));
        // For a good quarter of its 4 s, demand is below the capacity, by an eighth on average.
        let possible = sine.possible();
        assert!(possible > 3.85 && possible < 3.9, "{possible}");
    }

    #[test]
    fn a_step_is_judged_once_it_has_been_there_for_a_while() {
        let step = demand(ClientBehaviour::Step, 5.0);
        assert_eq!(
            [0.5, 1.5, 5.5, 6.5].map(|second| step.at(second)),
            [EASY, 5.0, 5.0, 0.0]
        );
        assert_eq!((step.judged, step.judged_from()), (1, 2.0));
        assert_eq!(step.possible(), 4.0);
        assert_eq!(demand(ClientBehaviour::Step, EASY).possible(), 4.0 * EASY);
    }

    #[test]
    fn clients_ask_for_equal_parts() {
        let Ok(Pace::Open { steps, .. }) = demand(ClientBehaviour::Sine, 5.0).pace(500.0, 10)
        else {
            panic!("no pace");
        };
        assert_eq!(steps.len(), 1 + 16 * 3);
        assert_eq!(steps[0].from.as_per_second(), EASY * 50.0);
        assert_eq!(steps[8].to.as_per_second(), 250.0);
    }
}
