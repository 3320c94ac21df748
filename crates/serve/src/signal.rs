//! Waiting to be told to end.

use std::io;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{self, SignalKind, signal};

/// Which signal asked the process to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT: Ctrl-C.
    Interrupt,
    /// SIGTERM: a service manager.
    Terminate,
}

/// SIGINT and SIGTERM, taken from their usual effect.
///
/// Whoever says that a service is ready takes them before: the answer may be a signal.
#[derive(Debug)]
pub struct Signals {
    runtime: Runtime,
    interrupt: unix::Signal,
    terminate: unix::Signal,
}

impl Signals {
    /// From now on these two no longer end the process by themselves.
    pub fn take() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().build()?;
        let within = runtime.enter();
        let interrupt = signal(SignalKind::interrupt())?;
        let terminate = signal(SignalKind::terminate())?;
        drop(within);
        Ok(Self {
            runtime,
            interrupt,
            terminate,
        })
    }

    /// Blocks the calling thread until one of them comes, or has come since they were taken.
    pub fn wait(mut self) -> Signal {
        self.runtime.block_on(async {
            tokio::select! {
                _ = self.interrupt.recv() => Signal::Interrupt,
                _ = self.terminate.recv() => Signal::Terminate,
            }
        })
    }
}
