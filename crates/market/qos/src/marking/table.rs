//! Rules that map priorities to a mark: the first matching rule decides.
//!
//! A priority is a number from 0 (most important) to 10. A rule matches if each priority that it names is stated and
//! within the rule's range. Without a match, the reply gets the default mark.

use std::fmt;
use std::str::FromStr;

use posthaste_units::Dscp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::{Custom, Priorities, Priority};

/// Rules in their order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Table(Vec<Rule>);

/// Ranges of priorities and the resulting mark. A rule matches if every priority that it names was stated and lies in
/// its range.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "rule")]
pub struct Rule {
    /// Range of the priority of a short delay.
    pub delay: Option<Range>,
    /// Range of the priority of a small variation of the delay.
    pub jitter: Option<Range>,
    /// Range of the priority of a high throughput.
    pub throughput: Option<Range>,
    /// Range of the priority of a low packet loss.
    pub packet_loss: Option<Range>,
    /// Range of a priority that an ontology defines.
    pub custom: Option<Custom<Range>>,
    /// Mark of the packets of such a reply.
    pub mark: Dscp,
}

/// Range of priorities, both ends included: `0..2`, or `5` alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range(Priority, Priority);

/// Not a range of priorities.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0:?} is not a range of priorities: write two whole numbers from 0 to 10 as 0..2, or one")]
pub struct UnknownRange(String);

impl Table {
    /// The mark for the stated priorities.
    pub fn mark(&self, stated: &Priorities) -> Dscp {
        let rule = self.0.iter().find(|rule| rule.holds(stated));
        rule.map_or(Dscp::DEFAULT, |rule| rule.mark)
    }

    /// The rules in order.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.0.iter()
    }
}

impl Default for Table {
    /// Rules after the service classes of RFC 4594:
    ///
    /// - Least delay and jitter: telephony, EF (section 4.1).
    /// - Little delay: low-latency data, AF2 (section 4.7).
    /// - High throughput or little loss: high-throughput data, AF1 (section 4.8). AF11 is the thesis's 0x0A.
    /// - A lower priority within these classes: a higher drop precedence (RFC 2597).
    /// - Neither delay nor throughput important: background work, LE (RFC 8622).
    fn default() -> Self {
        let rule = |mark| Rule {
            delay: None,
            jitter: None,
            throughput: None,
            packet_loss: None,
            custom: None,
            mark,
        };
        let range = |from, to| Some(Range(Priority::new(from)?, Priority::new(to)?));
        let (most, some, least) = (range(0, 2), range(3, 5), range(9, 10));
        Self(vec![
            Rule {
                delay: most,
                jitter: most,
                ..rule(Dscp::EF)
            },
            Rule {
                delay: most,
                ..rule(Dscp::AF21)
            },
            Rule {
                throughput: most,
                ..rule(Dscp::AF11)
            },
            Rule {
                packet_loss: most,
                ..rule(Dscp::AF11)
            },
            Rule {
                delay: some,
                ..rule(Dscp::AF22)
            },
            Rule {
                throughput: some,
                ..rule(Dscp::AF12)
            },
            Rule {
                packet_loss: some,
                ..rule(Dscp::AF12)
            },
            Rule {
                delay: least,
                throughput: least,
                ..rule(Dscp::LE)
            },
        ])
    }
}

impl Rule {
    fn holds(&self, stated: &Priorities) -> bool {
        let pairs = [
            (self.delay, stated.delay),
            (self.jitter, stated.jitter),
            (self.throughput, stated.throughput),
            (self.packet_loss, stated.packet_loss),
        ];
        let within = |range: Option<Range>, priority: Option<Priority>| {
            range.is_none_or(|range| priority.is_some_and(|priority| range.contains(priority)))
        };
        let custom = self.custom.as_ref().is_none_or(|wanted| {
            let mut stated = stated.custom.iter();
            stated.any(|custom| {
                custom.name == wanted.name
                    && custom.ontology == wanted.ontology
                    && wanted.value.contains(custom.value)
            })
        });
        custom
            && pairs
                .into_iter()
                .all(|(range, priority)| within(range, priority))
    }
}

impl Range {
    fn contains(self, priority: Priority) -> bool {
        (self.0..=self.1).contains(&priority)
    }
}

impl FromStr for Range {
    type Err = UnknownRange;

    fn from_str(text: &str) -> Result<Self, UnknownRange> {
        let priority = |text: &str| Priority::new(text.trim().parse().ok()?);
        let (from, to) = text.split_once("..").unwrap_or((text, text));
        let ends = priority(from).zip(priority(to));
        let ends = ends.filter(|(from, to)| from <= to);
        ends.map(|(from, to)| Self(from, to))
            .ok_or_else(|| UnknownRange(text.to_owned()))
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.0.get(), self.1.get())
    }
}

impl JsonSchema for Range {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "priorities".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "Range of priorities from 0 (most important) to 10, both ends included: 0..2, or 5.",
            "pattern": r"^\s*([0-9]|10)\s*(\.\.\s*([0-9]|10)\s*)?$",
        })
    }
}

impl Serialize for Range {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Range {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Priorities of delay, jitter, throughput and packet loss.
    fn stated(values: [Option<u8>; 4]) -> Priorities {
        let [delay, jitter, throughput, packet_loss] =
            values.map(|value| Priority::new(value.unwrap_or(u8::MAX)));
        Priorities {
            delay,
            jitter,
            throughput,
            packet_loss,
            custom: Vec::new(),
        }
    }

    #[test]
    fn the_default_rules_hold_in_their_order() {
        let table = Table::default();
        for (values, mark) in [
            ([Some(0), Some(2), Some(0), Some(0)], Dscp::EF),
            ([Some(2), None, Some(0), None], Dscp::AF21),
            ([Some(2), Some(3), None, None], Dscp::AF21),
            ([Some(3), Some(0), Some(2), None], Dscp::AF11),
            ([None, None, Some(5), Some(1)], Dscp::AF11),
            ([Some(5), None, Some(3), None], Dscp::AF22),
            ([None, None, Some(5), None], Dscp::AF12),
            ([Some(6), None, None, Some(4)], Dscp::AF12),
            ([Some(9), None, Some(10), None], Dscp::LE),
            ([Some(10), None, None, Some(10)], Dscp::DEFAULT),
            ([Some(6), Some(0), Some(6), Some(6)], Dscp::DEFAULT),
            ([None; 4], Dscp::DEFAULT),
        ] {
            assert_eq!(table.mark(&stated(values)), mark, "{values:?}");
        }
    }

    #[test]
    fn rules_are_read_and_a_custom_priority_is_known_by_both_names() {
        let text = r#"[{"custom": {"name": "colour", "ontology": "urn:o", "value": "0..4"}, "jitter": "5", "mark": "cs4"}]"#;
        let table: Table = serde_json::from_str(text).unwrap();
        let mut priorities = stated([None, Some(5), None, None]);
        assert_eq!(table.mark(&priorities), Dscp::DEFAULT);
        priorities.custom.push(Custom {
            name: "colour".to_owned(),
            ontology: "urn:o".to_owned(),
            value: Priority::new(4).unwrap(),
        });
        assert_eq!(table.mark(&priorities), Dscp::CS4);
        priorities.custom[0].ontology.push('x');
        assert_eq!(table.mark(&priorities), Dscp::DEFAULT);
        for range in ["", "2..0", "0..11", "a", "1..2..3", "0.."] {
            let error = range.parse::<Range>().unwrap_err().to_string();
            assert!(error.contains("0 to 10"), "{error}");
        }
    }
}
