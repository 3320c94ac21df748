//! Monitoring: state for the status page, metrics and health.

use std::time::Instant;

use hyper::http::request::Parts;
use hyper::{StatusCode, header};
use jiff::Timestamp;
use posthaste_serve::exposition::negotiated;

use super::exposition::text as metrics_text;
use super::page::BrokerStatus;
use super::problem::ProblemDetails;
use super::reply::BrokerReply;
use super::{BrokerHandler, measured, page};
use crate::context::BrokerContext;
use crate::uddi::Directory;

impl BrokerStatus {
    fn from_context(context: &BrokerContext, change: u64) -> Self {
        let (found, none) = context.metrics.answers();
        let answered = format!(
            "Requests for the best offer: {found} answered with an offer, {none} with the reasons why none is adequate."
        );
        let registry = context.directory.as_deref().map(registry);
        Self {
            change,
            step: step(context),
            remarks: [answered]
                .into_iter()
                .chain(registry.into_iter().flatten())
                .collect(),
            follows: context.follows.clone(),
            measured: measured::section(&context.measurements, Instant::now()),
        }
    }
}

fn step(context: &BrokerContext) -> (&'static str, String) {
    let source = match &context.follows {
        Some(upstream) => format!("with {upstream}, which it follows"),
        None => "with its store".to_owned(),
    };
    let publishing = match &context.follows {
        Some(_) => "",
        None => " Nothing can be published.",
    };
    match context.registry.age() {
        Some(age) => (
            "Out of step",
            format!(
                "{source} for {} s: this page is that old.{publishing}",
                age.as_secs()
            ),
        ),
        None => ("In step", format!("{source}.")),
    }
}

impl BrokerHandler {
    /// Status page.
    pub(super) fn status(&self) -> BrokerReply {
        let page = {
            let current = self.context.registry.read();
            let state = BrokerStatus::from_context(&self.context, current.number);
            page::html(&state, &current.index, Timestamp::now())
        };
        BrokerReply::new(StatusCode::OK, "text/html; charset=utf-8", page)
            .with(header::REFRESH, page::REFRESH)
    }

    /// Metrics.
    pub(super) fn metrics(&self, parts: &Parts) -> BrokerReply {
        let text = metrics_text(&self.context);
        let (kind, text) = negotiated(&parts.headers, text);
        BrokerReply::new(StatusCode::OK, kind, text)
    }

    /// 200 while lookups see the content of the store, even if a full disk prevents publishing.
    pub(super) fn health(&self) -> Result<BrokerReply, ProblemDetails> {
        match self.context.registry.outage() {
            None => Ok(BrokerReply::new(
                StatusCode::OK,
                "text/plain; charset=utf-8",
                "ok\n",
            )),
            Some(outage) => Err(ProblemDetails::later(outage)),
        }
    }
}

/// Sentences on the state of the UDDI registry.
fn registry(directory: &Directory) -> Vec<String> {
    let states = directory.states();
    let [(_, taken), others @ ..] = states.services;
    let others: u64 = others.iter().map(|(_, count)| count).sum();
    let age = match states.age {
        Some(age) => format!(", as of {} s ago.", age.as_secs()),
        None => ": it has not reported everything yet.".to_owned(),
    };
    let named = format!(
        "The registry {} names {taken} services of {} types that are fetched from, {others} that are not, and {} trusted \
         providers{age}",
        directory.location, states.kinds, states.trusted
    );
    let outage = states.outage.into_iter();
    let outage = outage
        .map(|reason| format!("It does not answer: {reason}. The last known services are used."));
    [named].into_iter().chain(outage).collect()
}
