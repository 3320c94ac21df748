//! Compression by one thread: CPU token bucket, cost model, encoders, accounting.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use posthaste_compression::{CostModel, CpuReservation, CpuTokenBucket, LoadEstimate, Step, Work};
use posthaste_gateway_config::{GatewayConfig, Watch};
use posthaste_serve::Slowness;
use posthaste_units::{Size, Span};

use super::codec::WholeCompressor;
use crate::clock::processor_time;
use crate::record::metrics::GatewayMetrics;
use crate::upstream::error::UpstreamError;

/// The compression state of one thread.
pub(crate) struct CompressionWorker {
    pub(crate) bucket: RefCell<CpuTokenBucket>,
    /// Pays for the compression that a dry run leaves out, at the estimated cost and at most 10 ms for each reply.
    pub(crate) dry_bucket: RefCell<CpuTokenBucket>,
    pub(crate) costs: RefCell<CostModel>,
    /// Copied by a task of this thread at each change, so that reading is free.
    pub(crate) estimate: Cell<LoadEstimate>,
    pub(crate) metrics: Arc<GatewayMetrics>,
    compressor: RefCell<WholeCompressor>,
    thread: usize,
    /// Set to emulate a slower machine.
    slowness: Option<Slowness>,
}

/// A compression in progress, with its reservation and cost. Dropping it settles the reservation, however it ends: also
/// if the upstream fails or the client disconnects.
pub(crate) struct CompressionJob {
    worker: Rc<CompressionWorker>,
    pub(crate) step: Step,
    reservation: Option<CpuReservation>,
    read: u64,
    written: u64,
    spent: Span,
    is_whole: bool,
}

impl CompressionWorker {
    pub(crate) fn new(thread: usize, metrics: Arc<GatewayMetrics>, config: &GatewayConfig) -> Self {
        let sharers = match config.demand.watch {
            Watch::Workers => 1,
            _ => metrics.work.len(),
        };
        Self {
            slowness: (config.slowdown > 1).then(|| Slowness::new(config.slowdown)),
            bucket: RefCell::new(CpuTokenBucket::new(sharers)),
            dry_bucket: RefCell::new(CpuTokenBucket::new(sharers)),
            costs: RefCell::default(),
            estimate: Cell::new(LoadEstimate::UNKNOWN),
            compressor: RefCell::default(),
            metrics,
            thread,
        }
    }

    /// Sets the thread's own load estimate and publishes it for monitoring.
    pub(crate) fn publish_load(&self, estimate: LoadEstimate) {
        self.estimate.set(estimate);
        self.metrics.estimates.set(self.thread, estimate);
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
        self.metrics.work[self.thread].set(self.work());
    }

    /// Optional compression of this thread. What a dry run would compress is wanted, and costs nothing.
    pub(crate) fn work(&self) -> Work {
        let mut work = self.bucket.borrow().work();
        work.wanted += self.dry_bucket.borrow().work().wanted;
        work
    }
}

impl CompressionJob {
    pub(crate) fn new(
        worker: &Rc<CompressionWorker>,
        step: Step,
        reservation: Option<CpuReservation>,
    ) -> Self {
        Self {
            worker: worker.clone(),
            step,
            reservation,
            read: 0,
            written: 0,
            spent: Span::ZERO,
            is_whole: false,
        }
    }

    /// Compresses a message at once.
    pub(crate) fn compress(mut self, message: &[u8]) -> Result<Bytes, UpstreamError> {
        let (worker, step) = (self.worker.clone(), self.step);
        let work = || worker.compressor.borrow_mut().compress(step, message);
        let length = Size::from_bytes(message.len() as u64);
        let converged = worker.costs.borrow_mut().converged_cost(step, length);
        if let Some(cost) = converged {
            return self.account(message.len(), work(), cost);
        }
        let compressed = self.part(message.len(), work)?;
        self.finish();
        Ok(compressed)
    }

    /// Runs one part of the compression, for `read` bytes of the message.
    pub(crate) fn part(
        &mut self,
        read: usize,
        work: impl FnOnce() -> io::Result<Bytes>,
    ) -> Result<Bytes, UpstreamError> {
        let (out, spent) = self.worker.time(work);
        self.account(read, out, spent)
    }

    /// Accounts for one part.
    fn account(
        &mut self,
        read: usize,
        out: io::Result<Bytes>,
        spent: Span,
    ) -> Result<Bytes, UpstreamError> {
        let out = out.map_err(UpstreamError::Codec);
        let out = out.inspect_err(|failure| self.worker.metrics.failed(failure.kind()))?;
        debug_assert!(!self.is_whole, "a message ends once");
        self.read += read as u64;
        self.written += out.len() as u64;
        self.spent += spent;
        if let Some(reservation) = &mut self.reservation {
            self.worker.bucket.borrow_mut().spend(reservation, spent);
        }
        Ok(out)
    }

    /// Marks the message as complete. Only complete messages update the cost model.
    pub(crate) fn finish(mut self) {
        self.is_whole = true;
    }
}

impl Drop for CompressionJob {
    fn drop(&mut self) {
        let worker = &self.worker;
        if self.is_whole {
            let (read, written) = (Size::from_bytes(self.read), Size::from_bytes(self.written));
            let mut costs = worker.costs.borrow_mut();
            costs.observe(self.step, read, written, self.spent);
        }
        // Taken, so that it is settled once.
        if let Some(reservation) = self.reservation.take() {
            worker.bucket.borrow_mut().settle(reservation);
        }
        if self.read > 0 {
            let metrics = &worker.metrics;
            metrics.compressed(self.step, self.read, self.written, self.spent);
        }
        worker.publish();
    }
}
