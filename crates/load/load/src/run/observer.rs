//! Receivers of a run's progress.

use jiff::Timestamp;
use posthaste_units::Span;

use crate::tally::tick::Tick;

/// Receives the progress of a run, second by second.
pub trait Observer {
    /// Called before the first request, when all is prepared. `started` is the wall-clock time of the run's origin.
    fn begin(&mut self, started: Timestamp) {
        let _ = started;
    }

    /// Called once a second. `at` is the time since the start (warm-up included) in whole seconds, `tick` the events
    /// since the last call.
    fn tick(&mut self, at: Span, tick: &Tick);
}

impl Observer for () {
    fn tick(&mut self, _: Span, _: &Tick) {}
}

impl<O: Observer> Observer for Option<O> {
    fn begin(&mut self, started: Timestamp) {
        if let Some(observer) = self {
            observer.begin(started);
        }
    }

    fn tick(&mut self, at: Span, tick: &Tick) {
        if let Some(observer) = self {
            observer.tick(at, tick);
        }
    }
}

impl<A: Observer, B: Observer> Observer for (A, B) {
    fn begin(&mut self, started: Timestamp) {
        self.0.begin(started);
        self.1.begin(started);
    }

    fn tick(&mut self, at: Span, tick: &Tick) {
        self.0.tick(at, tick);
        self.1.tick(at, tick);
    }
}

impl<O: Observer> Observer for &mut O {
    fn begin(&mut self, started: Timestamp) {
        O::begin(self, started);
    }

    fn tick(&mut self, at: Span, tick: &Tick) {
        O::tick(self, at, tick);
    }
}
