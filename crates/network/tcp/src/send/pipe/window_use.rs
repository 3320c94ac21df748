//! Record of the limit on sending: the congestion window, or a lack of data (`tcp_cwnd_validate`).

use crate::Offset;
use crate::send::flight::Flight;

#[derive(Clone, Copy, Debug, Default)]
pub(in crate::send) struct WindowUse {
    /// The congestion window was the last limit on sending.
    pub(super) limited: bool,
    /// Segments in flight then.
    pub(super) most_out: usize,
    /// End of the data sent then. These values hold until it is acknowledged.
    pub(in crate::send) until: Offset,
}

impl WindowUse {
    /// Updates the record. `limited` is true if the congestion window stops sending.
    pub(super) fn update(&mut self, flight: &Flight, limited: bool) {
        let out = flight.board.len();
        let expired = flight.sequence.una >= self.until;
        if expired || limited || (!self.limited && out > self.most_out) {
            self.limited = limited;
            self.most_out = out;
            self.until = flight.sequence.max;
        }
    }
}
