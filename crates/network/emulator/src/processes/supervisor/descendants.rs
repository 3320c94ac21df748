//! Ends all descendants of the calling process.
//!
//! Only direct children are signalled. They stay zombies until this process waits for them, so their process ids cannot
//! be reused meanwhile. The process is a subreaper: when a child ends, its children become direct children and follow.

use std::collections::HashSet;
use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, wait};

/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(1);
/// Time limit. A process that survives even SIGKILL (in a hung file system) is given up.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time between two polls.
const PAUSE: Duration = Duration::from_millis(2);

/// Ends all descendants: SIGTERM first, SIGKILL a second later. Returns the number that could not be ended.
pub(super) fn end() -> usize {
    let start = Instant::now();
    let mut signalled = HashSet::new();
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) => continue,
            Ok(None) | Err(Errno::INTR) => {}
            // No child is left, and therefore no descendant.
            Err(_) => return 0,
        }
        let children = children();
        let elapsed = start.elapsed();
        if elapsed > PATIENCE {
            return children.len();
        }
        for child in children {
            // Can fail only if the child has just ended; `wait` then returns it.
            if elapsed > GRACE {
                let _ = kill_process(child, Signal::KILL);
            } else if signalled.insert(child) {
                let _ = kill_process(child, Signal::TERM);
                // A stopped process would not act on the signal.
                let _ = kill_process(child, Signal::CONT);
            }
        }
        thread::sleep(PAUSE);
    }
}

/// Children of this process, regardless of the thread that started them.
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
    // The name is in parentheses and may contain anything. State and parent follow it.
    let (_, after) = stat.rsplit_once(')')?;
    Pid::from_raw(after.split_whitespace().nth(1)?.parse().ok()?)
}
