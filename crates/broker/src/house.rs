//! What the threads of a broker share.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use posthaste_serve::Counters;
use posthaste_soap::wsdl::Service;

use crate::keeper::Keeper;
use crate::metrics::Metrics;
use crate::prototype::Prototype;
use crate::quota::Quota;
use crate::registry::Registry;
use crate::uddi::Directory;

/// A broker's parts.
pub(crate) struct House {
    pub(crate) registry: Arc<Registry>,
    /// None where another broker is followed.
    pub(crate) keeper: Option<Keeper>,
    /// Limits the changes of each token.
    pub(crate) quota: Quota,
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
    /// The registry of services, where there is one.
    pub(crate) directory: Option<Arc<Directory>>,
    /// What finds the best offer in place of the index, for comparison.
    pub(crate) prototype: Option<Mutex<Prototype>>,
}
