//! A thread that reads records from the emulator and does slow work with them.
//!
//! It polls every few milliseconds, and the emulator never waits for it. If a disk stalls, the buffer in between fills,
//! and the records lost there are counted.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::path::packet_record::Notes;

/// Sleep after the buffer is empty. At 250,000 packets a second, 1,250 arrive meanwhile.
const PAUSE: Duration = Duration::from_millis(5);

/// A thread that follows a run.
pub(crate) struct RecordFollower<S> {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<S>>,
}

impl<S: Send + 'static> RecordFollower<S> {
    /// Starts the thread. `each` is called with every record, in order.
    pub(crate) fn start<T: Send + 'static>(
        notes: Notes<T>,
        mut sink: S,
        each: fn(&mut S, T),
    ) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let follow = move || {
            loop {
                // Read before the last drain, so that no earlier record is missed.
                let last = stopped.load(Ordering::Acquire);
                notes.drain().for_each(|note| each(&mut sink, note));
                if last {
                    return sink;
                }
                thread::sleep(PAUSE);
            }
        };
        let thread = thread::Builder::new()
            .name("notes".to_owned())
            .spawn(follow)?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }

    /// Processes the remaining records, ends the thread and returns its sink.
    pub(crate) fn finish(mut self) -> S {
        self.stop.store(true, Ordering::Release);
        let thread = self.thread.take().expect("finished only once");
        match thread.join() {
            Ok(sink) => sink,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl<S> Drop for RecordFollower<S> {
    fn drop(&mut self) {
        // The result is not needed. The thread ends by itself.
        self.stop.store(true, Ordering::Release);
    }
}
