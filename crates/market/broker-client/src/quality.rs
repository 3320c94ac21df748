//! Measured quality of offers, as a gateway reports it.

use hyper::Method;
use serde::{Deserialize, Serialize};

use crate::client::{BrokerClient, JSON, encoded};
use crate::error::Error;

/// Maximum number of offers in a report.
pub const MAX_MEASURED: usize = 4096;

/// Measurements of the offers of one type by one gateway.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QualityReport {
    /// Length of the window in seconds.
    pub window: f64,
    /// The measured offers.
    pub offers: Vec<MeasuredOffer>,
}

/// Measurement of one class of offers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredOffer {
    /// Provider of the offers.
    pub provider: String,
    /// Name of the offers, without `@` and the price.
    pub name: String,
    /// Scheme, host and port of the service.
    pub endpoint: String,
    /// Requests in the window.
    pub requests: u32,
    /// Failed ones of them.
    pub failures: u32,
    /// Median of the response times in milliseconds; `None` if it is a failure.
    pub p50: Option<f64>,
    /// 99th percentile of the response times in milliseconds; `None` if it is a failure.
    pub p99: Option<f64>,
}

impl BrokerClient {
    /// Reports measurements of the offers of a type. Replaces the last report of this gateway for the type. The token
    /// must be that of the gateway's name.
    pub async fn report_quality(
        &self,
        kind: &str,
        gateway: &str,
        report: &QualityReport,
    ) -> Result<(), Error> {
        debug_assert!(
            report
                .offers
                .iter()
                .all(|offer| offer.failures <= offer.requests),
            "failures are among the requests"
        );
        let path = format!("/v1/measurements/{}/{}", encoded(kind), encoded(gateway));
        let body = serde_json::to_vec(report).expect("a report has texts and finite numbers");
        self.tell(Method::PUT, &path, JSON, body.into()).await
    }
}
