//! Open files: as many as the system allows, and room for them before they come.

use rustix::event::{EventfdFlags, eventfd};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// So many descriptors are made room for: half a MiB of the kernel's memory.
const ROOM: u64 = 65_536;

/// Raises the process's limit of open files as far as the system allows, has the kernel make room for the first 65,536,
/// and returns the limit.
///
/// The kernel's table of descriptors is doubled when it is full. Where threads share it, whoever opens the file that
/// does not fit stands still for a grace period of RCU (`expand_fdtable` in Linux's `fs/file.c`): 10 to 20 ms at the
/// 256th, 512th and 1,024th connection of a crowd, in which nobody is served. A process of one thread waits for nobody,
/// so that this is best called early.
pub fn open_files() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        ..limit
    };
    // Where it cannot be raised the limit stays what it was, and is read again below.
    let _ = setrlimit(Resource::Nofile, raised);
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    make_room(limit.min(ROOM));
    limit
}

/// The table never shrinks: it is enough that its last place was taken once. Without room it grows as it always did.
fn make_room(descriptors: u64) {
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
    fn there_is_room_before_the_files_come() {
        let limit = open_files();
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let size = status.lines().find_map(|line| line.strip_prefix("FDSize:"));
        let size: u64 = size.unwrap().trim().parse().unwrap();
        assert!(size >= limit.min(ROOM), "{size} of {limit}");
        assert_eq!(
            getrlimit(Resource::Nofile).maximum.unwrap_or(u64::MAX),
            limit
        );
    }
}
