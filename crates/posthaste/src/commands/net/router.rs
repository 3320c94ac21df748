//! The options of a DiffServ router: classes that share the link, and marks at its edge.

use std::str::FromStr;
use std::sync::Arc;

use posthaste_emulator::EdgeRule;
use posthaste_link::{Class, Classes, Direction, SpellingError};

/// What the link is to packets that are marked.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "A DiffServ router")]
pub(super) struct RouterArgs {
    /// Share the bandwidth by code point: a class has the first rate whatever others send, and up to
    /// the second what they leave. Names are af11 to af43, cs0 to cs7, ef, va, le, default, numbers,
    /// and in one class rest, for all others; repeatable. One link for all connections (--shared)
    #[arg(long, value_name = "[up:|down:]NAMES:RATE[..CEILING]")]
    class: Vec<DirectedClass>,
    /// Mark packets before they come to the link, whatever their sender marked: server:8080=af11,
    /// client:40000=ef or any=default; repeatable, the first that fits
    #[arg(long, value_name = "WHOSE=NAME")]
    mark: Vec<EdgeRule>,
}

/// A class in one direction, or in both.
#[derive(Clone, Debug)]
struct DirectedClass {
    direction: Option<Direction>,
    class: Class,
}

impl FromStr for DirectedClass {
    type Err = SpellingError;

    fn from_str(text: &str) -> Result<Self, SpellingError> {
        let direction = text.split_once(':').and_then(|(first, rest)| {
            let direction = first.parse().ok()?;
            Some((direction, rest))
        });
        let (direction, class) = match direction {
            Some((direction, rest)) => (Some(direction), rest),
            None => (None, text),
        };
        let class = class.parse()?;
        Ok(Self { direction, class })
    }
}

impl RouterArgs {
    /// The classes of a direction, if it has any.
    pub(super) fn classes(&self, direction: Direction) -> Option<Arc<Classes>> {
        let here = |given: &&DirectedClass| given.direction.is_none_or(|named| named == direction);
        let list: Vec<Class> = self
            .class
            .iter()
            .filter(here)
            .map(|given| given.class.clone())
            .collect();
        (!list.is_empty()).then(|| Arc::new(Classes::new(list)))
    }

    /// True if there are classes. They only have an effect on several connections together.
    pub(super) const fn has_classes(&self) -> bool {
        !self.class.is_empty()
    }

    pub(super) fn edge(&self) -> Vec<EdgeRule> {
        self.mark.clone()
    }
}
