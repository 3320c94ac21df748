//! Results of cases: as one JSON document, as a few lines, or as a table.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use posthaste_link::Direction;
use posthaste_stats::{Statistic, Summary};
use serde::Serialize;
use thiserror::Error;

use crate::Totals;
use crate::cases::case::{SimulationCase, SimulationCases, first_beyond};
use crate::cases::paired::BatchSums;

/// The statistics of response times in tables, and their names there.
pub(crate) const TIMES: [(Statistic, &str); 5] = [
    (Statistic::Mean, "mean ms"),
    (Statistic::P50, "p50"),
    (Statistic::P90, "p90"),
    (Statistic::P99, "p99"),
    (Statistic::Max, "max"),
];

/// Results of a case, as documents have them.
#[derive(Clone, Debug, Serialize)]
pub struct CaseNumbers {
    pub(crate) response_time_ms: Summary,
    pub(crate) t_conn_ms: Summary,
    pub(crate) t_req_ms: Summary,
    pub(crate) t_proc_ms: Summary,
    pub(crate) t_resp_ms: Summary,
    pub(crate) retransmissions: u64,
    pub(crate) timeouts: u64,
    pub(crate) fast_retransmits: u64,
    pub(crate) probes: u64,
    /// Answered transactions.
    pub(crate) transactions: u64,
    pub(crate) connections: u64,
    /// Unnecessary segments with data or a FIN that had already arrived.
    pub(crate) sent_for_nothing: u64,
    pub(crate) adaptive_acks: u64,
    pub(crate) packets: [u64; 2],
    pub(crate) bytes: [u64; 2],
    pub(crate) packets_lost: u64,
    pub(crate) connections_with_loss: u64,
    /// Ends of connections, by kind. Zeros are omitted.
    pub(crate) endings: BTreeMap<&'static str, u64>,
    #[serde(skip)]
    pub(crate) most_packets: [u64; 2],
    #[serde(skip)]
    slowest: u64,
    #[serde(skip)]
    batch_sums: BatchSums,
}

/// Results of all cases.
#[derive(Clone, Debug)]
pub struct CaseResults {
    /// Results of each case. If stopped, of the transactions simulated until then.
    pub numbers: Vec<CaseNumbers>,
    /// True if the simulation ended before its last transaction.
    pub stopped: bool,
}

/// A required position at which no packet ever came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "{direction} drop {position}: that packet never comes; this connection has at most {most} packets {}: \
     name one of them",
    sender(direction)
)]
pub struct MissingPacket {
    direction: Direction,
    position: u64,
    most: u64,
}

const fn sender(direction: &Direction) -> &'static str {
    match direction {
        Direction::Up => "from the client",
        Direction::Down => "from the server",
    }
}

impl CaseNumbers {
    /// Creates the results from totals.
    pub fn new(totals: &Totals) -> Self {
        let [t_conn_ms, t_req_ms, t_proc_ms, t_resp_ms] =
            totals.parts.each_ref().map(|part| part.summary());
        Self {
            response_time_ms: totals.response.summary(),
            t_conn_ms,
            t_req_ms,
            t_proc_ms,
            t_resp_ms,
            retransmissions: totals.retransmissions,
            timeouts: totals.timeouts,
            fast_retransmits: totals.fast_retransmits,
            probes: totals.probes,
            transactions: totals.answered,
            connections: totals.connections,
            sent_for_nothing: totals.for_nothing,
            adaptive_acks: totals.adaptive_acks,
            packets: totals.packets,
            bytes: totals.bytes,
            packets_lost: totals.lost,
            connections_with_loss: totals.touched,
            endings: totals.endings().filter(|(_, count)| *count > 0).collect(),
            most_packets: totals.most_packets,
            slowest: totals.slowest.map_or(1, |(_, number)| number),
            batch_sums: BatchSums::new(&totals.response),
        }
    }

    /// The number of the slowest transaction.
    pub const fn slowest(&self) -> u64 {
        self.slowest
    }

    /// A statistic of the response times in ms. NaN if nothing was answered.
    pub(crate) fn ms(&self, statistic: Statistic) -> f64 {
        match self.transactions {
            0 => f64::NAN,
            _ => self.response_time_ms.value(statistic),
        }
    }

    /// True for at most one transaction. All statistics of its response time are the same.
    pub(crate) const fn is_single(&self) -> bool {
        self.transactions <= 1 && self.connections <= 1
    }

    /// 95 % interval of the change of the mean since `before`, as a share. Both have the same transactions.
    pub(crate) fn change_since(&self, before: &Self) -> Option<[f64; 2]> {
        self.batch_sums.change_since(&before.batch_sums)
    }

    /// Returns `count` per thousand connections.
    pub(crate) fn per_thousand(&self, count: u64) -> f64 {
        1e3 * count as f64 / self.connections.max(1) as f64
    }

    fn parts(&self) -> [(&'static str, &Summary); 4] {
        let parts = [
            &self.t_conn_ms,
            &self.t_req_ms,
            &self.t_proc_ms,
            &self.t_resp_ms,
        ];
        let [a, b, c, d] = parts;
        let [conn, req, proc, resp] = Totals::PARTS;
        [(conn, a), (req, b), (proc, c), (resp, d)]
    }
}

impl CaseResults {
    /// One JSON document: the results of the only case, or a list of `cases`.
    pub fn json(&self, cases: &SimulationCases) -> Result<String, serde_json::Error> {
        let text = match (cases.list.as_slice(), self.numbers.as_slice()) {
            ([_], [numbers]) => serde_json::to_string_pretty(&OnlyCase {
                numbers,
                stopped: self.stopped,
            }),
            (list, numbers) => serde_json::to_string_pretty(&CaseDocument {
                title: &cases.title,
                stopped: self.stopped,
                cases: list
                    .iter()
                    .zip(numbers)
                    .map(|(case, numbers)| labelled(case, numbers))
                    .collect(),
            }),
        };
        Ok(text? + "\n")
    }

    /// A few lines for one case, a table for several.
    pub fn text(&self, cases: &SimulationCases) -> String {
        let mut text = format!("{}\n\n", cases.title);
        match self.numbers.as_slice() {
            [numbers] if numbers.transactions == 0 => {
                line(
                    &mut text,
                    "response time",
                    "none: nothing was answered whole",
                );
                counts(numbers, &mut text);
            }
            [numbers] if numbers.transactions == 1 => single(numbers, &mut text),
            [numbers] => many(numbers, &mut text),
            _ => text += &sweep(cases, self),
        }
        text
    }

    /// True if every case has at most one transaction.
    pub(crate) fn are_single(&self) -> bool {
        self.numbers.iter().all(CaseNumbers::is_single)
    }

    /// Columns of the response times: their statistics and names. A single one if each case has one transaction.
    pub(crate) fn time_columns(&self) -> &'static [(Statistic, &'static str)] {
        if self.are_single() {
            &[(Statistic::Mean, "ms")]
        } else {
            &TIMES
        }
    }

    /// Returns an error if no packet ever came at a required position. A stopped simulation does not show that.
    pub fn check_required(&self, cases: &SimulationCases) -> Result<(), MissingPacket> {
        let all = cases.list.iter().zip(&self.numbers);
        for (case, numbers) in all.filter(|_| !self.stopped) {
            for direction in Direction::BOTH {
                let most = numbers.most_packets[direction as usize];
                if let Some(position) = first_beyond(case.required.script(direction), most) {
                    return Err(MissingPacket {
                        direction,
                        position,
                        most,
                    });
                }
            }
        }
        Ok(())
    }
}

/// The document of one case.
#[derive(Serialize)]
struct OnlyCase<'a> {
    #[serde(flatten)]
    numbers: &'a CaseNumbers,
    stopped: bool,
}

/// The document of several cases.
#[derive(Serialize)]
struct CaseDocument<'a> {
    title: &'a str,
    stopped: bool,
    cases: Vec<LabelledNumbers<'a>>,
}

/// A case with its results.
#[derive(Serialize)]
struct LabelledNumbers<'a> {
    given: BTreeMap<&'a str, &'a str>,
    #[serde(flatten)]
    numbers: &'a CaseNumbers,
}

fn labelled<'a>(case: &'a SimulationCase, numbers: &'a CaseNumbers) -> LabelledNumbers<'a> {
    let labels = case.labels.iter();
    LabelledNumbers {
        given: labels
            .map(|(option, value)| (option.as_str(), value.as_str()))
            .collect(),
        numbers,
    }
}

fn single(numbers: &CaseNumbers, text: &mut String) {
    let parts = numbers
        .parts()
        .map(|(name, part)| format!("{:.1} {name}", part.mean));
    let total = numbers.response_time_ms.mean;
    line(
        text,
        "response time",
        &format!("{total:.1} ms = {}", parts.join(" + ")),
    );
    counts(numbers, text);
}

fn many(numbers: &CaseNumbers, text: &mut String) {
    let head = ["ms", "mean", "p50", "p90", "p99", "p99.9", "max"];
    let row = |name: &str, summary: &Summary| {
        let values = [
            summary.mean,
            summary.p50,
            summary.p90,
            summary.p99,
            summary.value(Statistic::P999),
            summary.max,
        ];
        let values = values.map(in_ms);
        [name.to_owned()].into_iter().chain(values).collect()
    };
    let mut rows: Vec<Vec<String>> = vec![
        head.map(str::to_owned).to_vec(),
        row("response time", &numbers.response_time_ms),
    ];
    rows.extend(numbers.parts().map(|(name, part)| row(name, part)));
    *text += &table(&rows);
    for statistic in [Statistic::Mean, Statistic::P99] {
        if let Some([low, high]) = numbers.response_time_ms.interval(statistic) {
            line(
                text,
                statistic.key(),
                &format!("{low:.1} to {high:.1} ms with 95 %"),
            );
        }
    }
    counts(numbers, text);
    line(text, "slowest", &format!("transaction {}", numbers.slowest));
}

fn counts(numbers: &CaseNumbers, text: &mut String) {
    let CaseNumbers {
        connections,
        transactions,
        ..
    } = numbers;
    let [up, down] = numbers
        .packets
        .map(|count| count as f64 / (*connections).max(1) as f64);
    line(
        text,
        "transactions",
        &format!(
            "{transactions}; connections {connections}, with a loss {}",
            numbers.connections_with_loss
        ),
    );
    line(
        text,
        "packets",
        &format!(
            "{up:.1} up and {down:.1} down for each connection; lost in all {}",
            numbers.packets_lost
        ),
    );
    line(
        text,
        "sent again",
        &format!(
            "{}, fast {}, probes {}; timeouts {}; for nothing {}",
            numbers.retransmissions,
            numbers.fast_retransmits,
            numbers.probes,
            numbers.timeouts,
            numbers.sent_for_nothing
        ),
    );
    let failed = numbers
        .endings
        .iter()
        .filter(|(name, _)| **name != "complete");
    let failed: Vec<String> = failed
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    if !failed.is_empty() {
        line(text, "not complete", &failed.join(", "));
    }
}

fn line(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "{name:<14} {value}");
}

/// One line for each case.
fn sweep(cases: &SimulationCases, results: &CaseResults) -> String {
    let labels = cases.list.first().map(|case| case.labels.as_slice());
    let options = labels
        .unwrap_or_default()
        .iter()
        .map(|(option, _)| option.clone());
    let times = results.time_columns();
    let head = times.iter().map(|(_, name)| *name);
    let head = head.chain(["t_resp", "again", "timeouts"]);
    let mut rows: Vec<Vec<String>> = vec![options.chain(head.map(str::to_owned)).collect()];
    for (case, numbers) in cases.list.iter().zip(&results.numbers) {
        let values = case.labels.iter().map(|(_, value)| value.clone());
        let reply = in_ms(match numbers.transactions {
            0 => f64::NAN,
            _ => numbers.t_resp_ms.mean,
        });
        let counts = [numbers.retransmissions, numbers.timeouts].map(|count| count.to_string());
        let times = times
            .iter()
            .map(|(statistic, _)| in_ms(numbers.ms(*statistic)));
        let row = values.chain(times).chain([reply]).chain(counts);
        rows.push(row.collect());
    }
    table(&rows)
}

/// Milliseconds in a table.
pub(crate) fn in_ms(ms: f64) -> String {
    if ms.is_nan() {
        "-".to_owned()
    } else {
        format!("{ms:.1}")
    }
}

/// Aligns columns, numbers to the right.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or_default()
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (index, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let _ = match index {
                0 => write!(line, "{cell:<width$}"),
                _ => write!(line, "  {cell:>width$}"),
            };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}
