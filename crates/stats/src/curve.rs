//! Fit of a response curve to trials at several rates, and the rate at which it crosses its bound.

use statrs::distribution::{ChiSquared, ContinuousCDF as _, Normal, StudentsT};

/// The bounded statistic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum BoundedStatistic {
    /// The share of requests beyond the bound, which must stay below `allowed`.
    Share {
        /// Above 0 and below 1.
        allowed: f64,
    },
    /// The mean, as a multiple of its bound.
    Mean,
}

/// One trial.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observed {
    /// Requests per second.
    pub rate: f64,
    /// The share beyond the bound, or the mean as a multiple of its bound.
    pub level: f64,
    /// Weight of the trial: an equivalent number of independent requests, or the inverse of the mean's relative
    /// variance.
    pub weight: f64,
}

/// A weak prior for the slope: the curve reaches its end (a share of 1, an infinite mean) at the server's saturation
/// rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Anchor {
    /// The rate of saturation.
    pub saturation: f64,
    /// Standard deviation of the logarithm of the slope around the expected value.
    pub spread: f64,
}

/// The fitted curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// Rate at which it crosses the bound.
    pub rate: f64,
    /// The ends of the 95 % interval, if any.
    pub interval: [Option<f64>; 2],
    /// Its slope.
    pub slope: f64,
    /// Probability of a deviation of the points at least this large if the curve is right.
    pub likelihood: f64,
    /// Factor between the real variances and those from the weights.
    pub inflation: f64,
}

const GOLDEN: f64 = 0.618_033_988_749_895;
/// Degrees of freedom of Student's t per independent request beyond the bound that the points expect at the crossing.
/// With a handful of them the likelihood is not yet normal. Set by simulation (`cargo xtask bench find-virtual`).
const FREEDOM: f64 = 8.0;
/// Factor by which intervals of a central quantile are widened, and the minimum share of central quantiles. The
/// relaxation time of a queue is long compared with the bound of a median, and batches within a trial do not show all
/// of it. Without it 79 % of the intervals cover for the median of M/M/1 with services of 5 ms.
const CENTRAL_WIDTH: f64 = 1.6;
const CENTRAL: f64 = 0.1;
/// Range of elasticities (relative change of the share per relative change of the rate). Values outside are not
/// distinguished.
const FLATTEST: f64 = 0.05;
const STEEPEST: f64 = 400.0;

/// A curve and the points to fit it to.
#[derive(Clone, Debug)]
pub struct Curve<'p> {
    points: &'p [Observed],
    law: BoundedStatistic,
    anchor: Option<Anchor>,
}

impl<'p> Curve<'p> {
    /// A curve to be fitted to `points`.
    pub fn new(points: &'p [Observed], law: BoundedStatistic, anchor: Option<Anchor>) -> Self {
        Self {
            points,
            law,
            anchor,
        }
    }

    fn linear(&self, rate: f64, slope: f64, crossing: f64) -> f64 {
        match self.law {
            BoundedStatistic::Share { allowed } => allowed.ln() + slope * (rate - crossing),
            BoundedStatistic::Mean => 1.0 - slope * (rate - crossing),
        }
    }

    /// The level at `rate` of the curve with this slope and crossing.
    pub fn level(&self, rate: f64, slope: f64, crossing: f64) -> f64 {
        let linear = self.linear(rate, slope, crossing);
        match self.law {
            BoundedStatistic::Share { .. } => linear.exp().min(1.0),
            BoundedStatistic::Mean if linear > 0.0 => 1.0 / linear,
            BoundedStatistic::Mean => f64::INFINITY,
        }
    }

    fn log_likelihood(&self, crossing: f64, slope: f64) -> f64 {
        let points = self.points.iter();
        let sum: f64 = points
            .map(|point| {
                let linear = self.linear(point.rate, slope, crossing);
                let term = match self.law {
                    BoundedStatistic::Share { .. } => {
                        let rest = -(linear.exp_m1());
                        if point.level < 1.0 {
                            point.level * linear + (1.0 - point.level) * rest.max(1e-300).ln()
                        } else {
                            linear
                        }
                    }
                    BoundedStatistic::Mean => linear.max(1e-300).ln() - point.level * linear,
                };
                point.weight * term
            })
            .sum();
        let sum = sum + 0.5 * self.information(crossing, slope).ln();
        let Some(anchor) = self.anchor else {
            return sum;
        };
        let expected = self.end() / (anchor.saturation - crossing).max(0.02 * anchor.saturation);
        sum - 0.5 * ((slope / expected).ln() / anchor.spread).powi(2)
    }

    /// The determinant of Fisher's information of intercept and slope.
    fn information(&self, crossing: f64, slope: f64) -> f64 {
        let (mut a, mut b, mut c) = (0.0, 0.0, 0.0);
        for point in self.points {
            let linear = self.linear(point.rate, slope, crossing);
            let weight = point.weight
                * match self.law {
                    BoundedStatistic::Share { .. } => linear.exp() / (-linear.exp_m1()).max(1e-9),
                    BoundedStatistic::Mean => linear.max(1e-9).powi(-2),
                };
            let x = (point.rate - crossing) * slope;
            a += weight;
            b += weight * x;
            c += weight * x * x;
        }
        let prior = self.anchor.map_or(0.0, |anchor| anchor.spread.powi(-2));
        (a * (c + prior) - b * b).max(1e-300)
    }

    /// Distance between the curve's end and the crossing on the linear scale.
    fn end(&self) -> f64 {
        match self.law {
            BoundedStatistic::Share { allowed } => -allowed.ln(),
            BoundedStatistic::Mean => 1.0,
        }
    }

    /// The best slope for a crossing, and its log likelihood.
    fn profile(&self, crossing: f64) -> (f64, f64) {
        let last = self.points.iter().map(|p| p.rate).fold(0.0, f64::max);
        let mut steepest = STEEPEST / crossing;
        if last > crossing {
            steepest = steepest.min(0.999 * self.end() / (last - crossing));
        }
        let flattest = (FLATTEST / crossing).min(steepest * 0.5);
        let (mut low, mut high) = (flattest.ln(), steepest.ln());
        let at = |x: f64| self.log_likelihood(crossing, x.exp());
        let (mut a, mut b) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
        let (mut fa, mut fb) = (at(a), at(b));
        while high - low > 1e-4 {
            if fa >= fb {
                high = b;
                (b, fb) = (a, fa);
                a = high - GOLDEN * (high - low);
                fa = at(a);
            } else {
                low = a;
                (a, fa) = (b, fb);
                b = low + GOLDEN * (high - low);
                fb = at(b);
            }
        }
        let middle = f64::midpoint(low, high);
        (middle.exp(), at(middle))
    }

    /// Two-sided 95 % quantile for the interval.
    fn quantile(&self) -> f64 {
        let weight: f64 = self.points.iter().map(|point| point.weight).sum();
        let events = match self.law {
            BoundedStatistic::Share { allowed } => weight * allowed.min(1.0 - allowed),
            BoundedStatistic::Mean => weight,
        };
        let quantile = match StudentsT::new(0.0, 1.0, (FREEDOM * events).max(2.0)) {
            Ok(law) => law.inverse_cdf(0.975),
            Err(_) => Normal::standard().inverse_cdf(0.975),
        };
        match self.law {
            BoundedStatistic::Share { allowed } if allowed > CENTRAL => CENTRAL_WIDTH * quantile,
            _ => quantile,
        }
    }

    /// The maximum-likelihood curve with its 95 % interval.
    pub fn fit(&self) -> Option<Fit> {
        let student = self.quantile();
        let rates = || self.points.iter().map(|p| p.rate);
        let (first, last) = (
            rates().fold(f64::INFINITY, f64::min),
            rates().fold(0.0, f64::max),
        );
        if self.points.is_empty() || first <= 0.0 {
            return None;
        }
        let (bottom, top) = ((first / 5.0).ln(), (last * 2.0).ln());
        const GRID: usize = 60;
        let step = (top - bottom) / GRID as f64;
        let at = |x: f64| self.profile(x.exp()).1;
        let best = (0..=GRID)
            .map(|n| bottom + step * n as f64)
            .map(|x| (x, at(x)))
            .max_by(|a, b| a.1.total_cmp(&b.1))?
            .0;
        let (mut low, mut high) = (best - step, best + step);
        while high - low > 1e-5 {
            let (a, b) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
            if at(a) >= at(b) {
                high = b;
            } else {
                low = a;
            }
        }
        let peak = f64::midpoint(low, high);
        let (slope, most) = self.profile(peak.exp());
        let (likelihood, inflation) = self.misfit(peak.exp(), slope);
        let drop = 0.5 * student * student * inflation;
        let end = |limit: f64| {
            if most - at(limit) < drop {
                return None;
            }
            let (mut inside, mut outside) = (peak, limit);
            while (outside - inside).abs() > 1e-5 {
                let middle = f64::midpoint(inside, outside);
                if most - at(middle) < drop {
                    inside = middle;
                } else {
                    outside = middle;
                }
            }
            Some(f64::midpoint(inside, outside).exp())
        };
        Some(Fit {
            rate: peak.exp(),
            interval: [end(bottom), end(top)],
            slope,
            likelihood,
            inflation,
        })
    }

    fn misfit(&self, crossing: f64, slope: f64) -> (f64, f64) {
        let free = self.points.len() as f64 - 2.0;
        if free < 1.0 {
            return (1.0, 1.0);
        }
        let squares: f64 = self
            .points
            .iter()
            .map(|point| {
                let level = self.level(point.rate, slope, crossing);
                let spread = match self.law {
                    BoundedStatistic::Share { .. } => level * (1.0 - level),
                    BoundedStatistic::Mean => level * level,
                };
                point.weight * (point.level - level).powi(2) / spread.max(1e-12)
            })
            .sum();
        let likelihood = ChiSquared::new(free).map_or(1.0, |law| law.sf(squares));
        let inflation = if likelihood < 0.05 {
            squares / free
        } else {
            1.0
        };
        (likelihood, inflation)
    }
}
