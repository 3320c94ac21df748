//! The section of a run's page about its course in time.

use posthaste_draw::{Axis, Block, Chart, Point, Section, Series, Shape, Unit};
use posthaste_load::Run;
use posthaste_stats::{Batch, Recorder, median};

use super::Report;
use super::charts::{drawn, parameters, time_axis};

/// A percentile of each batch.
struct QuantileCourse {
    points: Vec<Point>,
    /// Those among requests without a reply, at a lower bound. They are among the points, too.
    beyond: Vec<Point>,
}

impl QuantileCourse {
    /// A percentile among values without a known time is at least the longest time of the run.
    fn new(times: &Recorder, quantile: f64) -> Self {
        let longest = times.distribution().longest();
        let mut course = Self {
            points: Vec::new(),
            beyond: Vec::new(),
        };
        for batch in times.batches().filter(|batch| batch.count() > 0) {
            let known = batch.quantile(quantile);
            let y = known.unwrap_or(longest).as_millis_f64();
            let point = Point::new(batch.start.as_secs_f64(), y);
            if known.is_none() {
                course.beyond.push(point.clone());
            }
            course.points.push(point);
        }
        course
    }

    fn line(&self, name: &str) -> Series {
        Series::line(name, self.points.clone()).shape(Shape::Steps)
    }
}

/// Response times and outcomes over the run.
pub(super) fn course(report: &Report, run: &Run) -> Section {
    let [p99, p50] = [0.99, 0.5].map(|quantile| QuantileCourse::new(&run.response, quantile));
    let mut series = vec![p99.line("p99, all due"), p50.line("p50, all due")];
    let beyond = [p99, p50].map(|course| course.beyond).concat();
    if !beyond.is_empty() {
        series.push(Series::line("at least: no reply", beyond).shape(Shape::Points));
    }
    let x = Axis::linear("time since the start", Unit::Seconds);
    let y = time_axis("response time", median(drawn(&series)), &series);
    let mut chart = Chart::new("Response time in the course of the run", x, y);
    chart.series = series;
    chart.notes = parameters(&report.plan);
    let mut ends = ends(run);
    ends.notes = parameters(&report.plan);
    Section {
        blocks: vec![
            Block::Chart(Box::new(chart)),
            Block::Chart(Box::new(ends)),
            Block::Text(
                "By the time at which requests were due. A percentile that falls among requests without a reply is \
                 longer than any time that was waited. It is drawn and marked at the longest of them."
                    .to_owned(),
            ),
        ],
        ..Section::new("In the course of the run")
    }
}

/// Outcomes per second, on the same axis.
fn ends(run: &Run) -> Chart {
    let x = Axis::linear("time since the start", Unit::Seconds);
    let y = Axis::linear("requests due", Unit::PerSecond);
    let mut chart = Chart::new("Outcomes of the requests of each moment", x, y);
    let batches: Vec<Batch<'_>> = run.response.batches().collect();
    let good = |batch: &Batch<'_>| {
        let within = |ok: &Batch<'_>| (batch.start..batch.start + batch.width).contains(&ok.start);
        let good = run.ok.batches().filter(within);
        good.map(|batch| batch.count()).sum::<u64>()
    };
    let series = |name: &str, count: &dyn Fn(&Batch<'_>) -> u64| {
        let points = batches.iter().map(|batch| {
            // The last batch may extend beyond the run.
            let end = (batch.start + batch.width).min(run.duration.max(batch.start));
            let width = end.saturating_sub(batch.start).as_secs_f64();
            let seconds = if width > 0.0 {
                width
            } else {
                batch.width.as_secs_f64()
            };
            Point::new(batch.start.as_secs_f64(), count(batch) as f64 / seconds)
        });
        Series::line(name, points.collect::<Vec<_>>()).shape(Shape::Steps)
    };
    chart.series = vec![
        series("ok", &good),
        series("reply, not ok", &|batch| {
            batch.count() - batch.censored() - good(batch)
        }),
        series("no reply", &|batch| batch.censored()),
    ];
    chart
}

#[cfg(test)]
mod tests {
    use posthaste_units::Span;

    use super::*;

    #[test]
    fn a_percentile_among_the_unanswered_stays_on_the_page() {
        let mut times = Recorder::new();
        for n in 0..4_000 {
            let at = Span::from_millis(n);
            match n {
                0..2_000 => times.record(at, Span::from_millis(5)),
                _ if n % 10 > 0 => times.record(at, Span::from_millis(500)),
                _ => times.record_censored(at, (n % 20 == 0).then_some(Span::from_secs(2))),
            }
        }
        let [p99, p50] = [0.99, 0.5].map(|quantile| QuantileCourse::new(&times, quantile));
        assert!(p50.beyond.is_empty());
        let last = p99.points.last().unwrap();
        assert!((last.y - 2_000.0).abs() < 2.0 && last.x > 3.8, "{last:?}");
        assert_eq!(p99.points.len(), p50.points.len());
        let begin = p99.beyond[0].x;
        assert!((begin - 2.0).abs() < 0.1, "{begin}");
    }
}
