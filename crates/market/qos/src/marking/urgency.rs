//! `Priority` (RFC 9218): the urgency of a reply, as stated by the client.

use posthaste_units::Dscp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use posthaste_http::fields::{pair, split};

/// Urgency from 0, the most urgent, to 7, for background work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Urgency(u8);

/// The mark of each urgency, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Urgencies([Dscp; 8]);

impl Urgency {
    /// Urgency of a `Priority` field without one (section 4.1).
    const UNSAID: Self = Self(3);

    /// Returns `None` above 7.
    pub fn new(value: u8) -> Option<Self> {
        (value <= 7).then_some(Self(value))
    }

    /// Reads the field's lines, such as `u=1, i`. Returns `None` without a field. The last urgency counts (RFC 8941,
    /// section 3.2). Invalid ones are ignored (RFC 9218, section 4), and so is `i` (incremental), which does not
    /// concern the network.
    pub fn read<'a>(lines: impl IntoIterator<Item = &'a [u8]>) -> Option<Self> {
        let members = lines.into_iter().flat_map(|line| split(line, b','));
        members.fold(None, |urgency, member| {
            let value = split(member, b';').next().unwrap_or_default();
            match pair(value) {
                (b"u", [digit @ b'0'..=b'7']) => Some(Self(digit - b'0')),
                _ => urgency.or(Some(Self::UNSAID)),
            }
        })
    }
}

impl Urgencies {
    /// The mark of a reply of that urgency.
    pub fn mark(&self, urgency: Urgency) -> Dscp {
        self.0[usize::from(urgency.0)]
    }

    /// The marks, the most urgent first.
    pub fn marks(&self) -> &[Dscp] {
        &self.0
    }
}

impl Default for Urgencies {
    /// Urgencies 0 to 2 are low-latency data (RFC 4594, section 4.7). 3 is the default of unspecific requests and stays
    /// unmarked. 7 is background work (RFC 8622).
    fn default() -> Self {
        let (high, usual) = (Dscp::AF21, Dscp::DEFAULT);
        Self([high, high, Dscp::AF22, usual, usual, usual, usual, Dscp::LE])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_urgency_is_one_digit() {
        let read = |lines: &[&str]| {
            let lines = lines.iter().map(|line| line.as_bytes());
            Urgency::read(lines).map(|urgency| urgency.0)
        };
        for (lines, urgency) in [
            (&["u=1, i"][..], Some(1)),
            (&["i", "u=0"], Some(0)),
            (&["u=5", "u=7"], Some(7)),
            (&["u=2;x=\"a,u=4\",y=\"u=6,\""], Some(2)),
            (&["i=?0"], Some(3)),
            (&["u=1,u=8", "u=-1, u=12"], Some(1)),
            (&["u, u=, U=1, u=x"], Some(3)),
            (&[], None),
        ] {
            assert_eq!(read(lines), urgency, "{lines:?}");
        }
    }

    #[test]
    fn marks_fall_with_the_urgency() {
        let marks = Urgencies::default();
        let mark = |urgency| marks.mark(Urgency::new(urgency).unwrap());
        assert_eq!(
            (mark(0), mark(3), mark(7)),
            (Dscp::AF21, Dscp::DEFAULT, Dscp::LE)
        );
        assert_eq!(Urgency::new(8), None);
    }
}
