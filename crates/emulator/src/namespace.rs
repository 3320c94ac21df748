//! Networks of one's own: entered by a thread, without a name, gone with the last who uses them.
//!
//! A network namespace needs a privilege that root has and that everybody has inside a user
//! namespace of his own. [`enter`] gets it for the process; [`own_network`] then moves single
//! threads. Nothing is mounted and nothing named, so that there is nothing to clean up, however a
//! process ends.

use std::fs;

use rustix::io::Errno;
use rustix::process::{getegid, geteuid};
use rustix::thread::{CapabilitySet, UnshareFlags};
use thiserror::Error;

use crate::netlink::{Netlink, NetlinkError};

/// Why a process may not have networks of its own, and what would help.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NamespaceError {
    /// The kernel, or who set it up, forbids it.
    #[error("no network of its own: {what}; {remedy}")]
    Forbidden {
        /// What was refused.
        what: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// [`enter`] came too late: a process with several threads cannot change its user namespace.
    #[error(
        "no user namespace: the process has several threads already; enter before any starts, or run as root"
    )]
    Threads,
    /// The namespace is there, its loopback device could not be brought up.
    #[error("loopback stays down: {0}")]
    Loopback(#[from] NetlinkError),
}

/// Sees to it that threads of this process may have networks of their own.
///
/// With the capabilities of root nothing is done. Without, the process moves into a user
/// namespace in which it keeps its user and group, so that what it starts runs as before; its
/// supplementary groups go on to count for files. It then has to be called **before any thread
/// starts**. Commands started from inside lose the privilege again, as they should.
pub fn enter() -> Result<(), NamespaceError> {
    let needed = CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN | CapabilitySet::NET_RAW;
    let has_all = |held: rustix::thread::CapabilitySets| held.effective.contains(needed);
    if rustix::thread::capabilities(None).is_ok_and(has_all) {
        return Ok(());
    }
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    unshare(UnshareFlags::NEWUSER).map_err(|errno| match errno {
        Errno::INVAL => NamespaceError::Threads,
        errno => forbidden(format!("user namespace refused ({errno})")),
    })?;
    // The kernel wants setgroups denied before a group is mapped by someone without privilege.
    for (file, words) in [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{user} {user} 1")),
        ("gid_map", format!("{group} {group} 1")),
    ] {
        fs::write(format!("/proc/thread-self/{file}"), words)
            .map_err(|error| forbidden(format!("user namespace, {file}: {error}")))?;
    }
    Ok(())
}

/// Moves the calling thread into a network namespace of its own and brings its loopback up.
///
/// Threads and commands that it starts from then on are in there, too; other threads are not.
/// A congestion control, a route or a sysctl set there concerns nobody else.
pub fn own_network() -> Result<(), NamespaceError> {
    unshare(UnshareFlags::NEWNET)
        .map_err(|errno| forbidden(format!("network namespace refused ({errno})")))?;
    let mut netlink = Netlink::open()?;
    Ok(netlink.raise_loopback()?)
}

pub(crate) fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    // SAFETY: no file descriptors are unshared, which is what makes this call unsafe.
    unsafe { rustix::thread::unshare_unsafe(flags) }
}

/// The settings that forbid user namespaces, the value that does, and what helps.
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

fn forbidden(what: String) -> NamespaceError {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let remedy = SETTINGS
        .iter()
        .find(|(path, forbids, _)| read(path).trim() == *forbids)
        .map_or(
            "run as root; in a container, allow unshare (--privileged, or a seccomp profile that does)",
            |(_, _, remedy)| remedy,
        );
    NamespaceError::Forbidden { what, remedy }
}
