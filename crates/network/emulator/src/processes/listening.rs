//! Detection of listening servers, from the kernel's tables of sockets.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// From this port on the kernel chooses ports for clients. A datagram socket there says nothing.
const EPHEMERAL: u16 = 32_768;

/// The kernel's numbers of the states LISTEN and CLOSE (unconnected).
const LISTEN: &str = "0A";
const CLOSE: &str = "07";

/// Returns the addresses of sockets in the calling thread's network that wait for connections or datagrams.
pub(crate) fn listening() -> Vec<SocketAddr> {
    let table = |name: &str, state: &str| {
        let path = format!("/proc/thread-self/net/{name}");
        // Without IPv6 two of the files are missing.
        read(&fs::read_to_string(path).unwrap_or_default(), state)
    };
    let mut found = [table("tcp", LISTEN), table("tcp6", LISTEN)].concat();
    let datagrams = [table("udp", CLOSE), table("udp6", CLOSE)].concat();
    found.extend(
        datagrams
            .into_iter()
            .filter(|local| local.port() < EPHEMERAL),
    );
    found
}

/// Returns the local addresses of sockets in this state.
fn read(table: &str, state: &str) -> Vec<SocketAddr> {
    let line = |line: &str| {
        let mut fields = line.split_whitespace();
        let local = fields.nth(1)?;
        (fields.nth(1)? == state).then(|| address(local))?
    };
    table.lines().skip(1).filter_map(line).collect()
}

/// Parses an address: `0100007F:1F90` is 127.0.0.1:8080 on a little-endian machine. The address is in words as in
/// memory, the port is a number.
fn address(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let word = |index: usize| {
        let digits = address.get(index * 8..index * 8 + 8)?;
        u32::from_str_radix(digits, 16).ok().map(u32::to_ne_bytes)
    };
    let ip = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        _ => {
            let mut bytes = [0; 16];
            for (index, part) in bytes.chunks_mut(4).enumerate() {
                part.copy_from_slice(&word(index)?);
            }
            IpAddr::V6(Ipv6Addr::from(bytes))
        }
    };
    Some((ip, u16::from_str_radix(port, 16).ok()?).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn sockets_that_listen_are_found() {
        for host in ["127.0.0.1", "::1"] {
            let Ok(listener) = TcpListener::bind((host, 0)) else {
                continue;
            };
            let address = listener.local_addr().unwrap();
            assert!(listening().contains(&address), "{address}");
        }
    }

    #[test]
    fn other_states_and_broken_lines_are_passed_over() {
        let table = "  sl  local_address rem_address   st\n\
             0: 0100007F:1F90 00000000:0000 0A 0\n\
             1: 0100007F:1F91 00000000:0000 01 0\n\
             2: 0100:1F 0\n3:\n";
        let expected: Vec<SocketAddr> = vec!["127.0.0.1:8080".parse().unwrap()];
        if cfg!(target_endian = "little") {
            assert_eq!(read(table, LISTEN), expected);
        }
    }
}
