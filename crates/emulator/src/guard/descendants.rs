//! Ends every process below the calling one.
//!
//! Only own children are signalled: they stay zombies until they are waited for here, so that no
//! number can meanwhile mean somebody else. Their children become ours when they have ended, as
//! the process is a subreaper, and have their turn then.

use std::collections::HashSet;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};

/// Between the friendly signal and the last one.
const GRACE: Duration = Duration::from_secs(1);
/// After this a process that survives even the last one (in a hung file system) is given up.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(2);

/// Ends them: SIGTERM first, SIGKILL a second later. Returns how many could not be ended.
pub(super) fn end() -> usize {
    let start = Instant::now();
    let mut asked = HashSet::new();
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => continue,
            Ok(None) | Err(Errno::INTR) => {}
            // No child is left, and so none of theirs.
            Err(_) => return 0,
        }
        let children = children();
        let elapsed = start.elapsed();
        if elapsed > PATIENCE {
            return children.len();
        }
        for child in children {
            // Who has just ended is met by `wait`; nobody else can be refused.
            if elapsed > GRACE {
                let _ = kill_process(child, Signal::KILL);
            } else if asked.insert(child) {
                let _ = kill_process(child, Signal::TERM);
                // A stopped process would not hear of it.
                let _ = kill_process(child, Signal::CONT);
            }
        }
        thread::sleep(PAUSE);
    }
}

/// The processes whose parent is this one, whichever of its threads started them.
fn children() -> Vec<Pid> {
    let own = getpid();
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    processes
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(Pid::from_raw)
        .filter(|process| parent(*process) == Some(own))
        .collect()
}

fn parent(process: Pid) -> Option<Pid> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name stands in parentheses and may hold anything; state and parent follow it.
    let (_, after) = stat.rsplit_once(')')?;
    Pid::from_raw(after.split_whitespace().nth(1)?.parse().ok()?)
}
