//! Client for the gateway's `/metrics`.

use std::net::SocketAddr;
use std::time::Duration;

use posthaste_serve::client::{ClientLimits, HttpClient, request};

/// The gateway is in this process, so a slower answer means that the process is busy.
const LIMITS: ClientLimits = ClientLimits {
    step: Duration::MAX,
    total: Duration::from_millis(800),
    body: 1 << 20,
};

/// All series of one reply, by name with labels.
#[derive(Clone, Debug, Default)]
pub(crate) struct Metrics(Vec<(String, f64)>);

impl Metrics {
    /// Fetches the metrics from the admin address.
    pub(crate) async fn fetch(admin: SocketAddr) -> Option<Self> {
        let request = request("GET", "/metrics", [], "").ok()?;
        let reply = HttpClient::at(admin, LIMITS).fetch(request).await.ok()?;
        Some(Self::read(std::str::from_utf8(reply.body()).ok()?))
    }

    /// Parses the exposition format. Ignores lines that are not series.
    pub(crate) fn read(text: &str) -> Self {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let series = lines.filter_map(|line| {
            let (name, value) = line.rsplit_once(' ')?;
            let name = name.strip_prefix("posthaste_gateway_")?;
            Some((name.to_owned(), value.parse().ok()?))
        });
        Self(series.collect())
    }

    /// Value of a series without labels.
    pub(crate) fn value(&self, name: &str) -> Option<f64> {
        let found = self.0.iter().find(|(series, _)| series == name);
        found.map(|(_, value)| *value)
    }

    /// Sum of all series with this name and label, such as `decision="plain"`. An empty label matches all.
    pub(crate) fn sum(&self, name: &str, label: &str) -> f64 {
        let of_name = self.0.iter().filter(|(series, _)| {
            let labels = series.strip_prefix(name);
            labels.is_some_and(|labels| labels.starts_with('{') && labels.contains(label))
        });
        of_name.map(|(_, value)| value).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_found_by_name_and_label() {
        let metrics = Metrics::read(
            "# HELP posthaste_gateway_price What a request costs now.
posthaste_gateway_price 0.25
posthaste_gateway_decisions_total{wish=\"always\",decision=\"compressed\",reason=\"asked\"} 7.0
posthaste_gateway_decisions_total{wish=\"never\",decision=\"plain\",reason=\"refused\"} 3.0
posthaste_gateway_decisions_total_of_others{decision=\"plain\"} 100
bookshop_price 4
# EOF
",
        );
        assert_eq!(metrics.value("price"), Some(0.25));
        assert_eq!(metrics.value("pric"), None);
        assert_eq!(metrics.sum("decisions_total", ""), 10.0);
        assert_eq!(metrics.sum("decisions_total", "decision=\"plain\""), 3.0);
    }
}
