//! Waiting to be told to end, or to read a configuration again.

use std::io;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{self, SignalKind, signal};

/// What a signal asks of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT: Ctrl-C.
    Interrupt,
    /// SIGTERM: a service manager.
    Terminate,
    /// SIGHUP: read the configuration again.
    Reload,
}

/// SIGINT and SIGTERM, and SIGHUP where asked for, taken from their usual effect.
///
/// Whoever says that a service is ready takes them before: the answer may be a signal.
#[derive(Debug)]
pub struct Signals {
    runtime: Runtime,
    interrupt: unix::Signal,
    terminate: unix::Signal,
    reload: Option<unix::Signal>,
}

impl Signals {
    /// From now on SIGINT and SIGTERM no longer end the process by themselves.
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
            reload: None,
        })
    }

    /// From now on SIGHUP does not end it either.
    pub fn take_reload(&mut self) -> io::Result<()> {
        let _within = self.runtime.enter();
        self.reload = Some(signal(SignalKind::hangup())?);
        Ok(())
    }

    /// Blocks the calling thread until one of them comes, or has come since they were taken.
    pub fn wait(&mut self) -> Signal {
        let Self {
            runtime,
            interrupt,
            terminate,
            reload,
        } = self;
        let reload = async {
            match reload {
                Some(signal) => signal.recv().await,
                None => std::future::pending().await,
            }
        };
        runtime.block_on(async {
            tokio::select! {
                _ = interrupt.recv() => Signal::Interrupt,
                _ = terminate.recv() => Signal::Terminate,
                _ = reload => Signal::Reload,
            }
        })
    }
}
