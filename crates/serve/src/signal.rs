//! Waiting to be told to end.

use std::io;

use tokio::signal::unix::{SignalKind, signal};

/// Which signal asked the process to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// SIGINT: Ctrl-C.
    Interrupt,
    /// SIGTERM: a service manager.
    Terminate,
}

/// Blocks the calling thread until SIGINT or SIGTERM comes. From the first call on, these two no
/// longer end the process by themselves.
pub fn wait_for_signal() -> io::Result<Signal> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()?;
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        Ok(tokio::select! {
            _ = interrupt.recv() => Signal::Interrupt,
            _ = terminate.recv() => Signal::Terminate,
        })
    })
}
