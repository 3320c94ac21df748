//! Processes that only use CPU time.

use std::path::Path;
use std::process::Command;

use crate::error::Outcome;
use crate::process::Running;

/// Uses a core until it is killed, or until its parent has ended, by any signal.
const BUSY: &str =
    "while [ -d /proc/$PPID ]; do n=0; while [ $n -lt 20000 ]; do n=$((n+1)); done; done";

/// Busy processes. Dropping them or Ctrl-C ends them.
pub(super) struct Neighbours {
    _running: Vec<Running>,
}

impl Neighbours {
    pub(super) fn start(count: u32, logs: &Path) -> Outcome<Self> {
        let start = |_| Running::start("busy", Command::new("sh").args(["-c", BUSY]), logs);
        Ok(Self {
            _running: (0..count).map(start).collect::<Outcome<_>>()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn they_are_busy_until_they_are_dropped() {
        let logs = tempfile::tempdir().expect("a folder");
        let neighbours = Neighbours::start(2, logs.path()).expect("they start");
        let pids: Vec<_> = neighbours._running.iter().map(Running::pid).collect();
        for one in &neighbours._running {
            while one.cpu().expect("it runs") < Duration::from_millis(50) {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        drop(neighbours);
        for pid in pids {
            assert!(rustix::process::test_kill_process_group(pid).is_err());
        }
    }
}
