//! wsqos/fig-69: price and load in the stable state.

use posthaste_study::{Check, Figure, Plot, Records};
use posthaste_units::Span;

use super::adaptive;
use super::adaptive_plots::{DIFFERS, Moment, accounted, course, plot as picture};
use crate::planned::THESIS;

pub(crate) static FIGURE: Figure = Figure {
    id: "wsqos/fig-69",
    title: "price and load in the stable state",
    claim: "In the stable state price and load move against each other.",
    paper: THESIS,
    budget: Span::from_secs(45),
    study: &adaptive::STUDY,
    plot,
    checks,
    differs: DIFFERS,
};

/// Length of the stable part before demand falls, in the thesis's minutes.
const BEFORE: f64 = 4.0;

fn stable(records: &Records) -> Vec<Moment> {
    let falls = records.number("falls");
    course(records, falls - BEFORE, falls)
}

fn plot(records: &Records) -> Vec<Plot> {
    picture("Price and load in the stable state", &stable(records))
}

fn checks(records: &Records) -> Vec<Check> {
    let course = stable(records);
    let (prices, loads): (Vec<f64>, Vec<f64>) =
        course.iter().map(|now| (now.price, now.load)).unzip();
    // Load responds as soon as clients know the price, and its mean half a minute later.
    let looks = (0.5 / (BEFORE / course.len().max(1) as f64)) as usize;
    let against = correlation(&prices, loads.get(looks..).unwrap_or_default());
    let ends = |values: &[f64]| {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        (least, values.iter().copied().fold(0.0, f64::max))
    };
    let (price, load) = (ends(&prices), ends(&loads));
    let mut checks = accounted(records);
    checks.push(Check::claim(
        against < -0.3,
        format!("Price and load move against each other: where the price lies between {:.2} and {:.2} EUR, the load half a minute later lies between {:.0} and {:.0} %, with a correlation of {against:.2}.", price.0, price.1, load.0 * 100.0, load.1 * 100.0),
    ).because("demand is random, and a short run leaves the correlation uncertain."));
    checks
}

/// Pearson's correlation of the pairs. Ignores the surplus of the longer list.
fn correlation(xs: &[f64], ys: &[f64]) -> f64 {
    let count = xs.len().min(ys.len()) as f64;
    let pairs = || xs.iter().zip(ys);
    let (x, y) = (
        pairs().map(|p| p.0).sum::<f64>() / count,
        pairs().map(|p| p.1).sum::<f64>() / count,
    );
    let sum =
        |term: &dyn Fn(f64, f64) -> f64| pairs().map(|(a, b)| term(a - x, b - y)).sum::<f64>();
    sum(&|a, b| a * b) / (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::correlation;

    #[test]
    fn opposite_movements_correlate_negatively() {
        let up = [1.0, 2.0, 3.0, 4.0];
        assert!((correlation(&up, &[2.0, 4.0, 6.0, 8.0]) - 1.0).abs() < 1e-12);
        assert!((correlation(&up, &[9.0, 6.0, 3.0]) + 1.0).abs() < 1e-12);
    }
}
