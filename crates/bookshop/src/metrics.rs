//! Counters by form and answer, in Prometheus' text format.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use posthaste_serve::Snapshot;

/// The form of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyForm {
    /// `/soap`.
    Soap,
    /// `/page/`.
    Page,
    /// `/json/`.
    Json,
    /// Everything else.
    Other,
}

/// Requests answered.
#[derive(Debug, Default)]
pub struct ShopMetrics {
    /// By form, then by status: below 400, 4xx, 5xx.
    answers: [[AtomicU64; 3]; 4],
}

const FORMS: [(ReplyForm, &str); 4] = [
    (ReplyForm::Soap, "soap"),
    (ReplyForm::Page, "page"),
    (ReplyForm::Json, "json"),
    (ReplyForm::Other, "other"),
];
const ANSWERS: [&str; 3] = ["ok", "refused", "failed"];

impl ShopMetrics {
    pub(crate) fn count(&self, form: ReplyForm, status: u16) {
        let answer = match status {
            400..500 => 1,
            500.. => 2,
            _ => 0,
        };
        self.answers[form as usize][answer].fetch_add(1, Relaxed);
    }

    pub(crate) fn text(&self, connections: &Snapshot) -> String {
        let mut out = String::with_capacity(2048);
        out.push_str("# HELP bookshop_requests_total Requests answered, by form and answer; a SOAP 1.1 fault is failed.\n");
        out.push_str("# TYPE bookshop_requests_total counter\n");
        for (form, name) in FORMS {
            for (answer, count) in ANSWERS.iter().zip(&self.answers[form as usize]) {
                let count = count.load(Relaxed);
                let _ = writeln!(
                    out,
                    "bookshop_requests_total{{form=\"{name}\",answer=\"{answer}\"}} {count}"
                );
            }
        }
        out.push_str("# HELP bookshop_connections_open Connections open now.\n# TYPE bookshop_connections_open gauge\n");
        let _ = writeln!(out, "bookshop_connections_open {}", connections.open);
        out.push_str("# HELP bookshop_connections_total Connections, by what became of them.\n# TYPE bookshop_connections_total counter\n");
        for (event, count) in connections.events() {
            let _ = writeln!(
                out,
                "bookshop_connections_total{{event=\"{event}\"}} {count}"
            );
        }
        out
    }
}
