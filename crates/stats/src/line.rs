//! A straight line through noisy points, and where it crosses zero.
//!
//! Weighted least squares. The interval of the crossing comes from the points' own scatter about
//! the line (the delta method: Draper and Smith, Applied Regression Analysis, inverse estimation), so
//! it needs no knowledge of what made them noisy. Assumes that the line is the right shape nearby and
//! that the points err independently.

use statrs::distribution::{ContinuousCDF as _, StudentsT};

/// A point with the weight of its y: the inverse of its variance, up to a common factor.
#[derive(Clone, Copy, Debug)]
pub struct Weighted {
    /// Place on the line.
    pub x: f64,
    /// Observed value.
    pub y: f64,
    /// Weight, above zero.
    pub weight: f64,
}

/// Where a rising line crosses zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossing {
    /// The estimate.
    pub x: f64,
    /// 95 % interval of `x`; none where the points do not show beyond doubt that the line rises: then the
    /// crossing may be anywhere.
    pub interval: Option<[f64; 2]>,
}

/// The crossing of the line through `points`; `None` with fewer than three points, points at one
/// place only, or a line that does not rise.
pub fn crossing(points: &[Weighted]) -> Option<Crossing> {
    let weight: f64 = points.iter().map(|p| p.weight).sum();
    let mean = |value: fn(&Weighted) -> f64| {
        points.iter().map(|p| p.weight * value(p)).sum::<f64>() / weight
    };
    let (x, y) = (mean(|p| p.x), mean(|p| p.y));
    let spread: f64 = points.iter().map(|p| p.weight * (p.x - x).powi(2)).sum();
    let joint: f64 = points
        .iter()
        .map(|p| p.weight * (p.x - x) * (p.y - y))
        .sum();
    let slope = joint / spread;
    if points.len() < 3 || !slope.is_finite() || slope <= 0.0 {
        return None;
    }
    let root = x - y / slope;
    let free = (points.len() - 2) as f64;
    let scatter: f64 = points
        .iter()
        .map(|p| p.weight * (p.y - y - slope * (p.x - x)).powi(2))
        .sum();
    let noise = scatter / free;
    let student = StudentsT::new(0.0, 1.0, free).ok()?.inverse_cdf(0.975);
    let rises = slope > student * (noise / spread).sqrt();
    let variance = noise * (1.0 / weight + (root - x).powi(2) / spread);
    let half = student * variance.sqrt() / slope;
    Some(Crossing {
        x: root,
        interval: rises.then_some([root - half, root + half]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use posthaste_units::Seed;
    use rand::RngExt as _;

    fn at(x: f64, y: f64) -> Weighted {
        Weighted { x, y, weight: 1.0 }
    }

    #[test]
    fn an_exact_line_crosses_exactly() {
        let found = crossing(&[1.0, 2.0, 5.0, 6.0].map(|x| at(x, 2.0 * x - 7.0))).unwrap();
        assert!((found.x - 3.5).abs() < 1e-12);
        let [low, high] = found.interval.unwrap();
        assert!(high - low < 1e-9);
    }

    #[test]
    fn nothing_is_said_without_a_rising_line() {
        assert_eq!(crossing(&[at(1.0, 1.0), at(2.0, 2.0)]), None);
        assert_eq!(crossing(&[1.0, 2.0, 3.0].map(|x| at(x, -x))), None);
        assert_eq!(crossing(&[0.0, 1.0, 2.0].map(|y| at(4.0, y))), None);
        // Rises by chance as likely as not.
        let noisy = [(1.0, 5.0), (2.0, -4.0), (3.0, 6.0), (4.0, -3.0), (5.0, 6.0)];
        let found = crossing(&noisy.map(|(x, y)| at(x, y))).unwrap();
        assert_eq!(found.interval, None);
    }

    #[test]
    fn the_interval_holds_the_truth_as_often_as_it_says() {
        let mut noise = Seed(7).stream("noise");
        let runs = 2000;
        let mut held = 0;
        for _ in 0..runs {
            let points: Vec<Weighted> = (0..10)
                .map(|n| {
                    let x = f64::from(n) / 10.0;
                    // The sum of twelve uniform draws is as good as normal here.
                    let error: f64 = (0..12).map(|_| noise.random::<f64>()).sum::<f64>() - 6.0;
                    at(x, 4.0 * (x - 0.4) + 0.3 * error)
                })
                .collect();
            let [low, high] = crossing(&points).unwrap().interval.unwrap();
            held += u32::from(low <= 0.4 && 0.4 <= high);
        }
        let share = f64::from(held) / f64::from(runs);
        assert!((0.93..0.975).contains(&share), "{share}");
    }
}
