//! Shared parts of the pictures of adaptive offers: sections of the course of price and load.

use posthaste_draw::{Along, Axis, Chart, Mark, Point, Role, Series, Shape, Unit};
use posthaste_study::{Check, Plot, RecordRow, Records};

use super::adaptive::SCALE;

/// Differences of all these figures.
pub(super) const DIFFERS: &str = include_str!("adaptive_differs.md").trim_ascii();

/// One sample.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    pub(super) minute: f64,
    pub(super) price: f64,
    pub(super) load: f64,
}

/// The course between two of the thesis's minutes.
pub(super) fn course(records: &Records, from: f64, to: f64) -> Vec<Moment> {
    let moment = |row: RecordRow<'_>| Moment {
        minute: row.number("minute"),
        price: row.number("price"),
        load: row.number("load"),
    };
    let rows = records.table("course").rows().map(moment);
    rows.filter(|now| (from..=to).contains(&now.minute))
        .collect()
}

/// Price and load on one axis, because both lie between 0 and 1.
pub(super) fn plot(title: &str, course: &[Moment]) -> Vec<Plot> {
    let x = Axis::linear("minutes of the thesis", Unit::Count);
    let y = Axis::linear("price in EUR, and load as a share", Unit::Count).range(0.0, 1.1);
    let mut chart = Chart::new(title, x, y);
    let line = |name: &str, value: fn(&Moment) -> f64| {
        Series::line(
            name,
            course.iter().map(|now| Point::new(now.minute, value(now))),
        )
    };
    chart.series = vec![
        line("price", |now| now.price).shape(Shape::Steps),
        line("load, mean of 30 s", |now| now.load),
    ];
    chart.marks = [
        (0.8, "above 80 % the price rises"),
        (0.7, "below 70 % it falls"),
    ]
    .map(|(at, label)| Mark {
        along: Along::Y,
        at,
        label: label.to_owned(),
        role: Role::Paper,
    })
    .into();
    chart.notes = vec![format!("A second of ours is {SCALE:.0} of the thesis's.")];
    vec![Plot::Chart(chart)]
}

/// Checks that all requests are accounted for, that the price moved in steps, and that clients declined instead of
/// being rejected.
pub(super) fn accounted(records: &Records) -> Vec<Check> {
    let rows: Vec<RecordRow<'_>> = records.table("clients").rows().collect();
    let sum = |column: &str| rows.iter().map(|row| row.number(column)).sum::<f64>();
    let all = course(records, 0.0, f64::INFINITY);
    let steps = all
        .windows(2)
        .map(|pair| (pair[1].price - pair[0].price) * 10.0);
    let odd = steps
        .filter(|step| (step - step.round()).abs() > 1e-6)
        .count();
    let (intended, refused) = (sum("intended"), sum("status-error"));
    vec![
        Check::instrument(
            !rows.is_empty() && intended == sum("outcomes"),
            format!("Each of {intended:.0} intended requests has one outcome."),
        ),
        Check::instrument(
            all.len() > 20 && odd == 0 && all.iter().all(|now| now.price >= 0.0),
            format!(
                "The price moves in steps of 0.10 and is never below 0: {odd} other changes in {} looks.",
                all.len()
            ),
        ),
        Check::claim(
            refused <= 0.02 * intended,
            format!(
                "Clients decline themselves what is too expensive: {:.0} requests were not sent, {refused:.0} were refused because the price had just risen.",
                sum("declined")
            ),
        ),
    ]
}

/// Formats a minute of the thesis.
pub(super) fn clock(minute: f64) -> String {
    if !minute.is_finite() {
        return "never".to_owned();
    }
    let seconds = (minute * 60.0).round() as u64;
    format!("{}:{:02}", seconds / 60, seconds % 60)
}
