//! Division of a sweep into numbered jobs, and the ledger of their results.
//!
//! A [`SweepJob`] is a range of transactions of one case. Any machine with the same build can simulate it. The
//! [`Ledger`] merges the results by number:
//!
//! - The first result of a job counts. Totals are whole numbers, so that the order of results makes no difference, and
//!   a case has the totals of one process, byte for byte.
//! - A second result of the same job must equal the first. Every repetition of a job is therefore a check of the
//!   machines, and a difference names both senders.
//! - A failed simulation is a result, too: a repetition would fail again.
//!
//! The transport, the repetition of jobs and the decision to stop belong to the caller.

use std::ops::RangeInclusive;

use posthaste_units::Span;
use ring::digest::SHA256;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Totals;

/// Maximum number of jobs of a sweep: with jobs of two seconds, 24 days of one core.
const MOST_JOBS: u64 = 1 << 20;

/// A range of transactions of one case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepJob {
    /// Number of the job in the sweep, from 0.
    pub number: u64,
    /// Index of the case.
    pub case: usize,
    /// Number of its first transaction, from 1.
    pub first: u64,
    /// Number of its last transaction.
    pub last: u64,
}

/// All jobs of a sweep: each transaction of each case is in one job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobList {
    transactions: u64,
    /// Transactions of the first job of each case, if it has its own size.
    head: u64,
    /// Transactions of the other jobs, by case.
    sizes: Vec<u64>,
    /// Number of the first job of each case, and of the job after the last.
    starts: Vec<u64>,
}

/// Reason why a sweep cannot be divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum JobListError {
    /// A job without transactions.
    #[error("a job of case {case} has no transactions: a size is at least 1")]
    Empty {
        /// Index of the case.
        case: usize,
    },
    /// More than `MOST_JOBS` jobs.
    #[error("{count} jobs: at most {MOST_JOBS} are possible; make them larger")]
    TooMany {
        /// Number of jobs.
        count: u64,
    },
}

/// The result of a job, as it travels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobResult {
    /// The totals of its transactions.
    Totals(Box<Totals>),
    /// The error of a simulation that cannot be carried out.
    Failed(String),
}

/// Effect of a result on the ledger.
#[derive(Clone, Debug, PartialEq)]
pub enum ReceivedResult {
    /// It was merged. Other jobs of the case are missing.
    Merged,
    /// It was merged and was the last of its case. These are the totals of the case. The ledger does not keep them.
    CaseComplete(Box<Totals>),
    /// The job failed, for this reason. Its case stays incomplete.
    Failed(String),
    /// The job had a result before, with the same content.
    Repeated,
}

/// Reason why a result cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LedgerError {
    /// A number that no job has.
    #[error("{sender} sent a result of job {number}, but there are {count} jobs, from 0")]
    UnknownJob {
        /// The number.
        number: u64,
        /// The sender.
        sender: String,
        /// Number of jobs.
        count: u64,
    },
    /// Totals of other transactions.
    #[error(
        "{sender} sent a result of job {} that is not of transactions {} to {} of case {}", job.number, job.first,
        job.last, job.case
    )]
    OtherTransactions {
        /// The job.
        job: SweepJob,
        /// The sender.
        sender: String,
    },
    /// Two results of one job that differ.
    #[error(
        "{first} and {second} sent different results of job {}, transactions {} to {} of case {}: \
         one of these machines calculates differently", job.number, job.first, job.last, job.case
    )]
    Differs {
        /// The job.
        job: SweepJob,
        /// Sender of the first result.
        first: String,
        /// Sender of the second result.
        second: String,
    },
}

/// The results of the jobs of a sweep.
#[derive(Debug)]
pub struct Ledger {
    jobs: JobList,
    receipts: Vec<Option<Receipt>>,
    cases: Vec<CaseLedger>,
    senders: Vec<String>,
    missing: u64,
}

/// The first result of a job.
#[derive(Clone, Copy, Debug)]
struct Receipt {
    /// SHA-256 of its form.
    digest: [u8; 32],
    /// Index in the list of senders.
    sender: usize,
}

/// A case with missing jobs.
#[derive(Debug)]
struct CaseLedger {
    totals: Option<Box<Totals>>,
    /// Jobs without totals.
    missing: u64,
}

impl JobList {
    /// Divides `transactions` transactions of each case. `sizes` has the transactions of a job, by case. The first job
    /// of each case has `head` transactions instead, unless `head` is 0: the sender of the jobs simulates it to
    /// determine the sizes of the others.
    pub fn new(transactions: u64, head: u64, sizes: Vec<u64>) -> Result<Self, JobListError> {
        let head = head.min(transactions);
        let mut starts = Vec::with_capacity(sizes.len() + 1);
        let mut count: u64 = 0;
        for (case, size) in sizes.iter().enumerate() {
            starts.push(count);
            if *size == 0 {
                return Err(JobListError::Empty { case });
            }
            let others = (transactions - head).div_ceil(*size);
            count = count.saturating_add(others).saturating_add(head.min(1));
        }
        starts.push(count);
        if count > MOST_JOBS {
            return Err(JobListError::TooMany { count });
        }
        Ok(Self {
            transactions,
            head,
            sizes,
            starts,
        })
    }

    /// Number of jobs.
    pub fn count(&self) -> u64 {
        self.starts.last().copied().unwrap_or_default()
    }

    /// Number of cases.
    pub fn cases(&self) -> usize {
        self.sizes.len()
    }

    /// Numbers of the jobs of a case.
    ///
    /// # Panics
    /// If there is no such case.
    pub fn of_case(&self, case: usize) -> std::ops::Range<u64> {
        self.starts[case]..self.starts[case + 1]
    }

    /// The job with this number.
    pub fn get(&self, number: u64) -> Option<SweepJob> {
        if number >= self.count() {
            return None;
        }
        // Cases without transactions have no jobs and share their start with the next one.
        let case = self.starts.partition_point(|start| *start <= number) - 1;
        let (position, size) = (number - self.starts[case], self.sizes[case]);
        let (before, size) = match (self.head, position) {
            (0, position) => (position * size, size),
            (head, 0) => (0, head),
            (head, position) => (head + (position - 1) * size, size),
        };
        Some(SweepJob {
            number,
            case,
            first: before + 1,
            last: before.saturating_add(size).min(self.transactions),
        })
    }

    /// All jobs, by number.
    pub fn iter(&self) -> impl Iterator<Item = SweepJob> + '_ {
        (0..self.count()).filter_map(|number| self.get(number))
    }
}

impl SweepJob {
    /// Number of transactions.
    pub const fn transactions(&self) -> u64 {
        self.last - self.first + 1
    }

    /// True if the totals are of as many transactions, and no response time is of another one.
    fn is_of(&self, totals: &Totals) -> bool {
        let numbers = self.first..=self.last;
        let moment = Span::from_millis;
        let mut batches = totals.response.batches();
        let lies_within = |start: Span, width: Span| {
            start <= moment(self.last) && start + width > moment(self.first)
        };
        totals.connections == self.transactions()
            && totals.slowest.is_none_or(|(_, it)| numbers.contains(&it))
            && batches.all(|batch| batch.count() == 0 || lies_within(batch.start, batch.width))
    }
}

impl Ledger {
    /// A ledger without results.
    pub fn new(jobs: JobList) -> Self {
        let missing = |case| {
            let numbers = jobs.of_case(case);
            numbers.end - numbers.start
        };
        let cases = (0..jobs.cases()).map(|case| CaseLedger {
            totals: None,
            missing: missing(case),
        });
        Self {
            cases: cases.collect(),
            receipts: vec![None; usize::try_from(jobs.count()).expect("MOST_JOBS is small")],
            senders: Vec::new(),
            missing: jobs.count(),
            jobs,
        }
    }

    /// The jobs.
    pub const fn jobs(&self) -> &JobList {
        &self.jobs
    }

    /// Records a result of the job with this number. After an error the ledger is as before.
    pub fn receive(
        &mut self,
        number: u64,
        sender: &str,
        result: JobResult,
    ) -> Result<ReceivedResult, LedgerError> {
        let Some(job) = self.jobs.get(number) else {
            return Err(LedgerError::UnknownJob {
                number,
                sender: sender.to_owned(),
                count: self.jobs.count(),
            });
        };
        if let JobResult::Totals(totals) = &result
            && !job.is_of(totals)
        {
            return Err(LedgerError::OtherTransactions {
                job,
                sender: sender.to_owned(),
            });
        }
        let digest = digest(&result);
        let index = usize::try_from(number).expect("MOST_JOBS is small");
        if let Some(receipt) = self.receipts[index] {
            return if receipt.digest == digest {
                Ok(ReceivedResult::Repeated)
            } else {
                Err(LedgerError::Differs {
                    job,
                    first: self.senders[receipt.sender].clone(),
                    second: sender.to_owned(),
                })
            };
        }
        let sender = self.index_of(sender);
        self.receipts[index] = Some(Receipt { digest, sender });
        self.missing -= 1;
        Ok(match result {
            JobResult::Failed(reason) => ReceivedResult::Failed(reason),
            JobResult::Totals(totals) => self.cases[job.case].merge(totals),
        })
    }

    fn index_of(&mut self, sender: &str) -> usize {
        let known = self.senders.iter().position(|known| known == sender);
        known.unwrap_or_else(|| {
            self.senders.push(sender.to_owned());
            self.senders.len() - 1
        })
    }

    /// True if each job has a result.
    pub const fn is_complete(&self) -> bool {
        self.missing == 0
    }

    /// Numbers of the jobs without a result, as ranges in ascending order.
    pub fn missing(&self) -> Vec<RangeInclusive<u64>> {
        let mut ranges: Vec<RangeInclusive<u64>> = Vec::new();
        let jobs = (0..).zip(&self.receipts);
        for (number, _) in jobs.filter(|(_, receipt)| receipt.is_none()) {
            match ranges.last_mut() {
                Some(last) if last.end() + 1 == number => *last = *last.start()..=number,
                _ => ranges.push(number..=number),
            }
        }
        ranges
    }

    /// Removes the totals of a case so far, for a sweep that was stopped. Empty if it has no results or is complete.
    ///
    /// # Panics
    /// If there is no such case.
    pub fn take_partial(&mut self, case: usize) -> Box<Totals> {
        self.cases[case].totals.take().unwrap_or_default()
    }
}

impl CaseLedger {
    fn merge(&mut self, totals: Box<Totals>) -> ReceivedResult {
        let sum = match self.totals.take() {
            None => totals,
            Some(mut sum) => {
                sum.merge(&totals);
                sum
            }
        };
        self.missing -= 1;
        if self.missing == 0 {
            return ReceivedResult::CaseComplete(sum);
        }
        self.totals = Some(sum);
        ReceivedResult::Merged
    }
}

/// SHA-256 of the form of a result: equal results have equal forms.
fn digest(result: &JobResult) -> [u8; 32] {
    let form = serde_json::to_vec(result).expect("totals have a form");
    let digest = ring::digest::digest(&SHA256, &form);
    digest.as_ref().try_into().expect("32 bytes")
}
