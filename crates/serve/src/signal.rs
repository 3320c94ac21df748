//! Waiting for signals: end of the process, or reload of the configuration.

use std::io;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{self, SignalKind, signal};

/// The request that a signal makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT: Ctrl-C.
    Interrupt,
    /// SIGTERM: a service manager.
    Terminate,
    /// SIGHUP: reload the configuration.
    Reload,
}

/// Handlers of SIGINT and SIGTERM, and optionally SIGHUP, in place of their default actions.
///
/// Install them before reporting readiness, because a signal may follow at once.
#[derive(Debug)]
pub struct Signals {
    runtime: Runtime,
    interrupt: unix::Signal,
    terminate: unix::Signal,
    reload: Option<unix::Signal>,
}

impl Signals {
    /// Installs handlers, so that SIGINT and SIGTERM no longer end the process.
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

    /// Installs a handler for SIGHUP, too.
    pub fn take_reload(&mut self) -> io::Result<()> {
        let _within = self.runtime.enter();
        self.reload = Some(signal(SignalKind::hangup())?);
        Ok(())
    }

    /// Blocks the calling thread until a signal arrives, or returns one that arrived since installation.
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
