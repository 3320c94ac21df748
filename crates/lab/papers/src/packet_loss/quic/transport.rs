//! The transports of the study, and the packet that a line drops.

use std::sync::Arc;

use posthaste_link::{Direction, Plan};
use posthaste_study::Failure;

use super::super::line::{NetworkLine, PlannedDrops, follow};
use super::super::service::PaperService;

/// What carries a request and its reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum Transport {
    /// HTTP/1.1 over TCP.
    Tcp,
    /// HTTP/1.1 over TLS 1.3 over TCP.
    Tls,
    /// HTTP/3 over QUIC.
    Quic,
}

impl Transport {
    pub(in super::super) const ALL: [Self; 3] = [Self::Tcp, Self::Tls, Self::Quic];

    /// Name in records.
    pub(in super::super) const fn key(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Tls => "tls",
            Self::Quic => "quic",
        }
    }

    /// Name in pictures and sentences.
    pub(in super::super) const fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Tls => "TCP with TLS 1.3",
            Self::Quic => "QUIC",
        }
    }
}

/// The packet that the line drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum LostPacket {
    None,
    /// The packet at this position from the client.
    Up(u32),
    /// The packet at this position from the server.
    Down(u32),
    /// Independent losses in both directions, in percent.
    Percent(u32),
}

impl LostPacket {
    /// No loss, and a loss at every position up to these, from the client and from the server.
    pub(in super::super) fn each([up, down]: [u32; 2]) -> impl Iterator<Item = Self> {
        let up = (1..=up).map(Self::Up);
        let down = (1..=down).map(Self::Down);
        [Self::None].into_iter().chain(up).chain(down)
    }

    /// Plans of the links of a line with this loss.
    pub(in super::super) fn plans(
        self,
        line: NetworkLine,
        varies: bool,
    ) -> Result<[Arc<Plan>; 2], Failure> {
        let drops = match self {
            Self::None | Self::Up(_) => PlannedDrops::NONE,
            Self::Down(position) => PlannedDrops::one(position),
            Self::Percent(share) => PlannedDrops::Percent(share),
        };
        let [up, down] = line.plans(drops, varies)?;
        let mut up = Arc::unwrap_or_clone(up);
        match self {
            Self::Up(position) => follow(&mut up, Direction::Up, &format!("drop {position}"))?,
            Self::Percent(_) => up.loss.clone_from(&down.loss),
            Self::None | Self::Down(_) => {}
        }
        Ok([Arc::new(up), down])
    }
}

/// A transaction to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct QuicJob {
    pub(in super::super) transport: Transport,
    pub(in super::super) service: &'static PaperService,
    pub(in super::super) line: NetworkLine,
    pub(in super::super) lost: LostPacket,
}
