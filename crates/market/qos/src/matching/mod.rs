//! Comparison of an offer with a requirement.
//!
//! The rules are those of WS-QoS with one difference, described in `docs/reference/offers.md`: an offer does not match
//! if it does not state a value that the requirement sets. [`compare`] visits both once and calls back with each
//! mismatch. The callback decides whether to stop at the first or to continue.

mod effective;
mod groups;
mod info;
mod mismatch;

use std::ops::ControlFlow;

use jiff::Timestamp;

use self::groups::Groups;
use self::info::OperationPair;
pub use self::mismatch::{Amount, Mismatch, Side};
use super::definition::Definition;
use super::document::Offer;
use super::money::Rates;
use super::ontology::Ontologies;

/// Context of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct World<'a> {
    /// Current time. An offer has expired at its end.
    pub now: Timestamp,
    /// Exchange rates.
    pub rates: &'a Rates,
    /// Definitions of custom metrics.
    pub ontologies: &'a Ontologies,
}

/// Callback for each mismatch.
type Objector<'o, 'd> = &'o mut dyn FnMut(Mismatch<'d>) -> ControlFlow<()>;

/// Returns true if `offer` meets `wanted`.
pub fn is_adequate(offer: &Offer, wanted: &Definition, world: &World<'_>) -> bool {
    compare(offer, wanted, world, &mut |_| ControlFlow::Break(())).is_continue()
}

/// All mismatches of `offer`. Empty if it meets `wanted`.
pub fn objections<'d>(
    offer: &'d Offer,
    wanted: &'d Definition,
    world: &World<'_>,
) -> Vec<Mismatch<'d>> {
    let mut found = Vec::new();
    let _ = compare(offer, wanted, world, &mut |mismatch| {
        found.push(mismatch);
        ControlFlow::Continue(())
    });
    found
}

/// Calls `object` with each mismatch of `offer` until there are no more or `object` breaks.
pub fn compare<'d>(
    offer: &'d Offer,
    wanted: &'d Definition,
    world: &World<'_>,
    object: &mut dyn FnMut(Mismatch<'d>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    if offer.expires <= world.now {
        object(Mismatch::Expired(offer.expires))?;
    }
    price(offer, wanted, world, object)?;
    // On both sides, the default applies to every operation that is not named.
    let offered = &offer.qos;
    OperationPair::new(None, offered, wanted).compare(world, object)?;
    for name in wanted.operations.keys() {
        OperationPair::new(Some(name), offered, wanted).compare(world, object)?;
    }
    let others = offered.operations.keys();
    for name in others.filter(|name| !wanted.operations.contains_key(*name)) {
        OperationPair::new(Some(name), offered, wanted).compare(world, object)?;
    }
    Groups::of_contracts(offered, wanted).compare(object)
}

fn price<'d>(
    offer: &'d Offer,
    wanted: &'d Definition,
    world: &World<'_>,
    object: Objector<'_, 'd>,
) -> ControlFlow<()> {
    let Some(most) = wanted.price else {
        return ControlFlow::Continue(());
    };
    let Some(price) = offer.qos.price else {
        return object(Mismatch::NoPrice);
    };
    let in_base = |money| world.rates.in_base(money);
    match (in_base(price), in_base(most)) {
        (Some(price), Some(limit)) if price <= limit => ControlFlow::Continue(()),
        (Some(_), Some(_)) => object(Mismatch::Price {
            offered: price,
            most,
        }),
        (None, _) => object(Mismatch::Currency(price.currency())),
        (_, None) => object(Mismatch::Currency(most.currency())),
    }
}
