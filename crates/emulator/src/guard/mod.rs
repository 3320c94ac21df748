//! Nothing is left behind, however a run ends: a guard outlives it and ends what it has started.
//!
//! [`post`] splits the process in two before any thread starts. The parent becomes the guard; the
//! child, the [`Ward`], goes on and does the work. Both adopt the orphans below them, so that a
//! command that forks and stays, or starts a session of its own, is still found. When the ward
//! ends, killed or not, the guard ends whatever is left; when the guard is killed, the ward is
//! told to end and does the same. Only who kills both at one stroke can leave something.
//!
//! There is no PID namespace, which would need a /proc of its own and would hide processes from
//! whoever looks for them. All stay in one process group of one session, so that a terminal's
//! Ctrl-C and Ctrl-Z reach the command as they would from a shell; neither guard nor ward dies of
//! them before it.

mod descendants;
mod signals;
mod ward;

use std::fs;
use std::io;
use std::process;

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process};

use self::signals::Signals;
pub use self::ward::{News, Ward};

/// The guard's exit status when its ward was killed.
const WARD_KILLED: i32 = 3;

/// Posts a guard over the calling process and returns in the process that is guarded.
///
/// Fails when the process has several threads already. What the guarded process ends with is what
/// the caller's parent sees.
pub fn post() -> io::Result<Ward> {
    if fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other(
            "a guard has to be posted before the first thread starts",
        ));
    }
    let guard = getpid();
    let signals = Signals::hold()?;
    // SAFETY: the process has a single thread, so the child finds no lock that nobody will open.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ward::take_over(guard, signals),
        ward => {
            let ward = Pid::from_raw(ward).expect("fork returns a process");
            let status = watch(ward, &signals);
            process::exit(status)
        }
    }
}

/// The guard's life: passes on what it is sent, and clears up when the ward has ended.
fn watch(ward: Pid, signals: &Signals) -> i32 {
    // Without it orphans go elsewhere; all others are still found.
    let _ = rustix::process::set_child_subreaper(Some(ward));
    loop {
        while let Some((who, status)) = reap() {
            if who == ward {
                return clear_up(status);
            }
        }
        let arrived = signals.wait(None);
        // What the terminal sends has reached the ward already.
        if let Some(arrived) = arrived.filter(|arrived| !arrived.by_kernel) {
            // It can only have ended since, and then the next turn sees it.
            let _ = kill_process(ward, arrived.signal);
        }
    }
}

fn clear_up(status: WaitStatus) -> i32 {
    let left = descendants::end();
    if left > 0 {
        eprintln!("posthaste: {left} processes could not be ended");
    }
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => code,
        (None, signal) => {
            let signal = signal.unwrap_or_default();
            eprintln!("posthaste: killed by signal {signal}; what it had started was ended");
            WARD_KILLED
        }
    }
}

/// The next child that has ended.
fn reap() -> Option<(Pid, WaitStatus)> {
    rustix::process::wait(WaitOptions::NOHANG).ok().flatten()
}

/// Signals that concern a run: a child has ended, or somebody wants it to end.
const CONCERNED: [Signal; 5] = [
    Signal::CHILD,
    Signal::INT,
    Signal::QUIT,
    Signal::TERM,
    Signal::HUP,
];
