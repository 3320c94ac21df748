//! The outcome of the choice for one request: its offer, or the reason why it has none.

use std::rc::Rc;

use posthaste_qos::selection::{Choice, TermBounds};

use super::thread::ThreadTable;

/// The offer of a request, or the reason why it goes to the configured upstreams.
pub(crate) enum Selection {
    Offer(OfferRequest),
    Fallback(FallbackReason),
}

/// A request with its terms and its first choice, in the table with which it began.
pub(crate) struct OfferRequest {
    pub(super) table: Rc<ThreadTable>,
    pub(super) bounds: TermBounds,
    pub(super) selected: Option<String>,
    pub(super) choice: Choice,
}

/// Reasons why there is no valid offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FallbackReason {
    /// None has arrived from the broker yet.
    Waiting,
    /// The broker has been away for longer than `hold`.
    Lapsed,
    /// The broker has no offer of the type that can be used.
    NoOffer,
}

impl FallbackReason {
    /// The reason for a client.
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Waiting => "no offer has arrived from the broker yet",
            Self::Lapsed => {
                "the broker has not answered for too long, and its last offers have expired"
            }
            Self::NoOffer => "the broker has no valid offer of the type",
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Lapsed => "lapsed",
            Self::NoOffer => "no-offer",
        }
    }
}
