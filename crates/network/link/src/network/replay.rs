//! Replay of a record: the same inputs lead to the same decisions.

use std::sync::Arc;

use posthaste_units::Instant;

use super::{Arrived, Network, Plans, Sharing};
use crate::plans::change::AppliedChange;
use crate::record::{BlankPacket, Input};

impl Network<u64, BlankPacket> {
    /// Pushes the inputs of a record and makes its changes, and passes every departure to `each`, in order of departure.
    ///
    /// Its decisions are the same if the plans, the sharing and the seed are those of the recorded network and nothing
    /// was pushed before. Plans that a control could change were [changeable](crate::Plan::changeable) also without any
    /// change, which matters for cross traffic. With changes the plans become [changeable](crate::Plan::changeable), except those that a
    /// function [chooses](Network::choosing).
    pub fn replay(&mut self, inputs: &[Input], mut each: impl FnMut(Arrived<u64, BlankPacket>)) {
        let has_changes = inputs.iter().any(|input| matches!(input, Input::Change(_)));
        if has_changes {
            self.make_changeable();
        }
        // The two directions are stamped separately, so times may decrease slightly from one input to the next. Nothing
        // is popped that a later input could still change.
        let mut later = vec![None; inputs.len()];
        for at in (1..inputs.len()).rev() {
            let next = inputs[at].at();
            later[at - 1] = Some(later[at].map_or(next, |later| next.min(later)));
        }
        for (input, later) in inputs.iter().zip(later) {
            // Numbers already identify the connections: none is over because it is idle.
            match input {
                Input::Packet(packet) => {
                    let (at, direction) = (packet.at, packet.direction);
                    self.open(at, direction, packet.connection, packet.packet(), 0);
                }
                Input::Change(AppliedChange { at, change }) => {
                    self.change(*at, change.clone());
                }
            }
            let settled = |wake: &Instant| later.is_none_or(|later| *wake < later);
            while let Some(wake) = self.wake().filter(settled) {
                if let Some(departure) = self.pop(wake) {
                    each(departure);
                }
            }
        }
    }
    /// Makes all plans changeable. Nothing may have been pushed.
    fn make_changeable(&mut self) {
        let Plans::Same(plans) = &mut self.plans else {
            return;
        };
        for plan in &mut *plans {
            Arc::make_mut(plan).changeable = true;
        }
        if self.sharing == Sharing::Whole {
            let plans = plans.clone();
            self.pairs.clear();
            self.add_pair(0, self.seed, &plans);
        }
    }
}
