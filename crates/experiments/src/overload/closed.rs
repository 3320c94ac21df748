//! singleclient: a closed loop, in which each of N clients waits for its reply.
//!
//! Every point is one run that starts measuring when all clients have had their first reply, so
//! that the crowd at the start is not part of it.

use posthaste_load::Pace;
use posthaste_units::{Seed, Span};

use super::bench::{Bench, Form, SLOWDOWN, Shop, runs};
use crate::figure::{Conditions, Failure, Study};
use crate::records::{Records, Table};

pub(super) static STUDY: Study = Study {
    name: "overload-closed-loop",
    run: |conditions| study(conditions, &Case::of(conditions.full)),
};

/// How long and how densely to measure.
pub(super) struct Case {
    pub(super) clients: &'static [u32],
    pub(super) length: Span,
}

impl Case {
    fn of(full: bool) -> Self {
        if full {
            Self {
                clients: &[
                    1, 2, 3, 5, 10, 20, 50, 100, 150, 200, 250, 300, 350, 400, 450, 500,
                ],
                length: Span::from_secs(10),
            }
        } else {
            Self {
                clients: &[1, 5, 20, 50, 100, 200, 350, 500],
                length: Span::from_millis(400),
            }
        }
    }
}

/// All clients fit into the server and its queue: in a closed loop nothing is rejected.
const SHOP: Shop = Shop {
    slowdown: SLOWDOWN,
    backlog: 1024,
    concurrency: None,
};

pub(super) fn study(conditions: &Conditions<'_>, case: &Case) -> Result<Records, Failure> {
    let bench = Bench::open(conditions.seed, SHOP)?;
    let mut table = runs();
    let mut points = Table::new([
        "form",
        "clients",
        "response_ms",
        "response_low_ms",
        "response_high_ms",
        "throughput_per_s",
    ]);
    let total = (case.clients.len() * Form::PAIR.len()) as u64;
    let mut done = 0;
    for form in Form::PAIR {
        // What one client had to wait for, doubled: the first guess at a service time.
        let mut service = Span::from_millis(2);
        for &clients in case.clients {
            let words = format!("{}, {clients} clients", form.name());
            conditions.progress.step(done, total, &words);
            done += 1;
            let pace = Pace::Closed {
                clients,
                length: case.length,
            };
            let mut plan = bench.plan(form, pace);
            plan.connect_timeout = Span::from_millis(500);
            plan.warm_up =
                (service * u64::from(clients)).min(Span::from_secs(2)) + Span::from_millis(30);
            plan.seed = Seed(conditions.seed.0.wrapping_add(done));
            let Some(measured) = bench.measure(&plan, conditions.stop)? else {
                break;
            };
            table.push(measured.row(form, clients.into(), 1));
            let response = measured.run.response.summary();
            let ends = response.mean_interval.unwrap_or([f64::NAN; 2]);
            let throughput = measured.throughput();
            if throughput > 0.0 {
                service = Span::from_secs_f64(1.2 / throughput);
            }
            let numbers = [
                f64::from(clients),
                response.mean,
                ends[0],
                ends[1],
                throughput,
            ];
            points.push(
                [form.key().into()]
                    .into_iter()
                    .chain(numbers.map(Into::into)),
            );
        }
    }
    let mut records = Records::new();
    records.set_table("runs", table);
    records.set_table("points", points);
    bench.describe(&mut records, conditions, SHOP);
    records.set_parameter("connect timeout", "500ms");
    records.set_parameter("length of a run", case.length);
    Ok(records)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::lab::Lab;
    use crate::overload::instrument;
    use crate::progress::Silent;

    #[test]
    fn a_tiny_study_serves_every_client() {
        let conditions = Conditions {
            full: false,
            seed: Seed(1),
            lab: &Lab::Shared("a test".to_owned()),
            stop: &AtomicBool::new(false),
            progress: &Silent,
        };
        let case = Case {
            clients: &[1, 20],
            length: Span::from_millis(60),
        };
        let records = study(&conditions, &case).unwrap();
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
