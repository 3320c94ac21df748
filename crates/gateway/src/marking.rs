//! Which mark the packets of a reply get, and those of its request on the way to the upstream.

use hyper::Response;
use hyper::header::{HeaderName, HeaderValue};
use posthaste_units::Dscp;
use posthaste_wsqos::qos::Priorities;
use posthaste_wsqos::{Asked, Mark, Marks};

use crate::preference::Wishes;
use crate::site::Route;

/// How a reply is marked and who asked for it, for those who want to know.
const DECISION: HeaderName = HeaderName::from_static("mark-decision");

/// Decides about the reply to a request; `offer` is what was promised by the one on which it was let in.
pub(crate) fn decide(
    marks: &Marks,
    wishes: &Wishes,
    offer: Option<&Priorities>,
    route: &Route,
) -> Mark {
    marks.decide(&Asked {
        soap: wishes.priorities.as_ref(),
        prefer: wishes.prefer.mark,
        offer,
        route: route.mark,
        urgency: wishes.urgency,
    })
}

/// Has the reply go out with its mark.
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
