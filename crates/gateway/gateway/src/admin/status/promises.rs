//! Promises and their delivery on the status page.

use std::cmp::Reverse;

use maud::{Markup, html};
use posthaste_admission::{REQUESTS_PER_SECOND, Report, Verdict};
use posthaste_units::Span;

use crate::admission::Admission;

/// Maximum number of offers and of clients shown.
const MOST: usize = 20;

/// Renders two tables, of offers and of clients. Empty if no offer was requested.
pub(super) fn tables(admission: &Admission) -> Markup {
    let mut offers = admission.offers();
    offers.retain(|watched| watched.report.seen.requests() > 0);
    offers.sort_by_key(|watched| Reverse(watched.report.seen.requests()));
    let Some(first) = offers.first() else {
        return html! {};
    };
    let most = admission.promise().processing_time;
    let heads = html! {
        th.n { "Requests" } th.n { "Mean time" }
        @for head in ["In time", "Per second", "Answered well", "Admitted"] { th.n { (head) } th {} }
    };
    let seconds = first.report.over.as_secs_f64();
    let (clients, total) = admission.clients(MOST);
    html! {
        h2 { "What was promised, and what was delivered" }
        p {
            (format!("In the last {seconds:.0} s. "))
            @if let Some(most) = most { "In time is within " (millis(most)) ". " }
            "Shown are the offers with the most requests, " (offers.len().min(MOST)) " of " (offers.len()) "."
        }
        div.wide { table {
            tr { th { "Offer" } (heads) }
            tr.promised {
                td { "Promised" } td {} td {}
                @for (name, judged) in first.report.judged() { td.n { (number(name, judged.promised)) } td {} }
            }
            @for watched in offers.iter().take(MOST) {
                tr { td { (watched.offer) } (delivered(&watched.report)) }
            }
        } }
        p {
            "Clients whose promise was broken, then those with the most requests: "
            (clients.len()) " of " (total) ", each counted once on each offer."
        }
        div.wide { table {
            tr { th { "Client" } th { "Offer" } (heads) }
            @for served in &clients {
                tr { td { (served.client) } td { (served.offer) } (delivered(&served.report)) }
            }
        } }
    }
}

fn delivered(report: &Report) -> Markup {
    html! {
        td.n { (report.seen.requests()) }
        td.n { (report.seen.mean().map(millis).unwrap_or_default()) }
        @for (name, judged) in report.judged() {
            td.n { (number(name, judged.delivered)) }
            @let verdict = judged.verdict.map_or("", Verdict::name);
            td class=(verdict) { (verdict) }
        }
    }
}

/// Formats a value. All values except the rate are shares.
fn number(name: &str, value: Option<f64>) -> String {
    match value {
        None => String::new(),
        Some(rate) if name == REQUESTS_PER_SECOND => format!("{rate:.1}"),
        Some(share) => format!("{:.1} %", share * 100.0),
    }
}

fn millis(time: Span) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}
