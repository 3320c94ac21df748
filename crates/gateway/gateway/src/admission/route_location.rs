//! The location of a request: its service, and its kind there.

use posthaste_admission::{Kind, Ticket};

/// The service of a route, and the kind of its requests there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RouteLocation {
    pub(super) service: usize,
    pub(super) kind: Kind,
    /// The policy does not reject its requests.
    pub(super) is_exempt: bool,
}

/// A request in service or waiting, with its service.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlacedTicket {
    pub(super) location: RouteLocation,
    pub(super) ticket: Ticket,
}
