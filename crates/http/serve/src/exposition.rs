//! Encoding of metrics as OpenMetrics text, for Prometheus.

use std::fmt::Error;

use hyper::HeaderMap;
use hyper::header::{ACCEPT, HeaderValue};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

/// The media type of [`text`].
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The media type of [`prometheus_text`].
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A label value for each label, and the value.
pub type Row<'a, const N: usize> = ([(&'static str, &'a str); N], f64);

/// Encodes all metrics of `collector`, with names that begin with `prefix`.
pub fn text(prefix: &str, collector: impl Collector) -> String {
    let mut registry = Registry::with_prefix(prefix);
    registry.register_collector(Box::new(collector));
    let mut text = String::with_capacity(16 << 10);
    // Writing to a string cannot fail.
    let _ = prometheus_client::encoding::text::encode(&mut text, &registry);
    text
}

/// Returns the media type and the form of [`text`] for a client with these fields: OpenMetrics if it accepts that,
/// otherwise the text format of Prometheus, which `promtool` reads.
pub fn negotiated(headers: &HeaderMap, text: String) -> (&'static str, String) {
    let mut accepted = headers.get_all(ACCEPT).iter();
    let is_open = |value: &HeaderValue| {
        let value = value.to_str().unwrap_or_default();
        value.contains("application/openmetrics-text")
    };
    if accepted.any(is_open) {
        (OPENMETRICS, text)
    } else {
        (PROMETHEUS, prometheus_text(&text))
    }
}

/// Converts OpenMetrics to the text format of Prometheus. There the family of a counter has the name of its samples, and
/// no line marks the end.
fn prometheus_text(text: &str) -> String {
    let mut plain = String::with_capacity(text.len() + 1024);
    let mut lines = text.lines().filter(|line| *line != "# EOF").peekable();
    while let Some(line) = lines.next() {
        let is_counter = |line: &str| line.starts_with("# TYPE ") && line.ends_with(" counter");
        let next = lines.peek().filter(|_| line.starts_with("# HELP "));
        if is_counter(line) || next.is_some_and(|next| is_counter(next)) {
            let mut parts = line.splitn(4, ' ').skip(1);
            let mut part = || parts.next().unwrap_or_default();
            plain += &format!("# {} {}_total {}\n", part(), part(), part());
        } else {
            plain += line;
            plain.push('\n');
        }
    }
    plain
}

/// Encodes a family of counters (values that only grow), one row for each combination of label values.
pub fn counters<'a, const N: usize>(
    out: &mut DescriptorEncoder,
    name: &str,
    help: &str,
    rows: impl IntoIterator<Item = Row<'a, N>>,
) -> Result<(), Error> {
    let mut family = out.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (labels, value) in rows {
        let mut row = family.encode_family(&labels)?;
        row.encode_counter::<NoLabelSet, f64, f64>(&value, None)?;
    }
    Ok(())
}

/// Encodes a family of gauges (values that rise and fall), one row for each combination of label values.
pub fn gauges<'a, const N: usize>(
    out: &mut DescriptorEncoder,
    name: &str,
    help: &str,
    rows: impl IntoIterator<Item = Row<'a, N>>,
) -> Result<(), Error> {
    let mut family = out.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (labels, value) in rows {
        family.encode_family(&labels)?.encode_gauge(&value)?;
    }
    Ok(())
}

/// Encodes a gauge without labels.
pub fn gauge(out: &mut DescriptorEncoder, name: &str, help: &str, value: f64) -> Result<(), Error> {
    out.encode_descriptor(name, help, None, MetricType::Gauge)?
        .encode_gauge(&value)
}

/// Encodes a histogram without labels. `buckets` has ascending bounds, each with the observations that no lower bound
/// covers. `beyond` counts those above the last bound.
///
/// Adds the bucket `le="+Inf"` with the count of all observations, because Prometheus computes no quantile without it.
pub fn histogram(
    out: &mut DescriptorEncoder,
    name: &str,
    help: &str,
    sum: f64,
    buckets: impl IntoIterator<Item = (f64, u64)>,
    beyond: u64,
) -> Result<(), Error> {
    let (all, buckets) = with_infinity(name, buckets, beyond);
    let mut metric = out.encode_descriptor(name, help, None, MetricType::Histogram)?;
    metric.encode_histogram::<NoLabelSet>(sum, all, &buckets, None)
}

/// Encodes a family of histograms: a label value for each label, the sum, the buckets, and the count beyond them, as in
/// [`histogram`].
pub fn histograms<'a, const N: usize>(
    out: &mut DescriptorEncoder,
    name: &str,
    help: &str,
    rows: impl IntoIterator<Item = ([(&'static str, &'a str); N], f64, Vec<(f64, u64)>, u64)>,
) -> Result<(), Error> {
    let mut family = out.encode_descriptor(name, help, None, MetricType::Histogram)?;
    for (labels, sum, buckets, beyond) in rows {
        let (all, buckets) = with_infinity(name, buckets, beyond);
        let mut row = family.encode_family(&labels)?;
        row.encode_histogram::<NoLabelSet>(sum, all, &buckets, None)?;
    }
    Ok(())
}

/// Returns the count of all observations, and the buckets with the one of `le="+Inf"`.
fn with_infinity(
    name: &str,
    buckets: impl IntoIterator<Item = (f64, u64)>,
    beyond: u64,
) -> (u64, Vec<(f64, u64)>) {
    let last = std::iter::once((f64::INFINITY, beyond));
    let buckets: Vec<_> = buckets.into_iter().chain(last).collect();
    debug_assert!(
        buckets.is_sorted_by(|(low, _), (high, _)| low < high),
        "bounds of {name} ascend and are finite"
    );
    let all = buckets.iter().map(|(_, count)| count).sum();
    (all, buckets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Replies;

    impl Collector for Replies {
        fn encode(&self, mut out: DescriptorEncoder) -> Result<(), Error> {
            let rows = [([("status", "200")], 4.0)];
            counters(&mut out, "replies", "Replies, by status", rows)?;
            gauge(&mut out, "open", "Connections open", 1.0)
        }
    }

    #[test]
    fn the_format_follows_the_client() {
        let mut headers = HeaderMap::new();
        let plain = "\
# HELP test_replies_total Replies, by status
# TYPE test_replies_total counter
test_replies_total{status=\"200\"} 4.0
# HELP test_open Connections open
# TYPE test_open gauge
test_open 1.0
";
        let found = negotiated(&headers, text("test", Replies));
        assert_eq!(found, (PROMETHEUS, plain.to_owned()));
        let accepted = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.3";
        headers.insert(ACCEPT, HeaderValue::from_static(accepted));
        let (kind, open) = negotiated(&headers, text("test", Replies));
        assert_eq!(kind, OPENMETRICS);
        assert!(open.contains("# TYPE test_replies counter\n") && open.ends_with("# EOF\n"));
    }

    #[derive(Debug)]
    struct WaitTimes;

    impl Collector for WaitTimes {
        fn encode(&self, mut out: DescriptorEncoder) -> Result<(), Error> {
            let buckets = [(0.5, 2), (1.0, 0)];
            histogram(&mut out, "wait_seconds", "Waits", 7.5, buckets, 3)
        }
    }

    #[test]
    fn a_histogram_ends_with_the_bucket_of_everything() {
        let expected = "\
# HELP test_wait_seconds Waits
# TYPE test_wait_seconds histogram
test_wait_seconds_sum 7.5
test_wait_seconds_count 5
test_wait_seconds_bucket{le=\"0.5\"} 2
test_wait_seconds_bucket{le=\"1.0\"} 2
test_wait_seconds_bucket{le=\"+Inf\"} 5
# EOF
";
        assert_eq!(text("test", WaitTimes), expected);
    }
}
