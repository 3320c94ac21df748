//! Counters of switches of protocol and of the tunnels after them.

use std::fmt::Error;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use posthaste_http::fields::upgrade::{SwitchObstacle, WEBSOCKET};
use posthaste_serve::exposition::{counters, gauge};
use prometheus_client::encoding::DescriptorEncoder;

/// Outcomes of switches that were forwarded, in the order in which they are counted.
const OUTCOMES: [&str; 5] = ["opened", "refused", "invalid", "stopping", "failed"];

/// Protocols, in the order in which they are counted.
const PROTOCOLS: [&str; 2] = [WEBSOCKET, "other"];

/// The outcome of a switch that was forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SwitchOutcome {
    /// A tunnel is open.
    Opened,
    /// The upstream sent an ordinary reply.
    Refused,
    /// The upstream switched to something else.
    Invalid,
    /// The gateway is stopping.
    Stopping,
    /// The upstream did not reply.
    Failed,
}

/// The end of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TunnelEnd {
    /// The client closed its side first.
    ClientClosed,
    /// The upstream closed its side first.
    UpstreamClosed,
    /// No data in either direction for too long.
    Idle,
    /// The client's connection failed.
    ClientError,
    /// The upstream's connection failed.
    UpstreamError,
    /// The client did not take its data within the time limit of writes.
    ClientStalled,
    /// The gateway stopped.
    Stopped,
}

impl TunnelEnd {
    const ALL: [Self; 7] = [
        Self::ClientClosed,
        Self::UpstreamClosed,
        Self::Idle,
        Self::ClientError,
        Self::UpstreamError,
        Self::ClientStalled,
        Self::Stopped,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::ClientClosed => "client-closed",
            Self::UpstreamClosed => "upstream-closed",
            Self::Idle => "idle",
            Self::ClientError => "client-error",
            Self::UpstreamError => "upstream-error",
            Self::ClientStalled => "client-stalled",
            Self::Stopped => "stopped",
        }
    }
}

/// Counters since the start.
#[derive(Debug, Default)]
pub(crate) struct TunnelCounters {
    switches: [[AtomicU64; OUTCOMES.len()]; PROTOCOLS.len()],
    ignored: [AtomicU64; SwitchObstacle::ALL.len()],
    ended: [AtomicU64; TunnelEnd::ALL.len()],
    to_upstream: AtomicU64,
    to_client: AtomicU64,
}

impl TunnelCounters {
    /// Counts a switch to `protocol` that was forwarded.
    pub(crate) fn switched(&self, protocol: &str, outcome: SwitchOutcome) {
        let protocol = usize::from(!protocol.eq_ignore_ascii_case(WEBSOCKET));
        self.switches[protocol][outcome as usize].fetch_add(1, Relaxed);
    }

    /// Counts a request whose switch was ignored or refused before it was forwarded.
    pub(crate) fn ignored(&self, obstacle: SwitchObstacle) {
        self.ignored[obstacle as usize].fetch_add(1, Relaxed);
    }

    /// Counts the end of a tunnel.
    pub(crate) fn ended(&self, end: TunnelEnd) {
        self.ended[end as usize].fetch_add(1, Relaxed);
    }

    /// Counts bytes that a tunnel has written.
    pub(crate) fn passed(&self, to_upstream: u64, to_client: u64) {
        for (counter, bytes) in [
            (&self.to_upstream, to_upstream),
            (&self.to_client, to_client),
        ] {
            if bytes > 0 {
                counter.fetch_add(bytes, Relaxed);
            }
        }
    }

    /// Tunnels open now.
    pub(crate) fn open(&self) -> u64 {
        let sum = |counters: &[AtomicU64]| -> u64 {
            counters.iter().map(|counter| counter.load(Relaxed)).sum()
        };
        // Read first, so that no tunnel is missing among the opened.
        let ended = sum(&self.ended);
        self.opened().saturating_sub(ended)
    }

    /// Tunnels opened since the start.
    pub(crate) fn opened(&self) -> u64 {
        let opened =
            |by: &[AtomicU64; OUTCOMES.len()]| by[SwitchOutcome::Opened as usize].load(Relaxed);
        self.switches.iter().map(opened).sum()
    }

    /// Bytes written to upstreams and to clients.
    pub(crate) fn bytes(&self) -> (u64, u64) {
        (self.to_upstream.load(Relaxed), self.to_client.load(Relaxed))
    }

    pub(crate) fn encode(&self, out: &mut DescriptorEncoder) -> Result<(), Error> {
        let count = |counter: &AtomicU64| counter.load(Relaxed) as f64;
        let switches = PROTOCOLS.iter().zip(&self.switches).flat_map(|(name, by)| {
            let by = OUTCOMES.iter().zip(by);
            by.map(move |(outcome, n)| ([("protocol", *name), ("outcome", *outcome)], count(n)))
        });
        let switches_help = "Requests to switch protocols that were forwarded, by outcome";
        counters(out, "switches", switches_help, switches)?;
        let ignored = SwitchObstacle::ALL.iter().zip(&self.ignored);
        let ignored_by_reason = ignored.map(|(reason, n)| ([("reason", reason.name())], count(n)));
        let ignored_help = "Requests whose switch of protocol was not forwarded, by reason";
        counters(out, "switches_ignored", ignored_help, ignored_by_reason)?;
        let ended = TunnelEnd::ALL.iter().zip(&self.ended);
        let ended_by_reason = ended.map(|(end, n)| ([("reason", end.name())], count(n)));
        let ended_help = "Tunnels that have ended, by reason";
        counters(out, "tunnels_ended", ended_help, ended_by_reason)?;
        let (to_upstream, to_client) = self.bytes();
        let bytes = [("upstream", to_upstream), ("client", to_client)]
            .map(|(to, bytes)| ([("to", to)], bytes as f64));
        counters(out, "tunnel_bytes", "Bytes in tunnels, by receiver", bytes)?;
        let open_help = "Tunnels open now";
        gauge(out, "tunnels_open", open_help, self.open() as f64)
    }
}
