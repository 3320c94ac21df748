//! Counters of the agent: its actions, and its reasons for inaction.

/// Counters of the agent. Once no timer runs, `started` is the sum of [`AgentCounters::ends`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AgentCounters {
    /// Packets that triggered a search for a hole.
    pub considered: u64,
    /// Timers started, one for each hole seen. A restart because more data arrived does not count.
    pub started: u64,
    /// Timers stopped because the hole was filled.
    pub cancelled: u64,
    /// Timers that expired after the receiver had sent three duplicates itself.
    pub sufficient: u64,
    /// Timers that expired without a packet to copy: the receiver's last packet did not acknowledge the hole's edge, or
    /// was not a pure acknowledgement.
    pub unconfirmed: u64,
    /// Timers that expired, but a limit prevented sending.
    pub limited: u64,
    /// Timers stopped because the connection was reset, forgotten or given up.
    pub abandoned: u64,
    /// Timers that expired and made the agent send.
    pub served: u64,
    /// Duplicates sent, one to three for each hole served.
    pub injected: u64,
    /// Connections not followed, or not to their end, because of a limit: too many connections, or too many holes in
    /// one.
    pub given_up: u64,
    /// Packets with a wrong checksum. They count as lost.
    pub damaged: u64,
    /// TCP packets that could not be read: fragments, and headers that contradict themselves.
    pub unreadable: u64,
    /// Packets with data beyond the receiver's offered window.
    pub beyond_window: u64,
}

impl AgentCounters {
    /// All counters, under the names used in reports.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let others = [
            ("considered", self.considered),
            ("started", self.started),
            ("injected", self.injected),
            ("given_up", self.given_up),
            ("damaged", self.damaged),
            ("unreadable", self.unreadable),
            ("beyond_window", self.beyond_window),
        ];
        others.into_iter().chain(self.ends())
    }

    /// The six ends of a timer, by name. Their sum is `started` once no timer runs.
    pub const fn ends(&self) -> [(&'static str, u64); 6] {
        [
            ("cancelled", self.cancelled),
            ("sufficient", self.sufficient),
            ("unconfirmed", self.unconfirmed),
            ("limited", self.limited),
            ("abandoned", self.abandoned),
            ("served", self.served),
        ]
    }
}
