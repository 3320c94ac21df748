//! Signals that are awaited instead of handled, so that no handler interrupts other code.

use std::io;
use std::mem::MaybeUninit;
use std::time::Duration;

use rustix::process::Signal;

use super::CONCERNED;

/// The signals of [`CONCERNED`] that the process does not ignore, blocked in every thread from now on.
#[derive(Clone, Copy)]
pub(super) struct Signals {
    held: libc::sigset_t,
    before: libc::sigset_t,
}

/// A signal that has arrived.
pub(super) struct Arrived {
    pub(super) signal: Signal,
    /// The kernel sent it: a child has ended, or the terminal sent it to its foreground process group.
    pub(super) by_kernel: bool,
}

impl Signals {
    /// Blocks the signals in the calling thread and in the threads that it starts.
    ///
    /// Signals that the process was started to ignore (`nohup`, `trap '' INT`) stay ignored, here and in commands.
    /// SIGCHLD is an exception, because the kernel would not keep the exit status of children. SIGTERM is always
    /// blocked and awaited, because it reports the death of the supervisor.
    pub(super) fn hold() -> io::Result<Self> {
        if is_ignored(Signal::CHILD) {
            set_default(Signal::CHILD)?;
        }
        let mut held = MaybeUninit::uninit();
        let mut before = MaybeUninit::uninit();
        // SAFETY: both sets outlive the calls. The first call initialises `held`, the others add to it, and the last
        // writes the previous mask to `before`.
        unsafe {
            libc::sigemptyset(held.as_mut_ptr());
            for signal in CONCERNED {
                if signal == Signal::TERM || !is_ignored(signal) {
                    libc::sigaddset(held.as_mut_ptr(), signal.as_raw());
                }
            }
            let held = held.assume_init();
            match libc::pthread_sigmask(libc::SIG_BLOCK, &held, before.as_mut_ptr()) {
                0 => Ok(Self {
                    held,
                    before: before.assume_init(),
                }),
                code => Err(io::Error::from_raw_os_error(code)),
            }
        }
    }

    /// Restores the previous mask. Called between fork and exec, for commands.
    pub(super) fn release(&self) -> io::Result<()> {
        // SAFETY: the set was filled in by the kernel. The call is safe after a fork.
        match unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut())
        } {
            0 => Ok(()),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }

    /// Waits for the next signal, for at most `patience`, or without a limit.
    pub(super) fn wait(&self, patience: Option<Duration>) -> Option<Arrived> {
        let mut info = MaybeUninit::<libc::siginfo_t>::uninit();
        let timeout = patience.map(|patience| libc::timespec {
            tv_sec: patience.as_secs() as libc::time_t,
            tv_nsec: patience.subsec_nanos().into(),
        });
        let timeout = timeout
            .as_ref()
            .map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the set is initialised, and `info` and `timeout` outlive the call.
        let number = unsafe { libc::sigtimedwait(&self.held, info.as_mut_ptr(), timeout) };
        let signal = Signal::from_named_raw(number)?;
        // SAFETY: a signal was taken, so the kernel has filled it in.
        let by_kernel = unsafe { info.assume_init() }.si_code > 0;
        Some(Arrived { signal, by_kernel })
    }
}

fn is_ignored(signal: Signal) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: the call sets nothing. `action` outlives it, and is read only if the kernel has filled it in.
    unsafe {
        libc::sigaction(signal.as_raw(), std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

fn set_default(signal: Signal) -> io::Result<()> {
    // SAFETY: SIG_DFL installs no handler, so no code of ours runs when the signal arrives.
    match unsafe { libc::signal(signal.as_raw(), libc::SIG_DFL) } {
        libc::SIG_ERR => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
