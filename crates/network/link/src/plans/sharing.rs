//! Sharing of links between connections, and the one rule that decides it.
//!
//! An access line is one link for all connections of its subscriber. A pattern that counts packets describes a single
//! connection, so that each connection follows it from its own first packet.

use thiserror::Error;

use crate::Plan;

/// Sharing of links between connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sharing {
    /// Each connection has its own links, with their own positions and randomness.
    #[default]
    PerConnection,
    /// All connections share one link in each direction.
    Whole,
}

/// Separate links for each connection contradict the plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "classes divide the bandwidth of one link between connections: leave out the classes, or the links per connection"
)]
pub struct SharingError;

impl Sharing {
    /// Sharing of links with these plans, up and down. The first that applies:
    ///
    /// 1. `requested`, if given;
    /// 2. one link for all connections, if a plan has classes;
    /// 3. a link for each connection, if a pattern counts packets;
    /// 4. one link for all connections.
    ///
    /// # Errors
    ///
    /// Links per connection are requested together with classes.
    pub fn resolve(requested: Option<Self>, plans: [&Plan; 2]) -> Result<Self, SharingError> {
        let has_classes = plans.iter().any(|plan| plan.classes.is_some());
        match requested {
            Some(Self::PerConnection) if has_classes => Err(SharingError),
            Some(sharing) => Ok(sharing),
            None if has_classes => Ok(Self::Whole),
            None if counts_packets(plans) => Ok(Self::PerConnection),
            None => Ok(Self::Whole),
        }
    }

    /// One clause for reports. Names a pattern that counts the packets of all connections together.
    pub fn describe(self, plans: [&Plan; 2]) -> &'static str {
        match self {
            Self::PerConnection => "each connection has its own link",
            Self::Whole if counts_packets(plans) => {
                "one link for all connections; the pattern counts the packets of all of them together"
            }
            Self::Whole => "one link for all connections",
        }
    }

    /// Name in options and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::PerConnection => "per-connection",
            Self::Whole => "shared",
        }
    }
}

/// True if the pattern of a plan has entries by position.
fn counts_packets(plans: [&Plan; 2]) -> bool {
    let mut scripts = plans.iter().filter_map(|plan| plan.script.as_ref());
    scripts.any(|script| script.counts_packets())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::pattern::Pattern;
    use crate::{Classes, Direction};

    fn patterned(line: &str) -> Plan {
        let text = format!("posthaste pattern 1\n{line}\nend\n");
        let pattern = Pattern::parse(&text).unwrap();
        Plan {
            script: Some(pattern.script(Direction::Down).clone()),
            ..Plan::default()
        }
    }

    #[test]
    fn the_option_decides_then_classes_then_the_pattern() {
        let plain = Plan::default();
        let (by_packet, by_time) = (patterned("down drop 8"), patterned("down drop 8ms"));
        let classes = Plan {
            classes: Some(Arc::new(Classes::new(Vec::new()))),
            ..by_packet.clone()
        };
        let (each, whole) = (Sharing::PerConnection, Sharing::Whole);
        for (requested, plan, expected) in [
            (None, &plain, Ok(whole)),
            (None, &by_packet, Ok(each)),
            (None, &by_time, Ok(whole)),
            (None, &classes, Ok(whole)),
            (Some(whole), &by_packet, Ok(whole)),
            (Some(each), &plain, Ok(each)),
            (Some(each), &by_time, Ok(each)),
            (Some(whole), &classes, Ok(whole)),
            (Some(each), &classes, Err(SharingError)),
        ] {
            for plans in [[plan, &plain], [&plain, plan]] {
                assert_eq!(
                    Sharing::resolve(requested, plans),
                    expected,
                    "{requested:?} {plan:?}"
                );
            }
        }
        let together = whole.describe([&plain, &by_packet]);
        assert!(together.contains("of all of them together"), "{together}");
        assert_eq!(
            whole.describe([&plain, &by_time]),
            "one link for all connections"
        );
    }
}
