//! What the threads of a broker share.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use posthaste_serve::Counters;
use posthaste_soap::wsdl::Service;

use crate::keeper::Keeper;
use crate::metrics::Metrics;
use crate::prototype::Prototype;
use crate::registry::Registry;

/// A broker's parts.
pub(crate) struct House {
    pub(crate) registry: Arc<Registry>,
    /// None where another broker is followed.
    pub(crate) keeper: Option<Keeper>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) counters: Arc<Counters>,
    /// What `/soap?wsdl` describes.
    pub(crate) service: Service,
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// `http` or `https`.
    pub(crate) scheme: &'static str,
    /// The broker whose changes this one follows.
    pub(crate) follows: Option<String>,
    /// Where the UDDI registry is, for those who ask.
    pub(crate) uddi: Option<String>,
    /// What finds the best offer in place of the index, for comparison.
    pub(crate) prototype: Option<Mutex<Prototype>>,
}
