//! Replay of a record: the same inputs lead to the same decisions.

use posthaste_units::Instant;

use super::{Arrived, Network};
use crate::record::{BlankPacket, Input};

impl Network<u64, BlankPacket> {
    /// Pushes the inputs of a record, and passes every departure to `each`, in order of departure.
    ///
    /// Its decisions are the same if the plans, the sharing and the seed are those of the recorded network and nothing
    /// was pushed before.
    pub fn replay(&mut self, inputs: &[Input], mut each: impl FnMut(Arrived<u64, BlankPacket>)) {
        // The two directions are stamped separately, so times may decrease slightly from one input to the next. Nothing
        // is popped that a later input could still change.
        let mut later = vec![None; inputs.len()];
        for at in (1..inputs.len()).rev() {
            let next = inputs[at].at;
            later[at - 1] = Some(later[at].map_or(next, |later| next.min(later)));
        }
        for (input, later) in inputs.iter().zip(later) {
            // Numbers already identify the connections: none is over because it is idle.
            self.open(
                input.at,
                input.direction,
                input.connection,
                input.packet(),
                0,
            );
            let settled = |wake: &Instant| later.is_none_or(|later| *wake < later);
            while let Some(wake) = self.wake().filter(settled) {
                if let Some(departure) = self.pop(wake) {
                    each(departure);
                }
            }
        }
    }
}
