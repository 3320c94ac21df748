//! Canonical text of a pattern. The parser reads it back as the same pattern.

use std::fmt::{self, Write as _};

use super::number::{write_bandwidth, write_loss_share, write_span};
use super::read::{END, HEADER};
use super::{Axis, Effect, Pattern, PatternEntry, PatternRange};

/// Approximate length at which lists are broken.
const WIDTH: usize = 80;

impl fmt::Display for Pattern {
    /// Canonical order: up before down, packets before times, one entry a line except for drops.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEADER}")?;
        let mut drops = DropsLine::default();
        for entry in self.entries() {
            match entry.effect {
                Effect::Drop => drops.add(&entry, f)?,
                _ => {
                    drops.end(f)?;
                    writeln!(f, "{entry}")?;
                }
            }
        }
        drops.end(f)?;
        writeln!(f, "{END}")
    }
}

/// A growing line of drops.
#[derive(Default)]
struct DropsLine(String);

impl DropsLine {
    fn add(&mut self, entry: &PatternEntry, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = entry.direction.name();
        let range = RangeText(entry.range).to_string();
        if self.0.len() + range.len() > WIDTH || !self.0.starts_with(start) {
            self.end(f)?;
        }
        let before = if self.0.is_empty() {
            format!("{start} drop ")
        } else {
            ", ".to_owned()
        };
        write!(self.0, "{before}{range}")
    }

    fn end(&mut self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            Ok(())
        } else {
            writeln!(f, "{}", std::mem::take(&mut self.0))
        }
    }
}

impl fmt::Display for PatternEntry {
    /// One line of the text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (start, range) = (self.direction.name(), RangeText(self.range));
        let first = RangeText(PatternRange {
            last: self.range.first,
            ..self.range
        });
        match &self.effect {
            Effect::Drop => write!(f, "{start} drop {range}"),
            Effect::Flip(bits) => {
                write!(f, "{start} flip {range}: ")?;
                for (index, (first, last)) in bits.ranges().iter().enumerate() {
                    let comma = if index > 0 { ", " } else { "" };
                    if first == last {
                        write!(f, "{comma}{first}")?;
                    } else {
                        write!(f, "{comma}{first}-{last}")?;
                    }
                }
                Ok(())
            }
            Effect::Delay(delay) => write!(f, "{start} delay {range}: {}", write_span(*delay)),
            Effect::Hold(later) => write!(f, "{start} hold {range}: {later}"),
            Effect::Copy(copies) => write!(f, "{start} copy {range}: {copies}"),
            Effect::DelayFrom(delay) => {
                let delay = delay.map_or("default".into(), write_span);
                write!(f, "{start} delay from {first}: {delay}")
            }
            Effect::BandwidthFrom(rate) => {
                let rate = rate.map_or("default".into(), write_bandwidth);
                write!(f, "{start} bandwidth from {first}: {rate}")
            }
            Effect::LossFrom(share) => {
                let share = share.map_or("default".into(), write_loss_share);
                write!(f, "{start} loss from {first}: {share}")
            }
            Effect::Opportunities(count) => write!(f, "{start} opportunities {range}: {count}"),
            Effect::Repeat => write!(f, "{start} repeat {first}"),
        }
    }
}

/// A place as in the text: packets without a unit, times with their unit and an exclusive end.
struct RangeText(PatternRange);

impl fmt::Display for RangeText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PatternRange { axis, first, last } = self.0;
        match (axis, first == last) {
            (Axis::Packets, true) => write!(f, "{first}"),
            (Axis::Packets, false) => write!(f, "{first}-{last}"),
            (Axis::Millis, true) => write!(f, "{first}ms"),
            (Axis::Millis, false) => write!(f, "{first}ms-{}ms", last.saturating_add(1)),
        }
    }
}
