//! A supervisor that outlives a run and ends all its processes, however the run ends.
//!
//! [`spawn`] forks before any thread starts. The parent becomes the supervisor. The child, the supervised process
//! ([`Supervised`]), continues and does the work. Both adopt orphans among their descendants, so a command that forks and
//! stays, or starts its own session, is still found. When the supervised process ends, even by a signal, the supervisor
//! ends all remaining processes. When the supervisor is killed, the supervised process is told to end and does the
//! same. Processes can remain only if both are killed at the same moment.
//!
//! There is no PID namespace. It would need its own /proc and would hide processes from users who look for them. All
//! processes stay in one process group of one session, so a terminal's Ctrl-C and Ctrl-Z reach the command as from a
//! shell. Neither supervisor nor supervised process dies of them earlier.

mod descendants;
mod signals;
mod supervised;

use std::fs;
use std::io::{self, Write as _};
use std::process;

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process};

use self::signals::Signals;
pub use self::supervised::{ChildEvent, Supervised};

/// Exit status of the supervisor if the supervised process was killed.
const SUPERVISED_KILLED: i32 = 3;

/// Forks a supervisor for the calling process and returns in the supervised process.
///
/// Fails if the process already has several threads. The caller's parent sees the exit status of the supervised
/// process.
pub fn spawn() -> io::Result<Supervised> {
    if fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other(
            "the supervisor has to be spawned before the first thread starts",
        ));
    }
    let supervisor = getpid();
    let signals = Signals::hold()?;
    // SAFETY: the process has a single thread, so the child finds no lock held by another thread.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Supervised::take_over(supervisor, signals),
        supervised => {
            let supervised = Pid::from_raw(supervised).expect("fork returns a process");
            let status = watch(supervised, &signals);
            process::exit(status)
        }
    }
}

/// Main loop of the supervisor: forwards signals, and cleans up when the supervised process has ended.
fn watch(supervised: Pid, signals: &Signals) -> i32 {
    // If this fails, orphans get another parent. All other processes are still found.
    let _ = rustix::process::set_child_subreaper(Some(supervised));
    loop {
        while let Some((who, status)) = reap() {
            if who == supervised {
                return clear_up(status);
            }
        }
        let arrived = signals.wait(None);
        // Signals of the terminal have already reached the supervised process.
        if let Some(arrived) = arrived.filter(|arrived| !arrived.by_kernel) {
            // This fails only if the process has ended since. The next iteration notices that.
            let _ = kill_process(supervised, arrived.signal);
        }
    }
}

fn clear_up(status: WaitStatus) -> i32 {
    let left = descendants::end();
    if left > 0 {
        let _ = writeln!(
            io::stderr(),
            "posthaste: {left} processes could not be ended"
        );
    }
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => code,
        (None, signal) => {
            let signal = signal.expect("a process ends by its exit or by a signal");
            let _ = writeln!(
                io::stderr(),
                "posthaste: killed by signal {signal}; what it had started was ended"
            );
            SUPERVISED_KILLED
        }
    }
}

/// The next child that has ended.
fn reap() -> Option<(Pid, WaitStatus)> {
    rustix::process::wait(WaitOptions::NOHANG).ok().flatten()
}

/// Signals that concern a run: a child has ended, the run is asked to end, or a signal for the command.
const CONCERNED: [Signal; 7] = [
    Signal::CHILD,
    Signal::USR1,
    Signal::USR2,
    Signal::INT,
    Signal::QUIT,
    Signal::TERM,
    Signal::HUP,
];
