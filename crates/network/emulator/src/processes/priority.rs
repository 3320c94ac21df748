//! Scheduling of the emulator's thread: real-time priority if allowed, and exact timers, since the kernel otherwise
//! wakes threads late to save power.

use std::num::NonZeroU64;

use rustix::io::Errno;

/// Real-time priority. Even the lowest precedes all threads without one.
const LOWEST: i32 = 1;

/// Sets the timer slack of the calling thread to the minimum.
pub(crate) fn wake_exactly() {
    // A failure makes the timers coarser. The reported lateness shows that.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// Makes the calling thread a real-time thread (SCHED_FIFO). Threads that it starts are not.
///
/// Needs CAP_SYS_NICE in the machine's own user namespace, or a limit RLIMIT_RTPRIO above zero.
pub(crate) fn become_real_time() -> Result<(), Errno> {
    make_real_time(0)
}

/// Like [`become_real_time`], for another thread.
pub(crate) fn make_real_time(thread: i32) -> Result<(), Errno> {
    let parameters = libc::sched_param {
        sched_priority: LOWEST,
    };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: thread 0 is the calling one, and the parameters outlive the call.
    match unsafe { libc::sched_setscheduler(thread, policy, &parameters) } {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::PERM)),
    }
}
