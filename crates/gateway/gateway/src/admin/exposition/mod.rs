//! The counters in OpenMetrics text, for Prometheus.

mod accounts;
mod endpoints;
mod offers;
mod promises;
mod tiers;

use std::fmt::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use posthaste_compression::{LoadEstimate, Origin, REASONS, STEPS, ScanResult, Wish};
use posthaste_qos::marking::MarkOrigin;
use posthaste_serve::Snapshot;
use posthaste_serve::exposition::{self, counters, gauge, gauges, histogram, histograms};
use posthaste_units::Dscp;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;

use crate::admission::Admission;
use crate::context::GatewayContext;
use crate::record::metrics::{FAILURES, GatewayMetrics, StepCounters, UNREAD, VERSIONS};
use crate::record::times::{CLASSES, RouteTimes, TimeHistogram};
use crate::record::traces::TraceCounters;

/// Returns all counters and gauges.
pub(crate) fn text(context: &Arc<GatewayContext>) -> String {
    exposition::text("posthaste_gateway", context.clone())
}

impl Collector for GatewayContext {
    fn encode(&self, mut out: DescriptorEncoder) -> Result<(), Error> {
        let (out, metrics) = (&mut out, &self.metrics);
        replies(out, metrics)?;
        decisions(out, metrics)?;
        compression(out, metrics)?;
        marks(out, metrics, &self.counters.snapshot())?;
        upstreams(out, self)?;
        connections(out, &self.counters.snapshot())?;
        let redirected = [([], load(&metrics.redirected))];
        let redirected_help = "Requests over plain HTTP redirected to HTTPS";
        counters(out, "redirected", redirected_help, redirected)?;
        metrics.tunnels.encode(out)?;
        demand(out, self.estimate())?;
        admission(out, &self.admission)?;
        if self.resolved().config.accounts.is_some() {
            accounts::encode(out, &self.accounts)?;
        }
        if let Some(log) = &self.log {
            let lost = std::iter::once(([], log.lost() as f64));
            counters(
                out,
                "log_lines_lost",
                "Lines missing in the access log",
                lost,
            )?;
        }
        if let Some(traces) = &self.traces {
            let TraceCounters { exported, lost } = &*traces.counters;
            let rows = [("exported", exported), ("lost", lost)];
            let rows = rows.map(|(state, count)| ([("state", state)], load(count)));
            let help = "Requests traced, by whether the collector has their spans";
            counters(out, "traces", help, rows)?;
        }
        let service_help = "From a request's head to its reply's";
        times(out, "service_seconds", service_help, &metrics.service)?;
        let upstream_help = "From asking an upstream to the head of its reply";
        times(out, "upstream_seconds", upstream_help, &metrics.upstream)?;
        routes(out, self)?;
        offers::encode(out, &self.resolved())
    }
}

fn replies(out: &mut DescriptorEncoder, metrics: &GatewayMetrics) -> Result<(), Error> {
    let statuses = metrics.replies.iter().enumerate();
    let seen: Vec<_> = statuses
        .map(|(index, count)| ((index + 100).to_string(), load(count)))
        .filter(|(_, count)| *count > 0.0)
        .collect();
    let rows = seen.iter().map(|(status, n)| ([("status", &**status)], *n));
    counters(out, "replies", "Replies, by status", rows)?;
    let cancelled = [([], load(&metrics.ends.cancelled))];
    let unreadable = VERSIONS.iter().zip(&metrics.unreadable);
    let rows = unreadable.map(|(version, n)| ([("version", *version)], load(n)));
    let help = "Requests that cannot be read: too large, invalid or malformed";
    counters(out, "unreadable", help, rows)?;
    let help = "Requests without a reply: the client left, or its connection was ended by a time limit or a drain";
    counters(out, "cancelled", help, cancelled)
}

fn decisions(out: &mut DescriptorEncoder, metrics: &GatewayMetrics) -> Result<(), Error> {
    let decisions = Wish::ALL.into_iter().flat_map(|wish| {
        let by_reason = REASONS
            .iter()
            .zip(&metrics.compression.decisions[wish as usize]);
        by_reason.map(move |(reason, count)| {
            let decision = if reason.compresses() {
                "compressed"
            } else {
                "plain"
            };
            let labels = [
                ("wish", wish.name()),
                ("decision", decision),
                ("reason", reason.name()),
            ];
            (labels, load(count))
        })
    });
    let decisions_help = "Replies, by the client's wish, what was decided, and why";
    counters(
        out,
        "decisions",
        decisions_help,
        decisions.filter(|(_, n)| *n > 0.0),
    )?;

    let by_reason = REASONS.iter().zip(&metrics.compression.would_compress);
    let dry_decisions = by_reason.map(|(reason, n)| ([("reason", reason.name())], load(n)));
    let dry_decisions_help = "Replies that a dry run left plain and would be compressed, by reason";
    counters(
        out,
        "would_compress",
        dry_decisions_help,
        dry_decisions.filter(|(_, n)| *n > 0.0),
    )?;

    let origins = Origin::ALL.iter().zip(&metrics.compression.origins);
    let wishes = origins.map(|(origin, n)| ([("origin", origin.name())], load(n)));
    counters(out, "wishes", "Wishes, by where they were stated", wishes)?;

    let unread = UNREAD.iter().zip(&metrics.unread);
    let unread_fields = unread.map(|(field, n)| ([("field", *field)], load(n)));
    let unread_help = "Fields in which something could not be read or believed";
    counters(out, "fields_unread", unread_help, unread_fields)?;

    let scans = ScanResult::NAMES.iter().zip(&metrics.scans);
    let scan_results = scans.map(|(name, n)| ([("outcome", *name)], load(n)));
    counters(
        out,
        "soap_scans",
        "SOAP headers read, by outcome",
        scan_results,
    )
}

fn compression(out: &mut DescriptorEncoder, metrics: &GatewayMetrics) -> Result<(), Error> {
    type Column = (&'static str, &'static str, fn(&StepCounters) -> f64);
    let columns: [Column; 4] = [
        ("packed", "Replies compressed", |by| load(&by.replies)),
        ("packed_bytes_read", "Bytes before compression", |by| {
            load(&by.read)
        }),
        ("packed_bytes_written", "Bytes after it", |by| {
            load(&by.written)
        }),
        ("packed_cpu_seconds", "Its processor time", |by| {
            load(&by.nanos) / 1e9
        }),
    ];
    for (name, help, value) in columns {
        let rows = STEPS
            .iter()
            .zip(&metrics.compression.steps)
            .map(|(step, by)| {
                let labels = [("coding", step.coding().token()), ("step", step.name())];
                (labels, value(by))
            });
        counters(out, name, help, rows)?;
    }
    let cached = &metrics.compression.cached;
    let help = "Replies whose compressed form was in the cache";
    counters(out, "cached", help, [([], load(&cached.replies))])?;
    let help = "Bytes that these were shorter by";
    let saved = load(&cached.read) - load(&cached.written);
    counters(out, "cached_bytes_saved", help, [([], saved)])
}

fn marks(
    out: &mut DescriptorEncoder,
    metrics: &GatewayMetrics,
    snapshot: &Snapshot,
) -> Result<(), Error> {
    let by_origin = MarkOrigin::ALL.iter().zip(&metrics.marks.replies);
    let seen: Vec<_> = by_origin
        .flat_map(|(origin, by_mark)| {
            let marks = (0..64).filter_map(Dscp::new).zip(by_mark);
            marks.map(move |(mark, count)| (mark.to_string(), origin.name(), load(count)))
        })
        .filter(|(_, _, count)| *count > 0.0)
        .collect();
    let rows = seen
        .iter()
        .map(|(mark, origin, n)| ([("mark", &**mark), ("origin", *origin)], *n));
    let help = "Replies, by the mark of their packets and its source";
    counters(out, "marks", help, rows)?;

    let own = [
        ("denied", metrics.marks.denied.load(Relaxed)),
        ("upstream-refused", metrics.marks.refused.load(Relaxed)),
    ];
    let events = snapshot.marks();
    let rows = events
        .iter()
        .chain(&own)
        .map(|(event, n)| ([("event", *event)], *n as f64));
    let help = "What happened to the marks of connections and replies";
    counters(out, "mark_events", help, rows)
}

fn upstreams(out: &mut DescriptorEncoder, context: &GatewayContext) -> Result<(), Error> {
    let help = "Requests that waited because enough were under way";
    let queued = load(&context.metrics.queued);
    counters(out, "queued", help, [([], queued)])?;

    let failures = FAILURES.iter().zip(&context.metrics.failures);
    let rows = failures.map(|(kind, n)| ([("kind", *kind)], load(n)));
    let help = "Replies that upstreams did not give, by kind";
    counters(out, "upstream_failures", help, rows)?;

    context.metrics.grpc.encode(out)?;
    let resolved = context.resolved();
    let rows = resolved.routes().flat_map(|route| {
        route.targets.iter().map(move |target| {
            let is_up = f64::from(u8::from(target.is_up()));
            let labels = [("route", route.label), ("upstream", &*target.name)];
            (labels, is_up)
        })
    });
    gauges(
        out,
        "upstream_up",
        "Whether requests go to an upstream: 0 while it is out",
        rows,
    )?;
    endpoints::encode(out, &resolved)?;
    endpoints::encode_counters(out, &context.metrics.upstreams)
}

fn connections(out: &mut DescriptorEncoder, snapshot: &Snapshot) -> Result<(), Error> {
    let events = snapshot.events();
    let rows = events
        .iter()
        .map(|(event, n)| ([("event", *event)], *n as f64));
    let help = "Connections of clients, by what became of them";
    counters(out, "connections", help, rows)?;
    gauge(
        out,
        "connections_open",
        "Connections of clients now",
        snapshot.open as f64,
    )?;
    let help = "Requests whose reply has not ended";
    gauge(out, "requests_in_service", help, snapshot.in_service as f64)
}

fn demand(out: &mut DescriptorEncoder, estimate: LoadEstimate) -> Result<(), Error> {
    let busy_help = "Busy share of what is protected, smoothed";
    gauge(out, "busy_ratio", busy_help, estimate.busy.into())?;
    let is_high = f64::from(u8::from(estimate.is_high));
    gauge(out, "demand_high", "Whether demand is high", is_high)?;
    let known_help = "Whether demand is known: nothing optional is compressed where it is not";
    let is_known = f64::from(u8::from(estimate.is_known));
    gauge(out, "demand_known", known_help, is_known)?;
    let allowance_help = "Processors that optional compression may take";
    gauge(
        out,
        "allowance_ratio",
        allowance_help,
        estimate.allowance.into(),
    )
}

fn admission(out: &mut DescriptorEncoder, admission: &Admission) -> Result<(), Error> {
    let counts = admission.counters();
    let ground_rows = |(label, count): (&'static str, u64)| ([("by", label)], count as f64);
    let entered_help = "Admitted requests, by ground";
    counters(
        out,
        "entered",
        entered_help,
        counts.by_ground().map(ground_rows),
    )?;
    let reason_rows = |(label, count): (&'static str, u64)| ([("reason", label)], count as f64);
    let reasons_help = "Rejected requests, by reason";
    counters(
        out,
        "turned_away",
        reasons_help,
        counts.by_reason().map(reason_rows),
    )?;
    let dry_reasons_help =
        "Requests that a dry run admitted and the policy would reject, by reason";
    counters(
        out,
        "would_turn_away",
        dry_reasons_help,
        counts.by_dry_reason().map(reason_rows),
    )?;
    let outcome_rows = |(label, count): (&'static str, u64)| ([("outcome", label)], count as f64);
    let published_help = "Publications of the offers at the broker, by outcome";
    counters(
        out,
        "offers_published",
        published_help,
        counts.publications().map(outcome_rows),
    )?;
    let shown = admission.snapshot();
    let in_service_help = "Admitted requests without a reply yet";
    gauge(out, "in_service", in_service_help, shown.in_service.into())?;
    tiers::encode(out, &shown)?;
    let Some(price) = shown.price else {
        return Ok(());
    };
    gauge(out, "price", "What a request costs now", price.amount)?;
    let quoted_help = "Requests per second promised by quotes that hold";
    gauge(out, "quoted_per_second", quoted_help, price.quoted)?;
    let turns = [([], price.turns as f64)];
    counters(out, "price_turns", "How often the price has turned", turns)?;
    promises::encode(out, admission)
}

fn load(counter: &AtomicU64) -> f64 {
    counter.load(Relaxed) as f64
}

/// Encodes the times by route and class of status. A class without a reply has no series.
fn routes(out: &mut DescriptorEncoder, context: &GatewayContext) -> Result<(), Error> {
    let resolved = context.resolved();
    let routes = resolved.routes().map(|route| &**route.times);
    let routes: Vec<&RouteTimes> = routes.chain([&context.metrics.unrouted]).collect();
    let rows = routes.iter().flat_map(|route| {
        let classes = CLASSES.into_iter().zip(&route.classes);
        let seen = classes.filter(|(_, times)| times.has_any());
        seen.map(|(class, times)| {
            let labels = [("route", &*route.name), ("class", class)];
            let (sum, buckets, beyond) = observations(times);
            (labels, sum, buckets, beyond)
        })
    });
    let help = "From a request's head to its reply's, by route and class of status";
    histograms(out, "route_seconds", help, rows)
}

fn times(
    out: &mut DescriptorEncoder,
    name: &str,
    help: &str,
    times: &TimeHistogram,
) -> Result<(), Error> {
    let (sum, buckets, beyond) = observations(times);
    histogram(out, name, help, sum, buckets, beyond)
}

/// Sum, buckets with their bounds, and the count beyond the last bound.
fn observations(times: &TimeHistogram) -> (f64, Vec<(f64, u64)>, u64) {
    let counts = times.buckets.iter().map(|bucket| bucket.load(Relaxed));
    let mut buckets: Vec<_> = (0..)
        .zip(counts)
        .map(|(n, count)| (2_f64.powi(n) / 1e6, count))
        .collect();
    // The last bucket has no upper bound.
    let (_, beyond) = buckets.pop().expect("a histogram has buckets");
    let sum = times.nanos.load(Relaxed) as f64 / 1e9;
    (sum, buckets, beyond)
}
