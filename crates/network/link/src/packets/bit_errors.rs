//! Independent random bit errors, with the same probability for each bit.
//!
//! Draws the distance between two errors, not each bit, so that a packet without errors costs nothing.

use posthaste_units::{Ratio, Seed, Stream};
use rand::RngExt as _;

use crate::Packet;

/// Errors in the stream of all bits that a link delivers.
pub(crate) struct BitErrors {
    draws: Stream,
    /// ln(1 - rate), the factor that makes uniform draws geometric.
    scale: f64,
    /// Correct bits before the next error.
    sound: u64,
}

impl BitErrors {
    /// Bit errors from the stream `bits` of `seed`; `None` at rate zero.
    pub(crate) fn new(rate: Ratio, seed: Seed) -> Option<Self> {
        if rate.get() == 0.0 {
            return None;
        }
        let mut errors = Self {
            draws: seed.stream("bits"),
            scale: (-rate.get()).ln_1p(),
            sound: 0,
        };
        errors.sound = errors.draw();
        Some(errors)
    }

    /// Flips the erroneous bits of the next packet. Returns their number.
    pub(crate) fn pass(&mut self, packet: &mut impl Packet) -> u32 {
        let bits = u64::from(packet.bytes()) * 8;
        let mut at = self.sound;
        let mut flipped = 0;
        while at < bits {
            packet.flip(at as u32);
            flipped += 1;
            at = at.saturating_add(1).saturating_add(self.draw());
        }
        self.sound = at - bits;
        flipped
    }

    /// Geometric distance. At rate 1 the logarithm is minus infinity and every distance zero.
    fn draw(&mut self) -> u64 {
        let uniform = 1.0 - self.draws.random::<f64>();
        (uniform.ln() / self.scale) as u64
    }
}
