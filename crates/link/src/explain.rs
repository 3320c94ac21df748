//! Tables of the plans of a link, and of all profiles.

use std::fmt::Write as _;

use crate::Plan;
use crate::profile::{PROFILES, Profile};
use crate::properties::properties;

/// Formats the plans of both directions as a table, after their profile. Without a profile, the table of all profiles
/// follows.
pub fn explain(profile: Option<&Profile>, plans: &[Plan; 2]) -> String {
    let mut text = String::new();
    if let Some(profile) = profile {
        let Profile { about, source, .. } = profile;
        let _ = writeln!(text, "{}: {about}\nsource: {source}\n", profile.name);
    }
    let _ = writeln!(text, "{:14}{:>18}{:>18}", "", "up", "down");
    for (name, [up, down]) in properties(plans.each_ref()) {
        let _ = writeln!(text, "{name:14}{up:>18}{down:>18}");
    }
    if profile.is_none() {
        text.push('\n');
        text += &profiles();
    }
    text
}

/// Formats rates and delays of all profiles in both directions.
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
