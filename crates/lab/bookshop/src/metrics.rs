//! Counters by form and answer, in Prometheus' text format.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use posthaste_http::grpc::Code;
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
    /// gRPC, with health and reflection.
    Grpc,
    /// `/orders`.
    Orders,
    /// `/v1/chat/completions`.
    Chat,
    /// Everything else.
    Other,
}

/// Requests answered.
#[derive(Debug, Default)]
pub struct ShopMetrics {
    /// By form, then by status: below 400, 4xx, 5xx.
    answers: [[AtomicU64; 3]; 7],
    /// Calls of gRPC by the number of their status.
    calls: [AtomicU64; Code::ALL.len()],
    /// Events sent, by form.
    events: [AtomicU64; 7],
    /// Streams by form and end.
    streams: [[AtomicU64; 2]; 7],
}

/// The end of an event stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// All events were handed over.
    Complete,
    /// The client or its deadline ended it.
    Cancelled,
}

const FORMS: [(ReplyForm, &str); 7] = [
    (ReplyForm::Soap, "soap"),
    (ReplyForm::Page, "page"),
    (ReplyForm::Json, "json"),
    (ReplyForm::Grpc, "grpc"),
    (ReplyForm::Orders, "orders"),
    (ReplyForm::Chat, "chat"),
    (ReplyForm::Other, "other"),
];
const ANSWERS: [&str; 3] = ["ok", "refused", "failed"];
/// Forms with event streams.
const STREAMS: [(ReplyForm, &str); 3] = [
    (ReplyForm::Grpc, "grpc"),
    (ReplyForm::Orders, "orders"),
    (ReplyForm::Chat, "chat"),
];
const ENDS: [&str; 2] = ["complete", "cancelled"];

impl ShopMetrics {
    pub(crate) fn count(&self, form: ReplyForm, status: u16) {
        let answer = match status {
            400..500 => 1,
            500.. => 2,
            _ => 0,
        };
        self.answers[form as usize][answer].fetch_add(1, Relaxed);
    }

    /// Counts a call of gRPC by its status. Statuses that mean a failure of the server are failures, as in the gateway.
    pub(crate) fn count_call(&self, code: Code) {
        self.calls[usize::from(code.number())].fetch_add(1, Relaxed);
        let status = match code {
            Code::Ok => 200,
            Code::DeadlineExceeded | Code::Internal | Code::Unavailable | Code::DataLoss => 500,
            _ => 400,
        };
        self.count(ReplyForm::Grpc, status);
    }

    pub(crate) fn count_event(&self, form: ReplyForm) {
        self.events[form as usize].fetch_add(1, Relaxed);
    }

    pub(crate) fn count_stream(&self, form: ReplyForm, end: StreamEnd) {
        self.streams[form as usize][end as usize].fetch_add(1, Relaxed);
    }

    fn streams_text(&self, out: &mut String) {
        out.push_str("# HELP bookshop_grpc_calls_total Calls of gRPC ended, by status.\n# TYPE bookshop_grpc_calls_total counter\n");
        for (code, count) in Code::ALL.iter().zip(&self.calls) {
            let count = count.load(Relaxed);
            let _ = writeln!(
                out,
                "bookshop_grpc_calls_total{{status=\"{code}\"}} {count}"
            );
        }
        out.push_str("# HELP bookshop_events_total Events of streams sent, by form.\n# TYPE bookshop_events_total counter\n");
        for (form, name) in STREAMS {
            let count = self.events[form as usize].load(Relaxed);
            let _ = writeln!(out, "bookshop_events_total{{form=\"{name}\"}} {count}");
        }
        out.push_str("# HELP bookshop_streams_total Event streams ended, by form and end.\n# TYPE bookshop_streams_total counter\n");
        for (form, name) in STREAMS {
            for (end, count) in ENDS.iter().zip(&self.streams[form as usize]) {
                let count = count.load(Relaxed);
                let _ = writeln!(
                    out,
                    "bookshop_streams_total{{form=\"{name}\",end=\"{end}\"}} {count}"
                );
            }
        }
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
        self.streams_text(&mut out);
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
