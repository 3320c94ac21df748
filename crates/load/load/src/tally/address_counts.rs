//! Counts of the connections to each address of a server.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// Connections to one address of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddressCounts {
    /// Connections attempted.
    pub connections: u64,
    /// Those that were not established. Requests use another address, if the server has one.
    pub failed: u64,
}

impl AddAssign for AddressCounts {
    fn add_assign(&mut self, other: Self) {
        self.connections += other.connections;
        self.failed += other.failed;
    }
}
