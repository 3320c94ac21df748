//! The processes of a run on agents: NATS server, agents, and a service that logs its requests.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::error::{Outcome, TaskError, check};
use crate::load::{LoadReport, Loading};
use crate::process::Running;
use crate::site::{Server, Site, free_address};
use crate::tools;

/// Time limit for the start of an agent, and for the first request of a run.
const PATIENCE: Duration = Duration::from_secs(60);

/// A NATS server with JetStream on 127.0.0.1 that can be killed and started again.
pub(super) struct NatsServer<'s> {
    site: &'s Site,
    program: PathBuf,
    store: PathBuf,
    address: std::net::SocketAddr,
    server: Option<Server>,
}

/// A service that logs each request.
pub(super) struct LoggingService {
    server: Server,
    log: PathBuf,
    /// Length of the log before the run.
    before: usize,
}

/// A request in the log.
pub(super) struct LoggedRequest {
    /// The kernel's stamp in ns.
    pub(super) at: i128,
    /// The row in its path.
    pub(super) number: usize,
}

impl<'s> NatsServer<'s> {
    pub(super) fn start(site: &'s Site) -> Outcome<Self> {
        let program = tools::debian(&site.checkout, "nats-server", "nats-server")?;
        let store = site.checkout.peer_folder("agents/nats")?;
        std::fs::remove_dir_all(&store).map_err(|error| TaskError::at(&store, error))?;
        let mut this = Self {
            site,
            program,
            store,
            address: free_address()?,
            server: None,
        };
        this.restart()?;
        Ok(this)
    }

    /// Starts it with the store that it left, and waits until it listens.
    pub(super) fn restart(&mut self) -> Outcome<()> {
        let (address, port) = (
            self.address.ip().to_string(),
            self.address.port().to_string(),
        );
        let mut command = Command::new(&self.program);
        command
            .args(["-js", "-a", &address, "-p", &port, "-sd"])
            .arg(&self.store);
        self.server = Some(self.site.serve("nats-server", &mut command, self.address)?);
        Ok(())
    }

    pub(super) fn kill(&mut self) -> Outcome<()> {
        let server = self.server.take();
        server.map_or(Ok(()), |server| server.running.signal(Signal::KILL))
    }

    fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    /// Starts an agent with one event loop, with `wrapper`, such as `chrt`, before its own command.
    pub(super) fn agent(&self, wrapper: &[&str], fleet: &str, name: &str) -> Outcome<Running> {
        let (program, nats) = (self.site.binary.display().to_string(), self.url());
        let own = [program.as_str(), "agent", "--nats", &nats, "--threads", "1"];
        let line = [wrapper, &own, &["--fleet", fleet, "--name", name]].concat();
        let mut command = Command::new(line[0]);
        let agent = Running::start("agent", command.args(&line[1..]), &self.site.logs)?;
        let end = Instant::now() + PATIENCE;
        // The last word of a start.
        while !agent.output().contains("permitted targets") {
            check(!agent.has_ended() && Instant::now() < end, || {
                format!("agent {name} did not start: {}", agent.output())
            })?;
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(agent)
    }

    /// Starts a run on these agents, with a row for each request.
    pub(super) fn load(
        &self,
        service: &LoggingService,
        rows: &Path,
        fleet: &str,
        options: &[&str],
    ) -> Outcome<Loading> {
        let (url, rows) = (service.server.url("/{{row}}"), rows.display().to_string());
        let nats = self.url();
        let own = [
            url.as_str(),
            "--data",
            &rows,
            "--nats",
            &nats,
            "--fleet",
            fleet,
        ];
        self.site
            .start_load(&[], &[own.as_slice(), options].concat())
    }
}

impl LoggingService {
    pub(super) fn start(site: &Site, name: &str) -> Outcome<Self> {
        let python = tools::debian(&site.checkout, "python3", "python3")?;
        let log = site
            .checkout
            .peer_folder("agents")?
            .join(format!("{name}.log"));
        tools::write(&log, "")?;
        let address = free_address()?;
        let mut command = Command::new(python);
        command.arg(
            site.checkout
                .path("conformance/programs/agents/requests.py"),
        );
        command.arg(address.port().to_string()).arg(&log);
        let server = site.serve("requests", &mut command, address)?;
        Ok(Self {
            server,
            log,
            before: 0,
        })
    }

    /// Waits for the first request of a run.
    pub(super) fn begun(&self, loading: Loading) -> Outcome<Loading> {
        let end = Instant::now() + PATIENCE;
        let length = || std::fs::metadata(&self.log).map_or(0, |log| log.len() as usize);
        while length() <= self.before {
            if Instant::now() > end {
                // It says why.
                loading.finish(0)?;
                return Err(TaskError::Failed("no request came".into()));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(loading)
    }

    /// The requests of the run. The next requests belong to another run.
    pub(super) fn take(&mut self) -> Outcome<Vec<LoggedRequest>> {
        let text = std::fs::read_to_string(&self.log);
        let text = text.map_err(|error| TaskError::at(&self.log, error))?;
        let lines = text.get(self.before..).unwrap_or_default().lines();
        let requests = lines.map(|line| {
            let (at, target) = line.split_once(' ')?;
            Some(LoggedRequest {
                at: at.parse().ok()?,
                number: target.trim_start_matches('/').parse().ok()?,
            })
        });
        let requests = requests.collect::<Option<Vec<_>>>();
        self.before = text.len();
        requests.ok_or_else(|| TaskError::at(&self.log, "a line is no request"))
    }
}

/// A CSV file with the numbers from 0 on.
pub(super) fn rows(site: &Site, count: u64) -> Outcome<PathBuf> {
    let path = site
        .checkout
        .peer_folder("agents")?
        .join(format!("rows-{count}.csv"));
    let rows: String = (0..count).map(|row| format!("{row}\n")).collect();
    tools::write(&path, format!("row\n{rows}"))?;
    Ok(path)
}

/// A count of an agent in the report.
pub(super) fn of_agent(report: &LoadReport, agent: usize, count: &str) -> Outcome<f64> {
    report.number(&format!("agents/{agent}/{count}"))
}
