//! Measured quality of offers as gateways report it, in memory.
//!
//! It is shown next to the promises and decides nothing at the broker: a report is a statement of its gateway. A restart
//! loses the reports; gateways send new ones within seconds.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use posthaste_broker_client::{MAX_MEASURED, MeasuredOffer, QualityReport};

use crate::offered::fault_of_name;

/// Validity of a report. Gateways report every 10 s.
const VALIDITY: Duration = Duration::from_secs(180);

/// Maximum number of reports, over all gateways and types.
const MAX_REPORTS: usize = 64;

/// Maximum window in seconds: a day.
const MAX_WINDOW: f64 = 86_400.0;

/// The valid reports.
#[derive(Debug, Default)]
pub(crate) struct Measurements(Mutex<BTreeMap<ReportKey, DatedReport>>);

/// Type and gateway of a report.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReportKey {
    pub(crate) kind: String,
    pub(crate) gateway: String,
}

/// A report with the time of its arrival.
#[derive(Clone, Debug)]
pub(crate) struct DatedReport {
    pub(crate) at: Instant,
    pub(crate) report: QualityReport,
}

/// There are too many reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooManyReports;

impl Measurements {
    /// Replaces the report of a gateway for a type.
    pub(crate) fn put(
        &self,
        key: ReportKey,
        report: QualityReport,
        at: Instant,
    ) -> Result<(), TooManyReports> {
        let mut reports = self.valid(at);
        if reports.len() >= MAX_REPORTS && !reports.contains_key(&key) {
            return Err(TooManyReports);
        }
        reports.insert(key, DatedReport { at, report });
        Ok(())
    }

    /// The valid reports, of one type or of all, by type and gateway.
    pub(crate) fn reports(
        &self,
        kind: Option<&str>,
        now: Instant,
    ) -> Vec<(ReportKey, DatedReport)> {
        let reports = self.valid(now);
        let of_kind = reports
            .iter()
            .filter(|(key, _)| kind.is_none_or(|kind| key.kind == kind));
        of_kind
            .map(|(key, report)| (key.clone(), report.clone()))
            .collect()
    }

    /// The reports without those that have ended. A panic with the lock held cannot leave them inconsistent.
    fn valid(&self, now: Instant) -> MutexGuard<'_, BTreeMap<ReportKey, DatedReport>> {
        let mut reports = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        reports.retain(|_, report| now.saturating_duration_since(report.at) < VALIDITY);
        reports
    }
}

/// Error in a report, in words; `None` if valid.
pub(crate) fn fault(report: &QualityReport) -> Option<String> {
    if !(report.window > 0.0 && report.window <= MAX_WINDOW) {
        return Some(format!("a window of {} s: at most a day", report.window));
    }
    if report.offers.len() > MAX_MEASURED {
        let count = report.offers.len();
        return Some(format!("{count} offers: {MAX_MEASURED} at most"));
    }
    report.offers.iter().find_map(fault_of_offer)
}

fn fault_of_offer(offer: &MeasuredOffer) -> Option<String> {
    let names = [&offer.provider, &offer.name, &offer.endpoint];
    if let Some(fault) = names.into_iter().find_map(|name| fault_of_name(name)) {
        return Some(fault);
    }
    let named = |reason: &str| Some(format!("the offer {:?}: {reason}", offer.name));
    if offer.failures > offer.requests {
        return named("more failures than requests");
    }
    let is_time = |time: f64| (0.0..=1e12).contains(&time);
    let times = [offer.p50, offer.p99];
    if times.into_iter().flatten().all(is_time) {
        None
    } else {
        named("a time is in milliseconds, not negative")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(kind: &str, gateway: &str) -> ReportKey {
        ReportKey {
            kind: kind.to_owned(),
            gateway: gateway.to_owned(),
        }
    }

    fn report() -> QualityReport {
        QualityReport {
            window: 120.0,
            offers: vec![MeasuredOffer {
                provider: "ada".to_owned(),
                name: "Gold".to_owned(),
                endpoint: "http://127.0.0.1:9001".to_owned(),
                requests: 10,
                failures: 1,
                p50: Some(5.0),
                p99: None,
            }],
        }
    }

    #[test]
    fn a_report_is_valid_for_three_minutes_and_replaces_the_last() {
        let (measurements, start) = (Measurements::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        measurements
            .put(key("books", "a"), report(), at(0))
            .unwrap();
        measurements.put(key("maps", "a"), report(), at(0)).unwrap();
        measurements
            .put(key("books", "a"), report(), at(100))
            .unwrap();
        assert_eq!(measurements.reports(None, at(179)).len(), 2);
        let left = measurements.reports(Some("books"), at(180));
        assert_eq!((left.len(), left[0].1.at), (1, at(100)));
        assert!(measurements.reports(Some("maps"), at(180)).is_empty());
        assert!(measurements.reports(None, at(280)).is_empty());
    }

    #[test]
    fn the_number_of_reports_is_bounded() {
        let (measurements, now) = (Measurements::default(), Instant::now());
        for number in 0..MAX_REPORTS {
            let key = key("books", &number.to_string());
            measurements.put(key, report(), now).unwrap();
        }
        assert_eq!(
            measurements.put(key("books", "x"), report(), now),
            Err(TooManyReports)
        );
        assert_eq!(measurements.put(key("books", "0"), report(), now), Ok(()));
        let later = now + VALIDITY;
        assert_eq!(measurements.put(key("books", "x"), report(), later), Ok(()));
    }

    #[test]
    fn senseless_reports_are_refused() {
        assert_eq!(fault(&report()), None);
        let changed = |change: fn(&mut QualityReport)| {
            let mut report = report();
            change(&mut report);
            fault(&report)
        };
        let changes: [fn(&mut QualityReport); 6] = [
            |report| report.window = 0.0,
            |report| report.window = f64::NAN,
            |report| report.offers[0].failures = 11,
            |report| report.offers[0].p50 = Some(-1.0),
            |report| report.offers[0].endpoint = "a\nb".to_owned(),
            |report| report.offers = vec![report.offers[0].clone(); MAX_MEASURED + 1],
        ];
        for (index, change) in changes.into_iter().enumerate() {
            assert!(changed(change).is_some(), "{index}");
        }
    }
}
