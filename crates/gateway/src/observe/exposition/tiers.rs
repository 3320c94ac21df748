//! Requests by tier, and clients beyond the number with limits of their own.

use std::fmt::Error;

use posthaste_serve::exposition::{counters, gauges};
use prometheus_client::encoding::DescriptorEncoder;

use crate::admission::{AdmissionSnapshot, TierReading};

pub(super) fn encode(out: &mut DescriptorEncoder, shown: &AdmissionSnapshot) -> Result<(), Error> {
    let tiers = |value: fn(&TierReading) -> f64| {
        let rows = shown.tiers.iter();
        rows.map(move |tier| ([("tier", tier.name.as_str())], value(tier)))
    };
    let help = "Admitted requests, by tier";
    counters(
        out,
        "tier_admitted",
        help,
        tiers(|tier| tier.admitted as f64),
    )?;
    let help = "Rejected requests, by tier";
    counters(
        out,
        "tier_rejected",
        help,
        tiers(|tier| tier.rejected as f64),
    )?;
    let help = "Admitted requests that had waited for a slot of the limit, by tier";
    counters(out, "tier_waited", help, tiers(|tier| tier.waited as f64))?;
    let help = "Total time for which they had waited";
    counters(out, "tier_wait_seconds", help, tiers(|tier| tier.wait))?;
    let help = "Requests in service, by tier";
    gauges(
        out,
        "tier_in_service",
        help,
        tiers(|tier| tier.in_service.into()),
    )?;
    let help = "Requests that wait for a slot of the limit, by tier";
    gauges(out, "tier_waiting", help, tiers(|tier| tier.waiting as f64))?;
    let help =
        "Requests of clients that share the limits of one client, because there are too many";
    counters(out, "clients_beyond", help, [([], shown.beyond as f64)])
}
