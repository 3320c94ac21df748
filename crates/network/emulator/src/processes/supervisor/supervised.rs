//! The supervised process: starts commands so that they can be found, and learns of their end.

use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use rustix::process::{
    Pid, Resource, Rlimit, Signal, getppid, getrlimit, set_parent_process_death_signal, setrlimit,
};

use super::signals::{Arrived, Signals};
use super::{descendants, reap};

/// The side of [`spawn`](super::spawn) that does the work. Its limit of open descriptors is raised to the hard limit.
/// Dropping it ends all descendants.
pub struct Supervised {
    supervisor: Pid,
    signals: Signals,
    descriptors: Rlimit,
}

/// An event for the supervised process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildEvent {
    /// This process has ended. It may be a descendant that another process started.
    Ended(u32, ExitStatus),
    /// A process has sent the run this signal.
    Asked(Signal),
    /// The terminal has sent this signal to its foreground process group.
    Terminal(Signal),
}

impl Supervised {
    pub(super) fn take_over(supervisor: Pid, signals: Signals) -> io::Result<Self> {
        rustix::process::set_child_subreaper(Some(supervisor))?;
        let descriptors = getrlimit(Resource::Nofile);
        let raised = Rlimit {
            current: descriptors.maximum,
            ..descriptors
        };
        // Each process may raise its limit up to its hard limit.
        setrlimit(Resource::Nofile, raised)?;
        Ok(Self {
            supervisor,
            signals,
            descriptors,
        })
    }

    /// Requests SIGTERM from the kernel when the supervisor dies.
    ///
    /// Call it from the first thread, after a change of user or entry into a user namespace. Both cancel the request.
    pub fn die_with_parent(&self) -> io::Result<()> {
        set_parent_process_death_signal(Some(Signal::TERM))?;
        if getppid() == Some(self.supervisor) {
            Ok(())
        } else {
            Err(io::Error::other("the supervisor was ended"))
        }
    }

    /// Prepares `command`: it starts as an ordinary process, and ends at the latest with the thread that starts it.
    pub fn prepare(&self, command: &mut Command) {
        let (signals, descriptors) = (self.signals, self.descriptors);
        let between = move || {
            signals.release()?;
            setrlimit(Resource::Nofile, descriptors)?;
            set_parent_process_death_signal(Some(Signal::KILL))?;
            Ok(())
        };
        // SAFETY: between fork and exec only three system calls are made, and nothing is allocated.
        unsafe { command.pre_exec(between) };
    }

    /// Waits for the next event, for at most `patience`.
    ///
    /// It reaps every process that ends. No other code may wait for children.
    pub fn wait(&self, patience: Duration) -> Option<ChildEvent> {
        if let Some(news) = ended() {
            return Some(news);
        }
        match self.signals.wait(Some(patience))? {
            Arrived { signal, .. } if signal == Signal::CHILD => ended(),
            Arrived {
                signal,
                by_kernel: true,
            } => Some(ChildEvent::Terminal(signal)),
            Arrived { signal, .. } => Some(ChildEvent::Asked(signal)),
        }
    }

    /// Ends all descendants. Returns the number that could not be ended.
    pub fn end_all(&self) -> usize {
        descendants::end()
    }
}

impl Drop for Supervised {
    fn drop(&mut self) {
        self.end_all();
    }
}

fn ended() -> Option<ChildEvent> {
    let (who, status) = reap()?;
    let status = ExitStatus::from_raw(status.as_raw());
    Some(ChildEvent::Ended(
        who.as_raw_nonzero().get().unsigned_abs(),
        status,
    ))
}
