//! Name resolution inside: the machine's own resolvers, over the link.
//!
//! The resolvers of the machine may have any address, loopback included. Inside they have addresses reserved for
//! documentation (RFC 5737), which no host should have. The relay forwards from there to the real ones. A file with
//! these addresses is mounted over /etc/resolv.conf in a mount namespace of the calling thread and its commands; other
//! processes do not see it.

use std::fs;
use std::io::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV6};
use std::os::unix::fs::PermissionsExt as _;

use rustix::io::Errno;
use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};
use rustix::thread::UnshareFlags;
use thiserror::Error;

use crate::namespaces::host::index_of;
use crate::namespaces::namespace::unshare;
use crate::namespaces::subnet::RESOLVERS;

/// File that lists the resolvers of a machine.
const FILE: &str = "/etc/resolv.conf";
/// Port of DNS.
const PORT: u16 = 53;
/// The machine's resolvers, and the other lines of its resolv.conf.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolvConf {
    resolvers: Vec<SocketAddr>,
    other: String,
}

/// Error that prevents name resolution inside.
#[derive(Debug, Error)]
pub enum ResolvConfError {
    /// The machine has no such file to mount over.
    #[error("{FILE}: {0}; write it, be it empty, and names resolve inside")]
    NoFile(#[source] io::Error),
    /// Forbidden by the kernel or its administrator.
    #[error("no file of one's own over {FILE}: {0}; name hosts by address, or run as root")]
    Mount(#[source] Errno),
    /// The replacement file could not be written.
    #[error("a file for {FILE}: {0}")]
    Write(#[source] io::Error),
}

impl ResolvConf {
    /// Reads the machine's resolv.conf. Without one, uses the resolver on this machine, as the C library does.
    pub fn of_this_machine() -> Self {
        Self::read(&fs::read_to_string(FILE).unwrap_or_default())
    }

    /// Reads this resolv.conf. The device of a scoped address (`fe80::1%eth0`) is looked up in the calling thread's
    /// network namespace. The address is skipped if there is no such device.
    pub fn read(text: &str) -> Self {
        let mut resolv_conf = Self::default();
        for line in text.lines() {
            let mut fields = line.split_whitespace();
            match fields.next() {
                Some("nameserver") => {
                    // The rest of the line is ignored, as the C library does.
                    resolv_conf
                        .resolvers
                        .extend(fields.next().and_then(resolver));
                }
                _ => resolv_conf.other += &format!("{}\n", line.trim_end()),
            }
        }
        resolv_conf.resolvers.truncate(RESOLVERS.len());
        if resolv_conf.resolvers.is_empty() {
            resolv_conf
                .resolvers
                .push((Ipv4Addr::LOCALHOST, PORT).into());
        }
        resolv_conf
    }

    /// Inside and outside address of each resolver.
    pub(super) fn resolvers(&self) -> impl Iterator<Item = (SocketAddr, SocketAddr)> + '_ {
        let inside = RESOLVERS.map(|address| SocketAddr::from((address, PORT)));
        inside.into_iter().zip(self.resolvers.iter().copied())
    }

    /// The resolv.conf for commands inside.
    pub fn inside(&self) -> String {
        let lines = self
            .resolvers()
            .map(|(inside, _)| format!("nameserver {}\n", inside.ip()));
        self.other.clone() + &lines.collect::<String>()
    }

    /// Mounts [`ResolvConf::inside`] over the file, for the calling thread and the processes that it starts.
    ///
    /// Needs the privilege from [`enter`](crate::namespace::enter).
    pub fn install(&self) -> Result<(), ResolvConfError> {
        // The case inside another emulation.
        if fs::read_to_string(FILE).is_ok_and(|text| text == self.inside()) {
            return Ok(());
        }
        // A symbolic link is resolved; its target is covered.
        let target = fs::canonicalize(FILE).map_err(ResolvConfError::NoFile)?;
        unshare(UnshareFlags::NEWNS).map_err(ResolvConfError::Mount)?;
        let propagation = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
        mount_change("/", propagation).map_err(ResolvConfError::Mount)?;
        // Its name is removed when this returns. The file lives as long as it is mounted.
        let mut file = tempfile::NamedTempFile::new().map_err(ResolvConfError::Write)?;
        file.write_all(self.inside().as_bytes())
            .and_then(|()| {
                file.as_file()
                    .set_permissions(fs::Permissions::from_mode(0o644))
            })
            .map_err(ResolvConfError::Write)?;
        mount_bind(file.path(), &target).map_err(ResolvConfError::Mount)
    }
}

/// Address of a resolver as in resolv.conf. A scope is a device's name or its index.
fn resolver(word: &str) -> Option<SocketAddr> {
    if let Ok(address) = word.parse::<IpAddr>() {
        return Some((address, PORT).into());
    }
    let (address, device) = word.split_once('%')?;
    let number = device.parse().ok().or_else(|| index_of(device).ok())?;
    Some(SocketAddrV6::new(address.parse().ok()?, PORT, 0, number).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolvers_move_and_the_rest_stays() {
        let resolv_conf = ResolvConf::read(
            "# by hand\nsearch example.org\nnameserver\t127.0.0.53 # local\nnameserver fe80::1%nowhere\n\
             nameserver 2001:db8::1\noptions edns0\n",
        );
        let moved: Vec<String> = resolv_conf
            .resolvers()
            .map(|(inside, outside)| format!("{inside} {outside}"))
            .collect();
        assert_eq!(
            moved,
            [
                "192.0.2.53:53 127.0.0.53:53",
                "192.0.2.54:53 [2001:db8::1]:53"
            ]
        );
        assert_eq!(
            resolv_conf.inside(),
            "# by hand\nsearch example.org\noptions edns0\n\
             nameserver 192.0.2.53\nnameserver 192.0.2.54\n"
        );
    }

    #[test]
    fn a_resolver_may_be_at_one_device() {
        let resolv_conf = ResolvConf::read(
            "nameserver fe80::1%lo\nnameserver fe80::2%7\nnameserver 10.0.0.1%7\n",
        );
        let outside: Vec<String> = resolv_conf
            .resolvers()
            .map(|(_, outside)| outside.to_string())
            .collect();
        assert_eq!(outside, ["[fe80::1%1]:53", "[fe80::2%7]:53"]);
    }

    #[test]
    fn without_resolvers_it_is_this_machine() {
        let resolv_conf = ResolvConf::read("");
        assert!(
            resolv_conf
                .resolvers()
                .all(|(_, outside)| outside.ip().is_loopback())
        );
        assert_eq!(resolv_conf.inside(), "nameserver 192.0.2.53\n");
    }
}
