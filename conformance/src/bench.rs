//! Benchmarks with targets, measured together with peers in one run.
//!
//! A shared machine drifts. Compared programs therefore run in turns (A B A B), and medians are used. CPU time is
//! measured per process, so it holds even if rates do not.

mod admission;
mod agents;
mod busy;
mod changes;
mod charges;
mod compare;
mod cost;
mod durability;
mod emulator;
mod events;
mod figure_text;
mod figures;
mod find;
mod gate;
mod grpc;
mod grpc_load;
mod http3;
mod kept;
mod list;
mod lookups;
mod marking;
mod offers;
mod oracle;
mod page;
mod past_limit;
mod pinned;
mod proxies;
mod reply;
mod result;
mod schedule;
mod simulate;
mod streams;
mod tails;
mod visible;
mod witness;

use std::process::ExitCode;

use posthaste_stats::{nearest_rank, sample_median};

use crate::builds::Build;
use crate::checkout::Checkout;
use crate::error::{Outcome, TaskError, check};
use crate::site::Site;
use crate::tools;
use kept::RunOrigin;
use list::Benchmark;
use result::{Figure, Measure};

/// A site with a release build, plain or profiled, and the choice of a quick run.
pub(crate) struct Bench {
    pub(crate) site: Site,
    pub(crate) quick: bool,
}

impl Bench {
    /// Returns the first for a thorough run, the second for a quick one.
    pub(crate) fn or_quick<T>(&self, thorough: T, quick: T) -> T {
        if self.quick { quick } else { thorough }
    }
}

/// Options of one call.
pub(crate) struct BenchChoice {
    pub(crate) build: Build,
    /// One benchmark instead of all.
    pub(crate) name: Option<String>,
    pub(crate) quick: bool,
    /// Keeps the runs in conformance/results.
    pub(crate) write: bool,
}

impl BenchChoice {
    /// The command that repeats this benchmark with the same options.
    fn command(&self, name: &str) -> String {
        let pgo = match self.build {
            Build::Profiled => "--pgo ",
            _ => "",
        };
        format!("cargo xtask bench {pgo}{name}")
    }
}

/// Prints the benchmarks.
pub(crate) fn list() {
    for Benchmark { name, about, .. } in list::all() {
        println!("{name:15} {about}");
    }
}

/// Writes docs/benchmarks.md from the kept runs.
pub(crate) fn write_page(checkout: &Checkout) -> Outcome<()> {
    let path = checkout.path(page::PATH);
    tools::write(&path, page::text(checkout.root())?)?;
    println!("wrote {}", path.display());
    Ok(())
}

/// Runs all benchmarks or one. Fails if a target is missed.
pub(crate) fn run(checkout: Checkout, choice: &BenchChoice) -> Outcome<ExitCode> {
    check(!(choice.write && choice.quick), || {
        "a quick run is not kept: use --write without --quick".to_owned()
    })?;
    let name = choice.name.as_deref();
    let chosen: Vec<&Benchmark> = list::all()
        .filter(|benchmark| name.is_none_or(|name| name == benchmark.name))
        .collect();
    if chosen.is_empty() {
        let names: Vec<&str> = list::all().map(|benchmark| benchmark.name).collect();
        return Err(TaskError::Failed(format!(
            "no such benchmark; there are {}",
            names.join(", ")
        )));
    }
    let bench = Bench {
        site: Site::new(checkout, choice.build)?,
        quick: choice.quick,
    };
    let mut all_hold = true;
    for benchmark in chosen {
        println!("\n### {}\n\n{}.\n", benchmark.name, benchmark.about);
        match measure(&bench, benchmark, choice) {
            Ok(figures) => {
                let mut targets = figures.iter().filter_map(|figure| figure.target.as_ref());
                all_hold &= targets.all(|target| target.holds);
            }
            Err(error) => {
                all_hold = false;
                println!("not measured: {error}");
            }
        }
    }
    Ok(if all_hold {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Measures, prints, and keeps the run if requested.
fn measure(bench: &Bench, benchmark: &Benchmark, choice: &BenchChoice) -> Outcome<Vec<Figure>> {
    let measure = || {
        let figures = (benchmark.run)(bench)?;
        figure_text::print(&figures);
        Ok(figures)
    };
    if !choice.write {
        return measure();
    }
    let origin = RunOrigin::from_checkout(&bench.site.checkout)?;
    let command = choice.command(benchmark.name);
    let (path, figures) = origin.keep(benchmark.name, command, measure)?;
    println!("\nwrote {}", path.display());
    write_page(&bench.site.checkout)?;
    Ok(figures)
}

/// The middle value, or the mean of the two middle values. NaN for no values.
pub(crate) fn median(values: &[f64]) -> f64 {
    sample_median(values).unwrap_or(f64::NAN)
}

/// The value that this share of all values does not exceed. NaN for no values.
pub(crate) fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    nearest_rank(&sorted, share).unwrap_or(f64::NAN)
}

/// The median ratio of pairs measured in turns.
pub(crate) fn pair_ratio(ours: &[f64], theirs: &[f64]) -> f64 {
    let pairs = ours.iter().zip(theirs);
    let ratios: Vec<f64> = pairs.map(|(ours, theirs)| ours / theirs).collect();
    median(&ratios)
}

/// Runs the measurements in turns, `rounds` times, and returns the values of each.
pub(crate) fn in_turns<const N: usize>(
    rounds: usize,
    mut measure: [&mut dyn FnMut() -> Outcome<f64>; N],
) -> Outcome<[Vec<f64>; N]> {
    let mut values = [const { Vec::new() }; N];
    for _ in 0..rounds {
        for (measure, values) in measure.iter_mut().zip(&mut values) {
            values.push(measure()?);
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::{in_turns, median, quantile};

    #[test]
    fn the_median_is_the_middle() {
        assert!((median(&[3.0, 1.0, 2.0]) - 2.0).abs() < 1e-12);
        assert!((median(&[4.0, 1.0, 2.0, 3.0]) - 2.5).abs() < 1e-12);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn quantiles_are_values() {
        let at = |share| quantile(&[4.0, 2.0, 1.0, 3.0], share);
        assert_eq!([at(0.0), at(0.5), at(0.51), at(1.0)], [1.0, 2.0, 3.0, 4.0]);
        assert!(quantile(&[], 0.5).is_nan());
    }

    #[test]
    fn turns_alternate() {
        let order = std::cell::RefCell::new(Vec::new());
        let mut one = || {
            order.borrow_mut().push('A');
            Ok(1.0)
        };
        let mut two = || {
            order.borrow_mut().push('B');
            Ok(2.0)
        };
        let values = in_turns(2, [&mut one, &mut two]).expect("nothing fails");
        assert_eq!(values, [vec![1.0, 1.0], vec![2.0, 2.0]]);
        assert_eq!(order.into_inner(), ['A', 'B', 'A', 'B']);
    }
}
