//! Signals that are waited for instead of handled: nothing runs at a moment it did not choose.

use std::io;
use std::mem::MaybeUninit;
use std::time::Duration;

use rustix::process::Signal;

use super::CONCERNED;

/// The signals of [`CONCERNED`] that the process is not to ignore, held back for every thread from now on.
#[derive(Clone, Copy)]
pub(super) struct Signals {
    held: libc::sigset_t,
    before: libc::sigset_t,
}

/// A signal that has arrived.
pub(super) struct Arrived {
    pub(super) signal: Signal,
    /// The kernel sent it: a child has ended, or the terminal sends it to its whole foreground.
    pub(super) by_kernel: bool,
}

impl Signals {
    /// Holds them back in the calling thread and in those it starts.
    ///
    /// What the process was started to ignore (`nohup`, `trap '' INT`) is left ignored, here and in
    /// commands. SIGCHLD is not: the kernel would keep no word of how children ended. SIGTERM is held
    /// whatever it was, since by it a ward hears that its guard was killed.
    pub(super) fn hold() -> io::Result<Self> {
        if is_ignored(Signal::CHILD) {
            set_default(Signal::CHILD)?;
        }
        let mut held = MaybeUninit::uninit();
        let mut before = MaybeUninit::uninit();
        // SAFETY: both sets outlive the calls; the first call makes `held` a set, to which the
        // others add, and the last writes the mask so far to `before`.
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

    /// Lets signals through as before; between fork and exec, for who is to be a process of its own.
    pub(super) fn release(&self) -> io::Result<()> {
        // SAFETY: the set was filled in by the kernel; the call is safe after a fork.
        match unsafe {
            libc::pthread_sigmask(libc::SIG_SETMASK, &self.before, std::ptr::null_mut())
        } {
            0 => Ok(()),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }

    /// The next of them, for which it waits so long, or for ever.
    pub(super) fn wait(&self, patience: Option<Duration>) -> Option<Arrived> {
        let mut info = MaybeUninit::<libc::siginfo_t>::uninit();
        let timeout = patience.map(|patience| libc::timespec {
            tv_sec: patience.as_secs() as libc::time_t,
            tv_nsec: patience.subsec_nanos().into(),
        });
        let timeout = timeout
            .as_ref()
            .map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the set is one, and `info` and `timeout` outlive the call.
        let number = unsafe { libc::sigtimedwait(&self.held, info.as_mut_ptr(), timeout) };
        let signal = Signal::from_named_raw(number)?;
        // SAFETY: a signal was taken, so the kernel has filled it in.
        let by_kernel = unsafe { info.assume_init() }.si_code > 0;
        Some(Arrived { signal, by_kernel })
    }
}

fn is_ignored(signal: Signal) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: the call sets nothing; `action` outlives it, and is read only where the kernel has
    // filled it in.
    unsafe {
        libc::sigaction(signal.as_raw(), std::ptr::null(), action.as_mut_ptr()) == 0
            && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

fn set_default(signal: Signal) -> io::Result<()> {
    // SAFETY: no code of ours is to run when the signal comes.
    match unsafe { libc::signal(signal.as_raw(), libc::SIG_DFL) } {
        libc::SIG_ERR => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}
