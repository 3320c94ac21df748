//! What the agent may do: its rule for one connection, how much it sends and remembers in all.

use posthaste_tcp::receive::duplicates::AdaptiveAcks;
use posthaste_units::Rate;

/// The agent's rules. The default is the paper's proposal, once for each connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// When it looks, how long it waits and how much it sends, of one connection.
    pub rule: AdaptiveAcks,
    /// Most duplicates in a second, all connections together; 1000/s. A second's worth may be
    /// sent at once.
    pub per_second: Rate,
    /// Most connections followed at a time; 4,096. Each takes less than a kilobyte, with a hole
    /// at most three.
    pub connections: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            rule: AdaptiveAcks::default(),
            per_second: Rate::per_second(1000.0).expect("a constant"),
            connections: 4096,
        }
    }
}
