//! Service time against reply size on one network: the picture, and the numbers for the claims.

use posthaste_bookshop::Size;
use posthaste_draw::{Axis, Chart, Point, Series, Unit};
use posthaste_study::{Check, Plot, RecordRow, Records, most};

use super::handheld::{COMPRESSED, PLAIN};
use super::processing::Processing;

/// The fetching client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientSpeed {
    /// The paper's handheld.
    Handheld,
    /// A client as fast as this machine, on the same line.
    Fast,
}

/// Measurements on one network.
#[derive(Clone, Copy)]
pub(super) struct NetworkCells<'a> {
    pub(super) records: &'a Records,
    /// Name of its profile.
    pub(super) name: &'static str,
}

impl<'a> NetworkCells<'a> {
    fn rows(self) -> impl Iterator<Item = RecordRow<'a>> {
        let rows = self.records.table("cells").rows();
        rows.filter(move |row| row.text("network") == self.name)
    }

    fn row(self, size: Size, form: &str) -> Option<RecordRow<'a>> {
        let mut rows = self.rows();
        rows.find(|row| row.text("reply") == size.name() && row.text("form") == form)
    }

    /// Median service time in ms.
    pub(super) fn ms(self, size: Size, form: &str, client: ClientSpeed) -> f64 {
        self.row(size, form).map_or(f64::NAN, |row| {
            row.number("service_ms") - self.spared(row, client)
        })
    }

    /// Part of a row's time that this client saves: the handheld's decoding time minus this machine's.
    fn spared(self, row: RecordRow<'_>, client: ClientSpeed) -> f64 {
        match client {
            ClientSpeed::Handheld => 0.0,
            ClientSpeed::Fast => {
                row.number("decode_ms") * (1.0 - 1.0 / self.records.number("slowdown"))
            }
        }
    }

    /// Additional time of a compressed reply, relative to a plain one.
    pub(super) fn over_plain(self, size: Size, client: ClientSpeed) -> f64 {
        self.ms(size, COMPRESSED, client) / self.ms(size, PLAIN, client) - 1.0
    }

    /// Curve of a form.
    fn curve(self, name: &str, form: &str, client: ClientSpeed) -> Series {
        let points = Size::ALL.into_iter().filter_map(|size| {
            let row = self.row(size, form)?;
            let spared = self.spared(row, client);
            let at = |column| (row.number(column) - spared) / 1e3;
            let [y, low, high] = ["service_ms", "service_low_ms", "service_high_ms"].map(at);
            let mut point = Point::new(row.number("body_bytes"), y);
            // Only the handheld has an interval: the decoding times of the fastest and the slowest fetch are unknown.
            if client == ClientSpeed::Handheld {
                point = point.with_interval(low, high);
            }
            point.hint = format!(
                "{}, {:.0} B on the wire",
                size.name(),
                row.number("received")
            );
            Some(point)
        });
        Series::line(name, points)
    }

    /// The picture of the figure.
    pub(super) fn plot(self, title: &str) -> Vec<Plot> {
        let mut chart = Chart::new(
            title,
            Axis::linear("SOAP Body", Unit::Bytes),
            Axis::linear("service time", Unit::Seconds),
        );
        chart.series = vec![
            self.curve("plain", PLAIN, ClientSpeed::Handheld),
            self.curve("compressed, handheld", COMPRESSED, ClientSpeed::Handheld),
            self.curve("compressed, fast client", COMPRESSED, ClientSpeed::Fast),
        ];
        chart.notes = vec![
            format!(
                "The handheld decompresses {:.0} times slower than this machine; the fast client as this machine does.",
                self.records.number("slowdown")
            ),
            "Medians of fetches; whiskers are the shortest and the longest.".to_owned(),
        ];
        vec![Plot::Chart(chart)]
    }

    /// The picture with the handheld's own processing time added.
    pub(super) fn plot_with_processing(self, title: &str) -> Vec<Plot> {
        let fit = Processing::fitted(self.records);
        let mut plots = self.plot(title);
        if let Some(Plot::Chart(chart)) = plots.first_mut() {
            let curves = [PLAIN, COMPRESSED].map(|form| fit.curve(self.records, self.name, form));
            chart.series.extend(curves);
            chart.notes.push(fit.note());
        }
        plots
    }

    /// Checks the paper's statements with that processing time.
    pub(super) fn with_processing(self) -> Vec<Check> {
        Processing::fitted(self.records).checks(self.records, self.name)
    }

    /// Checks of the instrument on this network.
    pub(super) fn instrument(self) -> Vec<Check> {
        vec![self.complete(), self.computed(), self.on_time()]
    }

    pub(super) fn complete(self) -> Check {
        let sum = |column| {
            self.rows()
                .map(|row| row.number(column))
                .fold(0.0, |all, one| all + one)
        };
        let (ok, intended) = (sum("ok"), sum("intended"));
        Check::instrument(
            ok == intended && intended > 0.0,
            format!("{ok} of {intended} replies came whole and were decoded."),
        )
    }

    /// The emulator's own lateness and losses.
    fn on_time(self) -> Check {
        let rows = self.records.table("networks").rows();
        let mut rows = rows.filter(|row| row.text("network") == self.name);
        let row = rows.next();
        let number = |column| row.map_or(f64::NAN, |row| row.number(column));
        let [p50, p99, lost] = ["late_p50_ms", "late_p99_ms", "lost"].map(number);
        Check::instrument(
            p99 <= LATE_MS && lost == 0.0,
            format!(
                "Packets left {p50:.3} ms after their time at the median and {p99:.3} ms at the 99th of a hundred (bound: {LATE_MS}); {lost} were lost that the link would not have dropped."
            ),
        )
    }

    /// Compares every cell with the computed time. The programs at the ends explain the rest.
    fn computed(self) -> Check {
        let beyond = |row: &RecordRow<'_>| row.number("transfer_ms") - row.number("computed_ms");
        let worst = self
            .rows()
            .max_by(|a, b| beyond(a).abs().total_cmp(&beyond(b).abs()));
        let within = |row: &RecordRow<'_>| {
            let allowed = PROGRAMS_MS + SHARE * row.number("computed_ms");
            let waits = (WAKES * row.number("witness_ms")).min(STALL_MS);
            // Nothing makes an exchange shorter.
            (-allowed..=allowed + waits).contains(&beyond(row))
        };
        let witness = self.rows().map(|row| row.number("witness_ms"));
        let witness = most(witness);
        let (all, well) = (self.rows().count(), self.rows().filter(within).count());
        let worst_case = worst.map_or_else(String::new, |row| {
            format!(
                "; the farthest off is {}, {}: {:.1} ms, computed {:.1} ms",
                row.text("reply"),
                row.text("form"),
                row.number("computed_ms") + beyond(&row),
                row.number("computed_ms")
            )
        });
        Check::instrument(
            well == all && all > 0,
            format!(
                "{well} of {all} exchanges without decoding, by the medians of their phases, take what the line takes by arithmetic, within {:.1} % and {PROGRAMS_MS} ms for the programs at its ends and what those waited for a processor (a witness was woken {witness:.1} ms late at most; {WAKES} times its lateness is allowed, up to {STALL_MS} ms){worst_case}.",
                100.0 * SHARE
            ),
        )
    }
}

/// Tolerated lateness of packets. More would affect the times of the programs.
const LATE_MS: f64 = 10.0;

/// Tolerated time of gateway, shop and generator, and of differences between kernels.
const PROGRAMS_MS: f64 = 10.0;

/// Largest tolerated wait of an exchange for a processor.
const STALL_MS: f64 = 100.0;

/// Programs that wait for a processor one after the other in an exchange: the client, the gateway, the shop, the
/// gateway and the client. On a busy machine each of them waits as long as the witness.
const WAKES: f64 = 5.0;

const SHARE: f64 = 0.002;

#[cfg(test)]
mod tests {
    use posthaste_study::RecordTable;

    use super::*;

    /// The median fetch is not the one with the median decoding: 296 ms of the line, decodings of 1,766, 1,846 and
    /// 2,253 ms, and a pause of 300 ms in the second fetch.
    #[test]
    fn one_pause_beside_uneven_decoding_moves_no_time_of_the_line() {
        let check = |transfer_ms: f64| {
            let mut table = RecordTable::new([
                "network",
                "service_ms",
                "decode_ms",
                "transfer_ms",
                "computed_ms",
                "witness_ms",
            ]);
            let numbers = [2442.0, 1846.0, transfer_ms, 295.8, 1.0];
            let row = std::iter::once("bluetooth".into());
            table.push(row.chain(numbers.map(Into::into)));
            let mut records = Records::new();
            records.set_table("cells", table);
            let network = NetworkCells {
                records: &records,
                name: "bluetooth",
            };
            network.computed().holds
        };
        assert!(check(296.0));
        assert!(!check(280.0) && !check(320.0));
    }
}
