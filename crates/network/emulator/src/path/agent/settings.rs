//! Settings of the agent: its rule for one connection, and its limits for all connections together.

use posthaste_tcp::receive::duplicates::AdaptiveAcks;
use posthaste_units::Rate;

/// Settings of the agent. The default is the paper's proposal, once for each connection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Trigger, waiting time and number of duplicates for one connection.
    pub rule: AdaptiveAcks,
    /// Maximum rate of duplicates of all connections together; default 1000/s. The burst is one second at this rate.
    pub per_second: Rate,
    /// Maximum number of connections followed at a time; default 4,096. Each takes less than a kilobyte, and at most
    /// three with a hole.
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
