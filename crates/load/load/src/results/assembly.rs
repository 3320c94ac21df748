//! The results of a run, assembled from the tallies of its event loops.

use jiff::Timestamp;
use posthaste_units::{Instant, Rate, Span};

use crate::plan::pace::RateStep;
use crate::plan::{MeasuredWindow, Pace, Plan};
use crate::request::RequestSpec;
use crate::results::{Portion, Run};
use crate::tally::LoadTally;
use crate::tally::part_results::PartResults;

impl Run {
    /// The results of `plan` from the sum of its seconds, of all shares. Checks that each intended request has one
    /// outcome and one response time.
    pub fn new(plan: &Plan, started: Timestamp, tally: LoadTally, stopped: bool) -> Self {
        if let Err(error) = tally.check_whole(plan) {
            panic!("{error}: a bug");
        }
        let mut response = tally.rest;
        response.merge(&tally.ok);
        let MeasuredWindow { start, end } = plan.window();
        let duration = if stopped || end == Instant::FAR_FUTURE {
            tally.over.min(end).saturating_since(start)
        } else {
            end.since(start)
        };
        let over = if stopped { tally.over } else { end };
        Self {
            intended: tally.intended,
            outcomes: tally.outcomes,
            attempts: tally.attempts,
            warm_up: tally.warm_up,
            duration,
            unbegun: tally.unbegun,
            overdue: tally.overdue,
            started,
            sent: tally.sent,
            completed: tally.completed,
            served: tally.served,
            response,
            ok: tally.ok,
            service: tally.service,
            lateness: tally.lateness,
            phases: tally.phases,
            steps: step_portions(plan, tally.steps, start, over),
            requests: request_portions(plan, tally.requests, duration),
            statuses: tally.statuses,
            grpc: tally.grpc,
            reasons: tally
                .reasons
                .into_iter()
                .map(|(outcome, explanation)| (outcome, explanation.text))
                .collect(),
            decoded: tally.decoded,
            events: tally.events,
            quotes: tally.quotes,
            connections: tally.connections,
            reused_resets: tally.reused_resets,
            addresses: tally.addresses,
            streams: tally.streams,
            bytes_sent: tally.bytes_sent,
            bytes_received: tally.bytes_received,
            bytes_in_time: tally.bytes_in_time,
            stopped,
            agents: Vec::new(),
            qlog: None,
        }
    }
}

/// The steps that began before `over`, each with its duration.
fn step_portions(
    plan: &Plan,
    parts: Vec<PartResults>,
    start: Instant,
    over: Instant,
) -> Vec<Portion> {
    let Pace::Open { steps, .. } = &plan.pace else {
        return Vec::new();
    };
    if steps.len() < 2 {
        return Vec::new();
    }
    let warm_up = parts.len() - steps.len();
    let mut begins = start;
    let portion = |(step, part): (&RateStep, PartResults)| {
        let lasted = over.saturating_since(begins).min(step.length);
        begins += step.length;
        if lasted.is_zero() {
            return None;
        }
        let per_second = step.expected() / step.length.as_secs_f64();
        let rate = Rate::per_second(per_second).expect("a step that lasts has a rate");
        Some(Portion {
            name: rate.to_string(),
            offered: Some(rate),
            duration: lasted,
            part,
        })
    };
    let parts = parts.into_iter().skip(warm_up);
    steps.iter().zip(parts).filter_map(portion).collect()
}

/// The requests of the mix, if there are several.
fn request_portions(plan: &Plan, parts: Vec<PartResults>, duration: Span) -> Vec<Portion> {
    let portion = |(spec, part): (&RequestSpec, PartResults)| Portion {
        name: spec.name.clone(),
        offered: None,
        duration,
        part,
    };
    plan.requests.iter().zip(parts).map(portion).collect()
}
