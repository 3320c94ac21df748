//! The marking stage: selects the code point of a reply and of its request to the upstream.

use hyper::Response;
use hyper::header::{HeaderName, HeaderValue};
use posthaste_gateway_config::Marking;
use posthaste_qos::Priorities;
use posthaste_qos::marking::{Mark, Marks, StatedMarks};
use posthaste_units::Dscp;

use crate::record::metrics::GatewayMetrics;
use crate::request::preferences::Preferences;

/// Reports the mark and its origin to clients that request it.
const DECISION: HeaderName = HeaderName::from_static("mark-decision");

/// Selects the mark of a reply. `None` if marking is off. `offer` holds the priorities of the offer that admitted the
/// request, `route` the mark of its route.
pub(crate) fn decide(
    marks: Option<&Marks>,
    preferences: &Preferences,
    offer: Option<&Priorities>,
    route: Option<Dscp>,
) -> Option<Mark> {
    let decide = |marks: &Marks| {
        marks.decide(&StatedMarks {
            soap: preferences.priorities.as_ref(),
            prefer: preferences.prefer.mark,
            offer,
            route,
            urgency: preferences.urgency,
        })
    };
    marks.map(decide)
}

/// Returns the mark of the request to the upstream.
pub(crate) fn for_upstream(mark: Option<Mark>, config: &Marking) -> Dscp {
    let mark = mark.filter(|_| config.upstream);
    mark.map_or(Dscp::DEFAULT, |mark| mark.dscp)
}

/// Sets and counts the mark of the reply, if there is one, and the decision field if `wants_reason`.
pub(crate) fn apply<B>(
    mark: Option<Mark>,
    reply: &mut Response<B>,
    wants_reason: bool,
    metrics: &GatewayMetrics,
) {
    let Some(mark) = mark else {
        return;
    };
    metrics.marked(mark);
    if mark.dscp != Dscp::DEFAULT {
        reply.extensions_mut().insert(mark.dscp);
    }
    if wants_reason {
        let decision = format!("{}; {}", mark.dscp, mark.origin);
        if let Ok(decision) = HeaderValue::try_from(decision) {
            reply.headers_mut().insert(DECISION, decision);
        }
    }
}
