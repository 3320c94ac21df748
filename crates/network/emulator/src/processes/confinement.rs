//! Confinement of a session's commands: no capabilities over the machine, and a host name of their own.
//!
//! An ordinary user has to enter a user namespace to create networks, and its commands have no capabilities. Root could
//! create networks without one. Its commands would then have every capability over the machine, and could set its clock.
//! [`enter`] therefore takes root's process into a user namespace, too. A capability counts there only for the networks,
//! the mounts and the host name of the session, and for files and processes of mapped users. Root's namespace maps every
//! user to itself, so that files keep their owners and commands like `su` work.
//!
//! This is no sandbox: a command of root still is the owner of root's files, including devices and `/proc/sys`.
//!
//! Only a process outside of the new namespace may write such a map, or give a thread real-time priority. [`Delegate`] is
//! that process.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;

use rustix::io::Errno;
use rustix::process::{Pid, geteuid, getpid};
use rustix::thread::{CapabilitySet, UnshareFlags, gettid};

use crate::namespaces::namespace::{self, NEEDED, NamespaceError, forbidden, holds, unshare};
use crate::processes::priority;

/// Capabilities that commands of root keep. All others are removed from the bounding set, so that no program gets them.
///
/// The first group is for the session's own networks, mounts, host name and processes, the second for files and for
/// changes of user (`su`, `sudo`, package managers).
const KEPT: CapabilitySet = CapabilitySet::empty()
    .union(CapabilitySet::NET_ADMIN)
    .union(CapabilitySet::NET_RAW)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::SYS_ADMIN)
    .union(CapabilitySet::SYS_CHROOT)
    .union(CapabilitySet::SYS_PTRACE)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::CHOWN)
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::DAC_READ_SEARCH)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::SETFCAP)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETPCAP);

/// Capabilities to map every user into a new user namespace (user_namespaces(7)).
const MAPPING: CapabilitySet = CapabilitySet::SETUID
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETFCAP);

/// Privileges of the commands of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Privileges {
    /// Those of [`enter`].
    #[default]
    Confined,
    /// Those of the process that runs the session. The host name is the machine's.
    Kept,
}

/// Remedy for root, which could have networks without a user namespace.
const REMEDY: &str = "allow user namespaces (sysctl user.max_user_namespaces=10000; not in a chroot), or run the \
    command with all of root's capabilities: --keep-capabilities";

/// Gets the privilege to create network namespaces for this process, and confines it and its later children.
///
/// Call it before any thread starts. Like [`namespace::enter`] for an ordinary user, who keeps user and group. Root gets
/// a delegate. It ends when dropped.
pub(crate) fn enter() -> Result<Option<Delegate>, NamespaceError> {
    let is_able = geteuid().is_root() && holds(NEEDED);
    confine().map_err(|error| match error {
        NamespaceError::Forbidden {
            operation, errno, ..
        } if is_able => NamespaceError::Forbidden {
            operation,
            remedy: REMEDY,
            errno,
        },
        error => error,
    })
}

fn confine() -> Result<Option<Delegate>, NamespaceError> {
    let delegate = if geteuid().is_root() {
        Some(enter_as_root()?)
    } else {
        namespace::enter()?;
        None
    };
    unshare(UnshareFlags::NEWUTS).map_err(refused("host name of its own"))?;
    limit_capabilities().map_err(refused("limit of capabilities"))?;
    Ok(delegate)
}

/// Enters a user namespace with all users and groups of the present one, under the same numbers. Without the
/// capabilities for that, it has only root.
fn enter_as_root() -> Result<Delegate, NamespaceError> {
    let failed = refused("user namespace");
    let may_map = holds(MAPPING);
    let delegate = Delegate::start().map_err(&failed)?;
    if may_map {
        namespace::unshare_user()?;
        delegate.map_users().map_err(failed)?;
    } else {
        namespace::enter_with_own_user()?;
    }
    Ok(delegate)
}

/// Removes all capabilities but [`KEPT`] from the bounding set of the calling thread.
fn limit_capabilities() -> Result<(), Errno> {
    for number in 0..u64::BITS {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        if KEPT.contains(capability) {
            continue;
        }
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            Ok(()) => {}
            // The kernel has no capability of this number or above.
            Err(Errno::INVAL) => break,
            // Only root gets capabilities by starting a program.
            Err(Errno::PERM) if !geteuid().is_root() => break,
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

fn refused(operation: &'static str) -> impl Fn(Errno) -> NamespaceError {
    move |errno| forbidden(format!("{operation} refused ({errno})"), errno)
}

/// A child process that stays outside of the user namespace of its parent. It ends when the parent drops its end.
#[derive(Debug)]
pub(crate) struct Delegate {
    requests: UnixStream,
}

/// Request to map the users. Any other is the number of a thread.
const MAP_USERS: i32 = 0;

impl Delegate {
    fn start() -> Result<Self, Errno> {
        let parent = getpid();
        let (requests, inbox) = UnixStream::pair().map_err(errno)?;
        // SAFETY: the process has a single thread, so the child finds no lock held by another thread.
        match unsafe { libc::fork() } {
            -1 => Err(errno(io::Error::last_os_error())),
            0 => {
                drop(requests);
                serve(parent, inbox);
                // SAFETY: ends the process at once. The parent's buffers and files are not touched.
                unsafe { libc::_exit(0) }
            }
            _ => Ok(Self { requests }),
        }
    }

    /// Maps all users and groups into the user namespace that the parent has entered.
    fn map_users(&self) -> Result<(), Errno> {
        self.request(MAP_USERS)
    }

    /// Gives the calling thread real-time priority, if root has it outside.
    pub(crate) fn make_real_time(&self) -> Result<(), Errno> {
        self.request(gettid().as_raw_nonzero().get())
    }

    fn request(&self, request: i32) -> Result<(), Errno> {
        let mut requests = &self.requests;
        let mut reply = [0; size_of::<i32>()];
        requests
            .write_all(&request.to_ne_bytes())
            .and_then(|()| requests.read_exact(&mut reply))
            .map_err(errno)?;
        match i32::from_ne_bytes(reply) {
            0 => Ok(()),
            code => Err(Errno::from_raw_os_error(code)),
        }
    }
}

/// Work of the delegate, until its parent has dropped its end.
fn serve(parent: Pid, mut inbox: UnixStream) {
    let mut request = [0; size_of::<i32>()];
    while inbox.read_exact(&mut request).is_ok() {
        let done = match i32::from_ne_bytes(request) {
            MAP_USERS => map_users_of(parent).map_err(errno),
            thread => priority::make_real_time(thread),
        };
        let code = done.map_or_else(Errno::raw_os_error, |()| 0);
        if inbox.write_all(&code.to_ne_bytes()).is_err() {
            return;
        }
    }
}

fn map_users_of(process: Pid) -> io::Result<()> {
    for file in ["uid_map", "gid_map"] {
        let map = identity(&fs::read_to_string(format!("/proc/self/{file}"))?);
        fs::write(format!("/proc/{}/{file}", process.as_raw_nonzero()), map)?;
    }
    Ok(())
}

fn errno(error: io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

/// The same extents inside and outside. A line of the file has the first number inside, the first outside, and a count
/// (user_namespaces(7)).
fn identity(map: &str) -> String {
    let line = |line: &str| {
        let mut numbers = line.split_whitespace();
        let (first, count) = (numbers.next()?, numbers.nth(1)?);
        Some(format!("{first} {first} {count}\n"))
    };
    map.lines().filter_map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_mapped_to_themselves() {
        let machine = "         0          0 4294967295\n";
        assert_eq!(identity(machine), "0 0 4294967295\n");
        let container = "0 100000 65536\n65536 1000 1\n";
        assert_eq!(identity(container), "0 0 65536\n65536 65536 1\n");
    }

    /// Each of these concerns the machine in whole.
    #[test]
    fn capabilities_over_the_machine_are_removed() {
        for removed in [
            CapabilitySet::SYS_TIME,
            CapabilitySet::SYS_BOOT,
            CapabilitySet::SYS_MODULE,
            CapabilitySet::SYS_RAWIO,
            CapabilitySet::SYS_NICE,
            CapabilitySet::SYS_RESOURCE,
            CapabilitySet::MKNOD,
        ] {
            assert!(!KEPT.intersects(removed), "{removed:?}");
        }
    }
}
