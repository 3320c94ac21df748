//! Background work: on a separate thread with its own runtime, or in a task of a simulation.

use std::io;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::task::LocalSet;
use tokio::time::sleep;

use crate::environment::is_simulated;
use crate::task::{BoxedTask, spawn_task};

/// A running background task. Dropping it cancels the task at its next wait and returns after its end. In a simulation
/// it returns at once.
#[derive(Debug)]
pub struct Background {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    /// Gets one message at the end of the work. Shared between threads only because its owners are.
    ended: Mutex<Receiver<()>>,
}

impl Background {
    /// Starts `work` on a thread named `name`. It may spawn tasks there (`tokio::task::spawn_local`).
    pub fn start<W: Future<Output = ()> + 'static>(
        name: &str,
        work: impl FnOnce() -> W + Send + 'static,
    ) -> io::Result<Self> {
        Self::start_boxed(name, Box::new(|| Box::pin(work())))
    }

    fn start_boxed(name: &str, work: Box<dyn FnOnce() -> BoxedTask + Send>) -> io::Result<Self> {
        let (stop, stopped) = oneshot::channel();
        let (end, ended) = channel();
        let body = move || async move {
            tokio::select! {
                biased;
                () = work() => drop(end.send(())),
                // Dropping the sender stops the task, too.
                _ = stopped => {}
            }
        };
        Ok(Self {
            stop: Some(stop),
            thread: if is_simulated() {
                spawn_task(body());
                None
            } else {
                Some(run(name, body)?)
            },
            ended: Mutex::new(ended),
        })
    }

    /// Waits for the end of the work, at most `limit`, and cancels it then. Returns true if it has ended. In a
    /// simulation the work continues for `limit`, and the result is true.
    pub fn finish(&mut self, limit: Duration) -> bool {
        if self.thread.is_none() {
            if let Some(stop) = self.stop.take() {
                spawn_task(async move {
                    sleep(limit).await;
                    drop(stop);
                });
            }
            return true;
        }
        let ended = self.ended.get_mut();
        let ended = ended.unwrap_or_else(PoisonError::into_inner);
        ended.recv_timeout(limit).is_ok()
    }
}

/// Runs `body` on a thread.
fn run<B: Future<Output = ()>>(
    name: &str,
    body: impl FnOnce() -> B + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let body = move || {
        LocalSet::new().block_on(&runtime, body());
        // A name resolution in progress is not awaited.
        runtime.shutdown_background();
    };
    std::thread::Builder::new()
        .name(name.to_owned())
        .spawn(body)
}

impl Drop for Background {
    fn drop(&mut self) {
        drop(self.stop.take());
        // A panic has already been reported.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::time::Duration;

    use super::*;

    /// Sets the flag when it is dropped.
    struct DropFlag(Arc<AtomicBool>);

    impl Drop for DropFlag {
        fn drop(&mut self) {
            self.0.store(true, Relaxed);
        }
    }

    #[test]
    fn work_that_never_ends_ends_when_it_is_dropped() {
        let is_over = Arc::<AtomicBool>::default();
        let held = DropFlag(is_over.clone());
        let work = Background::start("test", || async move {
            let _held = held;
            loop {
                tokio::time::sleep(Duration::from_secs(3600)).await;
            }
        });
        let work = work.unwrap();
        assert!(!is_over.load(Relaxed));
        drop(work);
        assert!(is_over.load(Relaxed));
    }

    #[test]
    fn a_drop_does_not_wait_for_blocking_work() {
        let (begun, has_begun) = std::sync::mpsc::channel();
        let work = Background::start("test", || async move {
            let _ = tokio::task::spawn_blocking(move || {
                let _ = begun.send(());
                std::thread::sleep(Duration::from_secs(20));
            })
            .await;
        });
        has_begun.recv().unwrap();
        let start = std::time::Instant::now();
        drop(work.unwrap());
        assert!(start.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn work_may_end_or_panic_by_itself() {
        drop(Background::start("test", || async {}).unwrap());
        drop(Background::start("test", || async { panic!("as this test wants it") }).unwrap());
    }
}
