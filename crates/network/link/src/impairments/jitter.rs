//! Variation of packet delays around their mean.

use std::fmt;
use std::str::FromStr;

use posthaste_units::{Ratio, Span, Stream};
use rand::RngExt as _;
use rand_distr::{Distribution as _, StandardNormal};

use crate::SpellingError;

/// A distribution of delays. Its mean is the delay of the link.
///
/// A delay is never negative: draws below zero become zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Jitter {
    /// Shape of the distribution.
    pub shape: JitterShape,
    /// Width of the distribution.
    pub spread: Spread,
}

/// Shape of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JitterShape {
    /// Normal distribution. The spread is the standard deviation.
    Normal,
    /// Uniform distribution. The spread is the distance from the mean to either end.
    Uniform,
    /// Pareto distribution with shape 3, as in netem's table: usually a little early, and rarely very late. The spread
    /// is the standard deviation.
    Pareto,
}

/// A jitter around a certain mean.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Around {
    mean: Span,
    /// Mean and width in nanoseconds.
    nanos: f64,
    width: f64,
}

/// Width of a distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spread {
    /// A fixed time.
    Fixed(Span),
    /// Share of the delay: "50 % of the mean" as a standard deviation.
    OfMean(Ratio),
    /// Square root of this share of the delay, both in milliseconds: "its variance is 50 % of the mean", taken
    /// literally from the packet-loss paper (sqrt(0.5 x 10) = 2.2 ms at 10 ms).
    VarianceOfMean(Ratio),
}

impl Jitter {
    /// A draw for [`Around::delay`] to scale. It does not depend on the delay, which may change meanwhile.
    pub(crate) fn draw(&self, draws: &mut Stream) -> f64 {
        match self.shape {
            JitterShape::Normal => StandardNormal.sample(draws),
            JitterShape::Uniform => 2.0 * draws.random::<f64>() - 1.0,
            // Mean 3/2 and standard deviation sqrt(3)/2, normalised to 0 and 1.
            JitterShape::Pareto => {
                let pareto = (1.0 - draws.random::<f64>()).cbrt().recip();
                (pareto - 1.5) / 0.75_f64.sqrt()
            }
        }
    }

    /// Delays around this mean.
    pub(crate) fn around(&self, mean: Span) -> Around {
        Around {
            mean,
            nanos: mean.as_nanos() as f64,
            width: self.spread.width(mean).as_nanos() as f64,
        }
    }
}

impl Around {
    /// Mean of the delays.
    pub(crate) const fn mean(&self) -> Span {
        self.mean
    }

    /// Delay of a packet with the draw `deviation`.
    pub(crate) fn delay(&self, deviation: f64) -> Span {
        let nanos = self.nanos + self.width * deviation;
        Span::from_nanos((nanos + 0.5).max(0.0) as i64 as u64)
    }
}

impl Spread {
    /// Width at this mean.
    pub fn width(&self, mean: Span) -> Span {
        match self {
            Self::Fixed(width) => *width,
            Self::OfMean(share) => Span::from_secs_f64(mean.as_secs_f64() * share.get()),
            Self::VarianceOfMean(share) => {
                Span::from_secs_f64((mean.as_millis_f64() * share.get()).sqrt() / 1e3)
            }
        }
    }
}

impl FromStr for Jitter {
    type Err = SpellingError;

    /// Parses `[SHAPE:]SPREAD`. The shape is `normal` (default), `uniform` or `pareto`. The spread is a time (`5ms`), a
    /// share of the delay (`50%`), or `variance:50%`.
    fn from_str(text: &str) -> Result<Self, SpellingError> {
        let wrong = || {
            SpellingError::new(
                text,
                "a jitter",
                "5ms, 50% (of the delay), variance:50% (in ms, of the delay), any of them after uniform: or pareto:",
            )
        };
        let shapes = [
            JitterShape::Normal,
            JitterShape::Uniform,
            JitterShape::Pareto,
        ];
        let (shape, spread) = text
            .split_once(':')
            .and_then(|(name, rest)| {
                let shape = shapes.into_iter().find(|shape| shape.name() == name)?;
                Some((shape, rest))
            })
            .unwrap_or((JitterShape::Normal, text));
        let share = |text: &str| {
            let share = text.parse::<Ratio>();
            share.map_err(|reason| wrong().of_share(&reason))
        };
        let spread = match spread.strip_prefix("variance:") {
            Some(variance) => Spread::VarianceOfMean(share(variance)?),
            None if spread.ends_with('%') => Spread::OfMean(share(spread)?),
            None => Spread::Fixed(spread.parse().map_err(|_| wrong())?),
        };
        Ok(Self { shape, spread })
    }
}

impl JitterShape {
    /// Name in options.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Uniform => "uniform",
            Self::Pareto => "pareto",
        }
    }
}

impl fmt::Display for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.shape.name())?;
        match self.spread {
            Spread::Fixed(width) => width.fmt(f),
            Spread::OfMean(share) => share.fmt(f),
            Spread::VarianceOfMean(share) => write!(f, "variance:{share}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use posthaste_units::Seed;

    fn moments(text: &str, mean: Span) -> (f64, f64) {
        let jitter: Jitter = text.parse().unwrap();
        let mut draws = Seed(1).stream("jitter");
        let draws = (0..200_000).map(|_| jitter.around(mean).delay(jitter.draw(&mut draws)));
        let delays: Vec<f64> = draws.map(Span::as_millis_f64).collect();
        let mean = delays.iter().sum::<f64>() / delays.len() as f64;
        let squares = delays.iter().map(|delay| (delay - mean).powi(2));
        (mean, (squares.sum::<f64>() / delays.len() as f64).sqrt())
    }

    #[test]
    fn each_spelling_has_its_moments() {
        let cases = [
            ("5ms", 5.0),
            ("normal:50%", 50.0),
            ("variance:50%", 50.0_f64.sqrt()),
            ("uniform:60ms", 60.0 / 3.0_f64.sqrt()),
        ];
        for (text, deviation) in cases {
            let (mean, found) = moments(text, Span::from_millis(100));
            assert!((mean - 100.0).abs() < 0.5, "{text}: mean {mean}");
            assert!(
                (found / deviation - 1.0).abs() < 0.03,
                "{text}: deviation {found}"
            );
        }
    }

    /// The tail is heavy. Quantiles converge; the variance converges too slowly for a close comparison.
    #[test]
    fn pareto_has_its_quantiles() {
        let jitter: Jitter = "pareto:10ms".parse().unwrap();
        let mut draws = Seed(1).stream("jitter");
        let mut all: Vec<f64> = (0..100_000).map(|_| jitter.draw(&mut draws)).collect();
        all.sort_by(f64::total_cmp);
        for quantile in [0.1_f64, 0.5, 0.9, 0.99] {
            let theory = ((1.0 - quantile).powf(-1.0 / 3.0) - 1.5) / 0.75_f64.sqrt();
            let found = all[(quantile * 1e5) as usize];
            assert!(
                (found - theory).abs() < 0.02 * theory.abs().max(1.0),
                "{quantile}: {found} {theory}"
            );
        }
    }

    #[test]
    fn prints_what_it_reads_and_refuses_with_the_remedy() {
        for text in ["normal:5ms", "uniform:50%", "pareto:variance:50%"] {
            assert_eq!(text.parse::<Jitter>().unwrap().to_string(), text);
        }
        for text in ["", "5", "gamma:5ms", "variance:5ms", "normal:", "-5ms"] {
            let error = text.parse::<Jitter>().unwrap_err().to_string();
            assert!(error.contains("variance:50%"), "{error}");
        }
    }
}
