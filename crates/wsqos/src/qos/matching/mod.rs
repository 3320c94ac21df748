//! Whether an offer is enough for a requirement, and what speaks against it.
//!
//! The rules are those of WS-QoS, with one difference, said in `docs/reference/offers.md`: what a requirement sets and an
//! offer does not state does not match. There is one walk through both, [`compare`]; who wants one answer stops
//! at the first objection, who wants all of them goes on.

mod groups;
mod info;
mod mismatch;

use std::ops::ControlFlow;

use jiff::Timestamp;

use self::groups::Groups;
use self::info::Pair;
pub use self::mismatch::{Amount, Mismatch, Side};
use super::definition::Definition;
use super::document::Offer;
use super::money::Rates;
use super::ontology::Ontologies;

/// What both sides are compared in.
#[derive(Clone, Copy, Debug)]
pub struct World<'a> {
    /// The time: an offer has expired at its end.
    pub now: Timestamp,
    /// What currencies are worth.
    pub rates: &'a Rates,
    /// What custom metrics mean.
    pub ontologies: &'a Ontologies,
}

/// What is called with each objection.
type Objector<'o, 'd> = &'o mut dyn FnMut(Mismatch<'d>) -> ControlFlow<()>;

/// Whether `offer` is enough for `wanted`.
pub fn is_adequate(offer: &Offer, wanted: &Definition, world: &World<'_>) -> bool {
    compare(offer, wanted, world, &mut |_| ControlFlow::Break(())).is_continue()
}

/// All that speaks against `offer`; empty where it is enough for `wanted`.
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

/// Calls `object` with what speaks against `offer`, one after the other, until there is no more or it says so.
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
    // The default stands for every operation that is not named, on both sides.
    let offered = &offer.qos;
    Pair::of(None, offered, wanted).compare(world, object)?;
    for name in wanted.operations.keys() {
        Pair::of(Some(name), offered, wanted).compare(world, object)?;
    }
    let others = offered.operations.keys();
    for name in others.filter(|name| !wanted.operations.contains_key(*name)) {
        Pair::of(Some(name), offered, wanted).compare(world, object)?;
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
        (Some(asked), Some(limit)) if asked <= limit => ControlFlow::Continue(()),
        (Some(_), Some(_)) => object(Mismatch::Price {
            offered: price,
            most,
        }),
        (None, _) => object(Mismatch::Currency(price.currency())),
        (_, None) => object(Mismatch::Currency(most.currency())),
    }
}
