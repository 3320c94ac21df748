//! Labels of a packet in a ladder.

use posthaste_link::Fate;
use posthaste_units::Span;

use super::TracedPacket;

impl TracedPacket {
    /// Label such as `8 7241:8689 rto`: position, kind or bytes, and reason of a retransmission.
    pub fn label(&self) -> String {
        let behind = self.start + u64::from(self.segment.len);
        let text = self
            .kind
            .describe(&(self.start..behind), self.acknowledges, Some(self.sending));
        let copy = if self.copy > 0 { "copy " } else { "" };
        format!("{} {copy}{text}", self.position)
    }

    /// Details that do not fit in the label.
    pub fn hint(&self) -> String {
        let mut text = format!(
            "{}, {} bytes of data, window {}",
            self.kind.name(),
            self.segment.len,
            self.window
        );
        if let Some(number) = self.acknowledges {
            text += &format!("\nacknowledges {number}");
        }
        let count = self.segment.options.sack.as_slice().len();
        if count > 0 {
            text += &format!(", and {count} blocks beyond");
        }
        text
    }

    /// Cause of the loss. None if the packet arrived intact.
    pub fn loss(&self) -> Option<&'static str> {
        match self.fate {
            Fate::Dropped(reason) => Some(reason.name()),
            Fate::Delivered(marks) if marks.flipped > 0 => Some("damaged"),
            Fate::Delivered(_) => None,
        }
    }

    /// Running time and name of the timer that caused this transmission.
    pub fn waited(&self) -> Option<(Span, &'static str)> {
        let name = self.sending.timer()?;
        Some((self.sent.since(self.before?), name))
    }
}
