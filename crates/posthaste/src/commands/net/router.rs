//! The options of a DiffServ router: classes that share the link, marks at its edge, and the MTU behind it.

use std::str::FromStr;
use std::sync::Arc;

use posthaste_emulator::EdgeRule;
use posthaste_link::{Class, Classes, Direction, Mtu, SpellingError};

/// Options of the routers at both ends of the link.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Routers")]
pub(super) struct RouterArgs {
    /// Share the bandwidth by code point: the first rate is guaranteed to the class, and it may use up to
    /// the second if others leave bandwidth. Names are af11 to af43, cs0 to cs7, ef, va, le, default, numbers,
    /// and in one class rest, for all others; repeatable. Needs one link for all connections
    #[arg(long, value_name = "[up:|down:]NAMES:RATE[..CEILING]")]
    class: Vec<DirectedClass>,
    /// Mark packets before they come to the link, and replace the mark of the sender: server:8080=af11,
    /// client:40000=ef or any=default; repeatable, the first that fits
    #[arg(long, value_name = "WHOSE=NAME")]
    mark: Vec<EdgeRule>,
    /// Drop longer packets at the end of the link and tell their sender (ICMP), as a router before a
    /// smaller MTU does: 1280 to 1500 bytes; 1400,silent sends no ICMP error
    #[arg(long, value_name = "[up:|down:]BYTES[,silent]")]
    mtu: Vec<DirectedMtu>,
}

/// A class in one direction, or in both.
#[derive(Clone, Debug)]
struct DirectedClass {
    direction: Option<Direction>,
    class: Class,
}

/// An MTU behind the link of one direction, or of both.
#[derive(Clone, Debug)]
struct DirectedMtu {
    direction: Option<Direction>,
    mtu: Mtu,
}

impl FromStr for DirectedClass {
    type Err = SpellingError;

    fn from_str(text: &str) -> Result<Self, SpellingError> {
        let (direction, class) = directed(text);
        let class = class.parse()?;
        Ok(Self { direction, class })
    }
}

impl FromStr for DirectedMtu {
    type Err = SpellingError;

    fn from_str(text: &str) -> Result<Self, SpellingError> {
        let (direction, mtu) = directed(text);
        let mtu = mtu.parse()?;
        Ok(Self { direction, mtu })
    }
}

/// The direction in front of a value, and the value.
fn directed(text: &str) -> (Option<Direction>, &str) {
    let direction = text.split_once(':').and_then(|(first, rest)| {
        let direction = first.parse().ok()?;
        Some((direction, rest))
    });
    match direction {
        Some((direction, rest)) => (Some(direction), rest),
        None => (None, text),
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

    /// The MTU behind the link of a direction: the last one that is given for it.
    pub(super) fn mtu(&self, direction: Direction) -> Option<Mtu> {
        let here = |given: &&DirectedMtu| given.direction.is_none_or(|named| named == direction);
        self.mtu.iter().rfind(here).map(|given| given.mtu)
    }

    pub(super) fn edge(&self) -> Vec<EdgeRule> {
        self.mark.clone()
    }
}
