//! A packet in words, as they stand beside an arrow of a ladder.

use posthaste_link::Fate;
use posthaste_units::Span;

use super::Packet;

impl Packet {
    /// `8 7241:8689 rto`: position, what or which bytes, and why again.
    pub fn label(&self) -> String {
        let behind = self.start + u64::from(self.segment.len);
        let words = self
            .what
            .words(&(self.start..behind), self.acknowledges, Some(self.sending));
        let copy = if self.copy > 0 { "copy " } else { "" };
        format!("{} {copy}{words}", self.position)
    }

    /// What there is no room for in the label.
    pub fn hint(&self) -> String {
        let mut text = format!(
            "{}, {} bytes of data, window {}",
            self.what.name(),
            self.segment.len,
            self.window
        );
        if let Some(place) = self.acknowledges {
            text += &format!("\nacknowledges {place}");
        }
        let count = self.segment.options.sack.as_slice().len();
        if count > 0 {
            text += &format!(", and {count} blocks beyond");
        }
        text
    }

    /// Why it was lost; none where it arrived intact.
    pub fn loss(&self) -> Option<&'static str> {
        match self.fate {
            Fate::Dropped(reason) => Some(reason.name()),
            Fate::Delivered(marks) if marks.flipped > 0 => Some("damaged"),
            Fate::Delivered(_) => None,
        }
    }

    /// How long a timer ran before this was sent, and which one.
    pub fn waited(&self) -> Option<(Span, &'static str)> {
        let name = self.sending.timer()?;
        Some((self.sent.since(self.before?), name))
    }
}
