//! Memory for many connections and for a long reply.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::start;
use crate::error::{Outcome, TaskError, check};
use crate::nginx::Nginx;
use crate::site::{Server, Site};
use crate::tools;

/// Connections with a request at the same time.
const AT_ONCE: usize = 2_000;
/// Idle open connections.
const IDLE: usize = 10_000;
/// Maximum memory of the gateway with all of them, after 2,000 others. If the idle ones kept hyper's two buffers of 8
/// KiB, these alone would be 160 MiB.
const IDLE_KIB: u64 = 150 << 10;
/// Length of the long reply, and the maximum growth of the gateway's memory.
const LONG: u64 = 1 << 30;
const LONG_KIB: u64 = 32 << 10;

const ASK: &[u8] = b"GET /1k HTTP/1.1\r\nHost: s\r\n\r\n";

/// 2,000 connections at once, 10,000 idle ones, a reply of a gigabyte.
pub(crate) fn crowd(site: &Site) -> Outcome<()> {
    let nginx = Nginx::start(site, "gateway-nginx", false, &[])?;
    let upstream = nginx.server.address.to_string();
    many(site, &upstream)?;
    long(site, &upstream)
}

fn many(site: &Site, upstream: &str) -> Outcome<()> {
    // Like a service manager. The gateway raises its own limit.
    allow_descriptors(1_024)?;
    let gateway = start(site, upstream, "", "")?;
    allow_descriptors(IDLE + 1_000)?;
    let mut at_once = Vec::with_capacity(AT_ONCE);
    for _ in 0..AT_ONCE {
        let mut stream = connect(gateway.address)?;
        stream.write_all(ASK).map_err(lost)?;
        at_once.push(stream);
    }
    at_once.iter_mut().try_for_each(answered)?;
    drop(at_once);
    let mut idle = Vec::with_capacity(IDLE);
    for _ in 0..IDLE {
        let mut stream = connect(gateway.address)?;
        stream.write_all(ASK).map_err(lost)?;
        answered(&mut stream)?;
        idle.push(stream);
    }
    let took = memory(&gateway, "VmRSS")?;
    println!("  crowd: {took} KiB with {IDLE} idle connections");
    check(took <= IDLE_KIB, || {
        format!("{IDLE} idle connections take {took} KiB: {IDLE_KIB} at most")
    })
}

fn long(site: &Site, upstream: &str) -> Outcome<()> {
    let page = site.checkout.peer_folder("gateway-nginx/pages")?.join("1g");
    // Sparse, so that it uses no disk space.
    let made = File::create(&page).and_then(|file| file.set_len(LONG));
    made.map_err(|error| TaskError::at(&page, error))?;
    let curl = tools::debian(&site.checkout, "curl", "curl")?;
    for coding in ["identity", "gzip", "zstd"] {
        let gateway = start(site, upstream, "", "")?;
        let before = memory(&gateway, "VmHWM")?;
        let mut command = Command::new(&curl);
        command
            .args(["--silent", "--show-error", "--fail", "--max-time", "120"])
            .args(["--header", &format!("Accept-Encoding: {coding}")])
            .args(["--header", "Prefer: compression=always"])
            .args(["--output", "/dev/null", "--write-out", "%{size_download}"])
            .arg(gateway.url("/1g"));
        let sent = site.run("curl", &mut command, 130)?.stdout;
        let grown = memory(&gateway, "VmHWM")?.saturating_sub(before);
        println!("  crowd: a reply of 1 GiB, {coding}: {sent} bytes sent, {grown} KiB more");
        check(grown <= LONG_KIB, || {
            format!("a reply of 1 GiB, {coding}, takes {grown} KiB: {LONG_KIB} at most")
        })?;
        let is_plain = sent.parse() == Ok(LONG);
        check(is_plain == (coding == "identity"), || {
            format!("{coding}: {sent} bytes were sent")
        })?;
    }
    std::fs::remove_file(&page).map_err(|error| TaskError::at(&page, error))
}

fn connect(address: SocketAddr) -> Outcome<TcpStream> {
    let stream = TcpStream::connect(address).map_err(lost)?;
    let patience = Some(Duration::from_secs(20));
    stream.set_read_timeout(patience).map_err(lost)?;
    Ok(stream)
}

/// Reads a reply to [`ASK`] to its end.
fn answered(stream: &mut TcpStream) -> Outcome<()> {
    let (mut text, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let length = stream.read(&mut piece).map_err(lost)?;
        text.extend_from_slice(&piece[..length]);
        let head = text.windows(4).position(|end| end == b"\r\n\r\n");
        if head.is_some_and(|head| text.len() >= head + 4 + 1024) {
            return check(text.starts_with(b"HTTP/1.1 200"), || {
                format!("answered {}", String::from_utf8_lossy(&text[..20]))
            });
        }
        check(length > 0, || "closed before the reply's end".to_owned())?;
    }
}

fn lost(error: std::io::Error) -> TaskError {
    TaskError::Failed(format!("a connection to the gateway: {error}"))
}

/// A value of the kernel's status of a process, in KiB.
fn memory(server: &Server, name: &str) -> Outcome<u64> {
    let pid = server.running.pid().as_raw_nonzero();
    let path = std::path::PathBuf::from(format!("/proc/{pid}/status"));
    let text = std::fs::read_to_string(&path).map_err(|error| TaskError::at(&path, error))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().nth(1)?.parse().ok())
        .ok_or_else(|| TaskError::Failed(format!("{} has no {name}", path.display())))
}

/// Sets the soft limit of descriptors, which child processes inherit.
fn allow_descriptors(wanted: usize) -> Outcome<()> {
    let limit = getrlimit(Resource::Nofile);
    let wanted = wanted as u64;
    let raised = Rlimit {
        current: Some(wanted),
        maximum: limit.maximum,
    };
    setrlimit(Resource::Nofile, raised)
        .map_err(|_| TaskError::Missing(format!("ulimit -n {wanted} is not allowed here")))
}
