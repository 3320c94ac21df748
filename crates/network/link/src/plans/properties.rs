//! The properties of a link in words, for a table or for a sentence.

use std::fmt;

use posthaste_units::Ratio;

use crate::{Order, Plan};

/// Name of a property of a link, and its values up and down.
pub type Property = (&'static str, [String; 2]);

/// Value of a property that a direction does not have.
const NONE: &str = "-";
/// Name of the property that a pattern selects single packets.
const PATTERN: &str = "pattern";

/// The properties of a link in both directions. Those that no direction has are omitted.
pub fn properties([up, down]: [&Plan; 2]) -> Vec<Property> {
    let each = |describe: &dyn Fn(&Plan) -> Option<String>| {
        [up, down].map(|plan| describe(plan).unwrap_or_else(|| NONE.to_owned()))
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
        ("mtu", each(&|plan| text(plan.mtu))),
        (
            PATTERN,
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
    let is_there = |row: &Property| row.1.iter().any(|value| value != NONE);
    rows.into_iter().filter(is_there).collect()
}

/// The name of a profile as a property.
pub fn profile_property(name: &str) -> Property {
    ("profile", [name.to_owned(), name.to_owned()])
}

/// The properties as one sentence, with the options in `typed` behind them.
///
/// A value that both directions have is written once.
pub fn sentence(properties: &[Property], typed: &[String]) -> String {
    let named = properties.iter().filter(|(name, _)| *name != PATTERN);
    let parts = named.map(|(name, [up, down])| {
        if up == down {
            format!("{name} {up}")
        } else {
            format!("{name} {} up and {} down", or_none(up), or_none(down))
        }
    });
    let parts: Vec<String> = parts.chain(typed.iter().cloned()).collect();
    format!("Link: {}.", parts.join(", "))
}

fn or_none(value: &str) -> &str {
    match value {
        NONE => "none",
        value => value,
    }
}

#[cfg(test)]
mod tests {
    use posthaste_units::Span;

    use super::*;
    use crate::Loss;

    #[test]
    fn a_sentence_names_each_property_once() {
        let both = Plan {
            delay: Span::from_millis(10),
            bandwidth: "300kbit".parse().ok(),
            ..Plan::default()
        };
        let down = Plan {
            loss: "2%".parse::<Loss>().ok(),
            bandwidth: "1Mbit".parse().ok(),
            ..both.clone()
        };
        let one = sentence(&properties([&both, &both]), &[]);
        assert_eq!(one, "Link: bandwidth 300kbit, delay 10ms, queue 50.");
        let typed = ["drop down:8".to_owned()];
        let two = sentence(&properties([&both, &down]), &typed);
        assert_eq!(
            two,
            "Link: bandwidth 300kbit up and 1Mbit down, delay 10ms, loss none up and 2% down, queue 50, drop down:8."
        );
    }
}
