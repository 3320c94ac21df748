//! The likely cause, and the remedy, for a run without any reply.

use url::Url;

use posthaste_load::{Outcome, Plan, Protocol, Run};

/// Returns a hint for a run without a complete reply. `None` if there was a reply, or nothing was due.
pub(super) fn hint(plan: &Plan, run: &Run) -> Option<String> {
    if run.intended == 0 || run.response.histogram().count() > 0 {
        return None;
    }
    let (outcome, _) = run.outcomes.iter().max_by_key(|(_, count)| *count)?;
    let address = address(plan)?;
    let reason = run.reasons.get(&outcome);
    Some(match outcome {
        Outcome::Refused => format!("is anything listening on {address}?"),
        Outcome::ConnectAborted => format!(
            "nothing answers at {address} within the connect timeout of {}: is the address right?",
            plan.connect_timeout
        ),
        Outcome::ProtocolError if plan.has_calls() => {
            with_question(reason, &format!("does {address} speak gRPC?"))
        }
        // A reply of HTTP/1.1 with a fault.
        Outcome::ProtocolError
            if matches!(plan.protocol, Protocol::Http1)
                && reason.is_some_and(|reason| !reason.starts_with(NO_HTTP)) =>
        {
            reason?.clone()
        }
        Outcome::ProtocolError => {
            let question = format!("does {address} speak {}?", plan.protocol.name());
            with_question(reason, &question)
        }
        Outcome::Reset if plan.requests[0].url.starts_with("http:") => {
            with_question(reason, &format!("if {address} speaks TLS, write https://"))
        }
        Outcome::TimedOut | Outcome::Unanswered => format!(
            "{address} accepts connections and does not answer within the timeout of {}",
            plan.timeout
        ),
        _ => return reason.cloned(),
    })
}

/// Beginning of the reason of a reply that is not HTTP/1.1.
const NO_HTTP: &str = "not an HTTP/1.1 reply";

fn with_question(reason: Option<&String>, question: &str) -> String {
    match reason {
        Some(reason) => format!("{reason}; {question}"),
        None => question.to_owned(),
    }
}

/// Host and port of the first request.
fn address(plan: &Plan) -> Option<String> {
    let url = Url::parse(&plan.requests.first()?.url).ok()?;
    let (host, port) = (url.host_str()?, url.port_or_known_default()?);
    Some(format!("{host}:{port}"))
}
