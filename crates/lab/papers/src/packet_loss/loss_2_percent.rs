//! packet-loss/loss-2-percent: independent loss of 2 %, the share of affected transactions, and the cost.

use posthaste_draw::{Axis, Bar, Bars, Chart, Group, Point, Role, Series, Unit};
use posthaste_stats::{Recorder, Share, Statistic, Summary};
use posthaste_study::{Check, Figure, NOISE, Plot, RecordRow, Records, estimate};
use posthaste_units::Span;

use super::chance::{self, LINE, PERCENT};
use super::kernel::{self, KernelSetup};
use super::service::{AUTHOR, SEGMENT};
use super::{PAPER, instrument};

/// The paper's shares: transactions with a loss, and late losses among those.
const PAPER_SHARES: [f64; 2] = [0.22, 0.27];

/// Rounding error of the paper's whole percents.
const ROUNDED: f64 = 0.005;

/// Confidence level of the intervals that must contain the computed shares. One false alarm in about ten thousand runs.
const SURE: f64 = 0.9999;

pub(crate) static FIGURE: Figure = Figure {
    id: "packet-loss/loss-2-percent",
    title: "independent loss of 2 %: which transactions see it, and where",
    claim: "With 2 % of independent loss, 22 % of Author's transactions see a loss. In 27 % of those it is among the last three packets, where it costs a timeout.",
    paper: PAPER,
    budget: Span::from_secs(45),
    study: &chance::STUDY,
    plot,
    checks,
    differs: include_str!("loss_2_percent.md").trim_ascii(),
};

/// Effects of chance on the transactions with one kernel.
struct Chance {
    kernel: &'static KernelSetup,
    /// Packets from the server without loss.
    packets: f64,
    with_loss: Share,
    /// Late losses, among the transactions with loss.
    late: Share,
    all: Recorder,
}

impl Chance {
    fn from_records(records: &Records, kernel: &'static KernelSetup) -> Self {
        let rows = || {
            let rows = records.table("transactions").rows();
            rows.filter(|row| row.text("kernel") == kernel.key && row.number("varies") == 1.0)
        };
        let lost = |row: &RecordRow<'_>| row.number("dropped") > 0.0;
        let count = |is: &dyn Fn(&RecordRow<'_>) -> bool| rows().filter(is).count() as u64;
        let packets = rows()
            .filter(|row| !lost(row))
            .map(|row| row.number("packets"));
        let mut all = Recorder::new();
        for (index, row) in rows().enumerate() {
            let taken = row.number("response_ms");
            if taken.is_finite() {
                // Transactions on separate links are independent of each other, whenever they were made.
                let at = Span::from_millis(index as u64);
                all.record(at, Span::from_secs_f64(taken / 1e3));
            }
        }
        let with_loss = count(&lost);
        Self {
            kernel,
            packets: estimate(&packets.collect::<Vec<_>>()).median,
            with_loss: Share {
                hits: with_loss,
                trials: count(&|_| true),
            },
            late: Share {
                hits: count(&|row| row.number("late") > 0.0),
                trials: with_loss,
            },
            all,
        }
    }

    /// Both shares.
    fn shares(&self) -> [Share; 2] {
        [self.with_loss, self.late]
    }

    /// Computed shares: a loss among all packets, and given that, a loss among the last ones.
    fn computed(&self) -> [f64; 2] {
        let some_of = |packets: f64| 1.0 - (1.0 - f64::from(PERCENT) / 100.0).powf(packets);
        let some = some_of(self.packets);
        let late = AUTHOR.late(SEGMENT).count() as f64;
        [some, some_of(late) / some]
    }
}

fn of_both(records: &Records) -> [Chance; 2] {
    kernel::BOTH.map(|kernel| Chance::from_records(records, kernel))
}

fn plot(records: &Records) -> Vec<Plot> {
    let both = of_both(records);
    vec![
        Plot::Bars(shares(&both)),
        Plot::Chart(distribution(&both)),
        Plot::Bars(statistics(&both)),
    ]
}

fn shares(both: &[Chance; 2]) -> Bars {
    let names = ["see a loss", "of those: one of the last three of data"];
    // Tenths of a percent, the resolution of the intervals.
    let single = |name: &str, share: f64| Bar {
        parts: vec![(name.to_owned(), (1000.0 * share).round() / 1000.0)],
        ..Bar::default()
    };
    let group = |(which, name): (usize, &str)| {
        let paper = Bar {
            role: Role::Paper,
            ..single("paper", PAPER_SHARES[which])
        };
        let chance_bars = |chance: &Chance| {
            let share = chance.shares()[which];
            let measured = Bar {
                interval: Some(share.interval(0.95)),
                ..single(chance.kernel.name, share.value())
            };
            let computed = single("computed", chance.computed()[which]);
            [measured, computed]
        };
        Group {
            label: name.to_owned(),
            bars: [paper]
                .into_iter()
                .chain(both.iter().flat_map(chance_bars))
                .collect(),
        }
    };
    Bars {
        title: format!("Author at {PERCENT} % loss: transactions that see it"),
        value: Axis::linear("share", Unit::Share),
        groups: names.into_iter().enumerate().map(group).collect(),
        notes: vec![format!(
            "Whiskers are 95 % intervals of shares (Wilson). The computed ones are next to the kernel whose packets they count: {} and {} from the server.",
            both[0].packets, both[1].packets
        )],
    }
}

fn distribution(both: &[Chance; 2]) -> Chart {
    let time = Axis::log("response time", Unit::Millis);
    let mut chart = Chart::percentiles(format!("Author at {PERCENT} % loss"), time);
    let series = |chance: &Chance| {
        let steps = chance.all.histogram().steps();
        let points = steps.filter(|step| step.share < 1.0);
        let points = points.map(|step| Point::new(step.share, step.value.as_millis_f64()));
        Series::line(chance.kernel.name, points)
    };
    chart.series = both.iter().map(series).collect();
    chart.notes.push(format!(
        "{} transactions with each kernel at {} kbit/s and {} ms; where the SYN-ACK is lost, as in one of fifty, its timeout is a second. The very slowest has no percentile.",
        both[0].with_loss.trials, LINE.kbit, LINE.ms
    ));
    chart
}

/// The statistics in the picture.
const TOLD: [(Statistic, &str); 4] = [
    (Statistic::Mean, "mean"),
    (Statistic::P50, "median"),
    (Statistic::P90, "90th percentile"),
    (Statistic::P99, "99th percentile"),
];

fn statistics(both: &[Chance; 2]) -> Bars {
    let summaries = both.each_ref().map(|chance| chance.all.summary());
    let group = |(statistic, name): (Statistic, &str)| {
        let bar = |(chance, summary): (&Chance, &Summary)| Bar {
            label: String::new(),
            parts: vec![(
                chance.kernel.name.to_owned(),
                summary.value(statistic).round(),
            )],
            interval: summary.interval(statistic).map(|[low, high]| (low, high)),
            ..Bar::default()
        };
        Group {
            label: name.to_owned(),
            bars: both.iter().zip(&summaries).map(bar).collect(),
        }
    };
    Bars {
        title: format!("Author at {PERCENT} % loss: response time"),
        value: Axis::linear("response time", Unit::Millis),
        groups: TOLD.into_iter().map(group).collect(),
        notes: vec!["Whiskers are 95 % intervals.".to_owned()],
    }
}

fn checks(records: &Records) -> Vec<Check> {
    let mut checks = instrument::checks(records);
    let both = of_both(records);
    checks.extend(both.iter().map(as_computed));
    checks.extend(both.iter().flat_map(as_in_the_paper));
    checks.push(is_cheaper(&both));
    checks
}

/// Checks the losses against theory. Detects a link that loses too many packets, or neighbouring packets together.
fn as_computed(chance: &Chance) -> Check {
    let [some, late] = chance.shares();
    let computed = chance.computed();
    let agrees = |(share, computed): (Share, f64)| {
        let (low, high) = share.interval(SURE);
        low <= computed && computed <= high
    };
    Check::instrument(
        [some, late].into_iter().zip(computed).all(agrees),
        format!(
            "{}: {:.1} % of {} transactions saw a loss, computed are {:.1} % for {} packets; of those {:.1} % lost one of the last three of data, computed are {:.1} %.",
            chance.kernel.name,
            100.0 * some.value(),
            some.trials,
            100.0 * computed[0],
            chance.packets,
            100.0 * late.value(),
            100.0 * computed[1]
        ),
    )
}

fn as_in_the_paper(chance: &Chance) -> [Check; 2] {
    let subjects = [
        "of transactions saw a loss",
        "of those lost one of the last three packets of data",
    ];
    [0, 1].map(|which| {
        let (share, paper) = (chance.shares()[which], PAPER_SHARES[which]);
        let (low, high) = share.interval(0.95);
        Check::claim(
            low <= paper + ROUNDED && high >= paper - ROUNDED,
            format!(
                "{}: {:.1} % {} (95 %: {:.1} to {:.1} %); the paper has {:.0} %.",
                chance.kernel.name,
                100.0 * share.value(),
                subjects[which],
                100.0 * low,
                100.0 * high,
                100.0 * paper
            ),
        ).because("today's default sends the FIN in a packet of its own, and now and then a tail loss probe: fourteen packets can be lost instead of twelve.")
    })
}

fn is_cheaper(both: &[Chance; 2]) -> Check {
    let [then, today] = both.each_ref().map(|chance| chance.all.summary());
    let formatted = |summary: &Summary| {
        let value = |(statistic, name): (Statistic, &str)| {
            format!("{name} {:.0} ms", summary.value(statistic))
        };
        TOLD.map(value).join(", ")
    };
    Check::claim(
        today.mean < then.mean,
        format!(
            "A line with {PERCENT} % loss is quicker today: {}; with linux-2005 {}.",
            formatted(&today),
            formatted(&then)
        ),
    )
    .because(NOISE)
}
