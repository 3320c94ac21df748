//! Precedence for the emulator's thread: before everything else where that is allowed, and
//! without the kernel's wish to save power by waking late.

use std::num::NonZeroU64;

use rustix::io::Errno;

/// Priority among real-time threads: the lowest is above everything that is not one.
const LOWEST: i32 = 1;

/// Has the calling thread woken as exactly as can be.
pub(crate) fn wake_exactly() {
    // Without it the timers are only coarser, and that shows in the lateness reported.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
}

/// Makes the calling thread a real-time thread (SCHED_FIFO); threads it starts are none.
///
/// Needs CAP_SYS_NICE in the machine's own user namespace or a limit RLIMIT_RTPRIO above zero.
pub(crate) fn become_real_time() -> Result<(), Errno> {
    let parameters = libc::sched_param {
        sched_priority: LOWEST,
    };
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: thread 0 is the calling one, and the parameters outlive the call.
    match unsafe { libc::sched_setscheduler(0, policy, &parameters) } {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::PERM)),
    }
}
