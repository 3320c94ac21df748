//! Context of a broker: the state shared by its threads.

use std::net::SocketAddr;
use std::sync::Arc;

use posthaste_serve::ConnectionCounters;
use posthaste_soap::wsdl::Service;

use crate::measurements::Measurements;
use crate::metrics::BrokerMetrics;
use crate::quota::Quota;
use crate::registry::Registry;
use crate::search::OfferSearch;
use crate::uddi::Directory;
use crate::writer::StoreWriter;

/// Context of a broker.
pub(crate) struct BrokerContext {
    pub(crate) registry: Arc<Registry>,
    /// `None` if the broker follows another.
    pub(crate) writer: Option<StoreWriter>,
    /// Limits the changes per token.
    pub(crate) quota: Quota,
    /// Maximum number of accounts.
    pub(crate) most_accounts: usize,
    pub(crate) metrics: Arc<BrokerMetrics>,
    /// Measured quality as gateways report it.
    pub(crate) measurements: Measurements,
    pub(crate) counters: Arc<ConnectionCounters>,
    /// Description at `/soap?wsdl`.
    pub(crate) service: Service,
    /// Listening address.
    pub(crate) address: SocketAddr,
    /// `http` or `https`.
    pub(crate) scheme: &'static str,
    /// Broker that this one follows.
    pub(crate) follows: Option<String>,
    /// UDDI registry, if configured.
    pub(crate) directory: Option<Arc<Directory>>,
    /// Search for the best offer that replaces the index.
    pub(crate) search: Option<Box<dyn OfferSearch>>,
}
