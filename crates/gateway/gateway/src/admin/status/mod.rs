//! The status page: load, the last fifteen minutes, compression decisions with reasons, bytes saved, and upstreams.
//! Upstreams and the last fifteen minutes also as JSON for programs.

mod headline;
mod offers;
mod promises;
mod recent;
mod upstreams;

use std::sync::atomic::Ordering::Relaxed;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use posthaste_compression::{LoadEstimate, REASONS, STEPS, Step, Wish};
use posthaste_units::{Size, Span};
use serde::Serialize;

use self::headline::{ProtectionFacts, SlotUse};
use self::offers::OffersStatus;
use self::recent::RecentDocument;
use self::upstreams::AddressStatus;
use super::history::History;
use super::reading::Reading;
use crate::admission::ServiceReading;
use crate::context::GatewayContext;
use crate::upstream::health::UpstreamState;

/// Time of the rejections in the first sentence.
const RECENT: Span = Span::from_secs(10);

/// The document at `/status.json`.
#[derive(Serialize)]
struct StatusDocument<'a> {
    upstreams: Vec<UpstreamStatus<'a>>,
    offers: Vec<OffersStatus<'a>>,
    #[serde(flatten)]
    recent: RecentDocument,
}

/// An upstream in the document.
#[derive(Serialize)]
struct UpstreamStatus<'a> {
    route: &'a str,
    upstream: &'a str,
    state: UpstreamState,
    addresses: Vec<AddressStatus>,
}

/// Returns the state of each upstream of each route and of its addresses, and the last fifteen minutes, as JSON.
pub(crate) fn json(context: &GatewayContext, history: &History) -> String {
    let resolved = context.resolved();
    let upstreams = resolved.routes().flat_map(|route| {
        route.targets.iter().map(move |target| UpstreamStatus {
            route: route.label,
            upstream: &target.name,
            state: target.state(),
            addresses: AddressStatus::all(target),
        })
    });
    let document = StatusDocument {
        upstreams: upstreams.collect(),
        offers: OffersStatus::all(&resolved),
        recent: RecentDocument::new(history, &Reading::take(context)),
    };
    serde_json::to_string(&document).expect("strings and names of states are JSON") + "\n"
}

/// Renders the page at `/status`.
pub(crate) fn page(context: &GatewayContext, history: &History) -> String {
    let resolved = context.resolved();
    let estimate = context.estimate();
    let compression = &resolved.config.compression;
    let busy = f64::from(estimate.busy) * 100.0;
    let demand = demand(&estimate);
    let now = Reading::take(context);
    let protection = protection(context, history, &now);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="refresh" content="5";
                title { "posthaste gateway" }
                style { (PreEscaped(posthaste_draw::chart_style())) (PreEscaped(include_str!("status.css"))) }
            }
            body {
                h1 { "posthaste gateway" }
                p.lead.rejecting[protection.is_rejecting()] { (protection.sentence()) }
                p {
                    "Busy " meter min="0" max="100" high=(compression.threshold.get() * 100.0) value=(format!("{busy:.1}")) {}
                    (format!(" {busy:.0} %. Demand is {demand}. "))
                    "Policy " b { (compression.policy) }
                    @if compression.dry_run { " (dry run: nothing is compressed)" }
                    ", threshold " (compression.threshold) ". "
                    (saved(context))
                }
                p {
                    "Up for " (format!("{:.0}", context.start.elapsed().as_secs_f64())) " s, "
                    (context.counters.snapshot().open) " connections open, "
                    (context.counters.snapshot().in_service) " requests in service. "
                    a href="/metrics" { "Metrics" }
                }
                (recent::section(history, &now))
                (tunnels(context))
                (admission(context))
                (promises::tables(&context.admission))
                h2 { "Upstreams" }
                (upstreams::table(&resolved))
                (offers::tables(&resolved))
                h2 { "Decisions" }
                (decisions(context))
                h2 { "Compression" }
                (steps(context))
                h2 { "Replies and connections" }
                table {
                    tr { th { "What" } th.n { "Count" } }
                    @for (index, counter) in context.metrics.replies.iter().enumerate() {
                        @if counter.load(Relaxed) > 0 {
                            tr { td { "replies with status " (index + 100) } td.n { (counter.load(Relaxed)) } }
                        }
                    }
                    @for (event, count) in context.counters.snapshot().events() {
                        @if count > 0 { tr { td { "connections " (event) } td.n { (count) } } }
                    }
                    @if let Some(log) = &context.log {
                        tr { td { "lines missing in the access log" } td.n { (log.lost()) } }
                    }
                }
            }
        }
    };
    page.into_string()
}

/// Facts about protection in the last seconds.
fn protection(context: &GatewayContext, history: &History, now: &Reading) -> ProtectionFacts {
    let shown = context.admission.snapshot();
    ProtectionFacts {
        is_active: shown.is_active,
        is_dry: shown.is_dry,
        slots: fullest(&shown.services),
        rejections: history.rejections(now, RECENT),
    }
}

/// Use of the slots of the service that has fewest left.
fn fullest(services: &[ServiceReading]) -> Option<SlotUse> {
    let limited = || {
        services
            .iter()
            .filter_map(|service| Some((service, service.limit?)))
    };
    let left = |(service, limit): &(&ServiceReading, u32)| limit.saturating_sub(service.in_service);
    let (service, limit) = limited().min_by_key(left)?;
    let is_one_of_many = limited().nth(1).is_some();
    Some(SlotUse {
        used: service.in_service,
        limit,
        service: is_one_of_many.then(|| service.name.to_string()),
    })
}

/// Renders one line about tunnels. Empty before the first.
fn tunnels(context: &GatewayContext) -> Markup {
    let tunnels = &context.metrics.tunnels;
    let (to_upstream, to_client) = tunnels.bytes();
    html! {
        @if tunnels.opened() > 0 {
            p {
                (tunnels.open()) " of " (tunnels.opened()) " tunnels open. "
                (Size::from_bytes(to_upstream)) " to upstreams, "
                (Size::from_bytes(to_client)) " to clients."
            }
        }
    }
}

const fn demand(estimate: &LoadEstimate) -> &'static str {
    match (estimate.is_known, estimate.is_high) {
        (false, _) => "not known",
        (true, true) => "high",
        (true, false) => "low",
    }
}

/// Renders the admission counters. Empty without a policy.
fn admission(context: &GatewayContext) -> Markup {
    let shown = context.admission.snapshot();
    let counts = context.admission.counters();
    let rejected: Vec<_> = counts.by_reason().filter(|(_, count)| *count > 0).collect();
    html! {
        @if shown.is_active {
            h2 { "Protection" }
            @if shown.is_dry {
                p { b { "Dry run:" } " every request is admitted; those that would be rejected are counted." }
            }
            p {
                (shown.in_service) " requests in service."
                @if let Some(price) = &shown.price {
                    " A request costs " b { (price.text) } " (" (price.offer) "). "
                    (format!("{:.1}", price.quoted)) " requests per second are promised by quotes."
                }
            }
            (services(&shown.services))
            @for service in &shown.services { (tiers(service)) }
            table {
                tr { th { "Requests" } th.n { "Count" } }
                @for (ground, count) in counts.by_ground().filter(|(_, count)| *count > 0) {
                    tr { td { "admitted: " (ground) } td.n { (count) } }
                }
                @for (reason, count) in rejected { tr { td { "rejected: " (reason) } td.n { (count) } } }
                @for (reason, count) in counts.by_dry_reason().filter(|(_, count)| *count > 0) {
                    tr { td { "would be rejected: " (reason) } td.n { (count) } }
                }
            }
        }
    }
}

/// Renders the services with a limit.
fn services(services: &[ServiceReading]) -> Markup {
    let limited = || services.iter().filter(|service| service.limit.is_some());
    html! {
        @if limited().next().is_some() {
            table {
                tr { th { "Service" } th.n { "In service" } th.n { "Limit" } th.n { "Hanging" } }
                @for service in limited() {
                    tr {
                        td { (service.name) } td.n { (service.in_service) }
                        td.n { (service.limit.unwrap_or_default()) } td.n { (service.hanging) }
                    }
                }
            }
        }
    }
}

/// Renders the tiers of a service. Empty without tiers.
fn tiers(service: &ServiceReading) -> Markup {
    let tiers = &service.tiers;
    html! {
        @if !tiers.is_empty() {
            p { "Tiers of " (service.name) ":" }
            table {
                tr {
                    th { "Tier" } th.n { "In service" } th.n { "Waiting" } th.n { "Admitted" }
                    th.n { "Rejected" }
                }
                @for tier in tiers {
                    tr {
                        td { (tier.name) } td.n { (tier.in_service) } td.n { (tier.waiting) }
                        td.n { (tier.admitted) } td.n { (tier.rejected) }
                    }
                }
            }
        }
    }
}

fn saved(context: &GatewayContext) -> String {
    let (mut read, mut written) = (0, 0);
    let metrics = &context.metrics.compression;
    for by in metrics.steps.iter().chain([&metrics.cached]) {
        read += by.read.load(Relaxed);
        written += by.written.load(Relaxed);
    }
    format!("Saved {}.", Size::from_bytes(read.saturating_sub(written)))
}

fn decisions(context: &GatewayContext) -> Markup {
    let decisions = &context.metrics.compression.decisions;
    let would = REASONS
        .iter()
        .zip(&context.metrics.compression.would_compress);
    let would = would.filter(|(_, count)| count.load(Relaxed) > 0);
    html! {
        table {
            tr {
                th { "Reason" } th { "Reply" }
                @for wish in Wish::ALL { th.n { (wish) } }
            }
            @for reason in REASONS {
                @if decisions.iter().any(|by| by[reason.index()].load(Relaxed) > 0) {
                    tr {
                        td { (reason.name()) }
                        td { @if reason.compresses() { "compressed" } @else { "plain" } }
                        @for by in decisions { td.n { (by[reason.index()].load(Relaxed)) } }
                    }
                }
            }
        }
        @for (reason, count) in would {
            p { "Would be compressed, because " (reason.name()) ": " (count.load(Relaxed)) "." }
        }
    }
}

fn steps(context: &GatewayContext) -> Markup {
    let metrics = &context.metrics.compression;
    html! {
        table {
            tr { th { "Step" } th.n { "Replies" } th.n { "Smaller by" } th.n { "µs each" } }
            @for (name, by) in STEPS.map(Step::name).into_iter().zip(&metrics.steps).chain([("at hand", &metrics.cached)]) {
                @let replies = by.replies.load(Relaxed);
                @if replies > 0 {
                    @let (read, written) = (by.read.load(Relaxed) as f64, by.written.load(Relaxed) as f64);
                    tr {
                        td { (name) }
                        td.n { (replies) }
                        td.n { (format!("{:.0} %", (1.0 - written / read.max(1.0)) * 100.0)) }
                        td.n { (format!("{:.1}", by.nanos.load(Relaxed) as f64 / 1e3 / replies as f64)) }
                    }
                }
            }
        }
    }
}
