//! Placement on cores: the generator on the first core, the server on the second.
//!
//! On a machine with one core both share it. The comparisons in the tables are then less exact than they look.

use std::process::{Command, Stdio};
use std::sync::LazyLock;

/// Wrapper for a generator's command.
pub(crate) fn generator() -> &'static [&'static str] {
    &["taskset", "-c", "0"]
}

/// Wrapper for a server's command.
pub(crate) fn server() -> &'static [&'static str] {
    match std::thread::available_parallelism() {
        Ok(cores) if cores.get() > 1 => &["taskset", "-c", "1"],
        _ => &[],
    }
}

/// Wrapper for a command that other work must not delay. Empty if not permitted.
///
/// Not for the benchmark itself: the kernel frees the /proc entries of an ended child in a loop, which a real-time
/// parent never leaves while an ordinary program on its core is half-way through the same loop.
pub(crate) fn real_time() -> &'static [&'static str] {
    static ALLOWED: LazyLock<bool> = LazyLock::new(|| {
        let mut trial = Command::new("chrt");
        trial.args(["-f", "10", "true"]).stderr(Stdio::null());
        trial.status().is_ok_and(|status| status.success())
    });
    if *ALLOWED { &["chrt", "-f", "10"] } else { &[] }
}
