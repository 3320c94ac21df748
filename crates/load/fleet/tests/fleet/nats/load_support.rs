//! Processes of agents and conductors, and the service that they load.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::server::{NatsServer, PATIENCE};

/// The program under test.
pub(super) fn program() -> Command {
    let program = std::env::var_os("POSTHASTE_PROGRAM");
    let mut command = Command::new(program.expect("POSTHASTE_PROGRAM names posthaste"));
    command.stdin(Stdio::null());
    command
}

/// An agent in a process of its own. Dropping it kills it.
pub(super) struct AgentProcess(Child);

impl AgentProcess {
    /// An agent with the user of its name.
    pub(super) fn start(server: &NatsServer, name: &str, options: &str) -> Self {
        Self::start_as(server, name, name, options)
    }

    pub(super) fn start_as(server: &NatsServer, user: &str, name: &str, options: &str) -> Self {
        let mut command = program();
        command.args(["agent", "--nats", &server.url(user), "--name", name]);
        if let Some(certificate) = &server.certificate {
            command.arg("--nats-ca").arg(certificate);
        }
        command.args(options.split_whitespace());
        Self(command.stderr(Stdio::null()).spawn().unwrap())
    }

    /// Sends a signal, such as `KILL`.
    pub(super) fn signal(&self, signal: &str) {
        signal_process(&self.0, signal);
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Sends a signal to a process.
pub(super) fn signal_process(process: &Child, signal: &str) {
    let sent = Command::new("kill")
        .args([&format!("-{signal}"), &process.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
}

/// Adds the options of a conductor's connection.
pub(super) fn connect(command: &mut Command, server: &NatsServer) {
    command.args(["--nats", &server.url("conductor")]);
    if let Some(certificate) = &server.certificate {
        command.arg("--nats-ca").arg(certificate);
    }
}

/// Starts `posthaste load` with agents and a report as JSON.
pub(super) fn conductor(server: &NatsServer, options: &str) -> Child {
    let mut command = program();
    command.args(["load", "--json"]);
    connect(&mut command, server);
    command.args(options.split_whitespace());
    let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    piped.spawn().unwrap()
}

/// Starts `posthaste simulate` with a report as JSON, and agents if there is a server.
pub(super) fn simulate(server: Option<&NatsServer>, options: &str) -> Child {
    let mut command = program();
    command.args(["simulate", "--json"]);
    if let Some(server) = server {
        connect(&mut command, server);
    }
    command.args(options.split_whitespace());
    let piped = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    piped.spawn().unwrap()
}

/// Exit code, report and messages of a conductor.
pub(super) struct Conducted {
    pub(super) code: i32,
    pub(super) report: Value,
    pub(super) messages: String,
}

/// Waits for the end of a conductor.
pub(super) fn conducted(conductor: Child) -> Conducted {
    let Output {
        status,
        stdout,
        stderr,
    } = conductor.wait_with_output().unwrap();
    let messages = String::from_utf8_lossy(&stderr).into_owned();
    Conducted {
        code: status.code().unwrap_or(-1),
        report: serde_json::from_slice(&stdout).unwrap_or(Value::Null),
        messages,
    }
}

impl Conducted {
    /// A number of the report, by a JSON pointer.
    pub(super) fn number(&self, pointer: &str) -> u64 {
        let value = self.report.pointer(pointer).and_then(Value::as_u64);
        value.unwrap_or_else(|| panic!("no {pointer} in {}\n{}", self.report, self.messages))
    }

    pub(super) fn outcome(&self, name: &str) -> u64 {
        self.number(&format!("/outcomes/{name}"))
    }

    /// Panics unless each intended request has an outcome, in total and in each part.
    pub(super) fn check_identity(&self) {
        let sum = |part: &Value| -> u64 {
            let outcomes = part["outcomes"].as_object();
            let outcomes = outcomes.unwrap_or_else(|| panic!("{}", self.messages));
            outcomes.values().filter_map(Value::as_u64).sum()
        };
        assert_eq!(sum(&self.report), self.number("/intended"));
        for parts in ["steps", "requests"] {
            let parts = self.report[parts].as_array();
            let parts: Vec<u64> = parts.into_iter().flatten().map(sum).collect();
            if !parts.is_empty() {
                assert_eq!(
                    parts.iter().sum::<u64>(),
                    self.number("/intended"),
                    "{parts:?}"
                );
            }
        }
        let agents = self.report["agents"].as_array().unwrap();
        let intended = agents.iter().filter_map(|agent| agent["intended"].as_u64());
        assert_eq!(intended.sum::<u64>(), self.number("/intended"));
    }
}

/// A service that answers each request at once, and records its target.
pub(super) struct RecordingService {
    pub(super) address: SocketAddr,
    targets: Arc<Mutex<Vec<(Instant, String)>>>,
}

impl RecordingService {
    pub(super) fn start() -> Self {
        Self::with_one_worker(Duration::ZERO)
    }

    /// A service with one worker that takes this time for a request.
    pub(super) fn with_one_worker(time: Duration) -> Self {
        let worker = Arc::new(Mutex::new(time));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let targets = Arc::<Mutex<Vec<(Instant, String)>>>::default();
        let seen = targets.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (seen, worker) = (seen.clone(), worker.clone());
                std::thread::spawn(move || serve(&stream, &seen, &worker));
            }
        });
        Self { address, targets }
    }

    /// The targets of the requests so far, sorted.
    pub(super) fn targets(&self) -> Vec<String> {
        let targets = self.targets.lock().unwrap();
        let mut targets: Vec<String> = targets.iter().map(|(_, target)| target.clone()).collect();
        targets.sort_unstable();
        targets
    }

    /// The requests so far: the time of arrival, and the target.
    pub(super) fn arrivals(&self) -> Vec<(Instant, String)> {
        self.targets.lock().unwrap().clone()
    }

    /// Forgets the requests so far.
    pub(super) fn clear(&self) {
        self.targets.lock().unwrap().clear();
    }

    /// Number of requests so far.
    pub(super) fn count(&self) -> usize {
        self.targets.lock().unwrap().len()
    }

    /// Waits until there have been so many requests.
    pub(super) fn wait_for(&self, count: usize) {
        let end = Instant::now() + PATIENCE;
        while self.count() < count {
            assert!(Instant::now() < end, "{} of {count} requests", self.count());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn serve(
    stream: &TcpStream,
    seen: &Mutex<Vec<(Instant, String)>>,
    worker: &Mutex<Duration>,
) -> Option<()> {
    let mut out = stream;
    let mut lines = BufReader::new(stream).lines();
    loop {
        let request = lines.next()?.ok()?;
        seen.lock()
            .unwrap()
            .push((Instant::now(), request.split(' ').nth(1)?.to_owned()));
        while !lines.next()?.ok()?.is_empty() {}
        let time = worker.lock().unwrap();
        if !time.is_zero() {
            std::thread::sleep(*time);
        }
        drop(time);
        out.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
            .ok()?;
    }
}
