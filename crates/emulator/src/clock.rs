//! The emulator's clock: CLOCK_MONOTONIC, counted from the emulator's start.

use posthaste_units::{Instant, Span};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Reads of both clocks that lie further apart were interrupted and are made again.
const APART: u64 = 1_000;

/// Packets may come while a batch is being taken; so long does that last at most, on a machine
/// that has better things to do.
const BATCH: Span = Span::from_millis(50);

/// Reads time for one run; copies agree with one another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: u64,
}

impl Clock {
    /// A clock whose origin is now.
    pub(crate) fn start() -> Self {
        Self {
            origin: read(ClockId::Monotonic),
        }
    }

    /// CLOCK_MONOTONIC when it began.
    pub(crate) const fn origin(&self) -> Span {
        Span::from_nanos(self.origin)
    }

    /// Now.
    pub(crate) fn now(&self) -> Instant {
        Instant::from_nanos(read(ClockId::Monotonic).saturating_sub(self.origin))
    }

    /// How the kernel's arrival stamps are to be read now.
    pub(crate) fn stamps(&self) -> Stamps {
        // Four attempts: then the machine is so busy that a microsecond makes no difference.
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

/// The moment at which the wall clock, in which the kernel stamps packets, stood at `wall`.
///
/// Read anew for every batch, so that a wall clock that is set while we run is wrong for one
/// batch at most, and then never far in the future.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamps {
    wall: u64,
    now: Instant,
}

impl Stamps {
    /// When a packet came that is stamped with this many nanoseconds of the wall clock.
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
        let clock = Clock::start();
        // Between two clocks that are read one after the other a busy machine may do something else.
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
