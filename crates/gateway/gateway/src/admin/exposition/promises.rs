//! Promises of offers and their delivery. Clients are only counted: names come from outside, and each would be a
//! series.

use std::fmt::Error;

use posthaste_admission::{PROCESSING_TIME, Verdict};
use posthaste_serve::exposition::{counters, gauges};
use prometheus_client::encoding::DescriptorEncoder;

use crate::admission::Admission;

pub(super) fn encode(out: &mut DescriptorEncoder, admission: &Admission) -> Result<(), Error> {
    let offers = admission.offers();
    let deliveries = offers.iter().flat_map(|watched| {
        let ever = &watched.ever;
        let by = [
            ("in-time", ever.served - ever.late),
            ("late", ever.late),
            ("failed", ever.failed),
            ("refused", ever.refused),
        ];
        let offer = ("offer", &*watched.offer);
        by.map(|(delivery, count)| ([offer, ("delivery", delivery)], count as f64))
    });
    let deliveries_help = "Requests on each offer, by what was delivered";
    counters(out, "offer_requests", deliveries_help, deliveries)?;

    let times = offers.iter().map(|watched| {
        let seconds = watched.ever.time.as_secs_f64();
        ([("offer", &*watched.offer)], seconds)
    });
    let times_help = "What requests on each offer took that were answered well";
    counters(out, "offer_processing_seconds", times_help, times)?;

    let most = admission.promise().processing_time;
    let judged = || {
        offers.iter().flat_map(|watched| {
            let offer = ("offer", &*watched.offer);
            let judged = watched.report.judged().into_iter();
            judged.map(move |(name, judged)| ([offer, ("promise", name)], judged))
        })
    };
    let promised = judged().filter_map(|(labels, judged)| {
        let least = judged.promised?;
        let is_time = labels[1].1 == PROCESSING_TIME;
        let most = most.filter(|_| is_time).map(|most| most.as_secs_f64());
        Some((labels, most.unwrap_or(least)))
    });
    let promised_help = "What each offer promises: seconds, requests per second, shares";
    gauges(out, "offer_promised", promised_help, promised)?;

    let verdicts = judged().filter_map(|(labels, judged)| {
        let verdict = match judged.verdict? {
            Verdict::Kept => 1.0,
            Verdict::Unknown => 0.0,
            Verdict::Broken => -1.0,
        };
        Some((labels, verdict))
    });
    let verdicts_help = "Whether that was kept in the last minutes: 1, -1 if it was broken, 0 if too little was seen";
    gauges(out, "offer_verdict", verdicts_help, verdicts)?;

    let let_down = offers
        .iter()
        .map(|watched| ([("offer", &*watched.offer)], watched.let_down as f64));
    let let_down_help = "Clients whose promise was broken in the last minutes";
    gauges(out, "offer_clients_let_down", let_down_help, let_down)?;
    let unwatched_help = "Requests and offers that were too many to be watched";
    let unwatched = [([], admission.unwatched() as f64)];
    counters(out, "unwatched", unwatched_help, unwatched)
}
