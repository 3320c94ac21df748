//! Background work on a separate thread with its own runtime.

use std::io;
use std::thread::JoinHandle;

use tokio::sync::oneshot;

/// A running background task. Dropping it cancels the task at its next wait and returns after its end.
#[derive(Debug)]
pub struct Background {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Background {
    /// Starts `work` on a thread named `name`.
    pub fn start<W: Future<Output = ()>>(
        name: &str,
        work: impl FnOnce() -> W + Send + 'static,
    ) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let body = move || {
            runtime.block_on(async move {
                tokio::select! {
                    () = work() => {}
                    // Dropping the sender stops the task, too.
                    _ = stopped => {}
                }
            });
            // A name resolution in progress is not awaited.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(body)?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
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
    fn what_cannot_be_interrupted_is_not_waited_for() {
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
