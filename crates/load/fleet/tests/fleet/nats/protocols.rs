//! Agents with every protocol: HTTP/2, HTTP/3 and gRPC, against the bookshop.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Stdio};

use super::load_support::{AgentProcess, conducted, conductor, program};
use super::server::{NatsServer, certificate};

/// A bookshop of its own process. Dropping it kills it.
struct BookshopProcess {
    process: Child,
    address: SocketAddr,
}

impl BookshopProcess {
    fn start(options: &[&str]) -> Self {
        let mut process = program()
            .args(["bookshop", "--listen", "127.0.0.1:0"])
            .args(options)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let output = process.stdout.take().unwrap();
        BufReader::new(output).read_line(&mut line).unwrap();
        let address = line
            .split(['/', ' ', '\n'])
            .find_map(|word| word.parse().ok());
        Self {
            process,
            address: address.unwrap_or_else(|| panic!("no address in {line:?}")),
        }
    }
}

impl Drop for BookshopProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A load of 200 requests by two agents, with time limits that a busy machine keeps.
const LOAD: &str =
    "--rate 200/s --duration 1s --agents 2 --allow-late --connect-timeout 30s --timeout 60s";

/// Loads with two agents. Every request is answered, and has the outcome.
fn is_answered(server: &NatsServer, options: &str) {
    let options = format!("{options} {LOAD}");
    let together = conducted(conductor(server, &options));
    assert_eq!(together.code, 0, "{options}: {}", together.messages);
    together.check_identity();
    assert_eq!(together.number("/intended"), 200, "{options}");
    assert_eq!(together.outcome("ok"), 200, "{options}");
}

#[test]
#[ignore = "needs a NATS server"]
fn agents_send_over_every_protocol() {
    let server = NatsServer::deployed();
    let _agents = [
        AgentProcess::start(&server, "agent-1", "--threads 1"),
        AgentProcess::start(&server, "agent-2", "--threads 1"),
    ];
    let plain = BookshopProcess::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = certificate(folder.path());
    let (cert, key) = (cert.display().to_string(), key.display().to_string());
    let secure = BookshopProcess::start(&["--cert", &cert, "--key", &key, "--http3"]);
    let (plain, secure) = (plain.address, secure.address);
    is_answered(
        &server,
        &format!("http://{plain}/ --http 2 --connections 2"),
    );
    for version in ["2", "3"] {
        let options = format!("https://{secure}/ --http {version} --connections 2 --insecure");
        is_answered(&server, &options);
    }
    let call = "--grpc bookshop.v1.Bookshop/GetBook --message {\"isbn\":\"9780000000000\"}";
    let together = conducted(conductor(&server, &format!("http://{plain} {call} {LOAD}")));
    together.check_identity();
    // The book is not known, so that each call has a status of its own.
    assert_eq!(together.outcome("grpc-error"), 200, "{}", together.messages);
}
