//! The marking stage: selects the code point of a reply and of its request to the upstream.

use hyper::Response;
use hyper::header::{HeaderName, HeaderValue};
use posthaste_qos::Priorities;
use posthaste_qos::marking::{Mark, Marks, StatedMarks};
use posthaste_units::Dscp;

use crate::preference::Wishes;
use crate::site::Route;

/// Reports the mark and its origin to clients that request it.
const DECISION: HeaderName = HeaderName::from_static("mark-decision");

/// Selects the mark of a reply. `offer` holds the priorities of the offer that admitted the request.
pub(crate) fn decide(
    marks: &Marks,
    wishes: &Wishes,
    offer: Option<&Priorities>,
    route: &Route,
) -> Mark {
    marks.decide(&StatedMarks {
        soap: wishes.priorities.as_ref(),
        prefer: wishes.prefer.mark,
        offer,
        route: route.mark,
        urgency: wishes.urgency,
    })
}

/// Sets the mark of the reply, and the decision field if `wants_reason`.
pub(crate) fn apply<B>(mark: Mark, reply: &mut Response<B>, wants_reason: bool) {
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
