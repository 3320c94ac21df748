//! Network namespaces without a name. A thread enters one, and it ends with its last user.
//!
//! Creating one needs a privilege that root has, and that every user has inside a user namespace. [`enter`] gets it for
//! the process. [`own_network`] then moves single threads. Nothing is mounted or named, so nothing has to be cleaned
//! up, however a process ends.

use std::fs;

use rustix::io::Errno;
use rustix::process::{getegid, geteuid};
use rustix::thread::{CapabilitySet, UnshareFlags};
use thiserror::Error;

use crate::namespaces::netlink::{Netlink, NetlinkError};

/// Error that prevents network namespaces of a process, with a remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NamespaceError {
    /// Forbidden by the kernel or its administrator.
    #[error("no network of its own: {operation}; {remedy}")]
    Forbidden {
        /// The refused action.
        operation: String,
        /// Remedy.
        remedy: &'static str,
        /// The kernel's reason.
        #[source]
        errno: Errno,
    },
    /// [`enter`] was called too late: a process with several threads cannot change its user namespace.
    #[error(
        "no user namespace: the process has several threads already; enter before any starts, or run as root"
    )]
    Threads,
    /// The namespace exists, but its loopback device could not be brought up.
    #[error("loopback stays down: {0}")]
    Loopback(#[from] NetlinkError),
}

/// Capabilities to create network namespaces and to set them up.
pub(crate) const NEEDED: CapabilitySet = CapabilitySet::SYS_ADMIN
    .union(CapabilitySet::NET_ADMIN)
    .union(CapabilitySet::NET_RAW);

/// Gets the privilege to create network namespaces for this process.
///
/// Does nothing if the process has root's capabilities. Otherwise the process enters a user namespace and keeps its
/// user and group, so that commands run as before. Its supplementary groups still count for file access. In this case,
/// call it **before any thread starts**. Commands started from inside lose the privilege again, as intended.
pub fn enter() -> Result<(), NamespaceError> {
    if holds(NEEDED) {
        return Ok(());
    }
    enter_with_own_user()
}

/// Enters a user namespace that has only the own user and group.
pub(crate) fn enter_with_own_user() -> Result<(), NamespaceError> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    unshare_user()?;
    // The kernel requires setgroups denied before an unprivileged process maps a group.
    for (file, content) in [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{user} {user} 1")),
        ("gid_map", format!("{group} {group} 1")),
    ] {
        fs::write(format!("/proc/thread-self/{file}"), content).map_err(|error| {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
            forbidden(format!("user namespace, {file}: {error}"), errno)
        })?;
    }
    Ok(())
}

/// Moves the process into a user namespace without users. It has to have a single thread.
pub(crate) fn unshare_user() -> Result<(), NamespaceError> {
    unshare(UnshareFlags::NEWUSER).map_err(|errno| match errno {
        Errno::INVAL => NamespaceError::Threads,
        errno => forbidden(format!("user namespace refused ({errno})"), errno),
    })
}

/// True if the calling thread has all these capabilities.
pub(crate) fn holds(needed: CapabilitySet) -> bool {
    rustix::thread::capabilities(None).is_ok_and(|held| held.effective.contains(needed))
}

/// Moves the calling thread into a network namespace of its own and brings its loopback up.
///
/// Threads and commands that it starts afterwards are in it, too. Other threads are not. A congestion control, route or
/// sysctl set there affects nothing else.
pub fn own_network() -> Result<(), NamespaceError> {
    unshare(UnshareFlags::NEWNET)
        .map_err(|errno| forbidden(format!("network namespace refused ({errno})"), errno))?;
    let mut netlink = Netlink::open()?;
    Ok(netlink.raise_loopback()?)
}

pub(crate) fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    // SAFETY: this call is unsafe because of unshared file descriptors, and none are unshared.
    unsafe { rustix::thread::unshare_unsafe(flags) }
}

/// Sysctls that forbid namespaces, with the forbidding value and the remedy.
const SETTINGS: &[(&str, &str, &str)] = &[
    (
        "/proc/sys/kernel/unprivileged_userns_clone",
        "0",
        "allow user namespaces (sysctl kernel.unprivileged_userns_clone=1) or run as root",
    ),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "sysctl kernel.apparmor_restrict_unprivileged_userns=0, or run as root",
    ),
    (
        "/proc/sys/user/max_user_namespaces",
        "0",
        "sysctl user.max_user_namespaces=10000, or run as root",
    ),
    (
        "/proc/sys/user/max_net_namespaces",
        "0",
        "sysctl user.max_net_namespaces=10000, or run as root",
    ),
];

pub(crate) fn forbidden(operation: String, errno: Errno) -> NamespaceError {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let remedy = SETTINGS
        .iter()
        .find(|(path, forbids, _)| read(path).trim() == *forbids)
        .map_or(
            "run as root; in a container, allow unshare (--privileged, or a seccomp profile that does)",
            |(_, _, remedy)| remedy,
        );
    NamespaceError::Forbidden {
        operation,
        remedy,
        errno,
    }
}
