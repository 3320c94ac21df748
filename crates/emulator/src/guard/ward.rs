//! The guarded process: starts commands so that they can be found again, and hears of their end.

use std::io;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use rustix::process::{
    Pid, Resource, Rlimit, Signal, getppid, getrlimit, set_parent_process_death_signal, setrlimit,
};

use super::signals::{Arrived, Signals};
use super::{descendants, reap};

/// The side of [`post`](super::post) that does the work, with as many descriptors as it may have.
/// Dropping it ends every process below.
pub struct Ward {
    guard: Pid,
    signals: Signals,
    descriptors: Rlimit,
}

/// What a ward hears of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// This process has ended; it may be one that somebody else had started.
    Ended(u32, ExitStatus),
    /// Somebody has sent the run this signal.
    Asked(Signal),
    /// The terminal has sent this signal, to everybody in the foreground.
    Terminal(Signal),
}

impl Ward {
    pub(super) fn take_over(guard: Pid, signals: Signals) -> io::Result<Self> {
        rustix::process::set_child_subreaper(Some(guard))?;
        let descriptors = getrlimit(Resource::Nofile);
        let raised = Rlimit {
            current: descriptors.maximum,
            ..descriptors
        };
        // Up to the own hard limit everybody may.
        setrlimit(Resource::Nofile, raised)?;
        Ok(Self {
            guard,
            signals,
            descriptors,
        })
    }

    /// Has the kernel tell this process to end when its guard does.
    ///
    /// To be called by the first thread and after the user has changed or a user namespace was
    /// entered, which both undo it.
    pub fn mind_the_guard(&self) -> io::Result<()> {
        set_parent_process_death_signal(Some(Signal::TERM))?;
        if getppid() == Some(self.guard) {
            Ok(())
        } else {
            Err(io::Error::other("the guard was ended"))
        }
    }

    /// Has `command` start as a process like any other, and end at the latest with the thread
    /// that starts it.
    pub fn prepare(&self, command: &mut Command) {
        let (signals, descriptors) = (self.signals, self.descriptors);
        let between = move || {
            signals.release()?;
            setrlimit(Resource::Nofile, descriptors)?;
            set_parent_process_death_signal(Some(Signal::KILL))?;
            Ok(())
        };
        // SAFETY: between fork and exec only three system calls are made; nothing is allocated.
        unsafe { command.pre_exec(between) };
    }

    /// What has happened, for which it waits so long at most.
    ///
    /// Every process that ends is waited for here: nobody else must.
    pub fn wait(&self, patience: Duration) -> Option<News> {
        if let Some(news) = ended() {
            return Some(news);
        }
        match self.signals.wait(Some(patience))? {
            Arrived { signal, .. } if signal == Signal::CHILD => ended(),
            Arrived {
                signal,
                by_kernel: true,
            } => Some(News::Terminal(signal)),
            Arrived { signal, .. } => Some(News::Asked(signal)),
        }
    }

    /// Ends every process below this one; returns how many could not be ended.
    pub fn end_all(&self) -> usize {
        descendants::end()
    }
}

impl Drop for Ward {
    fn drop(&mut self) {
        self.end_all();
    }
}

fn ended() -> Option<News> {
    let (who, status) = reap()?;
    let status = ExitStatus::from_raw(status.as_raw());
    Some(News::Ended(
        who.as_raw_nonzero().get().unsigned_abs(),
        status,
    ))
}
