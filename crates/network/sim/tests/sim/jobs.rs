//! The jobs of a sweep: any division and any order of results gives the totals of one process.

use posthaste_link::{Loss, Plan};
use posthaste_sim::{
    JobList, JobListError, JobResult, Ledger, LedgerError, ReceivedResult, Scenario, SweepJob,
    Totals,
};
use proptest::prelude::*;

use crate::support::{author, plan, scenario, simulator};

/// Transactions of each case.
const TRANSACTIONS: u64 = 60;

fn case(index: usize) -> Scenario {
    let plan = Plan {
        loss: Some("5%".parse::<Loss>().expect("a loss")),
        ..plan(Some(1000), 10 + 30 * index as u64)
    };
    scenario("rfc", [plan.clone(), plan], author())
}

fn simulated(job: SweepJob) -> Box<Totals> {
    let (mut simulator, mut totals) = (simulator(case(job.case)), Box::<Totals>::default());
    for number in job.first..=job.last {
        totals.add(&simulator.play(number));
    }
    totals
}

/// The result of a job as the ledger's machine reads it.
fn result_of(job: SweepJob) -> JobResult {
    let written = serde_json::to_vec(&JobResult::Totals(simulated(job))).expect("a form");
    serde_json::from_slice(&written).expect("the form of a result")
}

fn written(totals: &Totals) -> String {
    serde_json::to_string(totals).expect("a form")
}

fn of_one_process(case: usize) -> Box<Totals> {
    simulated(SweepJob {
        number: 0,
        case,
        first: 1,
        last: TRANSACTIONS,
    })
}

fn ledger(head: u64, sizes: &[u64]) -> Ledger {
    Ledger::new(JobList::new(TRANSACTIONS, head, sizes.to_vec()).expect("few jobs"))
}

#[test]
fn jobs_are_numbered_by_case_and_found_by_number() {
    let jobs = JobList::new(10, 4, vec![3, 10]).expect("few jobs");
    let ranges: Vec<_> = jobs
        .iter()
        .map(|job| (job.case, job.first, job.last))
        .collect();
    assert_eq!(
        ranges,
        [(0, 1, 4), (0, 5, 7), (0, 8, 10), (1, 1, 4), (1, 5, 10)]
    );
    assert_eq!((jobs.of_case(1), jobs.get(5)), (3..5, None));
    let nothing = JobList::new(0, 4, vec![3, 10]).expect("no jobs");
    assert_eq!((nothing.count(), nothing.get(0)), (0, None));
    assert!(Ledger::new(nothing).is_complete());
}

#[test]
fn impossible_divisions_are_refused() {
    let refused = |transactions, sizes: &[u64]| {
        JobList::new(transactions, 0, sizes.to_vec()).expect_err("too many, or empty")
    };
    assert_eq!(refused(10, &[3, 0]), JobListError::Empty { case: 1 });
    let many = refused(u64::MAX, &[1, 1]);
    assert!(many.to_string().contains("make them larger"), "{many}");
    let one = JobList::new(u64::MAX, 0, vec![u64::MAX]).expect("one job");
    assert_eq!(
        one.get(0).map(|job| (job.first, job.last)),
        Some((1, u64::MAX))
    );
}

#[test]
fn a_second_result_that_differs_names_both_senders() {
    let mut ledger = ledger(0, &[20]);
    let job = ledger.jobs().get(1).expect("a job");
    let result = result_of(job);
    assert_eq!(
        ledger.receive(1, "a", result.clone()),
        Ok(ReceivedResult::Merged)
    );
    assert_eq!(
        ledger.receive(1, "b", result.clone()),
        Ok(ReceivedResult::Repeated)
    );
    assert_eq!(ledger.missing(), [0..=0, 2..=2]);
    let JobResult::Totals(mut other) = result else {
        unreachable!("a simulation succeeds");
    };
    other.timeouts += 1;
    let differs = ledger.receive(1, "c", JobResult::Totals(other));
    let error = differs.expect_err("another result").to_string();
    let difference = "a and c sent different results of job 1, transactions 21 to 40 of case 0";
    assert!(error.starts_with(difference), "{error}");
    let failed = ledger.receive(1, "d", JobResult::Failed("no".to_owned()));
    assert!(
        matches!(failed, Err(LedgerError::Differs { .. })),
        "{failed:?}"
    );
    assert_eq!(
        ledger
            .missing()
            .into_iter()
            .map(Iterator::count)
            .sum::<usize>(),
        2
    );
}

#[test]
fn results_of_other_transactions_are_refused() {
    let mut ledger = ledger(0, &[20, 30]);
    let job = |number| ledger.jobs().get(number).expect("a job");
    let (second, larger) = (result_of(job(1)), result_of(job(3)));
    let answered = match &second {
        JobResult::Totals(totals) => totals.answered,
        JobResult::Failed(_) => 0,
    };
    assert_eq!(answered, 20);
    for (number, result) in [(0, second.clone()), (2, second.clone()), (1, larger)] {
        let refused = ledger.receive(number, "a", result);
        assert!(
            matches!(refused, Err(LedgerError::OtherTransactions { .. })),
            "{number}: {refused:?}"
        );
    }
    let unknown = ledger.receive(5, "a", second).expect_err("five jobs");
    assert!(
        unknown.to_string().contains("there are 5 jobs"),
        "{unknown}"
    );
    assert_eq!(ledger.missing(), [0..=4]);
}

#[test]
fn a_failure_is_a_result() {
    let mut ledger = ledger(0, &[60]);
    let failed = || JobResult::Failed("no such stack".to_owned());
    let received = ledger.receive(0, "a", failed());
    assert_eq!(
        received,
        Ok(ReceivedResult::Failed("no such stack".to_owned()))
    );
    assert_eq!(
        ledger.receive(0, "b", failed()),
        Ok(ReceivedResult::Repeated)
    );
    assert!(ledger.is_complete() && ledger.missing().is_empty());
}

#[test]
fn a_stopped_sweep_has_the_totals_so_far() {
    let mut ledger = ledger(0, &[20]);
    let job = ledger.jobs().get(2).expect("a job");
    ledger.receive(2, "a", result_of(job)).expect("counts");
    assert_eq!(*ledger.take_partial(0), *simulated(job));
    assert_eq!(*ledger.take_partial(0), Totals::new());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn any_division_and_order_gives_the_totals_of_one_process(
        head in 0u64..70,
        sizes in proptest::collection::vec(5u64..70, 2),
        order in proptest::collection::vec(any::<u64>(), 60),
    ) {
        let mut ledger = ledger(head, &sizes);
        // Each job twice, in the order of random keys.
        let mut deliveries: Vec<SweepJob> = ledger.jobs().iter().flat_map(|job| [job, job]).collect();
        let mut keys = order.into_iter().cycle();
        deliveries.sort_by_cached_key(|_| keys.next());
        let mut complete = [None, None];
        for job in deliveries {
            let sender = if job.number % 3 == 0 { "a" } else { "b" };
            let received = ledger.receive(job.number, sender, result_of(job)).expect("equal");
            if let ReceivedResult::CaseComplete(totals) = received {
                prop_assert!(complete[job.case].replace(totals).is_none(), "completed twice");
            }
        }
        prop_assert!(ledger.is_complete());
        for (case, totals) in complete.into_iter().enumerate() {
            prop_assert_eq!(written(&totals.expect("complete")), written(&of_one_process(case)));
        }
    }

    #[test]
    fn every_transaction_is_in_one_job(
        transactions in 0u64..200,
        head in 0u64..50,
        sizes in proptest::collection::vec(1u64..250, 0..5),
    ) {
        let jobs = JobList::new(transactions, head, sizes.clone()).expect("few jobs");
        let mut expected = (0..sizes.len()).flat_map(|case| (1..=transactions).map(move |it| (case, it)));
        for (number, job) in (0..).zip(jobs.iter()) {
            prop_assert_eq!(job.number, number);
            prop_assert!(jobs.of_case(job.case).contains(&number) && job.transactions() > 0);
            for transaction in job.first..=job.last {
                prop_assert_eq!(Some((job.case, transaction)), expected.next());
            }
        }
        prop_assert_eq!(expected.next(), None);
    }
}
