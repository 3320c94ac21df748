//! Independent loss: every packet is lost with the same probability, whatever befell the others.

use posthaste_units::{Ratio, Stream};
use rand::RngExt as _;

use super::Process;

/// Each packet is lost by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Independent {
    /// The probability.
    pub loss: Ratio,
}

impl Process for Independent {
    fn loses(&mut self, draws: &mut Stream) -> bool {
        draws.random::<f64>() < self.loss.get()
    }
}
