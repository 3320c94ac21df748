//! Waiting for signals: end of the process, or reload of the configuration.

use std::io;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{self, SignalKind, signal};
use tokio::time::timeout;

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

/// A handler of SIGHUP, for the time before a service is ready. SIGINT and SIGTERM still end the process.
#[derive(Debug)]
pub struct ReloadSignal {
    runtime: Runtime,
    reload: unix::Signal,
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

impl ReloadSignal {
    /// Installs the handler, so that SIGHUP no longer ends the process.
    pub fn take() -> io::Result<Self> {
        let runtime = runtime()?;
        let within = runtime.enter();
        let reload = signal(SignalKind::hangup())?;
        drop(within);
        Ok(Self { runtime, reload })
    }

    /// Installs the other handlers, too. A SIGHUP since [`ReloadSignal::take`] is the first signal of
    /// [`Signals::wait`].
    pub fn with_end(self) -> io::Result<Signals> {
        let mut signals = Signals::on(self.runtime)?;
        signals.reload = Some(self.reload);
        Ok(signals)
    }
}

impl Signals {
    /// Installs handlers, so that SIGINT and SIGTERM no longer end the process.
    pub fn take() -> io::Result<Self> {
        Self::on(runtime()?)
    }

    fn on(runtime: Runtime) -> io::Result<Self> {
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

    /// Blocks the calling thread until a signal arrives, or returns one that arrived since installation.
    pub fn wait(&mut self) -> Signal {
        let (runtime, next) = self.next();
        runtime.block_on(next)
    }

    /// Like [`Signals::wait`], but returns `None` after `limit`.
    pub fn wait_at_most(&mut self, limit: Duration) -> Option<Signal> {
        let (runtime, next) = self.next();
        runtime.block_on(async { timeout(limit, next).await.ok() })
    }

    fn next(&mut self) -> (&Runtime, impl Future<Output = Signal>) {
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
        let next = async {
            tokio::select! {
                _ = interrupt.recv() => Signal::Interrupt,
                _ = terminate.recv() => Signal::Terminate,
                _ = reload => Signal::Reload,
            }
        };
        (runtime, next)
    }
}

fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

#[cfg(test)]
mod tests {
    use rustix::process::{Signal as SignalNumber, getpid, kill_process};

    use super::*;

    #[test]
    fn a_reload_requested_before_the_service_is_ready_is_kept() {
        let reload = ReloadSignal::take().unwrap();
        kill_process(getpid(), SignalNumber::HUP).unwrap();
        let mut signals = reload.with_end().unwrap();
        assert_eq!(signals.wait(), Signal::Reload);
        assert_eq!(signals.wait_at_most(Duration::from_millis(1)), None);
    }
}
