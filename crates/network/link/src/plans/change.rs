//! Changes of a running link: the keys that can change, their values as text, and the plan that follows.
//!
//! A change is a line of `KEY=VALUE`, each for both directions or, after `up:` or `down:`, for one. Options, documents,
//! traces and [records](crate::record) have the same text. [`KEYS`] is the only list of keys: a new key is a row there.
//!
//! # Effect of a change at time T
//!
//! | part | effect |
//! |---|---|
//! | packets that arrive after T | get every new value. |
//! | packets in the queue | are sent at the new bandwidth and delay. None is dropped by the change, even beyond a smaller limit; a queue that drops from its head drops the excess at the next arrival. |
//! | the packet in transmission, packets on the line | keep their departure. |
//! | netem's order | packets in the link keep their departure, as after `tc qdisc change`. |
//! | a pattern | is not changed. Where it sets bandwidth, delay or loss, its values are in force. With delivery opportunities a bandwidth is refused. |
//! | random streams | continue. A kind of chance that was never in use begins its stream. A new loss model starts with the next draw of its stream. Loss and duplication draw for every packet from their first use on. |
//!
//! The departure of queued packets can only change if it was not decided on arrival: see
//! [`Plan::changeable`](crate::Plan::changeable).

use std::fmt;
use std::str::FromStr;

use posthaste_units::{Instant, Ratio, Span};
use thiserror::Error;

use crate::{Direction, Plan, PlanError};

/// A value that can change while a link runs.
pub struct ChangeKey {
    /// Name, as in the options.
    pub name: &'static str,
    /// A valid setting.
    pub example: &'static str,
    /// Sets the value in a plan from the given time on.
    set: fn(&mut Plan, &str, Instant) -> Result<(), String>,
    /// The value in a plan at a time.
    get: fn(&Plan, Instant) -> String,
}

/// All keys.
pub const KEYS: &[ChangeKey] = &[
    ChangeKey {
        name: "bandwidth",
        example: "bandwidth=1Mbit",
        set: |plan, text, _| set(&mut plan.bandwidth, optional(text, "unlimited")),
        get: |plan, _| text_or(plan.bandwidth, "unlimited"),
    },
    ChangeKey {
        name: "delay",
        example: "delay=50ms",
        set: |plan, text, _| set(&mut plan.delay, parsed(text)),
        get: |plan, _| plan.delay.to_string(),
    },
    ChangeKey {
        name: "jitter",
        example: "jitter=uniform:5ms",
        set: |plan, text, _| set(&mut plan.jitter, optional(text, "none")),
        get: |plan, _| text_or(plan.jitter, "none"),
    },
    ChangeKey {
        name: "loss",
        example: "loss=2%",
        set: |plan, text, _| set(&mut plan.loss, optional(text, "none")),
        get: |plan, _| text_or(plan.loss, "none"),
    },
    ChangeKey {
        name: "duplicate",
        example: "duplicate=1%",
        set: |plan, text, _| set(&mut plan.duplication, share(text)),
        get: |plan, _| plan.duplication.to_string(),
    },
    ChangeKey {
        name: "reorder",
        example: "reorder=25%",
        set: |plan, text, _| set(&mut plan.reordering, optional(text, "none")),
        get: |plan, _| text_or(plan.reordering, "none"),
    },
    ChangeKey {
        name: "queue",
        example: "queue=100",
        set: |plan, text, _| set(&mut plan.queue, parsed(text)),
        get: |plan, _| plan.queue.to_string(),
    },
    ChangeKey {
        name: "outage",
        example: "outage=3s",
        set: |plan, text, now| {
            let end = parsed(text).map(|length: Span| (length > Span::ZERO).then(|| now + length));
            set(&mut plan.outage_until, end)
        },
        get: |plan, now| {
            let left = plan.outage_until.map(|end| end.saturating_since(now));
            text_or(left.filter(|left| *left > Span::ZERO), "none")
        },
    },
];

/// New values of some keys, in one direction or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    settings: Vec<ChangeSetting>,
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ChangeSetting {
    /// `None` for both directions.
    direction: Option<Direction>,
    key: &'static ChangeKey,
    value: String,
}

/// A change that took effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppliedChange {
    /// Time of the change, on the clock of the packets.
    pub at: Instant,
    /// New values.
    pub change: Change,
}

/// Error in a change.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ChangeError {
    /// No setting at all.
    #[error("nothing to change: write KEY=VALUE, for example bandwidth=1Mbit loss=2%")]
    Empty,
    /// A word that is not a setting.
    #[error(
        "{text:?} is not a setting: write KEY=VALUE, for example bandwidth=1Mbit or up:loss=2%"
    )]
    NotASetting {
        /// The word.
        text: String,
    },
    /// A key that is unknown, or that cannot change in a running link.
    #[error(
        "{key:?} cannot be changed: the nearest key is {nearest}; the keys are {}",
        key_names()
    )]
    UnknownKey {
        /// The given key.
        key: String,
        /// The most similar one.
        nearest: &'static str,
    },
    /// Two values of a key in the same direction.
    #[error(
        "{key} is given twice: leave one out, or write up: before one and down: before the other"
    )]
    Twice {
        /// The key.
        key: &'static str,
    },
    /// A value that cannot be parsed.
    #[error("{key}: {reason}")]
    Value {
        /// The key.
        key: &'static str,
        /// The reason and the remedy.
        reason: String,
    },
    /// Another discipline of the queue.
    #[error(
        "{direction}: a running queue keeps its discipline: write it as in {present}, with other limits"
    )]
    Discipline {
        /// Direction of the link.
        direction: Direction,
        /// The present queue.
        present: String,
    },
    /// A bandwidth without effect.
    #[error(
        "{direction}: the delivery opportunities of the pattern set the bandwidth: leave out bandwidth="
    )]
    Opportunities {
        /// Direction of the link.
        direction: Direction,
    },
    /// A plan that is not possible.
    #[error("{direction}: {reason}")]
    Plan {
        /// Direction of the link.
        direction: Direction,
        /// The reason and the remedy.
        reason: PlanError,
    },
}

impl Change {
    /// The plan of a link in `direction` after this change at `now`. `None` if nothing changes in this direction.
    pub fn apply(&self, direction: Direction, plan: &Plan, now: Instant) -> Option<Plan> {
        let mut settings = self
            .settings
            .iter()
            .filter(|setting| setting.is_for(direction))
            .peekable();
        settings.peek()?;
        let mut plan = plan.clone();
        for ChangeSetting { key, value, .. } in settings {
            (key.set)(&mut plan, value, now).expect("values are checked when they are parsed");
        }
        Some(plan)
    }

    /// True if it has a value for this key in this direction.
    pub fn sets(&self, key: &str, direction: Direction) -> bool {
        let mut settings = self.settings.iter();
        settings.any(|setting| setting.key.name == key && setting.is_for(direction))
    }

    /// Checks that links with these plans, up and down, can change.
    pub fn check(&self, plans: [&Plan; 2]) -> Result<(), ChangeError> {
        for (direction, plan) in Direction::BOTH.into_iter().zip(plans) {
            let Some(next) = self.apply(direction, plan, Instant::ORIGIN) else {
                continue;
            };
            if next.queue.discipline != plan.queue.discipline {
                let present = plan.queue.to_string();
                return Err(ChangeError::Discipline { direction, present });
            }
            let script = plan.script.as_ref();
            if next.bandwidth != plan.bandwidth
                && script.is_some_and(|script| script.has_opportunities())
            {
                return Err(ChangeError::Opportunities { direction });
            }
            let in_direction = |reason| ChangeError::Plan { direction, reason };
            next.check().map_err(in_direction)?;
        }
        Ok(())
    }
}

impl ChangeSetting {
    fn is_for(&self, direction: Direction) -> bool {
        self.direction.is_none_or(|given| given == direction)
    }

    /// True if both set the same key in the same direction.
    fn contradicts(&self, other: &Self) -> bool {
        let meet = |direction| self.is_for(direction) && other.is_for(direction);
        self.key == other.key && Direction::BOTH.into_iter().any(meet)
    }
}

/// The values of all keys in a plan at `now`, by name.
pub fn values(plan: &Plan, now: Instant) -> impl Iterator<Item = (&'static str, String)> + '_ {
    KEYS.iter().map(move |key| (key.name, (key.get)(plan, now)))
}

impl FromStr for Change {
    type Err = ChangeError;

    /// Parses settings separated by blanks or `&`: `bandwidth=1Mbit up:loss=2%`.
    fn from_str(text: &str) -> Result<Self, ChangeError> {
        let parts = text.split(|c: char| c.is_ascii_whitespace() || c == '&');
        let mut settings: Vec<ChangeSetting> = Vec::new();
        for word in parts.filter(|word| !word.is_empty()) {
            let setting: ChangeSetting = word.parse()?;
            if settings.iter().any(|earlier| earlier.contradicts(&setting)) {
                let key = setting.key.name;
                return Err(ChangeError::Twice { key });
            }
            settings.push(setting);
        }
        if settings.is_empty() {
            return Err(ChangeError::Empty);
        }
        Ok(Self { settings })
    }
}

impl FromStr for ChangeSetting {
    type Err = ChangeError;

    fn from_str(word: &str) -> Result<Self, ChangeError> {
        let not_a_setting = || ChangeError::NotASetting {
            text: word.to_owned(),
        };
        let (name, value) = word.split_once('=').ok_or_else(not_a_setting)?;
        let (direction, name) = match name.split_once(':') {
            Some((direction, name)) => {
                let direction = direction.parse().map_err(|_| not_a_setting())?;
                (Some(direction), name)
            }
            None => (None, name),
        };
        let key = named(name)?;
        let refused = |reason| ChangeError::Value {
            key: key.name,
            reason,
        };
        (key.set)(&mut Plan::default(), value, Instant::ORIGIN).map_err(refused)?;
        let value = value.to_owned();
        Ok(Self {
            direction,
            key,
            value,
        })
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, setting) in self.settings.iter().enumerate() {
            let blank = if number > 0 { " " } else { "" };
            write!(f, "{blank}{setting}")?;
        }
        Ok(())
    }
}

impl fmt::Display for ChangeSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(direction) = self.direction {
            write!(f, "{direction}:")?;
        }
        write!(f, "{}={}", self.key.name, self.value)
    }
}

impl PartialEq for ChangeKey {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ChangeKey {}

impl fmt::Debug for ChangeKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The key of that name.
fn named(name: &str) -> Result<&'static ChangeKey, ChangeError> {
    let found = KEYS.iter().find(|key| key.name == name);
    found.ok_or_else(|| {
        let likeness = |key: &&ChangeKey| strsim::jaro_winkler(name, key.name);
        let nearest = KEYS
            .iter()
            .max_by(|one, other| likeness(one).total_cmp(&likeness(other)));
        ChangeError::UnknownKey {
            key: name.to_owned(),
            nearest: nearest.expect("the table has keys").name,
        }
    })
}

fn key_names() -> String {
    let names: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
    names.join(", ")
}

fn set<T>(field: &mut T, value: Result<T, String>) -> Result<(), String> {
    value.map(|value| *field = value)
}

fn parsed<T: FromStr<Err: fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// A value, or `None` for the word `none`.
fn optional<T: FromStr<Err: fmt::Display>>(text: &str, none: &str) -> Result<Option<T>, String> {
    if text == none {
        Ok(None)
    } else {
        parsed(text)
            .map(Some)
            .map_err(|error| format!("{error}, or {none}"))
    }
}

fn share(text: &str) -> Result<Ratio, String> {
    parsed(text)
}

fn text_or(value: Option<impl fmt::Display>, none: &str) -> String {
    value.map_or_else(|| none.to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_an_example_and_prints_what_it_reads() {
        for key in KEYS {
            let change: Change = key.example.parse().unwrap();
            assert_eq!(change.to_string(), key.example);
            let plan = change
                .apply(Direction::Up, &Plan::default(), Instant::ORIGIN)
                .unwrap();
            let (name, value) = key.example.split_once('=').unwrap();
            assert_eq!(
                (name, value),
                (key.name, &*(key.get)(&plan, Instant::ORIGIN))
            );
        }
    }

    #[test]
    fn a_setting_is_for_one_direction_or_for_both() {
        let change: Change = "up:delay=5ms\n down:delay=7ms&loss=2%".parse().unwrap();
        assert_eq!(change.to_string(), "up:delay=5ms down:delay=7ms loss=2%");
        let plan = |direction| {
            change
                .apply(direction, &Plan::default(), Instant::ORIGIN)
                .unwrap()
        };
        let [up, down] = Direction::BOTH.map(plan);
        assert_eq!(
            (up.delay, down.delay),
            (Span::from_millis(5), Span::from_millis(7))
        );
        assert!(up.loss.is_some() && up.loss == down.loss);
        let up: Change = "up:delay=5ms".parse().unwrap();
        assert_eq!(
            up.apply(Direction::Down, &Plan::default(), Instant::ORIGIN),
            None
        );
    }

    #[test]
    fn values_can_be_taken_away() {
        let plan = Plan {
            bandwidth: "1Mbit".parse().ok(),
            loss: "2%".parse().ok(),
            ..Plan::default()
        };
        let change: Change = "bandwidth=unlimited loss=none jitter=none reorder=none outage=0s"
            .parse()
            .unwrap();
        assert_eq!(
            change.apply(Direction::Up, &plan, Instant::ORIGIN),
            Some(Plan::default())
        );
    }

    #[test]
    fn an_outage_ends_after_its_length() {
        let now = Instant::from_nanos(7_000_000_000);
        let change: Change = "outage=3s".parse().unwrap();
        let plan = change.apply(Direction::Up, &Plan::default(), now).unwrap();
        assert_eq!(plan.outage_until, Some(now + Span::from_secs(3)));
        let value = |now| {
            values(&plan, now)
                .find(|(name, _)| *name == "outage")
                .unwrap()
                .1
        };
        assert_eq!(value(now + Span::from_secs(1)), "2s");
        assert_eq!(value(now + Span::from_secs(3)), "none");
    }

    #[test]
    fn an_error_names_the_remedy() {
        for (text, parts) in [
            ("", "bandwidth=1Mbit"),
            ("fast", "KEY=VALUE"),
            ("bandwith=1Mbit", "the nearest key is bandwidth"),
            ("left:delay=5ms", "up:loss=2%"),
            ("delay=5", "no unit"),
            ("loss=2", "write 2%"),
            ("jitter=often", "or none"),
            ("delay=5ms up:delay=6ms", "given twice"),
            ("outage=soon", "10ms"),
            ("queue=0", "50:64kB"),
        ] {
            let error = text.parse::<Change>().unwrap_err().to_string();
            assert!(error.contains(parts), "{text}: {error}");
        }
        let refused = |text: &str, plan: &Plan| {
            let change: Change = text.parse().unwrap();
            change.check([plan, plan]).unwrap_err().to_string()
        };
        let background = Plan {
            bandwidth: "1Mbit".parse().ok(),
            background: "500kbit".parse().ok(),
            ..Plan::default()
        };
        let error = refused("down:bandwidth=unlimited", &background);
        assert!(
            error.starts_with("down: ") && error.contains("give the link one"),
            "{error}"
        );
        let codel = Plan {
            queue: "100:codel".parse().unwrap(),
            ..Plan::default()
        };
        let error = refused("queue=20", &codel);
        assert!(error.contains("100:codel:5ms:100ms"), "{error}");
    }
}
