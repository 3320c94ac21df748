//! What the agent has done, and why it has not done more.

/// The agent's account. Once nothing runs, `started` is the sum of [`Counters::ends`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets on whose arrival a hole was looked for.
    pub considered: u64,
    /// Timers started: holes seen. Starting one again because more data came does not count.
    pub started: u64,
    /// Timers stopped because the hole was filled.
    pub cancelled: u64,
    /// Timers that ran out, and the receiver had sent three duplicates itself.
    pub sufficient: u64,
    /// Timers that ran out, and the receiver's last packet did not acknowledge the hole's edge,
    /// or was more than an acknowledgement: there was nothing to copy.
    pub unconfirmed: u64,
    /// Timers that ran out, and a limit stood against sending.
    pub limited: u64,
    /// Timers stopped because the connection was reset, forgotten or given up.
    pub abandoned: u64,
    /// Timers that ran out and made the agent send.
    pub served: u64,
    /// Duplicates sent, one to three for each hole served.
    pub injected: u64,
    /// Connections not followed, or not to their end, for lack of room: too many of them, or too
    /// many holes in one.
    pub given_up: u64,
    /// Packets whose checksum was wrong: they count as lost.
    pub damaged: u64,
    /// TCP packets that could not be read: fragments, and headers that contradict themselves.
    pub unreadable: u64,
    /// Packets with data that the receiver has not offered to take.
    pub beyond_window: u64,
}

impl Counters {
    /// All of them, by the names that reports use.
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

    /// The ways in which a timer ends, by name.
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
