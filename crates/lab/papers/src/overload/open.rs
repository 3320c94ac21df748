//! sclient: an open loop, with a rate that does not depend on the server.
//!
//! Rates are multiples of the page's measured capacity. Each rate is run several times in sweeps one after another, so
//! that a disturbance of the machine affects one run of a point and shows in its interval. A run past capacity begins
//! with a burst that fills the queue. It therefore measures lasting overload, not its beginning.

use posthaste_load::{Pace, Plan};
use posthaste_study::{
    Conditions, Failure, Needs, RecordTable, RecordValue, Records, Study, estimate,
};
use posthaste_units::{Seed, Span};

use super::curves::{REJECTED, RESPONSE, THROUGHPUT};
use super::testbed::{RequestForm, SLOWDOWN, ShopSettings, ShopTestbed, cpu_us, row, runs};
use crate::testbed::sweep;

pub(super) static STUDY: Study = Study {
    name: "overload-open-loop",
    needs: Needs::Processor,
    core: true,
    run: |conditions| study(conditions, &OpenLoopExtent::new(conditions.full)),
};

/// Length and density of the measurements.
pub(super) struct OpenLoopExtent {
    /// Rates as multiples of the page's capacity.
    pub(super) rates: &'static [f64],
    /// Rates at which the compressed reply is measured, too.
    pub(super) compressed: &'static [f64],
    pub(super) repetitions: u64,
    /// Length of each preliminary measurement: of costs, of capacities.
    pub(super) look: Span,
    pub(super) length: Span,
}

impl OpenLoopExtent {
    fn new(full: bool) -> Self {
        if full {
            Self {
                rates: &[
                    0.2, 0.4, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.35, 1.5,
                    2.0, 3.0,
                ],
                compressed: &[0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.5, 2.0, 3.0],
                repetitions: 3,
                look: Span::from_secs(1),
                length: Span::from_secs(8),
            }
        } else {
            Self {
                rates: &[0.4, 0.7, 0.85, 0.95, 1.05, 1.5, 2.0, 3.0],
                compressed: &[0.4, 0.85, 1.5, 3.0],
                repetitions: 3,
                look: Span::from_millis(400),
                length: Span::from_millis(500),
            }
        }
    }
}

/// Multiple of the page's capacity from which every form is overloaded.
pub(super) const OVERLOADED: f64 = 1.4;

/// A short accept queue and a low limit. The server accepts up to its limit and then nothing until those are served.
/// With a higher limit it would accept in batches so large that a short run counts one batch more or less.
const SHOP: ShopSettings = ShopSettings {
    slowdown: SLOWDOWN,
    backlog: 128,
    concurrency: Some(32),
};
pub(super) fn study(
    conditions: &Conditions<'_>,
    extent: &OpenLoopExtent,
) -> Result<Records, Failure> {
    let mut records = Records::new();
    costs(conditions, extent.look, &mut records)?;
    let testbed = ShopTestbed::open(conditions.seed, SHOP)?;
    testbed.describe(&mut records, conditions, SHOP);
    records.set_parameter("arrivals", "constant");
    records.set_parameter("length of a run", extent.length);
    records.set_parameter("runs of each point", extent.repetitions);
    let mut table = runs();
    if let Some(capacity) = first_capacities(&testbed, conditions, extent.look)? {
        sweeps(&testbed, conditions, extent, capacity, &mut table)?;
    }
    records.set_table("runs", table);
    summarise(&mut records);
    Ok(records)
}

/// CPU time per request without slowdown, for each form.
fn costs(conditions: &Conditions<'_>, look: Span, records: &mut Records) -> Result<(), Failure> {
    let shop = ShopSettings {
        slowdown: 1,
        backlog: 1024,
        concurrency: None,
    };
    let testbed = ShopTestbed::open(conditions.seed, shop)?;
    for form in RequestForm::ALL {
        let pace = Pace::Closed {
            clients: 64,
            length: look,
        };
        let measured = testbed.measure(&testbed.plan(form, pace), conditions.stop)?;
        let cpu = measured.map_or(f64::NAN, |measured| cpu_us(&measured));
        records.set_number(&format!("cpu_us {}", form.key()), cpu);
    }
    Ok(())
}

/// Estimates each form's capacity: the page's by a closed loop, then all by overload. In the order of [`RequestForm`]. `None`
/// if stopped.
fn first_capacities(
    testbed: &ShopTestbed,
    conditions: &Conditions<'_>,
    look: Span,
) -> Result<Option<[f64; RequestForm::ALL.len()]>, Failure> {
    let pace = Pace::Closed {
        clients: 64,
        length: look,
    };
    let plan = testbed.plan(RequestForm::Page, pace);
    let Some(closed) = testbed.measure(&plan, conditions.stop)? else {
        return Ok(None);
    };
    let page = conditions.capacity(closed.throughput());
    let mut capacities = [page; RequestForm::ALL.len()];
    for form in RequestForm::ALL {
        let plan = overload(testbed, form, 2.0 * page, page, look)?;
        let Some(measured) = testbed.measure(&plan, conditions.stop)? else {
            return Ok(None);
        };
        capacities[form as usize] = conditions.capacity(measured.throughput());
    }
    Ok(Some(capacities))
}

/// Runs every rate for every form, several times. Omits stopped runs.
fn sweeps(
    testbed: &ShopTestbed,
    conditions: &Conditions<'_>,
    extent: &OpenLoopExtent,
    capacity: [f64; RequestForm::ALL.len()],
    table: &mut RecordTable,
) -> Result<(), Failure> {
    let total = extent.repetitions * extent.rates.len() as u64;
    let page = capacity[RequestForm::Page as usize];
    for repetition in 1..=extent.repetitions {
        for (index, &load) in extent.rates.iter().enumerate() {
            let done = (repetition - 1) * extent.rates.len() as u64 + index as u64;
            let message =
                format!("sweep {repetition}, {load} x the page's capacity of {page:.0}/s");
            conditions.progress.step(done, total, &message);
            let is_measured = |form: &RequestForm| {
                *form != RequestForm::Compressed || extent.compressed.contains(&load)
            };
            for form in RequestForm::ALL.into_iter().filter(is_measured) {
                let own = capacity[form as usize];
                let mut plan = overload(testbed, form, load * page, own, extent.length)?;
                plan.seed = Seed(conditions.seed.0.wrapping_add(repetition));
                let Some(measured) = testbed.measure(&plan, conditions.stop)? else {
                    return Ok(());
                };
                table.push(row(&measured, form, load, repetition));
            }
        }
    }
    Ok(())
}

/// A plan of `rate` for `length`. If `rate` exceeds the capacity `own`, a burst that fills server and queue comes
/// first.
fn overload(
    testbed: &ShopTestbed,
    form: RequestForm,
    rate: f64,
    own: f64,
    length: Span,
) -> Result<Plan, Failure> {
    Ok(testbed.plan(form, sweep::load(rate, own, length)?))
}

/// Computes the capacities from all overloaded runs, and each point from its runs.
fn summarise(records: &mut Records) {
    let values_of = |records: &Records,
                     form: RequestForm,
                     wanted: &dyn Fn(f64) -> bool,
                     column: &str|
     -> Vec<f64> {
        let rows = records.table("runs").rows();
        rows.filter(|row| row.text("form") == form.key() && wanted(row.number("load")))
            .map(|row| row.number(column))
            .collect()
    };
    for form in RequestForm::ALL {
        let plateau = values_of(
            records,
            form,
            &|load| load >= OVERLOADED,
            "throughput_per_s",
        );
        let capacity = estimate(&plateau);
        records.set_number(&format!("capacity {}", form.key()), capacity.median);
        records.set_number(&format!("capacity {} low", form.key()), capacity.low);
        records.set_number(&format!("capacity {} high", form.key()), capacity.high);
    }
    let page = records.number("capacity page");
    let quantities = [RESPONSE, THROUGHPUT, REJECTED];
    let [[a, b, c], [d, e, f], [g, h, i]] = quantities;
    let mut points = RecordTable::new([
        "form",
        "load",
        "rate_ratio",
        "rate_per_s",
        "runs",
        a,
        b,
        c,
        d,
        e,
        f,
        g,
        h,
        i,
    ]);
    for form in RequestForm::ALL {
        let mut loads = values_of(records, form, &|_| true, "load");
        loads.sort_by(f64::total_cmp);
        loads.dedup();
        for load in loads {
            let values = |column| values_of(records, form, &|other| other == load, column);
            let rate = estimate(&values("offered_per_s")).median;
            let mut row = vec![
                form.key().into(),
                load.into(),
                (rate / page).into(),
                rate.into(),
            ];
            row.push((values("load").len() as u64).into());
            for [column, _, _] in quantities {
                let found = estimate(&values(column));
                row.extend([found.median, found.low, found.high].map(RecordValue::from));
            }
            points.push(row);
        }
    }
    records.set_table("points", points);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use posthaste_study::lab::Lab;

    use super::*;
    use crate::overload::curves;
    use crate::test_study;
    use crate::testbed::{curves::reservations, instrument};

    const TINY: OpenLoopExtent = OpenLoopExtent {
        // Multiples of the assumed capacity. 10,000 requests a second overload the slow server on any machine.
        rates: &[0.4, 10.0],
        compressed: &[],
        repetitions: 1,
        look: Span::from_millis(250),
        // Long enough for some replies in its middle on a busy machine.
        length: Span::from_millis(250),
    };

    fn with(stop: bool) -> Records {
        let lab = Lab::Shared("a test".to_owned());
        let stop = AtomicBool::new(stop);
        let conditions = Conditions {
            assumed_capacity: Some(1000.0),
            ..test_study::conditions(&lab, &stop)
        };
        study(&conditions, &TINY).unwrap()
    }

    #[test]
    fn a_tiny_study_measures_overload_and_accounts_for_it() {
        let records = with(false);
        assert_eq!(records.table("runs").len(), 4);
        for form in RequestForm::PAIR {
            let rejected = curves::places(&records, form, "rejected_per_s");
            assert!(rejected.last().unwrap().1 > 0.0, "{form:?}: {rejected:?}");
            let capacity = records.number(&format!("capacity {}", form.key()));
            assert!(capacity > 0.0, "{form:?}: {capacity}");
            assert!(records.number(&format!("cpu_us {}", form.key())) > 0.0);
        }
        assert!(curves::places(&records, RequestForm::Compressed, "response_ms").is_empty());
        let checks = instrument::accounting(&records);
        assert_eq!(
            checks.len(),
            2,
            "counters of a shared network prove nothing"
        );
        for check in checks {
            assert!(check.holds, "{}", check.sentence);
        }
        assert_eq!(
            reservations(&records).len(),
            1 + usize::from(records.number("shared core") == 1.0)
        );
    }

    #[test]
    fn stopped_at_once_it_has_measured_nothing_and_says_so() {
        let records = with(true);
        assert!(records.table("runs").is_empty());
        assert!(
            instrument::accounting(&records)
                .iter()
                .all(|check| !check.holds)
        );
    }
}
