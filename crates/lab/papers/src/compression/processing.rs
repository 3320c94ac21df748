//! The handheld's own processing time, fitted to the paper's numbers.
//!
//! The paper's service time ends when a reply has been received *and processed*; its handheld parsed SOAP in the .NET
//! Compact Framework. Ours only decompresses. This module adds `constant + per_byte * Body` to the times of the line
//! and of decompression, and derives both parameters from the two printed statements that depend on them:
//!
//! 1. Table 5, least load: heavy 1, compressed, over good GPRS takes 9,370 ms.
//! 2. Figure 50: the largest reply, compressed, over poor GPRS takes half the time of the plain one.
//!
//! The other statements are then results, not inputs.

use posthaste_bookshop::Size;
use posthaste_draw::{Point, Series};
use posthaste_study::{Check, RecordRow, Records};

use super::handheld::{BLUETOOTH, COMPRESSED, GPRS, GPRS_POOR, PLAIN, WLAN};
use super::paper;

/// Processing time of a reply without decompression.
#[derive(Clone, Copy, Debug)]
pub(super) struct Processing {
    /// Seconds per reply.
    constant: f64,
    /// Seconds per byte of the SOAP Body.
    per_byte: f64,
}

/// Computed line times of the handheld's study, in seconds.
#[derive(Clone, Copy)]
struct LineTimes<'a>(&'a Records);

impl LineTimes<'_> {
    fn seconds(self, network: &str, size: Size, form: &str) -> f64 {
        let is_it = |row: &RecordRow<'_>| {
            row.text("network") == network
                && row.text("reply") == size.name()
                && row.text("form") == form
        };
        let row = self.0.table("cells").rows().find(is_it);
        row.map_or(f64::NAN, |row| row.number("computed_ms") / 1e3)
    }

    /// Line time, plus the paper's decompression time for a compressed reply.
    fn and_decompression(self, network: &str, size: Size, form: &str) -> f64 {
        let decompression = match form {
            COMPRESSED => paper::reply(size).decompression / 1e3,
            _ => 0.0,
        };
        self.seconds(network, size, form) + decompression
    }
}

impl Processing {
    /// Solves the two equations.
    pub(super) fn fitted(records: &Records) -> Self {
        let lines = LineTimes(records);
        let table_5 = paper::TABLE_5_DYNAMIC[0] / 1e3;
        let heavy_1 = table_5 - lines.and_decompression(GPRS, Size::Heavy1, COMPRESSED);
        // share * (plain + p) = compressed + p
        let share = paper::LARGEST_AT_POOR_GPRS;
        let [plain, compressed] =
            [PLAIN, COMPRESSED].map(|form| lines.and_decompression(GPRS_POOR, Size::Heavy5, form));
        let heavy_5 = (share * plain - compressed) / (1.0 - share);
        let bytes = |size| paper::reply(size).bytes;
        let per_byte = (heavy_5 - heavy_1) / (bytes(Size::Heavy5) - bytes(Size::Heavy1));
        Self {
            constant: heavy_1 - per_byte * bytes(Size::Heavy1),
            per_byte,
        }
    }

    fn seconds(self, size: Size) -> f64 {
        self.constant + self.per_byte * paper::reply(size).bytes
    }

    /// Service time in seconds.
    fn service(self, records: &Records, network: &str, size: Size, form: &str) -> f64 {
        LineTimes(records).and_decompression(network, size, form) + self.seconds(size)
    }

    /// Curve of a form on a network.
    pub(super) fn curve(self, records: &Records, network: &str, form: &str) -> Series {
        let point = |size| {
            let bytes = paper::reply(size).bytes;
            Point::new(bytes, self.service(records, network, size, form))
        };
        let points: Vec<Point> = Size::ALL.into_iter().map(point).collect();
        Series::line(format!("{form}, processing fitted"), points)
    }

    /// Describes the fit in words.
    pub(super) fn note(self) -> String {
        format!(
            "Fitted: {:.2} s for each reply and {:.0} us for each byte of its Body, from table 5 (9.37 s) and half the time at poor GPRS.",
            self.constant,
            1e6 * self.per_byte
        )
    }

    /// Checks the paper's statements about this fast network, with the fit.
    pub(super) fn checks(self, records: &Records, network: &str) -> Vec<Check> {
        let service = |network, size, form| self.service(records, network, size, form);
        let largest = Size::Heavy5;
        let [plain, compressed] = [PLAIN, COMPRESSED].map(|form| service(network, largest, form));
        let apart = compressed / plain - 1.0;
        // The difference does not depend on the processing, but the plain time does, and the claim is a share of it.
        let needed = (compressed - plain) / paper::APART - (plain - self.seconds(largest));
        let gap = service(BLUETOOTH, largest, PLAIN) - service(WLAN, largest, PLAIN);
        vec![
            Check::claim(
                apart <= paper::APART,
                format!(
                    "With the handheld's processing fitted to table 5 and to half the time at poor GPRS, the largest reply takes {:.0} % longer compressed (paper: at most 4 %): {compressed:.1} s and {plain:.1} s. 4 % would need {needed:.0} s of processing, where the fit has {:.1} s.",
                    100.0 * apart,
                    self.seconds(largest)
                ),
            ).because("the statements of the paper cannot be met together: the processing that table 5 and poor GPRS leave is less than these 4 % need."),
            Check::claim(
                (gap / paper::WLAN_BELOW_BLUETOOTH - 1.0).abs() <= 0.25,
                format!(
                    "Processing is the same on both networks: 802.11b stays {gap:.2} s below Bluetooth for the largest reply (paper: 2 s), whatever the fit."
                ),
            ).because("no processing explains a gap between networks, and their rates and delays explain 0.1 s for the smallest reply and 0.6 s for the largest."),
        ]
    }
}

#[cfg(test)]
mod tests {
    use posthaste_link::profile::named;

    use super::*;
    use crate::compression::line_time;
    use posthaste_study::RecordTable;

    /// Records like the study's, with the paper's sizes and 620 bytes for envelope and headers.
    fn records() -> Records {
        let mut table = RecordTable::new(["network", "reply", "form", "computed_ms"]);
        for network in [WLAN, BLUETOOTH, GPRS, GPRS_POOR] {
            for size in Size::ALL {
                let paper::PaperReply {
                    bytes, compressed, ..
                } = paper::reply(size);
                for (form, body) in [(PLAIN, bytes), (COMPRESSED, compressed)] {
                    let line = line_time::exchange(named(network).unwrap(), 600, body as u64 + 620);
                    table.push([
                        network.into(),
                        size.name().into(),
                        form.into(),
                        (1e3 * line.as_secs_f64()).into(),
                    ]);
                }
            }
        }
        let mut records = Records::new();
        records.set_table("cells", table);
        records
    }

    #[test]
    fn the_two_statements_are_met_and_the_others_cannot_be() {
        let records = records();
        let fit = Processing::fitted(&records);
        assert!(fit.constant > 0.0 && fit.per_byte > 0.0, "{fit:?}");
        let heavy_1 = fit.service(&records, GPRS, Size::Heavy1, COMPRESSED);
        assert!((heavy_1 - 9.37).abs() < 1e-9, "{heavy_1}");
        let [plain, compressed] =
            [PLAIN, COMPRESSED].map(|form| fit.service(&records, GPRS_POOR, Size::Heavy5, form));
        assert!((compressed / plain - 0.5).abs() < 1e-9);
        for network in [WLAN, BLUETOOTH] {
            let checks = fit.checks(&records, network);
            assert!(checks.iter().all(|check| !check.holds), "{checks:?}");
        }
    }
}
