//! Compression by one thread: CPU token bucket, cost model, encoders, accounting.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use posthaste_serve::Slowness;
use posthaste_units::{Instant, Size, Span};
use posthaste_wsqos::{Bill, Outlook, Prices, Purse, Step};
use rustix::time::{ClockId, clock_gettime};

use crate::codec::Press;
use crate::config::Watch;
use crate::house::House;
use crate::upstream::Failure;

/// The compression state of one thread.
pub(crate) struct Workshop {
    pub(crate) purse: RefCell<Purse>,
    pub(crate) prices: RefCell<Prices>,
    /// Copied by a task of this thread at each change, so that reading is free.
    pub(crate) outlook: Cell<Outlook>,
    pub(crate) house: Arc<House>,
    press: RefCell<Press>,
    thread: usize,
    /// Set to emulate a slower machine.
    slowness: Option<Slowness>,
}

/// A compression in progress, with its reservation and cost. Dropping it settles the reservation, however it ends: also
/// if the upstream fails or the client disconnects.
pub(crate) struct Job {
    workshop: Rc<Workshop>,
    pub(crate) step: Step,
    bill: Option<Bill>,
    read: u64,
    written: u64,
    spent: Span,
    is_whole: bool,
}

impl Workshop {
    pub(crate) fn new(thread: usize, house: Arc<House>) -> Self {
        let sharers = match house.plan().config.demand.watch {
            Watch::Workers => 1,
            _ => house.metrics.work.len(),
        };
        let slowdown = house.plan().config.slowdown;
        Self {
            slowness: (slowdown > 1).then(|| Slowness::new(slowdown)),
            purse: RefCell::new(Purse::new(sharers)),
            prices: RefCell::default(),
            outlook: Cell::new(Outlook::UNKNOWN),
            press: RefCell::default(),
            house,
            thread,
        }
    }

    /// Sets the thread's own load estimate and publishes it for monitoring.
    pub(crate) fn look_ahead(&self, outlook: Outlook) {
        self.outlook.set(outlook);
        self.house.metrics.outlooks.set(self.thread, outlook);
    }

    /// Delays a request as on the emulated slower machine.
    pub(crate) fn slow_down(&self) {
        if let Some(slowness) = &self.slowness {
            slowness.pay();
        }
    }

    /// Measures the CPU time of `work`, scaled to the emulated machine.
    fn time<T>(&self, work: impl FnOnce() -> T) -> (T, Span) {
        let start = processor_time();
        let done = work();
        let spent = processor_time().saturating_sub(start);
        let slower = self.slowness.as_ref();
        (done, slower.map_or(spent, |slow| slow.stretch(spent)))
    }

    /// Publishes the thread's optional compression.
    pub(crate) fn publish(&self) {
        self.house.metrics.work[self.thread].set(self.purse.borrow().work());
    }
}

impl Job {
    pub(crate) fn new(workshop: &Rc<Workshop>, step: Step, bill: Option<Bill>) -> Self {
        Self {
            workshop: workshop.clone(),
            step,
            bill,
            read: 0,
            written: 0,
            spent: Span::ZERO,
            is_whole: false,
        }
    }

    /// Compresses a message at once.
    pub(crate) fn pack(mut self, message: &[u8]) -> Result<Bytes, Failure> {
        let (workshop, step) = (self.workshop.clone(), self.step);
        let work = || workshop.press.borrow_mut().pack(step, message);
        let length = Size::from_bytes(message.len() as u64);
        let settled = workshop.prices.borrow_mut().settled(step, length);
        if let Some(price) = settled {
            return self.book(message.len(), work(), price);
        }
        let packed = self.part(message.len(), work)?;
        self.finish();
        Ok(packed)
    }

    /// Runs one part of the compression, for `read` bytes of the message.
    pub(crate) fn part(
        &mut self,
        read: usize,
        work: impl FnOnce() -> io::Result<Bytes>,
    ) -> Result<Bytes, Failure> {
        let (out, spent) = self.workshop.time(work);
        self.book(read, out, spent)
    }

    /// Accounts for one part.
    fn book(&mut self, read: usize, out: io::Result<Bytes>, spent: Span) -> Result<Bytes, Failure> {
        let out = out.map_err(Failure::Codec);
        let out = out.inspect_err(|failure| self.workshop.house.metrics.failed(failure))?;
        self.read += read as u64;
        self.written += out.len() as u64;
        self.spent += spent;
        if let Some(bill) = &mut self.bill {
            self.workshop.purse.borrow_mut().spend(bill, spent);
        }
        Ok(out)
    }

    /// Marks the message as complete. Only complete messages update the cost model.
    pub(crate) fn finish(mut self) {
        self.is_whole = true;
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        let workshop = &self.workshop;
        if self.is_whole {
            let (read, written) = (Size::from_bytes(self.read), Size::from_bytes(self.written));
            let mut prices = workshop.prices.borrow_mut();
            prices.learn(self.step, read, written, self.spent);
        }
        if let Some(bill) = self.bill {
            workshop.purse.borrow_mut().close(bill);
        }
        if self.read > 0 {
            let metrics = &workshop.house.metrics;
            metrics.packed(self.step, self.read, self.written, self.spent);
        }
        workshop.publish();
    }
}

/// Returns monotonic time from an arbitrary origin.
pub(crate) fn now() -> Instant {
    let time = clock_gettime(ClockId::Monotonic);
    Instant::from_nanos(nanos(time))
}

/// Returns the CPU time of the calling thread.
pub(crate) fn processor_time() -> Span {
    Span::from_nanos(nanos(clock_gettime(ClockId::ThreadCPUTime)))
}

fn nanos(time: rustix::time::Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
