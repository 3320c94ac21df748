//! Drop-head: the oldest makes room, so that a receiver hears of the loss a queue's length sooner
//! (T. V. Lakshman, A. Neidhardt, T. J. Ott, "The Drop from Front Strategy in TCP and in TCP over
//! ATM", INFOCOM 1996). The packet that is being sent is not called back.

use super::Policy;

pub(super) struct DropHead;

impl Policy for DropHead {
    fn pushes_out(&self) -> bool {
        true
    }
}
