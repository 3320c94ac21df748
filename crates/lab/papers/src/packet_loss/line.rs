//! Lines of the study: bandwidth, delay and drops of a network path, as plans of links.

use std::sync::Arc;

use posthaste_link::pattern::Pattern;
use posthaste_link::{Direction, Plan};
use posthaste_study::Failure;
use posthaste_units::{BitRate, Span};

use super::service::PaperService;

/// Bandwidths, each way, in kbit/s.
pub(super) const BANDWIDTHS: [u32; 7] = [160, 300, 500, 1000, 2000, 4000, 10_000];

/// End-to-end delays in ms.
pub(super) const DELAYS: [u32; 8] = [5, 10, 20, 40, 60, 100, 150, 200];

/// Distribution of the paper's delays: normal, with a variance of 50 % of the mean, both in milliseconds.
pub(super) const JITTER: &str = "variance:50%";

/// A network path with equal bandwidth and delay in both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NetworkLine {
    pub(super) kbit: u32,
    pub(super) ms: u32,
}

/// Lines for which the paper gives times in numbers: "US-US" and "US-overseas".
pub(super) const PUBLISHED: [NetworkLine; 2] = [
    NetworkLine { kbit: 300, ms: 10 },
    NetworkLine { kbit: 300, ms: 60 },
];

/// Selection of the server's packets that a line drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlannedDrops {
    /// Packets at these positions, from 1, in ascending order. 0 stands for none.
    At([u32; 2]),
    /// No drops. The packet at `position` arrives after `later` later ones.
    Held { position: u32, later: u32 },
    /// Independent random drops, in percent of all packets.
    Percent(u32),
}

/// All 56 combinations.
pub(super) fn all() -> impl Iterator<Item = NetworkLine> {
    let lines = |kbit| DELAYS.map(|ms| NetworkLine { kbit, ms });
    BANDWIDTHS.into_iter().flat_map(lines)
}

impl PlannedDrops {
    pub(super) const NONE: Self = Self::At([0; 2]);

    /// Drops the packet at `position`, or none for 0.
    pub(super) const fn one(position: u32) -> Self {
        Self::At([position, 0])
    }

    /// The positions, if they are known in advance.
    pub(super) fn positions(self) -> impl Iterator<Item = u32> {
        let positions = match self {
            Self::At(positions) => positions,
            Self::Held { .. } | Self::Percent(_) => [0; 2],
        };
        positions.into_iter().filter(|position| *position > 0)
    }
}

impl NetworkLine {
    /// Plans of the links, up and down. Delays vary as in the paper, or not at all.
    pub(super) fn plans(
        self,
        drops: PlannedDrops,
        varies: bool,
    ) -> Result<[Arc<Plan>; 2], Failure> {
        let up = Plan {
            bandwidth: BitRate::per_second(u64::from(self.kbit) * 1000),
            delay: Span::from_millis(u64::from(self.ms)),
            jitter: if varies { Some(JITTER.parse()?) } else { None },
            ..Plan::default()
        };
        let mut down = up.clone();
        match drops {
            PlannedDrops::NONE => {}
            PlannedDrops::At(_) => {
                let positions: Vec<String> = drops.positions().map(|at| at.to_string()).collect();
                follow(
                    &mut down,
                    Direction::Down,
                    &format!("drop {}", positions.join(", ")),
                )?;
            }
            PlannedDrops::Held { position, later } => {
                follow(
                    &mut down,
                    Direction::Down,
                    &format!("hold {position}: {later}"),
                )?;
            }
            PlannedDrops::Percent(share) => down.loss = Some(format!("{share}%").parse()?),
        }
        Ok([Arc::new(up), Arc::new(down)])
    }

    /// Time of a transaction without loss and with steady delays, for a reply within the first window: transmission
    /// time of all packets, four delays, and processing.
    ///
    /// `client` is the time of the client's program between the SYN-ACK and the request. It is no part of a response
    /// time, but the line sends the last ACK of the handshake meanwhile. The request waits only for the rest of it.
    pub(super) fn lossless(self, service: &PaperService, processing: Span, client: Span) -> Span {
        const HEADERS: u64 = 52;
        const HANDSHAKE: u64 = 60 + 60 + HEADERS;
        let data = u64::from(service.request) + u64::from(service.reply);
        let segments = u64::from(service.segments()) + 1;
        let sending = |bytes: u64| Span::from_nanos(bytes * 8 * 1_000_000 / u64::from(self.kbit));
        let line = sending(HANDSHAKE + data + segments * HEADERS);
        let already_sent = client.min(sending(HEADERS));
        line.saturating_sub(already_sent) + Span::from_millis(u64::from(self.ms)) * 4 + processing
    }
}

/// Adds a pattern of one entry to the plan of a link.
pub(super) fn follow(link: &mut Plan, direction: Direction, entry: &str) -> Result<(), Failure> {
    let text = format!("posthaste pattern 1\n{direction} {entry}\nend\n");
    let pattern = Pattern::parse(&text)?;
    link.script = Some(pattern.script(direction).clone());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::service::AUTHOR;
    use super::*;

    #[test]
    fn there_are_56() {
        assert_eq!(all().count(), 56);
    }

    #[test]
    fn a_lossless_transaction_is_computed() {
        let line = NetworkLine { kbit: 300, ms: 10 };
        let computed = |client| {
            let computed = line.lossless(&AUTHOR, Span::from_millis(200), client);
            computed.as_millis_f64()
        };
        let (none, longest) = (computed(Span::ZERO), computed(Span::from_secs(1)));
        assert!((none - 642.8).abs() < 0.1, "{none}");
        // The ACK of the handshake takes 1.39 ms on this line.
        assert!((none - computed(Span::from_micros(700)) - 0.7).abs() < 1e-3);
        assert!((none - longest - 1.387).abs() < 1e-3, "{longest}");
    }

    #[test]
    fn planned_drops_become_link_plans() {
        let line = NetworkLine { kbit: 300, ms: 10 };
        let down = |drops| line.plans(drops, true).unwrap()[1].clone();
        assert!(
            down(PlannedDrops::NONE).script.is_none() && down(PlannedDrops::NONE).loss.is_none()
        );
        assert!(down(PlannedDrops::At([8, 9])).script.is_some());
        let held = PlannedDrops::Held {
            position: 6,
            later: 2,
        };
        assert!(down(held).script.is_some() && held.positions().next().is_none());
        assert!(down(PlannedDrops::Percent(2)).loss.is_some());
        assert!(
            line.plans(PlannedDrops::Percent(2), true).unwrap()[0]
                .loss
                .is_none()
        );
    }
}
