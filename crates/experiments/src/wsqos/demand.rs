//! What clients ask of a shop that can do so much: the course of demand, and how old the prices are that they know.

use std::f64::consts::TAU;

use posthaste_load::{Arrivals, Pace, Step};
use posthaste_units::{Rate, Span};

use crate::figure::Failure;

/// Demand that can be served, as a share of what can be done.
pub(super) const EASY: f64 = 0.8;
/// A sine is so many straight lines.
const CHORDS: u64 = 16;

/// How clients act.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    /// Demand steps up and stays there.
    Step,
    /// It swings between what can be served and the most.
    Sine,
    /// It steps up, and clients ask for prices only so often.
    Old(Span),
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct World {
    pub(super) kind: Kind,
    /// The most, as a multiple of what can be done.
    pub(super) most: f64,
}

/// How long what lasts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) before: Span,
    /// A quote's life, and some more until the last reply that was let in before has come.
    pub(super) life: Span,
    pub(super) length: Span,
    /// Of a sine, which is judged from its second period on. `length` is a whole multiple of it.
    pub(super) period: Span,
}

/// A stretch in which demand moves in a straight line, in multiples of what can be done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stretch {
    from: f64,
    to: f64,
    length: Span,
}

/// The course of demand.
pub(super) struct Demand {
    stretches: Vec<Stretch>,
    /// The last ones are judged.
    pub(super) judged: usize,
}

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Step => "step",
            Self::Sine => "sine",
            Self::Old(_) => "old",
        }
    }

    /// How often clients ask for prices that do not follow them.
    pub(super) const fn ask_every(self) -> Option<Span> {
        match self {
            Self::Old(every) => Some(every),
            _ => None,
        }
    }
}

impl World {
    pub(super) fn demand(self, times: &Times) -> Demand {
        let steady = |level: f64, length| Stretch {
            from: level,
            to: level,
            length,
        };
        let mut stretches = vec![steady(EASY.min(self.most), times.before)];
        let judged = match self.kind {
            Kind::Step | Kind::Old(_) => {
                stretches.push(steady(self.most, times.life));
                stretches.push(steady(self.most, times.length));
                1
            }
            Kind::Sine => {
                let judged = CHORDS * times.length.as_nanos() / times.period.as_nanos().max(1);
                stretches.extend((0..CHORDS + judged).map(|number| Stretch {
                    from: self.level(number),
                    to: self.level(number + 1),
                    length: times.period / CHORDS,
                }));
                judged as usize
            }
        };
        Demand { stretches, judged }
    }

    /// Of a sine, after so many of its lines, from the trough on.
    fn level(self, number: u64) -> f64 {
        let part = number as f64 / CHORDS as f64;
        EASY + (self.most - EASY) * (1.0 - (TAU * part).cos()) / 2.0
    }
}

impl Demand {
    /// The part of one of so many clients, where `capacity` requests per second can be done.
    pub(super) fn pace(&self, capacity: f64, clients: usize) -> Result<Pace, Failure> {
        let rate =
            |level: f64| Rate::per_second(level * capacity / clients as f64).ok_or("no rate");
        let step = |stretch: &Stretch| {
            Ok::<_, Failure>(Step {
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

    /// How much of what is judged can be done, in seconds of work.
    pub(super) fn possible(&self) -> f64 {
        let judged = self.stretches.iter().rev().take(self.judged);
        let work = judged.map(|part| {
            let level = f64::midpoint(part.from, part.to);
            level.min(1.0) * part.length.as_secs_f64()
        });
        work.sum()
    }

    /// After so many seconds what is judged begins.
    pub(super) fn judged_from(&self) -> f64 {
        let before = self.stretches.iter().rev().skip(self.judged);
        before.map(|part| part.length.as_secs_f64()).sum()
    }

    /// How much is asked for after so many seconds.
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

    const TIMES: Times = Times {
        before: Span::from_secs(1),
        life: Span::from_secs(1),
        length: Span::from_secs(4),
        period: Span::from_secs(2),
    };

    fn demand(kind: Kind, most: f64) -> Demand {
        World { kind, most }.demand(&TIMES)
    }

    #[test]
    fn a_sine_swings_between_what_can_be_served_and_the_most() {
        let sine = demand(Kind::Sine, 2.0);
        let at = [0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.999, 7.0].map(|second| sine.at(second));
        let meant = [EASY, EASY, 1.4, 2.0, EASY, 2.0, EASY, 0.0];
        for (is, meant) in at.iter().zip(meant) {
            assert!((is - meant).abs() < 1e-2, "{at:?}");
        }
        assert_eq!((sine.judged, sine.judged_from()), (32, 3.0));
        // For a good quarter of its 4 s less is asked for than can be done, by an eighth in the mean.
        let possible = sine.possible();
        assert!(possible > 3.85 && possible < 3.9, "{possible}");
    }

    #[test]
    fn a_step_is_judged_once_it_has_been_there_for_a_while() {
        let step = demand(Kind::Step, 5.0);
        assert_eq!(
            [0.5, 1.5, 5.5, 6.5].map(|second| step.at(second)),
            [EASY, 5.0, 5.0, 0.0]
        );
        assert_eq!((step.judged, step.judged_from()), (1, 2.0));
        assert_eq!(step.possible(), 4.0);
        assert_eq!(demand(Kind::Step, EASY).possible(), 4.0 * EASY);
    }

    #[test]
    fn clients_ask_for_equal_parts() {
        let Ok(Pace::Open { steps, .. }) = demand(Kind::Sine, 5.0).pace(500.0, 10) else {
            panic!("no pace");
        };
        assert_eq!(steps.len(), 1 + 16 * 3);
        assert_eq!(steps[0].from.as_per_second(), EASY * 50.0);
        assert_eq!(steps[8].to.as_per_second(), 250.0);
    }
}
