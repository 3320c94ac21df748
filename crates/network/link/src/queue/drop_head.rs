//! Drop-head: the oldest packet makes room, so that a receiver learns of the loss sooner by one queue length (T. V.
//! Lakshman, A. Neidhardt, T. J. Ott, "The Drop from Front Strategy in TCP and in TCP over ATM", INFOCOM 1996). The
//! packet in transmission is not dropped.

use super::Policy;

pub(super) struct DropHead;

impl Policy for DropHead {
    fn pushes_out(&self) -> bool {
        true
    }
}
