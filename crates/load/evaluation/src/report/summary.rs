//! The last line of the report on a terminal: the run in one line, so that a screen of 24 rows shows it.

use posthaste_load::{Outcome, is_redirect};
use posthaste_stats::Statistic;
use posthaste_units::thousands;

use super::Report;
use super::numbers::{millis, per_second};

impl Report {
    /// Complete replies that send the client to another URL. None is followed.
    pub fn redirects(&self) -> u64 {
        let redirects = self
            .statuses
            .iter()
            .filter(|(status, _)| is_redirect(**status));
        redirects.map(|(_, count)| count).sum()
    }

    /// Rate, outcomes, response time of all due, verdicts, and redirects if there are some.
    pub(super) fn summary(&self) -> String {
        let time = |statistic| {
            let reading = self.response_time_ms.reading(statistic);
            reading.format(|ms| format!("{} ms", millis(ms)))
        };
        let ok = self.intended - self.outcomes.failed();
        let figures = format!(
            "{}/s offered, {} ok, {} failed, p50 {}, p99 {}",
            per_second(self.offered_rate),
            thousands(ok),
            thousands(self.outcomes.failed()),
            time(Statistic::P50),
            time(Statistic::P99)
        );
        [Some(figures), self.verdicts(), self.redirects_in_words()]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join("; ")
    }

    /// Number of assertions by verdict.
    fn verdicts(&self) -> Option<String> {
        let count = |holds: Option<bool>| {
            self.assertions
                .iter()
                .filter(|checked| checked.holds == holds)
                .count()
        };
        let verdicts = [
            (count(Some(true)), "hold"),
            (count(Some(false)), "FAIL"),
            (count(None), "UNKNOWN"),
        ];
        let verdicts: Vec<String> = verdicts
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, verdict)| format!("{count} {verdict}"))
            .collect();
        (!verdicts.is_empty()).then(|| format!("assertions: {}", verdicts.join(", ")))
    }

    /// Number of redirects, and the target of the first one that named it.
    pub(super) fn redirects_in_words(&self) -> Option<String> {
        let count = self.redirects();
        let reason = self.reasons.get(Outcome::Ok.name());
        let first = reason.filter(|reason| reason.starts_with("redirect to"));
        let first = first.map_or_else(String::new, |first| format!(", first: {first}"));
        (count > 0).then(|| format!("{} REDIRECTED, not followed{first}", thousands(count)))
    }
}
