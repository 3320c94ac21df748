//! Sweeps of the rate from low to past the limit: the load of each run, and the points from the runs.

use posthaste_load::{Arrivals, Pace, Plan, RateStep};
use posthaste_study::{Failure, RecordTable, RecordValue, Records, estimate};
use posthaste_units::{Rate, Span};

/// Number of requests inside a server under overload: the queue's 129 and those in service. With a fuller or emptier
/// queue at the start, a short run would measure the transition.
pub(crate) const FILL: f64 = 150.0;

/// Returns a pace of `rate` for `length`. If `rate` exceeds the capacity `own`, a burst that fills server and queue
/// comes first.
pub(crate) fn load(rate: f64, own: f64, length: Span) -> Result<Pace, Failure> {
    let mut steps = vec![steady(rate, length)?];
    if rate > own {
        // The burst has four times the capacity, so the server handles a quarter of it meanwhile. A first measurement
        // without any answer gives no estimate of the burst's length.
        let burst = Span::from_secs_f64(FILL / (3.0 * own)).min(length);
        steps.insert(0, steady(4.0 * own, burst)?);
    }
    let arrivals = Arrivals::Constant;
    Ok(Pace::Open { arrivals, steps })
}

/// A constant rate. Fails for 0 and NaN, the multiples of a capacity that was not measured.
pub(crate) fn steady(rate: f64, length: Span) -> Result<RateStep, Failure> {
    let rate = Rate::per_second(rate).ok_or("nothing was answered")?;
    Ok(RateStep::steady(rate, length))
}

/// Requests of a plan at a constant rate. NaN if chance or clients decide the number.
pub(crate) fn planned(plan: &Plan) -> f64 {
    match &plan.pace {
        Pace::Open {
            arrivals: Arrivals::Constant,
            steps,
        } => steps.iter().map(RateStep::expected).sum(),
        _ => f64::NAN,
    }
}

/// Values of `column` in the runs of `who` at the loads that `wanted` accepts.
fn values_of(records: &Records, who: &str, wanted: impl Fn(f64) -> bool, column: &str) -> Vec<f64> {
    let rows = records.table("runs").rows();
    rows.filter(|row| row.text("who") == who && wanted(row.number("load")))
        .map(|row| row.number(column))
        .collect()
}

/// Sets each capacity from all runs at `overloaded` or more.
pub(crate) fn capacities(records: &mut Records, whos: &[&str], overloaded: f64) {
    for who in whos {
        // Only runs with rejections had a full queue and show the capacity. The first estimate of it may have been too
        // low.
        let values = |column| values_of(records, who, |load| load >= overloaded, column);
        let full = values("throughput_per_s")
            .into_iter()
            .zip(values("rejected_per_s"));
        let full = full.filter(|(_, rejected)| *rejected > 0.0);
        let capacity = estimate(&full.map(|(answered, _)| answered).collect::<Vec<_>>());
        for (which, value) in [
            ("", capacity.median),
            (" low", capacity.low),
            (" high", capacity.high),
        ] {
            records.set_number(&format!("capacity {who}{which}"), value);
        }
    }
}

/// Sets the points: for each of `whos` and each rate, as a multiple of `capacity`, the medians of `quantities`.
pub(crate) fn points(records: &mut Records, whos: &[&str], quantities: &[&str], capacity: f64) {
    let mut columns = ["who", "rate_ratio", "rate_per_s"]
        .map(str::to_owned)
        .to_vec();
    for name in quantities {
        columns.extend(["", " low", " high"].map(|end| format!("{name}{end}")));
    }
    let mut points = RecordTable::with(columns.iter().map(String::as_str));
    for who in whos {
        let mut loads = values_of(records, who, |_| true, "load");
        loads.sort_by(f64::total_cmp);
        loads.dedup();
        for load in loads {
            let values = |column| estimate(&values_of(records, who, |other| other == load, column));
            let rate = values("offered_per_s").median;
            let mut row: Vec<RecordValue> =
                vec![(*who).into(), (rate / capacity).into(), rate.into()];
            for quantity in quantities {
                let found = values(quantity);
                row.extend([found.median, found.low, found.high].map(RecordValue::from));
            }
            points.push(row);
        }
    }
    records.set_table("points", points);
}

/// Points of the curve of `who`: (rate / capacity, value).
pub(crate) fn places(records: &Records, who: &str, column: &str) -> Vec<(f64, f64)> {
    let rows = records.table("points").rows();
    rows.filter(|row| row.text("who") == who)
        .map(|row| (row.number("rate_ratio"), row.number(column)))
        .collect()
}
