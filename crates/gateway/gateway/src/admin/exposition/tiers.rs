//! Requests by service and by tier, and clients beyond the number with limits of their own.

use std::fmt::Error;

use posthaste_serve::exposition::{counters, gauges};
use prometheus_client::encoding::DescriptorEncoder;

use crate::admission::{AdmissionSnapshot, ServiceReading, TierReading};

pub(super) fn encode(out: &mut DescriptorEncoder, shown: &AdmissionSnapshot) -> Result<(), Error> {
    services(out, shown)?;
    tiers(out, shown)?;
    let help =
        "Requests of clients that share the limits of one client, because there are too many";
    counters(out, "clients_beyond", help, [([], shown.beyond as f64)])
}

fn services(out: &mut DescriptorEncoder, shown: &AdmissionSnapshot) -> Result<(), Error> {
    let limited = || {
        shown
            .services
            .iter()
            .filter(|service| service.limit.is_some())
    };
    let in_service_help = "Requests in service, by service";
    let in_service = limited().map(|service| (named(service), service.in_service.into()));
    gauges(out, "service_in_service", in_service_help, in_service)?;
    let limits_help = "Limit on the requests in service, by service";
    let limits = limited().map(|service| (named(service), service.limit.unwrap_or(0).into()));
    gauges(out, "service_limit", limits_help, limits)?;
    let hanging_help =
        "Requests in service that hang, by service: at most half of the limit leaves it";
    let hanging = limited().map(|service| (named(service), service.hanging.into()));
    gauges(out, "service_hanging", hanging_help, hanging)
}

fn tiers(out: &mut DescriptorEncoder, shown: &AdmissionSnapshot) -> Result<(), Error> {
    let tiers = |value: fn(&TierReading) -> f64| {
        shown
            .services
            .iter()
            .flat_map(move |service| rows(service, value))
    };
    let admitted_help = "Admitted requests, by service and tier";
    counters(
        out,
        "tier_admitted",
        admitted_help,
        tiers(|tier| tier.admitted as f64),
    )?;
    let rejected_help = "Rejected requests, by service and tier";
    counters(
        out,
        "tier_rejected",
        rejected_help,
        tiers(|tier| tier.rejected as f64),
    )?;
    let waited_help =
        "Admitted requests that had waited for a slot of the limit, by service and tier";
    counters(
        out,
        "tier_waited",
        waited_help,
        tiers(|tier| tier.waited as f64),
    )?;
    let wait_help = "Total time for which they had waited";
    counters(out, "tier_wait_seconds", wait_help, tiers(|tier| tier.wait))?;
    let tier_in_service_help = "Requests in service, by service and tier";
    gauges(
        out,
        "tier_in_service",
        tier_in_service_help,
        tiers(|tier| tier.in_service.into()),
    )?;
    let waiting_help = "Requests that wait for a slot of the limit, by service and tier";
    gauges(
        out,
        "tier_waiting",
        waiting_help,
        tiers(|tier| tier.waiting as f64),
    )
}

fn named(service: &ServiceReading) -> [(&'static str, &str); 1] {
    [("service", &*service.name)]
}

/// The value of each tier of a service.
fn rows(
    service: &ServiceReading,
    value: fn(&TierReading) -> f64,
) -> impl Iterator<Item = ([(&'static str, &str); 2], f64)> {
    service.tiers.iter().map(move |tier| {
        let labels = [("tier", tier.name.as_str()), ("service", &*service.name)];
        (labels, value(tier))
    })
}
