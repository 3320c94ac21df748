//! Runs that did not take place, for tests of code that reads them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use posthaste_stats::{Histogram, Recorder};
use posthaste_units::{Rate, Span};

use crate::buying::QuoteUse;
use crate::grpc::GrpcStatuses;
use crate::outcome::{Outcome, Outcomes};
use crate::plan::pace::{Arrivals, RateStep};
use crate::plan::{Pace, Plan};
use crate::reply::decoding::Decoded;
use crate::reply::events::EventTally;
use crate::request::RequestSpec;
use crate::results::Run;
use crate::tally::attempts::Attempts;
use crate::tally::phases::Phases;
use crate::transport::multiplexed::StreamCounts;

/// A plan of 10 requests per second for a second.
pub fn plan() -> Plan {
    let rate = Rate::per_second(10.0).expect("a rate");
    let pace = Pace::Open {
        arrivals: Arrivals::Constant,
        steps: vec![RateStep::steady(rate, Span::from_secs(1))],
    };
    Plan::new(vec![RequestSpec::get("http://127.0.0.1:8080/")], pace)
}

/// A run with `answered` requests answered after 100 ms and `given_up` given up after 500 ms.
pub fn run(answered: u64, given_up: u64) -> Run {
    let mut outcomes = Outcomes::default();
    outcomes[Outcome::Ok] = answered;
    outcomes[Outcome::TimedOut] = given_up;
    let (mut ok, mut response) = (Recorder::new(), Recorder::new());
    let mut lateness = Histogram::new();
    for n in 0..answered + given_up {
        lateness.record(Span::from_micros(20));
        let at = Span::from_millis(n);
        if n < answered {
            response.record(at, Span::from_millis(100));
            ok.record(at, Span::from_millis(100));
        } else {
            response.record_censored(at, Some(Span::from_millis(500)));
        }
    }
    Run {
        intended: answered + given_up,
        outcomes,
        attempts: Attempts {
            outcomes,
            requests: vec![answered + given_up],
            sent: answered + given_up,
            ..Attempts::default()
        },
        warm_up: 0,
        duration: Span::from_secs(1),
        unbegun: 0,
        overdue: 0,
        started: Timestamp::UNIX_EPOCH,
        sent: answered + given_up,
        completed: answered,
        served: answered,
        service: ok.clone(),
        response,
        ok,
        lateness,
        phases: Phases::default(),
        steps: Vec::new(),
        requests: Vec::new(),
        statuses: [(200, answered)].into(),
        grpc: GrpcStatuses::default(),
        reasons: [].into(),
        decoded: Decoded::default(),
        events: EventTally::default(),
        quotes: QuoteUse::default(),
        connections: 1,
        reused_resets: 0,
        addresses: BTreeMap::new(),
        streams: StreamCounts::default(),
        bytes_sent: 1_000,
        bytes_received: 2_000,
        bytes_in_time: [1_000, 2_000],
        stopped: false,
        agents: Vec::new(),
        qlog: None,
    }
}
