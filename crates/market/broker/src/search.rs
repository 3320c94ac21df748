//! Replacement for the search in the index, with which studies compare it.

use posthaste_qos::{Definition, Offer, World};

/// Error of an [`OfferSearch`].
pub type SearchError = Box<dyn std::error::Error + Send + Sync>;

/// A search for the best offer that replaces the broker's index.
pub trait OfferSearch: Send + Sync {
    /// Returns the cheapest adequate offer for the type `kind`, with its provider. `world` has the time, the rates and
    /// the ontologies of the comparison.
    fn best(
        &self,
        kind: &str,
        wanted: &Definition,
        world: &World<'_>,
    ) -> Result<Option<(String, Offer)>, SearchError>;
}
