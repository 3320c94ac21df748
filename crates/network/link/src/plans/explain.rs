//! Tables of the plans of a link, and of all profiles.

use std::fmt::Write as _;

use crate::plans::profile::{PROFILES, Profile};
use crate::plans::properties::properties;
use crate::{Direction, Plan, Sharing};

/// Source of the queues of profiles.
const QUEUES: &str = "queue: by the source, or one bandwidth-delay product of the round trip and at least 50 packets (calc)";

/// Formats the plans of both directions as a table, after their profile, and the sharing of their links. Without a
/// profile, the table of all profiles follows.
pub fn explain(profile: Option<&Profile>, plans: &[Plan; 2], sharing: Sharing) -> String {
    let mut text = String::new();
    if let Some(profile) = profile {
        let Profile { about, source, .. } = profile;
        let _ = writeln!(text, "{}: {about}\nsource: {source}", profile.name);
        let _ = writeln!(text, "{QUEUES}\n");
    }
    let _ = writeln!(text, "{:14}{:>18}{:>18}", "", "up", "down");
    for (name, [up, down]) in properties(plans.each_ref()) {
        let _ = writeln!(text, "{name:14}{up:>18}{down:>18}");
    }
    let _ = writeln!(text, "\n{}", sharing.describe(plans.each_ref()));
    if profile.is_none() {
        text.push('\n');
        text += &profiles();
    }
    text
}

/// Formats rates, delays and queues of all profiles in both directions.
fn profiles() -> String {
    let mut text = format!(
        "{:18}{:>12}{:>12}{:>10}{:>10}{:>10}{:>7}\n",
        "profile", "up", "down", "delay up", "down", "queue up", "down"
    );
    for profile in PROFILES {
        let Profile { name, up, down, .. } = profile;
        let [rate_up, rate_down] = [up, down].map(|way| {
            let rate = way.bandwidth();
            rate.map_or_else(|| "unlimited".to_owned(), |rate| rate.to_string())
        });
        let [queue_up, queue_down] = Direction::BOTH.map(|direction| {
            let plan = profile.plan(direction);
            plan.bandwidth
                .map_or("-".to_owned(), |_| plan.queue.to_string())
        });
        let _ = writeln!(
            text,
            "{name:18}{rate_up:>12}{rate_down:>12}{:>10}{:>10}{queue_up:>10}{queue_down:>7}",
            up.delay.to_string(),
            down.delay.to_string()
        );
    }
    let _ = writeln!(text, "{QUEUES}");
    text
}
