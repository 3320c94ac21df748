//! Independent loss: every packet is lost with the same probability.

use posthaste_units::{Ratio, Stream};
use rand::RngExt as _;

use super::Process;

/// Independent loss of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Independent {
    /// Probability of a loss.
    pub loss: Ratio,
}

impl Process for Independent {
    fn loses(&mut self, draws: &mut Stream) -> bool {
        draws.random::<f64>() < self.loss.get()
    }
}
