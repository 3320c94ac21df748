//! Axes of time of the charts of a run's page, and the parameters below the charts.

use posthaste_draw::{Axis, Series, Unit};
use posthaste_stats::has_long_tail;

use super::{PlanDescription, client_in_words, connections_in_words};

/// Parameters of the run, as notes below each chart. A chart copied from the page still names its run.
pub(super) fn parameters(plan: &PlanDescription) -> Vec<String> {
    let PlanDescription {
        connect_timeout,
        timeout,
        warm_up,
        threads,
        seed,
        version,
        ..
    } = plan;
    vec![
        format!(
            "{}: {}, {}{}.",
            short(&plan.target),
            plan.pace,
            connections_in_words(plan),
            short(&client_in_words(plan))
        ),
        format!(
            "Timeout {timeout} ({connect_timeout} to connect), warm-up {warm_up}, threads {threads}, seed {seed}, \
             posthaste {version}."
        ),
    ]
}

/// Cuts each word of a title that is longer than a line of a chart on a phone. A URL offers no place for a line break.
/// The page's title has the full text.
fn short(title: &str) -> String {
    const LONGEST: usize = 54;
    let cut = |word: &str| match word.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &word[..end]),
        None => word.to_owned(),
    };
    title.split(' ').map(cut).collect::<Vec<_>>().join(" ")
}

/// Axis of response times: logarithmic if the longest drawn value is more than
/// [`LONG_TAIL`](posthaste_stats::LONG_TAIL) times the median, otherwise linear.
///
/// `median` is the run's median for a chart of percentiles, otherwise the median of the drawn values.
pub(super) fn time_axis(label: &str, median: Option<f64>, series: &[Series]) -> Axis {
    if has_long_tail(median, drawn(series)) {
        Axis::log(label, Unit::Millis)
    } else {
        Axis::linear(label, Unit::Millis)
    }
}

pub(super) fn drawn(series: &[Series]) -> impl Iterator<Item = f64> + '_ {
    let points = series.iter().flat_map(|series| &series.points);
    points.map(|point| point.y)
}

#[cfg(test)]
mod tests {
    use posthaste_draw::{Point, Scale};
    use posthaste_stats::median;

    use super::*;

    fn plan(target: &str) -> PlanDescription {
        PlanDescription {
            target: target.to_owned(),
            pace: "open loop, constant arrivals, 50/s, 4s".to_owned(),
            protocol: "HTTP/1.1".to_owned(),
            multiplexing: None,
            quic: None,
            tls: None,
            connection: "keep-alive".to_owned(),
            connect_timeout: "500ms".to_owned(),
            timeout: "30s".to_owned(),
            warm_up: "0s".to_owned(),
            retries: None,
            decoding_slowdown: None,
            events: None,
            buying: None,
            threads: 1,
            seed: 7,
            version: "1.2.3".to_owned(),
        }
    }

    #[test]
    fn charts_carry_their_parameters() {
        assert_eq!(
            parameters(&plan("GET http://127.0.0.1:8080/")),
            [
                "GET http://127.0.0.1:8080/: open loop, constant arrivals, 50/s, 4s, keep-alive connections.",
                "Timeout 30s (500ms to connect), warm-up 0s, threads 1, seed 7, posthaste 1.2.3.",
            ]
        );
        let long = parameters(&plan(&format!("GET {} and 3 more", "ü".repeat(500))));
        let cut = format!("GET {}… and 3 more: open", "ü".repeat(54));
        assert!(long[0].starts_with(&cut), "{}", long[0]);
    }

    #[test]
    fn a_long_tail_makes_the_axis_logarithmic() {
        let points = [0.2, 1.0, 20.0].map(|ms| Point::new(ms, ms));
        let series = [Series::line("p99", points)];
        let scale = |median| time_axis("response time", median, &series).scale;
        assert_eq!(scale(Some(1.0)), Scale::Linear);
        assert_eq!(scale(Some(0.99)), Scale::Log);
        // No reply at all.
        assert_eq!(scale(None), Scale::Linear);
        assert_eq!(median(drawn(&series)), Some(1.0));
    }
}
