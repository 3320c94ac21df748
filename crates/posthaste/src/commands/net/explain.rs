//! `net --explain`: what the options and the profile add up to, without running anything.

use std::fmt::{self, Write as _};

use posthaste_link::profile::{PROFILES, Profile};
use posthaste_link::{Order, Plan};
use posthaste_units::Ratio;

/// The plans of both directions as a table, after the profile that they start from; without one, the table of all profiles
/// follows.
pub(super) fn explain(profile: Option<&Profile>, plans: &[Plan; 2]) -> String {
    let mut text = String::new();
    if let Some(profile) = profile {
        let Profile { about, source, .. } = profile;
        let _ = writeln!(text, "{}: {about}\nsource: {source}\n", profile.name);
    }
    let _ = writeln!(text, "{:14}{:>18}{:>18}", "", "up", "down");
    for (name, [up, down]) in rows(plans) {
        let _ = writeln!(text, "{name:14}{up:>18}{down:>18}");
    }
    if profile.is_none() {
        text.push('\n');
        text += &profiles();
    }
    text
}

/// A property of a link in both directions. Those that no direction has are omitted.
fn rows(plans: &[Plan; 2]) -> Vec<(&'static str, [String; 2])> {
    let none = || "-".to_owned();
    let each = |of: &dyn Fn(&Plan) -> Option<String>| {
        let [up, down] = plans;
        [of(up).unwrap_or_else(none), of(down).unwrap_or_else(none)]
    };
    fn text(value: Option<impl fmt::Display>) -> Option<String> {
        value.map(|value| value.to_string())
    }
    let share = |ratio: Ratio| text((ratio != Ratio::default()).then_some(ratio));
    let unlimited = || Some("unlimited".to_owned());
    let rows = [
        (
            "bandwidth",
            each(&|plan| text(plan.bandwidth).or_else(unlimited)),
        ),
        ("delay", each(&|plan| text(Some(plan.delay)))),
        ("jitter", each(&|plan| text(plan.jitter))),
        ("loss", each(&|plan| text(plan.loss))),
        ("bit errors", each(&|plan| share(plan.bit_error_rate))),
        ("duplicates", each(&|plan| share(plan.duplication))),
        ("reordering", each(&|plan| text(plan.reordering))),
        (
            "queue",
            each(&|plan| text(plan.bandwidth.map(|_| plan.queue))),
        ),
        (
            "overhead",
            each(&|plan| text(Some(plan.overhead).filter(|bytes| *bytes > 0))),
        ),
        ("background", each(&|plan| text(plan.background))),
        (
            "pattern",
            each(&|plan| text(plan.script.as_ref().map(|_| "yes"))),
        ),
        (
            "classes",
            each(&|plan| text(plan.classes.as_ref().map(|classes| classes.list.len()))),
        ),
        (
            "order",
            each(&|plan| text((plan.order == Order::Netem).then_some("netem"))),
        ),
    ];
    let is_there = |row: &(&str, [String; 2])| row.1.iter().any(|value| *value != "-");
    rows.into_iter().filter(is_there).collect()
}

/// Every profile: rates and delays of both directions.
fn profiles() -> String {
    let mut text = format!(
        "{:14}{:>12}{:>12}{:>10}{:>10}\n",
        "profile", "up", "down", "delay up", "down"
    );
    for Profile { name, up, down, .. } in PROFILES {
        let [rate_up, rate_down] = [up, down].map(|way| {
            let rate = way.bandwidth();
            rate.map_or_else(|| "unlimited".to_owned(), |rate| rate.to_string())
        });
        let _ = writeln!(
            text,
            "{name:14}{rate_up:>12}{rate_down:>12}{:>10}{:>10}",
            up.delay.to_string(),
            down.delay.to_string()
        );
    }
    text
}
