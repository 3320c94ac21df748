//! singleclient: a closed loop of N clients that each wait for their reply.
//!
//! Every run starts measuring after all clients have had their first reply, which excludes the initial burst. The
//! sweeps run one after another, so that a disturbance of the machine affects one run of a point and not the whole
//! point.

use posthaste_load::Pace;
use posthaste_study::{Conditions, Failure, Needs, RecordTable, Records, Study, estimate};
use posthaste_units::{Seed, Span};

use super::testbed::{RequestForm, SLOWDOWN, ShopSettings, ShopTestbed, row, runs};

pub(super) static STUDY: Study = Study {
    name: "overload-closed-loop",
    needs: Needs::Processor,
    core: true,
    run: |conditions| study(conditions, &ClosedLoopExtent::new(conditions.full)),
};

/// Length and density of the measurements.
pub(super) struct ClosedLoopExtent {
    pub(super) clients: &'static [u32],
    pub(super) repetitions: u64,
    pub(super) length: Span,
}

impl ClosedLoopExtent {
    fn new(full: bool) -> Self {
        if full {
            Self {
                clients: &[
                    1, 2, 3, 5, 10, 20, 50, 100, 150, 200, 250, 300, 350, 400, 450, 500,
                ],
                repetitions: 5,
                length: Span::from_secs(4),
            }
        } else {
            Self {
                clients: &[1, 20, 100, 250, 500],
                repetitions: 3,
                length: Span::from_millis(350),
            }
        }
    }
}

/// Server and queue hold all clients, so that a closed loop has no rejections.
const SHOP: ShopSettings = ShopSettings {
    slowdown: SLOWDOWN,
    backlog: 1024,
    concurrency: None,
};

/// Upper bound of the cost of a request on the slow server. A client waits at most this long for each one before it.
const FIRST_REPLY: Span = Span::from_micros(320);

pub(super) fn study(
    conditions: &Conditions<'_>,
    extent: &ClosedLoopExtent,
) -> Result<Records, Failure> {
    let testbed = ShopTestbed::open(conditions.seed, SHOP)?;
    let mut table = runs();
    let total = extent.repetitions * (extent.clients.len() * RequestForm::PAIR.len()) as u64;
    let points = (1..=extent.repetitions).flat_map(|repetition| {
        let clients = extent.clients.iter();
        clients.flat_map(move |clients| RequestForm::PAIR.map(|form| (repetition, *clients, form)))
    });
    for (done, (repetition, clients, form)) in points.enumerate() {
        let message = format!("sweep {repetition}, {}, {clients} clients", form.name());
        conditions.progress.step(done as u64, total, &message);
        let pace = Pace::Closed {
            clients,
            length: extent.length,
        };
        let mut plan = testbed.plan(form, pace);
        plan.connect_timeout = Span::from_millis(500);
        plan.warm_up = FIRST_REPLY * u64::from(clients) + Span::from_millis(30);
        plan.seed = Seed(conditions.seed.0.wrapping_add(done as u64));
        match testbed.measure(&plan, conditions.stop)? {
            Some(measured) => table.push(row(&measured, form, clients.into(), repetition)),
            None => break,
        }
    }
    let mut records = Records::new();
    records.set_table("points", middles(&table, extent));
    records.set_table("runs", table);
    testbed.describe(&mut records, conditions, SHOP);
    records.set_parameter("connect timeout", "500ms");
    records.set_parameter("length of a run", extent.length);
    records.set_parameter("runs of each point", extent.repetitions);
    Ok(records)
}

/// Medians of the runs of each point.
fn middles(runs: &RecordTable, extent: &ClosedLoopExtent) -> RecordTable {
    let mut points = RecordTable::new([
        "form",
        "clients",
        "response_ms",
        "response_low_ms",
        "response_high_ms",
        "throughput_per_s",
        "throughput_low_per_s",
        "throughput_high_per_s",
    ]);
    for form in RequestForm::PAIR {
        for clients in extent.clients {
            let estimate_of = |column: &str| {
                let rows = runs.rows().filter(|row| {
                    row.text("form") == form.key() && row.number("load") == f64::from(*clients)
                });
                estimate(&rows.map(|row| row.number(column)).collect::<Vec<_>>())
            };
            let (response, throughput) =
                (estimate_of("response_ms"), estimate_of("throughput_per_s"));
            let numbers = [response, throughput].map(|e| [e.median, e.low, e.high]);
            let head = [form.key().into(), f64::from(*clients).into()];
            points.push(
                head.into_iter()
                    .chain(numbers.concat().into_iter().map(Into::into)),
            );
        }
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_study;
    use crate::testbed::instrument;

    #[test]
    fn a_tiny_study_serves_every_client() {
        let extent = ClosedLoopExtent {
            clients: &[1, 20],
            repetitions: 2,
            // Long enough for some replies on a busy machine.
            length: Span::from_secs(1),
        };
        let records = test_study::run(None, |conditions| study(conditions, &extent));
        assert_eq!(records.table("points").len(), 4);
        for row in records.table("runs").rows() {
            assert_eq!(row.number("ok"), row.number("intended"));
            assert!(row.number("response_ms") > 0.0);
        }
        assert!(
            instrument::accounting(&records)
                .iter()
                .all(|check| check.holds)
        );
    }
}
