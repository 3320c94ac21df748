//! The gateway at its limit of descriptors: silent clients do not block other clients.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::command::{RunningShop, until};

/// More connections than the gateway has descriptors.
const SILENT: usize = 300;

/// Starts a gateway in front of `upstream` that may open 120 files.
fn gateway(upstream: &str) -> RunningShop {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gateway.toml");
    let upstream = upstream.strip_prefix("http://").unwrap();
    let config =
        format!("listen = \"127.0.0.1:0\"\n[[route]]\npath = \"/\"\nupstream = [\"{upstream}\"]\n");
    std::fs::write(&file, config).unwrap();
    let script = "ulimit -n 120 && exec \"$0\" \"$@\"";
    RunningShop::start(
        Command::new("sh")
            .args([
                "-c",
                script,
                env!("CARGO_BIN_EXE_posthaste"),
                "gateway",
                "--config",
            ])
            .arg(file),
    )
}

/// Sends a request on a new connection and returns the status line.
fn status(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut reply = String::new();
    let _ = stream.read_to_string(&mut reply);
    reply.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn silent_connections_lock_nobody_out() {
    let shop = RunningShop::open(&[]);
    let page = shop.page();
    let path = page.strip_prefix(&shop.url).unwrap();
    let gateway = gateway(&shop.url);
    let address: SocketAddr = gateway
        .url
        .strip_prefix("http://")
        .unwrap()
        .parse()
        .unwrap();
    let silent: Vec<TcpStream> = (0..SILENT)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    let mut times = Vec::new();
    for _ in 0..5 {
        let begun = Instant::now();
        assert_eq!(status(address, path), "HTTP/1.1 200 OK");
        times.push(begun.elapsed());
    }
    println!("beside {SILENT} silent connections: {times:?}");
    // The oldest connections have been closed, and no more than necessary.
    let is_open = |stream: &TcpStream| {
        stream.set_nonblocking(true).unwrap();
        let read = (&*stream).read(&mut [0]);
        read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    };
    let open = silent.iter().filter(|stream| is_open(stream)).count();
    assert!((50..120).contains(&open), "{open} are open");
    drop(silent);
    until("room again", || status(address, path) == "HTTP/1.1 200 OK");
}
