//! A network of one's own for experiments: a namespace with nothing but loopback, and the
//! kernel's counters in it.
//!
//! Inside, no other traffic disturbs a run and the counters count nothing else, so that they can
//! be compared exactly with what a generator says. Links with delay and loss are left to the
//! emulator. Root is not needed where user namespaces are allowed.

use std::fs;
use std::io;
use std::ops::Sub;
use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketType, socket};
use rustix::process::{getegid, geteuid};
use rustix::thread::UnshareFlags;

/// What [`enter`] has reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lab {
    /// A namespace of its own, loopback up.
    Own,
    /// Still the machine's network, for this reason: counters count other traffic, too.
    Shared(String),
}

impl Lab {
    /// In words, for a report.
    pub fn describe(&self) -> String {
        match self {
            Self::Own => "a network namespace of its own, loopback only".to_owned(),
            Self::Shared(reason) => format!(
                "the machine's own network, whose counters count other traffic, too ({reason})"
            ),
        }
    }
}

/// Moves the calling process into a network namespace of its own and brings its loopback up.
///
/// To be called before any thread starts: only the calling thread moves, and threads it starts
/// later. Without root this goes through a user namespace, in which the process keeps its user
/// and group. Where neither is allowed, everything stays as it was.
pub fn enter() -> Lab {
    match unshare().and_then(|()| raise_loopback()) {
        Ok(()) => Lab::Own,
        Err(reason) => Lab::Shared(reason),
    }
}

fn unshare() -> Result<(), String> {
    let (user, group) = (geteuid(), getegid());
    let flags = UnshareFlags::NEWNET;
    // SAFETY: no file descriptors are unshared, which is what makes this call unsafe.
    let direct = unsafe { rustix::thread::unshare_unsafe(flags) };
    if direct.is_ok() {
        return Ok(());
    }
    let flags = UnshareFlags::NEWUSER | UnshareFlags::NEWNET;
    // SAFETY: as above.
    unsafe { rustix::thread::unshare_unsafe(flags) }.map_err(|error| {
        format!("no user namespace: {error}; `posthaste doctor` says how to allow it")
    })?;
    let (user, group) = (user.as_raw(), group.as_raw());
    // The kernel wants setgroups denied before a group is mapped by someone without privilege.
    for (file, words) in [
        ("setgroups", "deny".to_owned()),
        ("uid_map", format!("{user} {user} 1")),
        ("gid_map", format!("{group} {group} 1")),
    ] {
        fs::write(format!("/proc/thread-self/{file}"), words)
            .map_err(|error| format!("user namespace, {file}: {error}"))?;
    }
    Ok(())
}

/// Sets IFF_UP on "lo" of the namespace that the calling thread is in.
fn raise_loopback() -> Result<(), String> {
    let failed = |error: io::Error| format!("loopback stays down: {error}");
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)
        .map_err(|error| failed(error.into()))?;
    // SAFETY: ifreq is plain data, for which zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(b"lo") {
        *place = *byte as libc::c_char;
    }
    let call = |operation, request: &mut libc::ifreq| {
        // SAFETY: the descriptor is open, and the operations read and write one ifreq.
        let result = unsafe { libc::ioctl(socket.as_raw_fd(), operation, request) };
        if result == 0 {
            Ok(())
        } else {
            Err(failed(io::Error::last_os_error()))
        }
    };
    call(libc::SIOCGIFFLAGS, &mut request)?;
    // SAFETY: SIOCGIFFLAGS has filled in the flags.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    request.ifr_ifru.ifru_flags = flags | libc::IFF_UP as libc::c_short;
    call(libc::SIOCSIFFLAGS, &mut request)
}

/// What the kernel has counted in the network namespace of the calling thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// TcpExtListenDrops: connections that a listening socket dropped, for whatever reason.
    pub listen_drops: u64,
    /// TcpExtListenOverflows: those dropped because the queue of `accept` was full.
    pub listen_overflows: u64,
    /// TcpExtTCPSynRetrans: SYNs sent again; zero means that no SYN was sent twice.
    pub syn_retransmits: u64,
    /// TcpRetransSegs: segments sent again.
    pub retransmitted_segments: u64,
}

impl Counters {
    /// Reads the counters.
    pub fn read() -> io::Result<Self> {
        let netstat = fs::read_to_string("/proc/thread-self/net/netstat")?;
        let snmp = fs::read_to_string("/proc/thread-self/net/snmp")?;
        Self::parse(&netstat, &snmp).ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidData,
                "this kernel's /proc/net/netstat and snmp do not have the TCP counters",
            )
        })
    }

    fn parse(netstat: &str, snmp: &str) -> Option<Self> {
        Some(Self {
            listen_drops: counter(netstat, "TcpExt:", "ListenDrops")?,
            listen_overflows: counter(netstat, "TcpExt:", "ListenOverflows")?,
            syn_retransmits: counter(netstat, "TcpExt:", "TCPSynRetrans")?,
            retransmitted_segments: counter(snmp, "Tcp:", "RetransSegs")?,
        })
    }
}

impl Sub for Counters {
    type Output = Self;

    /// What was counted since `earlier`.
    fn sub(self, earlier: Self) -> Self {
        Self {
            listen_drops: self.listen_drops.saturating_sub(earlier.listen_drops),
            listen_overflows: self
                .listen_overflows
                .saturating_sub(earlier.listen_overflows),
            syn_retransmits: self.syn_retransmits.saturating_sub(earlier.syn_retransmits),
            retransmitted_segments: self
                .retransmitted_segments
                .saturating_sub(earlier.retransmitted_segments),
        }
    }
}

/// How many connections listening sockets have dropped in this network namespace.
pub fn listen_drops() -> io::Result<u64> {
    Ok(Counters::read()?.listen_drops)
}

/// The value under `name` in the pair of lines (names, values) that begin with `group`.
fn counter(file: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = file
        .lines()
        .filter(|line| line.split_whitespace().next() == Some(group));
    let (names, values) = (lines.next()?, lines.next()?);
    let place = names.split_whitespace().position(|word| word == name)?;
    values.split_whitespace().nth(place)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NETSTAT: &str = "TcpExt: SyncookiesSent ListenOverflows ListenDrops TCPSynRetrans\n\
        TcpExt: 0 7 9 3\nIpExt: ListenDrops\nIpExt: 1\n";
    const SNMP: &str = "Ip: RetransSegs\nIp: 5\nTcp: RtoMin MaxConn RetransSegs\nTcp: 200 -1 4\n";

    #[test]
    fn counters_are_found_by_name() {
        let counters = Counters::parse(NETSTAT, SNMP).unwrap();
        assert_eq!(counters.listen_drops, 9);
        assert_eq!(counters.listen_overflows, 7);
        assert_eq!(counters.syn_retransmits, 3);
        assert_eq!(counters.retransmitted_segments, 4);
        assert_eq!((counters - counters), Counters::default());
        assert_eq!(Counters::parse("TcpExt: A\n", SNMP), None);
    }

    #[test]
    fn this_kernel_has_them() {
        Counters::read().unwrap();
    }
}
