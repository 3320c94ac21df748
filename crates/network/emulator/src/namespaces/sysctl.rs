//! Sysctls of one network namespace, that of the calling thread.
//!
//! Each written value is read back, because the kernel accepts some without an error and without effect. A report must
//! not state settings that the kernel does not have.

use std::fs;
use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Error in a sysctl.
#[derive(Debug, Error)]
pub enum SysctlError {
    /// An invalid name, or a sysctl of the whole machine.
    #[error("{key:?}: only settings of a network can be made here, such as net.ipv4.tcp_sack")]
    Name {
        /// The name as given.
        key: String,
    },
    /// The kernel has no such sysctl for a network namespace, or rejects the value.
    #[error("{key} = {value:?}: {error}{}", hint(key, error))]
    Refused {
        /// Name of the sysctl.
        key: String,
        /// Requested value.
        value: String,
        /// The kernel's reason.
        #[source]
        error: io::Error,
    },
    /// Accepted without an error, but not kept.
    #[error("{key} = {value:?}: the kernel keeps {found:?}{}", hint(key, &io::Error::from(io::ErrorKind::Other)))]
    NotKept {
        /// Name of the sysctl.
        key: String,
        /// Requested value.
        value: String,
        /// Actual value.
        found: String,
    },
}

fn hint(key: &str, error: &io::Error) -> &'static str {
    if key.ends_with("tcp_congestion_control") {
        "; choose it by route: congctl cubic"
    } else if error.kind() == io::ErrorKind::NotFound {
        "; this kernel has no such setting for a single network, or only with --keep-capabilities of root"
    } else {
        ""
    }
}

/// Sets a sysctl of the calling thread's network namespace, for example `net.ipv4.tcp_sack` to `0`.
pub fn set(key: &str, value: &str) -> Result<(), SysctlError> {
    let path = path(key)?;
    let refused = |error| SysctlError::Refused {
        key: key.to_owned(),
        value: value.to_owned(),
        error,
    };
    fs::write(&path, value).map_err(refused)?;
    let found = fs::read_to_string(&path).map_err(refused)?;
    if found.split_whitespace().eq(value.split_whitespace()) {
        Ok(())
    } else {
        Err(SysctlError::NotKept {
            key: key.to_owned(),
            value: value.to_owned(),
            found: found.trim().to_owned(),
        })
    }
}

/// Reads a sysctl of the calling thread's network namespace.
pub fn get(key: &str) -> Result<String, SysctlError> {
    let text = fs::read_to_string(path(key)?).map_err(|error| SysctlError::Refused {
        key: key.to_owned(),
        value: String::new(),
        error,
    })?;
    Ok(text.trim().to_owned())
}

/// File of a sysctl. Dots separate the parts, or slashes if a part contains a dot, as in sysctl(8).
fn path(key: &str) -> Result<PathBuf, SysctlError> {
    let separator = if key.contains('/') { '/' } else { '.' };
    let parts: Vec<&str> = key.split(separator).collect();
    let of_a_network = parts.len() > 1 && parts[0] == "net";
    if !of_a_network
        || parts
            .iter()
            .any(|part| part.is_empty() || part.starts_with('.'))
    {
        return Err(SysctlError::Name {
            key: key.to_owned(),
        });
    }
    Ok(parts
        .iter()
        .fold(PathBuf::from("/proc/sys"), |path, part| path.join(part)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_settings_of_a_network_are_touched() {
        for key in ["kernel.hostname", "net", "net..tcp", "net/../kernel/x", ""] {
            assert!(
                matches!(path(key), Err(SysctlError::Name { .. })),
                "{key:?}"
            );
        }
        let dotted = path("net/ipv4/conf/eth0.1/mtu").unwrap();
        assert!(dotted.ends_with("net/ipv4/conf/eth0.1/mtu"));
        assert!(
            path("net.ipv4.tcp_sack")
                .unwrap()
                .ends_with("net/ipv4/tcp_sack")
        );
    }
}
