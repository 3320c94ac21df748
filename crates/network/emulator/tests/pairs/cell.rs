//! Pairs, lines and losses.

use std::fmt;
use std::sync::Arc;

use posthaste_link::pattern::Pattern;
use posthaste_link::{Direction, Plan};
use posthaste_tcp::{Profile, profile};
use posthaste_units::{BitRate, Span};

/// The service Author of the packet-loss study: bytes of the request and of the reply, time in between.
pub(crate) const REQUEST: u32 = 1438;
pub(crate) const REPLY: u32 = 12_974;
pub(crate) const PROCESSING: Span = Span::from_millis(200);

/// All profiles that are a stack of their own.
pub(crate) const PROFILES: [&str; 5] = [
    "rfc",
    "freebsd-6.0",
    "linux-2.6.15",
    "linux-6",
    "freebsd-14",
];

/// The profile of the kernel.
const OF_KERNEL: &str = "linux-6";

/// Rates in kbit/s and delays in ms. At none does a full packet take as long as a delayed ACK: 40 ms (`freebsd-14`) would
/// be 300 kbit/s, and the lateness of a machine would decide which comes first.
const LINES: [(u64, u64); 5] = [(160, 60), (320, 10), (1000, 100), (5000, 30), (100_000, 5)];

/// Variation of the delays. Without it, a timer of one end can expire at the very moment of a packet's arrival.
const JITTER: &str = "uniform:100us";

/// Positions of the server's packets: no loss, the SYN-ACK, and all others up to the last.
const POSITIONS: std::ops::RangeInclusive<u32> = 0..=13;

/// Slowest rate in kbit/s at which a segment can arrive before a program has read the one before.
const FAST: u64 = 5000;

/// TCP of one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TcpEnd {
    Kernel,
    Profile(&'static str),
}

/// TCP of both ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StackPair {
    pub(crate) server: TcpEnd,
    pub(crate) client: TcpEnd,
}

/// A line, and the position of the lost packet. 0 for no loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cell {
    kbit: u64,
    ms: u64,
    position: u32,
}

impl TcpEnd {
    /// Profile in place of the kernel, if any.
    pub(crate) fn replacement(self) -> Option<Arc<Profile>> {
        match self {
            Self::Kernel => None,
            Self::Profile(name) => Some(named(name)),
        }
    }

    /// Profile in the simulator.
    pub(crate) fn simulated(self) -> Arc<Profile> {
        self.replacement().unwrap_or_else(|| named(OF_KERNEL))
    }
}

fn named(name: &str) -> Arc<Profile> {
    Arc::new(profile::named(name).expect("a profile of this name"))
}

impl Cell {
    /// All cells of a pair.
    pub(crate) fn all() -> Vec<Self> {
        let cells = |(kbit, ms)| POSITIONS.map(move |position| Self { kbit, ms, position });
        LINES.into_iter().flat_map(cells).collect()
    }

    /// True if the program of a busy machine decides about the time. At this loss the three duplicates of `freebsd-6.0`
    /// have equal windows only if the kernel still holds an unread segment. The simulator's program reads at once.
    pub(crate) fn depends_on_reader(self, pair: &StackPair) -> bool {
        let bsd_to_kernel = StackPair {
            server: TcpEnd::Profile("freebsd-6.0"),
            client: TcpEnd::Kernel,
        };
        *pair == bsd_to_kernel && self.position == 8 && self.kbit >= FAST
    }

    /// Plans of the links, up and down.
    pub(crate) fn plans(self) -> [Arc<Plan>; 2] {
        let up = Plan {
            bandwidth: BitRate::per_second(self.kbit * 1000),
            delay: Span::from_millis(self.ms),
            jitter: Some(JITTER.parse().expect("a jitter")),
            ..Plan::default()
        };
        let mut down = up.clone();
        if self.position > 0 {
            let text = format!("posthaste pattern 1\ndown drop {}\nend\n", self.position);
            let pattern = Pattern::parse(&text).expect("a pattern");
            down.script = Some(pattern.script(Direction::Down).clone());
        }
        [Arc::new(up), Arc::new(down)]
    }
}

impl fmt::Display for TcpEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kernel => "kernel",
            Self::Profile(name) => name,
        })
    }
}

impl fmt::Display for StackPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.server, self.client)
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kbit, ms, position } = self;
        write!(f, "{kbit} kbit/s, {ms} ms, position {position}")
    }
}
