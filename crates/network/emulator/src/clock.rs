//! The emulator's clock: CLOCK_MONOTONIC, counted from the start of the emulator.

use posthaste_units::{Instant, Span};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Maximum distance in nanoseconds between reads of both clocks. Reads further apart were interrupted and are repeated.
const APART: u64 = 1_000;

/// Maximum time for which a batch is read, on a busy machine. Packets may arrive meanwhile.
const BATCH: Span = Span::from_millis(50);

/// Reads the time of one run. Copies agree with one another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EmulatorClock {
    origin: u64,
}

impl EmulatorClock {
    /// A clock with its origin at the present.
    pub(crate) fn start() -> Self {
        Self {
            origin: read(ClockId::Monotonic),
        }
    }

    /// CLOCK_MONOTONIC at the origin.
    pub(crate) const fn origin(&self) -> Span {
        Span::from_nanos(self.origin)
    }

    /// Present time.
    pub(crate) fn now(&self) -> Instant {
        let now = read(ClockId::Monotonic);
        debug_assert!(now >= self.origin, "CLOCK_MONOTONIC went backwards");
        Instant::from_nanos(now.saturating_sub(self.origin))
    }

    /// Reference for the kernel's arrival stamps at present.
    pub(crate) fn stamps(&self) -> Stamps {
        // Four attempts. A machine that interrupts all of them is too busy for a microsecond to matter.
        let mut attempts = 4;
        loop {
            let before = read(ClockId::Monotonic);
            let wall = read(ClockId::Realtime);
            let after = read(ClockId::Monotonic);
            attempts -= 1;
            if after - before <= APART || attempts == 0 {
                let now = Instant::from_nanos(after.saturating_sub(self.origin));
                return Stamps { wall, now };
            }
        }
    }
}

/// A moment of the emulator's clock, paired with the wall clock `wall` that stamps packets in the kernel.
///
/// Read again for each batch. If the wall clock is set during a run, the stamps of one batch at most are wrong, and
/// never far in the future.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamps {
    wall: u64,
    now: Instant,
}

impl Stamps {
    /// Arrival of a packet with this stamp, in nanoseconds of the wall clock.
    pub(crate) fn read(&self, stamp: u64) -> Instant {
        let before = Span::from_nanos(self.wall.saturating_sub(stamp));
        let after = Span::from_nanos(stamp.saturating_sub(self.wall));
        self.now - before + after.min(BATCH)
    }
}

fn read(clock: ClockId) -> u64 {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(clock);
    tv_sec as u64 * 1_000_000_000 + tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_of_the_wall_clock_are_read_to_the_microsecond() {
        let clock = EmulatorClock::start();
        // A busy machine may interrupt between the reads of two clocks.
        let mut tries = (0..50).map(|_| {
            let stamp = read(ClockId::Realtime);
            let before = clock.now();
            std::thread::sleep(std::time::Duration::from_millis(5));
            let stamps = clock.stamps();
            let error = stamps.read(stamp).as_nanos().abs_diff(before.as_nanos());
            println!("{error} ns apart");
            (error, stamps)
        });
        let (_, stamps) = tries.find(|(error, _)| *error < 1_000_000).unwrap();
        let later = stamps.read(stamps.wall + 20_000);
        assert_eq!(later.since(stamps.now), Span::from_micros(20));
        let absurd = stamps.read(stamps.wall + 60_000_000_000);
        assert_eq!(absurd.since(stamps.now), BATCH);
    }
}
