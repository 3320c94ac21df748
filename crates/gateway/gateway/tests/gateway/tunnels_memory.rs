//! Memory of idle tunnels, measured in a process of its own.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

use posthaste_gateway::start;
use posthaste_serve::open_files;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;

use crate::http2_support::block_on;
use crate::support::config;
use crate::tunnels::{HANDSHAKE, SWITCHED};

/// Measured tunnels. Their two sockets use at most a quarter of the permitted open files; other tests need the rest.
const TUNNELS: u64 = 2_000;

/// Tunnels opened before the measurement. Memory that all tunnels share is allocated then.
const FIRST: u64 = 100;

/// Most bytes of a tunnel, so that 10,000 take at most 100 MB.
const MOST: usize = 10_000;

/// Variable with the upstream's address for the gateway's process.
const UPSTREAM: &str = "POSTHASTE_TEST_UPSTREAM";

/// Printed before the gateway's address.
const LISTENING: &str = "the gateway listens on ";

#[test]
#[ignore = "needs a measurement: idle_tunnels_are_small runs it"]
fn gateway_in_a_process() {
    let Ok(upstream) = std::env::var(UPSTREAM) else {
        return;
    };
    open_files();
    let gateway = start(config(&[upstream.parse().unwrap()], "")).unwrap();
    println!("\n{LISTENING}{}", gateway.addr);
    // Until the measuring process ends.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// The gateway's process. Ends with this value.
struct Gateway {
    child: Child,
    address: SocketAddr,
}

impl Gateway {
    fn start(upstream: SocketAddr) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--ignored", "--exact", "--nocapture"])
            .arg("tunnels_memory::gateway_in_a_process")
            .env(UPSTREAM, upstream.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
        let mut lines = lines.map_while(Result::ok);
        let address = lines.find_map(|line| line.strip_prefix(LISTENING)?.parse().ok());
        Self {
            child,
            address: address.expect("the gateway starts"),
        }
    }

    /// Bytes in memory.
    fn resident(&self) -> usize {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.unwrap().trim().trim_end_matches(" kB");
        number.parse::<usize>().unwrap() * 1024
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Accepts handshakes, and then copies back.
async fn echo_forever(listener: TcpListener) {
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        spawn_local(async move {
            read_head(&mut stream).await;
            stream.write_all(SWITCHED.as_bytes()).await.unwrap();
            let mut byte = [0];
            while let Ok(1) = stream.read(&mut byte).await {
                stream.write_all(&byte).await.unwrap();
            }
        });
    }
}

async fn read_head(stream: &mut TcpStream) {
    let (mut head, mut piece) = (Vec::new(), [0; 1024]);
    while !head.ends_with(b"\r\n\r\n") {
        let length = stream.read(&mut piece).await.unwrap();
        assert!(length > 0, "closed within a head");
        head.extend_from_slice(&piece[..length]);
    }
}

async fn open(gateway: SocketAddr) -> TcpStream {
    let mut client = TcpStream::connect(gateway).await.unwrap();
    client.write_all(HANDSHAKE.as_bytes()).await.unwrap();
    read_head(&mut client).await;
    client
}

async fn check(client: &mut TcpStream) {
    client.write_all(b"x").await.unwrap();
    assert_eq!(client.read_u8().await.unwrap(), b'x');
}

#[test]
fn idle_tunnels_are_small() {
    let tunnels = TUNNELS.min(open_files() / 8);
    block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let gateway = Gateway::start(listener.local_addr().unwrap());
        spawn_local(echo_forever(listener));
        let mut clients = Vec::new();
        for _ in 0..FIRST {
            clients.push(open(gateway.address).await);
        }
        let before = gateway.resident();
        for _ in 0..tunnels {
            clients.push(open(gateway.address).await);
        }
        for client in clients.iter_mut().step_by(10) {
            check(client).await;
        }
        let after = gateway.resident();
        let each = after.saturating_sub(before) / tunnels as usize;
        println!("{tunnels} idle tunnels: {each} bytes each, {after} bytes in all");
        assert!(each < MOST, "{each} bytes per tunnel");
    });
}
