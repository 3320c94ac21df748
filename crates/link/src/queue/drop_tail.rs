//! Drop-tail: who arrives at a full queue is dropped, everybody else is sent.

use super::Policy;

pub(super) struct DropTail;

impl Policy for DropTail {
    fn decides_on_arrival(&self) -> bool {
        true
    }
}
