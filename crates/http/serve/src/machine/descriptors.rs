//! The limit of open files, and early allocation of the kernel's descriptor table.

use rustix::event::{EventfdFlags, eventfd};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Preallocated descriptors: half a MiB of kernel memory.
const PREALLOCATED: u64 = 65_536;

/// Raises the process's limit of open files as far as allowed, makes the kernel allocate its table for the first
/// 65,536, and returns the limit.
///
/// The kernel doubles its descriptor table when it is full. In a process with several threads, the thread that opens
/// the next file then waits for an RCU grace period (`expand_fdtable` in Linux's `fs/file.c`): 10 to 20 ms at the
/// 256th, 512th and 1,024th concurrent connection, during which it serves nobody. A single-threaded process does not
/// wait, so call this early.
pub fn open_files() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // If raising fails, the limit stays unchanged and is read again below.
    let _ = setrlimit(Resource::Nofile, raised);
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    grow_table(limit.min(PREALLOCATED));
    limit
}

/// Uses the last descriptor once, which is enough because the table never shrinks. On failure it grows as usual.
fn grow_table(descriptors: u64) {
    let Ok(any) = eventfd(0, EventfdFlags::CLOEXEC) else {
        return;
    };
    let last = i32::try_from(descriptors).unwrap_or(i32::MAX) - 1;
    let _ = rustix::io::fcntl_dupfd_cloexec(&any, last);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_descriptor_table_is_preallocated() {
        let limit = open_files();
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let size = status.lines().find_map(|line| line.strip_prefix("FDSize:"));
        let size: u64 = size.unwrap().trim().parse().unwrap();
        assert!(size >= limit.min(PREALLOCATED), "{size} of {limit}");
        assert_eq!(
            getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX),
            limit
        );
    }
}
