//! Environment of a test or benchmark: the built binary, and servers started for it.
//!
//! Every server listens on a free port of 127.0.0.1 and stops when its value is dropped. Tests therefore do not
//! interfere with each other and leave no processes.

use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::builds::Build;
use crate::checkout::Checkout;
use crate::error::{Outcome, TaskError};
use crate::process::{self, Finished, Running};
use crate::tools;
use posthaste_harness::binaries::{self, Binary};

/// Time limit for a server to listen. A JVM on a busy machine is slow.
const LISTENING: Duration = Duration::from_secs(120);

/// The checkout with a built binary and a folder for logs.
pub(crate) struct Site {
    pub(crate) checkout: Checkout,
    /// Build of the binaries.
    pub(crate) build: Build,
    /// `posthaste`, as built for this site.
    pub(crate) binary: PathBuf,
    pub(crate) logs: PathBuf,
}

/// A listening server. Dropping it stops it.
pub(crate) struct Server {
    pub(crate) running: Running,
    pub(crate) address: SocketAddr,
}

impl Site {
    /// Builds the binary and empties the folder of logs.
    pub(crate) fn new(checkout: Checkout, build: Build) -> Outcome<Self> {
        let binary = build.binary(&checkout)?;
        let logs = checkout.peer_folder("logs")?;
        std::fs::remove_dir_all(&logs).map_err(|error| TaskError::at(&logs, error))?;
        let logs = checkout.peer_folder("logs")?;
        Ok(Self {
            checkout,
            build,
            binary,
            logs,
        })
    }

    /// A site inside a namespace: the binary exists, and the logs have a folder of their own.
    pub(crate) fn inside(checkout: Checkout, binary: PathBuf) -> Outcome<Self> {
        let logs = checkout.peer_folder("logs/inside")?;
        Ok(Self {
            checkout,
            build: Build::Dev,
            binary,
            logs,
        })
    }

    /// Builds the tests of this package, and returns those of one target. Once the workspace's tests have been built,
    /// they are among them, and nothing is compiled.
    pub(crate) fn tests(&self, package: &str, target: &str) -> Outcome<Binary> {
        let packages = match self.build {
            Build::Tested => &[][..],
            _ => &[package],
        };
        let mut binaries = binaries::build(&self.checkout, packages)?.into_iter();
        let found = binaries.find(|binary| binary.package == package && binary.target == target);
        found.ok_or_else(|| {
            TaskError::Failed(format!("{package} has no tests of the name {target}"))
        })
    }

    /// Runs a command to its end and requires exit 0.
    pub(crate) fn run(&self, name: &str, command: &mut Command, seconds: u64) -> Outcome<Finished> {
        process::run(name, command, Duration::from_secs(seconds), &self.logs)
    }

    /// Starts a bookshop with these options in addition to `--listen`.
    pub(crate) fn bookshop(&self, options: &[&str]) -> Outcome<Server> {
        self.bookshop_on(&[], options)
    }

    /// The same, with a `wrapper` before its command, such as `taskset`.
    pub(crate) fn bookshop_on(&self, wrapper: &[&str], options: &[&str]) -> Outcome<Server> {
        let address = free_address()?;
        let (program, listen) = (self.binary.display().to_string(), address.to_string());
        let own = [program.as_str(), "bookshop", "--listen", &listen];
        let line = [wrapper, &own, options].concat();
        self.serve("bookshop", Command::new(line[0]).args(&line[1..]), address)
    }

    /// Starts a Python script of ours as a server, with its port as argument.
    pub(crate) fn script(&self, name: &str, path: &str) -> Outcome<Server> {
        self.script_on(&[], name, path)
    }

    /// The same, with a `wrapper` before its command, such as `taskset`.
    pub(crate) fn script_on(&self, wrapper: &[&str], name: &str, path: &str) -> Outcome<Server> {
        let python = tools::debian(&self.checkout, "python3", "python3")?
            .display()
            .to_string();
        let script = self.checkout.path(path).display().to_string();
        let address = free_address()?;
        let port = address.port().to_string();
        let line = [wrapper, &[python.as_str(), &script, &port]].concat();
        self.serve(name, Command::new(line[0]).args(&line[1..]), address)
    }

    /// Starts a server and waits until it listens.
    pub(crate) fn serve(
        &self,
        name: &str,
        command: &mut Command,
        address: SocketAddr,
    ) -> Outcome<Server> {
        self.serve_once(name, command, address, || {
            TcpStream::connect(address).is_ok()
        })
    }

    /// Starts a server of HTTP/3 and waits until it has its UDP socket.
    pub(crate) fn serve_quic(
        &self,
        name: &str,
        command: &mut Command,
        address: SocketAddr,
    ) -> Outcome<Server> {
        self.serve_once(name, command, address, || has_udp_socket(address.port()))
    }

    fn serve_once(
        &self,
        name: &str,
        command: &mut Command,
        address: SocketAddr,
        listens: impl Fn() -> bool,
    ) -> Outcome<Server> {
        let running = Running::start(name, command, &self.logs)?;
        let end = Instant::now() + LISTENING;
        while !listens() {
            if running.has_ended() || Instant::now() > end {
                let output = running.output();
                return Err(TaskError::Failed(format!(
                    "{name} does not listen on {address}: {output}"
                )));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Server { running, address })
    }
}

impl Server {
    /// A URL on this server; `path` starts with a slash.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// An address without a listener at this moment.
pub(crate) fn free_address() -> Outcome<SocketAddr> {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .map_err(|error| TaskError::Failed(format!("no free port on 127.0.0.1: {error}")))
}

/// An address without a UDP socket at this moment.
pub(crate) fn free_udp_address() -> Outcome<SocketAddr> {
    UdpSocket::bind("127.0.0.1:0")
        .and_then(|socket| socket.local_addr())
        .map_err(|error| TaskError::Failed(format!("no free UDP port on 127.0.0.1: {error}")))
}

/// True if a UDP socket has this port over IPv4. A trial with a socket of our own could take the port from the server.
fn has_udp_socket(port: u16) -> bool {
    let sockets = std::fs::read_to_string("/proc/net/udp").unwrap_or_default();
    lists_port(&sockets, port)
}

/// True if a table of sockets has this local port (proc(5), /proc/net/udp).
fn lists_port(sockets: &str, port: u16) -> bool {
    let port = format!(":{port:04X}");
    sockets.lines().any(|line| {
        let local = line.split_ascii_whitespace().nth(1);
        local.is_some_and(|local| local.ends_with(&port))
    })
}

#[cfg(test)]
mod tests {
    use super::lists_port;

    #[test]
    fn local_ports_are_found() {
        let sockets = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n\
                       12: 0100007F:1151 00000000:01BB 07 00000000:00000000 00:00000000 00000000     0\n";
        assert!(lists_port(sockets, 4433));
        assert!(!lists_port(sockets, 443));
        assert!(!lists_port(sockets, 0x151));
    }
}
