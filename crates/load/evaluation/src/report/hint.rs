//! The likely cause, and the remedy, for a run without any reply.

use url::Url;

use posthaste_load::{Outcome, Plan, Run};

/// Returns a hint for a run without a complete reply. `None` if there was a reply, or nothing was due.
pub(super) fn hint(plan: &Plan, run: &Run) -> Option<String> {
    if run.intended == 0 || run.response.histogram().count() > 0 {
        return None;
    }
    let (outcome, _) = run.outcomes.iter().max_by_key(|(_, count)| *count)?;
    let address = address(plan)?;
    Some(match outcome {
        Outcome::Refused => format!("is anything listening on {address}?"),
        Outcome::ConnectAborted => format!(
            "nothing answers at {address} within the connect timeout of {}: is the address right?",
            plan.connect_timeout
        ),
        Outcome::TlsFailed => format!(
            "does {address} speak TLS? Trust its certificate with --ca FILE, or any with --insecure"
        ),
        Outcome::ProtocolError if plan.has_calls() => format!("does {address} speak gRPC?"),
        Outcome::ProtocolError => format!("does {address} speak {}?", plan.protocol.name()),
        Outcome::TimedOut | Outcome::Unanswered => format!(
            "{address} accepts connections and does not answer within the timeout of {}",
            plan.timeout
        ),
        _ => return None,
    })
}

/// Host and port of the first request.
fn address(plan: &Plan) -> Option<String> {
    let url = Url::parse(&plan.requests.first()?.url).ok()?;
    let (host, port) = (url.host_str()?, url.port_or_known_default()?);
    Some(format!("{host}:{port}"))
}
