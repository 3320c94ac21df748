//! A private network for studies: a namespace with only a loopback interface, and its kernel counters.
//!
//! No other traffic disturbs a run there. The kernel's counters count nothing else and can be compared exactly with the
//! generator's. Namespaces, and links with delay and loss, are part of the emulator. Root is not needed if user
//! namespaces are allowed.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use posthaste_emulator::TcpCounters as Counters;
use posthaste_emulator::namespace;

/// Result of [`enter`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lab {
    /// A network namespace of this process, loopback up.
    Own,
    /// The machine's network, with the reason. Counters include other traffic.
    Shared(String),
}

impl Lab {
    /// Describes the network in words, for a report.
    pub fn describe(&self) -> String {
        match self {
            Self::Own => "a network namespace of its own, loopback only".to_owned(),
            Self::Shared(reason) => format!(
                "the machine's own network, whose counters count other traffic, too ({reason})"
            ),
        }
    }
}

/// Lock for starting a server in this process. Only its holder may start one.
///
/// A study finds the threads of its server by comparing the threads before and after the start. Tests run several
/// studies in one process, and a server that another test starts meanwhile would be mistaken for the study's own.
pub fn starting() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Moves the calling process into a network namespace of its own and brings its loopback up.
///
/// Must be called before any thread starts, because only the calling thread and its later threads move. Without root,
/// it goes through a user namespace, where the process keeps its user and group. If neither is allowed, nothing
/// changes.
pub fn enter() -> Lab {
    match namespace::enter().and_then(|()| namespace::own_network()) {
        Ok(()) => Lab::Own,
        Err(reason) => Lab::Shared(reason.to_string()),
    }
}

/// The cores of server and generator.
#[derive(Clone, Copy, Debug)]
pub struct Cores {
    /// Core of the server.
    pub server: Option<usize>,
    /// Core of the generator.
    pub generator: Option<usize>,
}

/// Note for machines with one core.
pub const SHARED_CORE: &str = "server and generator share the machine's only core";

impl Cores {
    /// Assigns one core each, if there are at least two.
    pub fn here() -> Self {
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

    /// Describes the assignment in words.
    pub fn describe(self) -> String {
        match (self.server, self.generator) {
            (Some(server), Some(generator)) => {
                format!("server on core {server}, generator on core {generator}")
            }
            _ => SHARED_CORE.to_owned(),
        }
    }
}

/// Returns the number of connections that listening sockets have dropped in this network namespace.
pub fn listen_drops() -> io::Result<u64> {
    Ok(Counters::read()?.listen_drops)
}
