//! Measurements: taken from gateways, listed, and shown on the page.

use std::time::Instant;

use bytes::Bytes;
use hyper::StatusCode;
use hyper::http::request::Parts;
use posthaste_broker_client::QualityReport;
use posthaste_draw::{Block, Cell, Section, Table};
use posthaste_qos::bounds;
use posthaste_serve::{Incoming, Peer};
use serde::Serialize;

use super::BrokerHandler;
use super::body::{from_json, read};
use super::page::clipped;
use super::problem::ProblemDetails;
use super::reply::BrokerReply;
use crate::TokenRole;
use crate::measurements::{DatedReport, Measurements, ReportKey, fault};

/// Maximum number of measured offers on the page.
const SHOWN: usize = 100;

/// A report in the list.
#[derive(Serialize)]
struct ListedReport<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    gateway: &'a str,
    /// Seconds since the report.
    age: f64,
    #[serde(flatten)]
    report: &'a QualityReport,
}

impl BrokerHandler {
    /// Takes the measurements of a gateway for a type.
    pub(super) async fn put_measurements(
        &self,
        key: ReportKey,
        parts: &Parts,
        body: Incoming,
        peer: &Peer,
    ) -> Result<BrokerReply, ProblemDetails> {
        self.authenticate_gateway(parts, &key.gateway).await?;
        let body = read(parts, body, bounds::BYTES, peer).await?;
        let report = from_json::<QualityReport>(&body)?;
        if let Some(detail) = fault(&report) {
            return Err(ProblemDetails::senseless(detail));
        }
        let measurements = &self.context.measurements;
        let put = measurements.put(key, report, Instant::now());
        put.map_err(|_| ProblemDetails::later("too many gateways report measurements"))?;
        Ok(BrokerReply::json(Bytes::new()).with_status(StatusCode::NO_CONTENT))
    }

    /// Authenticates the gateway of this name.
    async fn authenticate_gateway(&self, parts: &Parts, name: &str) -> Result<(), ProblemDetails> {
        let grant = self.authenticate(parts, TokenRole::Gateway).await?;
        if grant.provider == name {
            Ok(())
        } else {
            let detail = format!(
                "this token belongs to {:?}, and the report to {name:?}",
                grant.provider
            );
            Err(ProblemDetails::new(StatusCode::FORBIDDEN, detail))
        }
    }

    /// Lists the valid reports, of one type or of all.
    pub(super) fn list_measurements(&self, parts: &Parts) -> BrokerReply {
        let query = parts.uri.query().unwrap_or_default();
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        let kind = pairs.find(|(key, _)| key == "type").map(|(_, value)| value);
        let now = Instant::now();
        let reports = self.context.measurements.reports(kind.as_deref(), now);
        let listed = reports.iter().map(|(key, dated)| ListedReport {
            kind: &key.kind,
            gateway: &key.gateway,
            age: now.saturating_duration_since(dated.at).as_secs_f64(),
            report: &dated.report,
        });
        let listed: Vec<_> = listed.collect();
        BrokerReply::serialized(&serde_json::json!({ "measurements": listed }))
    }
}

/// Renders the measurements. `None` without any.
pub(super) fn section(measurements: &Measurements, now: Instant) -> Option<Section> {
    let reports = measurements.reports(None, now);
    if reports.is_empty() {
        return None;
    }
    let mut section = Section::new("Measured by gateways");
    let text = "Statements of gateways about the offers that they use, next to what is promised. A p99 of \"failure\" \
        means that more than one request in a hundred failed.";
    section.blocks.push(Block::Text(text.to_owned()));
    let mut table = Table::new([
        "Type",
        "Offer",
        "Provider",
        "Measured by",
        "Requests",
        "Failed",
        "p50",
        "p99",
        "Age",
    ]);
    table.rows = reports
        .iter()
        .flat_map(|(key, dated)| rows(key, dated, now))
        .take(SHOWN)
        .collect();
    section.blocks.push(Block::Table(table));
    let all = "/v1/measurements".to_owned();
    section
        .blocks
        .push(Block::Links(vec![(format!("GET {all}"), all)]));
    Some(section)
}

fn rows<'a>(
    key: &'a ReportKey,
    dated: &'a DatedReport,
    now: Instant,
) -> impl Iterator<Item = Vec<Cell>> + 'a {
    let age = now.saturating_duration_since(dated.at).as_secs();
    let time = |time: Option<f64>| match time {
        Some(time) => format!("{time:.1} ms"),
        None => "failure".to_owned(),
    };
    dated.report.offers.iter().map(move |offer| {
        vec![
            Cell::text(clipped(&key.kind)),
            Cell::text(clipped(&offer.name)),
            Cell::text(clipped(&offer.provider)),
            Cell::text(clipped(&key.gateway)),
            Cell::number(offer.requests.to_string()),
            Cell::number(offer.failures.to_string()),
            Cell::number(time(offer.p50)),
            Cell::number(time(offer.p99)),
            Cell::number(format!("{age} s")),
        ]
    })
}
