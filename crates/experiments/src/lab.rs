//! A network of one's own for experiments: a namespace with nothing but loopback, and the
//! kernel's counters in it.
//!
//! Inside, no other traffic disturbs a run and the counters count nothing else, so that they can
//! be compared exactly with what a generator says. Namespaces themselves, and links with delay and
//! loss, are the emulator's. Root is not needed where user namespaces are allowed.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use posthaste_emulator::TcpCounters as Counters;
use posthaste_emulator::namespace;

/// What [`enter`] has reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lab {
    /// A namespace of its own, loopback up.
    Own,
    /// Still the machine's network, for this reason: counters count other traffic, too.
    Shared(String),
}

impl Lab {
    /// In words, for a report.
    pub fn describe(&self) -> String {
        match self {
            Self::Own => "a network namespace of its own, loopback only".to_owned(),
            Self::Shared(reason) => format!(
                "the machine's own network, whose counters count other traffic, too ({reason})"
            ),
        }
    }
}

/// Turn to start a server of this process: while it is held, no other one starts.
///
/// A study finds the threads of its server as those that were not there before. Tests run several studies in one
/// process, where the server that another one starts meanwhile would be taken for its own.
pub(crate) fn starting() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Moves the calling process into a network namespace of its own and brings its loopback up.
///
/// To be called before any thread starts: only the calling thread moves, and threads it starts
/// later. Without root this goes through a user namespace, in which the process keeps its user
/// and group. Where neither is allowed, everything stays as it was.
pub fn enter() -> Lab {
    match namespace::enter().and_then(|()| namespace::own_network()) {
        Ok(()) => Lab::Own,
        Err(reason) => Lab::Shared(reason.to_string()),
    }
}

/// The cores of server and generator.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cores {
    pub(crate) server: Option<usize>,
    pub(crate) generator: Option<usize>,
}

/// Said where the machine has one core only.
pub(crate) const SHARED_CORE: &str = "server and generator share the machine's only core";

impl Cores {
    /// One core each where there are two.
    pub(crate) fn here() -> Self {
        match posthaste_serve::available_cpus()[..] {
            [server, generator, ..] => Self {
                server: Some(server),
                generator: Some(generator),
            },
            _ => Self {
                server: None,
                generator: None,
            },
        }
    }

    /// In words.
    pub(crate) fn describe(self) -> String {
        match (self.server, self.generator) {
            (Some(server), Some(generator)) => {
                format!("server on core {server}, generator on core {generator}")
            }
            _ => SHARED_CORE.to_owned(),
        }
    }
}

/// How many connections listening sockets have dropped in this network namespace.
pub fn listen_drops() -> io::Result<u64> {
    Ok(Counters::read()?.listen_drops)
}
