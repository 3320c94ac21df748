//! Drop-tail: a packet that arrives at a full queue is dropped, and all others are sent.

use super::Policy;

pub(super) struct DropTail;

impl Policy for DropTail {
    fn decides_on_arrival(&self) -> bool {
        true
    }
}
