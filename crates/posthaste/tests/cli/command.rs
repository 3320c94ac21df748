//! Starts the binary, and services for it to use.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Longer than any wait in a test, so that a test that hangs fails.
const PATIENCE: Duration = Duration::from_secs(120);

/// Returns the binary with these arguments, ready to be changed or run.
pub(crate) fn posthaste(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_posthaste"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Output and exit code of a run.
pub(crate) struct CommandOutput {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

pub(crate) fn execute(command: &mut Command) -> CommandOutput {
    CommandOutput::from(command.output().unwrap())
}

impl From<Output> for CommandOutput {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

/// A bookshop, or another service, as a process that ends with the test.
pub(crate) struct RunningShop {
    child: Child,
    pub(crate) url: String,
}

impl RunningShop {
    pub(crate) fn open(arguments: &[&str]) -> Self {
        let anywhere = ["--listen", "127.0.0.1:0"];
        Self::serve("bookshop", &[&anywhere, arguments].concat())
    }

    pub(crate) fn serve(verb: &str, arguments: &[&str]) -> Self {
        Self::start(posthaste(&[verb]).args(arguments))
    }

    /// Starts the service `command` and waits until it listens.
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let out = child.stdout.take().unwrap();
        BufReader::new(out).read_line(&mut line).unwrap();
        let rest = line.trim().strip_prefix("listening on ").unwrap();
        let url = rest.split(',').next().unwrap_or_default().to_owned();
        Self { child, url }
    }

    /// Returns the reply to a GET, head and body.
    fn get(&self, path: &str) -> String {
        let address = self.url.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: shop\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply
    }

    /// Number of pages answered.
    pub(crate) fn pages(&self) -> u64 {
        let metrics = self.get("/metrics");
        let name = "bookshop_requests_total{form=\"page\",answer=\"ok\"} ";
        let line = metrics.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().parse().unwrap()
    }

    /// URL of the page of the first book in the catalogue.
    pub(crate) fn page(&self) -> String {
        let reply = self.get("/isbns.csv");
        let isbn = reply
            .split("isbn")
            .nth(1)
            .unwrap()
            .split_whitespace()
            .next()
            .unwrap();
        format!("{}/page/{isbn}", self.url)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Kills the process.
    pub(crate) fn end(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn wait(&mut self) -> Option<i32> {
        self.child.wait().unwrap().code()
    }
}

impl Drop for RunningShop {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until `holds`, for longer than any test needs on a busy machine.
pub(crate) fn until(condition: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "in vain: {condition}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Sends a signal by name to a process.
pub(crate) fn signal(name: &str, id: u32) {
    let status = Command::new("kill")
        .args(["-s", name, &id.to_string()])
        .status()
        .unwrap();
    assert!(status.success());
}
