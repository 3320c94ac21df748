//! packet-loss/late-loss-2026: the remaining penalty of a late loss, and the effect of each remedy.

use posthaste_study::{Check, Figure, NOISE, Records};
use posthaste_units::Span;

use super::cells::{Cells, quantile};
use super::late_loss_plots::{cells, drops, last_alone, plot, quartiles};
use super::line::all;
use super::remedies::{self, PAIRS};
use super::variants::{
    AGENT, DEFAULT, FIN, NEITHER, NO_PROBE, NO_RACK, NO_SACK, NO_SACK_AGENT, NOTHING, OLD,
    REORDERING, SMALL, TIMER, Variant, variant_of,
};
use super::{PAPER, instrument};

pub(crate) static FIGURE: Figure = Figure {
    id: "packet-loss/late-loss-2026",
    title: "beyond the paper: what of the late-loss penalty is left in 2026",
    claim: "The loss of one of the last packets waits for a timeout. The paper names remedies: a shorter timer, smaller segments, an earlier retransmission, and its own, a receiver that repeats its acknowledgement until the sender infers a loss. Today's kernels have others: SACK, RACK and tail loss probes.",
    paper: PAPER,
    budget: Span::from_secs(60),
    study: &remedies::STUDY,
    plot,
    checks,
    differs: include_str!("late_loss_2026.md").trim_ascii(),
};

fn checks(records: &Records) -> Vec<Check> {
    let figures = Figures { records };
    let mut checks = instrument::checks(records);
    checks.push(figures.is_left());
    checks.push(figures.fin());
    checks.extend(figures.taken_apart());
    checks.extend(figures.remedies());
    checks.extend(figures.agent());
    checks
}

/// Change of the response time, in percent, that counts as a gain.
const GAIN: f64 = -5.0;

/// Numbers for the claims.
struct Figures<'a> {
    records: &'a Records,
}

/// Formats the median of percentages with the quartiles.
fn with_quartiles(percents: &[f64]) -> String {
    let [low, median, high] = quartiles(percents);
    format!("{median:.0} % (quartiles {low:.0} and {high:.0} %)")
}

fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

impl<'a> Figures<'a> {
    fn cells(&self, variant: &'static Variant) -> Cells<'a> {
        cells(self.records, variant)
    }

    /// Increase of the response time of a loss among the last three over one in the middle, on all lines, in percent.
    fn late(&self, variant: &'static Variant) -> Vec<f64> {
        self.cells(variant).on_all_lines(Cells::increase)
    }

    /// The same for the last data packet alone.
    fn last(&self, variant: &'static Variant) -> Vec<f64> {
        self.cells(variant).on_all_lines(last_alone)
    }

    /// Relative difference in time between two variants at these losses, averaged over the losses, in percent. The
    /// median of all lines.
    fn longer(&self, pair: [&'static Variant; 2], losses: &[&[u32]]) -> f64 {
        let [one, other] = pair.map(|variant| self.cells(variant));
        let time = |cells: &Cells<'_>, line| {
            let rows = losses
                .iter()
                .map(|lost| cells.row(line, drops(cells, lost)));
            rows.map(|row| row.map_or(f64::NAN, |row| row.number("median_ms")))
                .sum::<f64>()
        };
        let ratio =
            |cells: &Cells<'_>, line| 100.0 * (time(cells, line) / time(&other, line) - 1.0);
        median(&one.on_all_lines(ratio))
    }

    /// Share of the transactions with these losses that waited for a timeout, in percent.
    fn waited(&self, variant: &'static Variant, losses: &[&[u32]]) -> f64 {
        let cells = self.cells(variant);
        let drops = losses.iter().map(|lost| drops(&cells, lost));
        let rows = drops.flat_map(|drops| all().filter_map(move |line| cells.row(line, drops)));
        let (timed_out, transactions) = rows.fold((0.0, 0.0), |(some, all), row| {
            let [timed_out, transactions] =
                ["timed_out", "transactions"].map(|name| row.number(name));
            (some + timed_out, all + transactions)
        });
        100.0 * timed_out / transactions
    }

    /// Needless retransmissions per hundred transactions.
    fn for_nothing(&self, variant: &'static Variant) -> f64 {
        let rows = self.records.table("transactions").rows();
        let rows = rows.filter(|row| row.text("kernel") == variant.key);
        let needless = rows.map(|row| (row.number("again") - row.number("dropped")).max(0.0));
        let (sum, count) =
            needless.fold((0.0, 0.0), |(sum, count), more| (sum + more, count + 1.0));
        100.0 * sum / count
    }

    /// Counter `counter` of a variant's whole run.
    fn counted(&self, variant: &'static Variant, counter: &str) -> f64 {
        let mut rows = self.records.table("variants").rows();
        let row = rows.find(|row| row.text("kernel") == variant.key);
        row.map_or(f64::NAN, |row| row.number(counter))
    }

    fn is_left(&self) -> Check {
        let [then, today] = [&OLD, &DEFAULT].map(|base| self.late(variant_of(base, &NOTHING)));
        Check::goal(
            median(&today) < median(&then) / 4.0,
            format!(
                "The loss of one of the last three packets of data takes {} longer than one in the middle with linux-2005, with today's default {}; on {} lines.",
                with_quartiles(&then),
                with_quartiles(&today),
                then.len()
            ),
        ).because(NOISE)
    }

    fn fin(&self) -> Check {
        let [apart, on_data] = [variant_of(&DEFAULT, &NOTHING), variant_of(&FIN, &NOTHING)];
        let [without, with] = [apart, on_data].map(|variant| self.last(variant));
        Check::goal(
            median(&with) > 2.0 * median(&without),
            format!(
                "What follows the data decides. Today the FIN does, in a packet of its own: the loss of the last packet of data takes {} longer, and {:.0} % of transactions wait for a timer. With the FIN on that packet nothing follows: {} longer, and {:.0} % wait.",
                with_quartiles(&without),
                self.waited(apart, &[&[0]]),
                with_quartiles(&with),
                self.waited(on_data, &[&[0]])
            ),
        ).because(NOISE)
    }

    /// Effects of probes, RACK and SACK, with the FIN on the data.
    fn taken_apart(&self) -> [Check; 3] {
        let [both, no_probe, no_rack, neither, no_sack] =
            [NOTHING, NO_PROBE, NO_RACK, NEITHER, NO_SACK].map(|change| variant_of(&FIN, &change));
        let last = |variant| median(&self.last(variant));
        let late = |variant| median(&self.late(variant));
        [
            Check::goal(
                last(both) < last(no_probe),
                format!(
                    "Tail loss probes shorten the wait for the last packet of data: it takes {:.0} % longer with them and {:.0} % without; a single packet is probed no sooner than its timeout.",
                    last(both),
                    last(no_probe)
                ),
            ),
            Check::goal(
                late(no_rack) > 1.1 * late(both),
                format!(
                    "RACK switched off alone: a loss among the last three takes {:.0} % longer, {:.0} % with it; probes switched off, too: {:.0} %. While SACK is on, this kernel has no other way to find a loss.",
                    late(no_rack),
                    late(both),
                    late(neither)
                ),
            ).because("while SACK is on, this kernel finds losses by RACK alone and does so with every value of the setting."),
            Check::goal(
                late(both) < late(no_sack),
                format!(
                    "Without SACK neither works, and the penalty is back: {} for the last three, {} with SACK.",
                    with_quartiles(&self.late(no_sack)),
                    with_quartiles(&self.late(both))
                ),
            ).because(NOISE),
        ]
    }

    /// The paper's remedies with its kernel.
    fn remedies(&self) -> [Check; 3] {
        let [plain, timer, reordering, small] =
            [NOTHING, TIMER, REORDERING, SMALL].map(|change| variant_of(&OLD, &change));
        let late = |variant| median(&self.late(variant));
        let lossless = |variant| {
            median(
                &self
                    .cells(variant)
                    .on_all_lines(|cells, line| cells.ms(line, 0)),
            )
        };
        [
            Check::goal(
                late(timer) < late(plain),
                format!(
                    "A timeout of 50 ms at least instead of 200 ms, linux-2005: {:.0} % instead of {:.0} %; for nothing were sent {:.0} segments in a hundred transactions instead of {:.0}. On slow lines the timeout is long because round-trip times vary.",
                    late(timer),
                    late(plain),
                    self.for_nothing(timer),
                    self.for_nothing(plain)
                ),
            ),
            Check::goal(
                late(reordering) < late(plain),
                format!(
                    "A reordering threshold of 1, linux-2005: {:.0} % instead of {:.0} %. A timeout is waited for in {:.0} and {:.0} % of transactions when two or one packets follow the lost one, in {:.0} % when none does.",
                    late(reordering),
                    late(plain),
                    self.waited(reordering, &[&[2]]),
                    self.waited(reordering, &[&[1]]),
                    self.waited(reordering, &[&[0]])
                ),
            ),
            Check::goal(
                late(small) < late(plain),
                format!(
                    "Segments of {} bytes for the whole connection, linux-2005: {:.0} % instead of {:.0} %, since the last three carry less; without loss a transaction takes {:.0} ms instead of {:.0} ms at the median, since more round trips fill the line.",
                    SMALL.segment,
                    late(small),
                    late(plain),
                    lossless(small),
                    lossless(plain)
                ),
            ),
        ]
    }

    /// Gains and limits of the agent.
    fn agent(&self) -> [Check; 4] {
        let [old, old_agent] = [NOTHING, AGENT].map(|change| variant_of(&OLD, &change));
        let [no_sack, no_sack_agent] =
            [NO_SACK, NO_SACK_AGENT].map(|change| variant_of(&FIN, &change));
        let [sack, sack_agent] = [NOTHING, AGENT].map(|change| variant_of(&FIN, &change));
        let one: &[&[u32]] = &[&[2], &[1], &[0]];
        let two: &[&[u32]] = &[&PAIRS[0]];
        let [of_one, of_two] = [one, two].map(|losses| self.longer([old_agent, old], losses));
        let of_two_today = self.longer([no_sack_agent, no_sack], two);
        let [of_one_sack, of_two_sack] =
            [one, two].map(|losses| self.longer([sack_agent, sack], losses));
        let timer = variant_of(&OLD, &TIMER);
        [
            Check::goal(
                of_one < GAIN,
                format!(
                    "The agent at one loss among the last three, linux-2005: response times change by {of_one:+.0} %, and {:.0} % wait for a timeout, {:.0} % without it. A sender without SACK takes the duplicates for reordering: in the whole run the agent sent {} at {} holes, and the kernel saw reordering {} times, {} without it.",
                    self.waited(old_agent, one),
                    self.waited(old, one),
                    self.counted(old_agent, "injected"),
                    self.counted(old_agent, "holes"),
                    self.counted(old_agent, "taken_for_reordering"),
                    self.counted(old, "taken_for_reordering")
                ),
            ).because("a sender without SACK takes the agent's duplicates for reordering and raises its threshold."),
            Check::goal(
                of_two < GAIN && of_two_today < GAIN,
                format!(
                    "The agent at two losses with two packets of data behind them: response times change by {of_two:+.0} % with linux-2005, and {:.0} instead of {:.0} % wait for a timeout; today without SACK by {of_two_today:+.0} %, and {:.0} instead of {:.0} % wait.",
                    self.waited(old_agent, two),
                    self.waited(old, two),
                    self.waited(no_sack_agent, two),
                    self.waited(no_sack, two)
                ),
            ),
            Check::goal(
                of_one_sack < GAIN || of_two_sack < GAIN,
                format!(
                    "The agent where the sender has SACK: response times change by {of_one_sack:+.0} % at one loss and by {of_two_sack:+.0} % at two. Duplicates without new SACK blocks say nothing to it."
                ),
            ).because("a sender with SACK takes nothing from a duplicate without a new block."),
            Check::goal(
                self.for_nothing(old_agent) < self.for_nothing(timer),
                format!(
                    "The paper expects of it fewer segments sent for nothing than of a shorter timer: {:.0} in a hundred transactions, with the timer {:.0}, with neither {:.0}.",
                    self.for_nothing(old_agent),
                    self.for_nothing(timer),
                    self.for_nothing(old)
                ),
            ),
        ]
    }
}
