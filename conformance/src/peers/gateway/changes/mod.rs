//! A gateway whose surroundings change: names get other addresses, upstreams come, go and die, certificates and the
//! configuration are read again every second. No request may fail, and a removed address may get none after the time to
//! live of its record and one second more.

mod dns;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;

use self::dns::NameServer;
use crate::error::{Outcome, TaskError, check};
use crate::load::LoadReport;
use crate::nginx;
use crate::site::{Server, Site, free_address};
use crate::tools;

/// Time to live of the name's addresses.
const TTL: Duration = Duration::from_secs(1);

/// Permitted time after it.
const MARGIN: Duration = Duration::from_secs(1);

/// Time between two changes of the configuration, and the number of them between two changes of the name.
const STEP: Duration = Duration::from_secs(1);
const STEPS_PER_SET: usize = 4;

/// Addresses of the upstreams.
const ADDRESSES: [Ipv4Addr; 3] = [
    Ipv4Addr::new(127, 0, 0, 11),
    Ipv4Addr::new(127, 0, 0, 12),
    Ipv4Addr::new(127, 0, 0, 13),
];

/// Sets of upstreams in turn, by index. One that is absent is stopped, and started before it returns. In the last set,
/// one upstream dies although the name still has it.
const SETS: [&[usize]; 4] = [&[0, 1], &[1, 2], &[2, 0], &[0, 1, 2]];
const DIES: (usize, usize) = (3, 2);

/// A shorter and slower form of the benchmark.
pub(crate) fn changes(site: &Site) -> Outcome<()> {
    let outcome = run(site, &[], Surroundings::Changing, "1000/s", 20)?;
    eprintln!("  {}", outcome.summary());
    outcome.check()
}

/// Names, upstreams, certificates and configuration during a run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surroundings {
    Changing,
    /// For comparison: requests lost here are lost for want of capacity.
    Constant,
}

/// Result of a run.
pub(crate) struct ChangesOutcome {
    pub(crate) report: LoadReport,
    pub(crate) reloads: usize,
    /// Longest time from the removal of an address to its last request, if there was any after the removal.
    pub(crate) latest: Duration,
}

impl ChangesOutcome {
    fn summary(&self) -> String {
        format!(
            "{}; {} reloads; last request {} ms after a removal",
            self.report.outcomes(),
            self.reloads,
            self.latest.as_millis()
        )
    }

    fn check(&self) -> Outcome<()> {
        self.report.expect_all("ok")?;
        check(self.latest <= TTL + MARGIN, || {
            format!(
                "an address got a request {} ms after its removal",
                self.latest.as_millis()
            )
        })
    }
}

/// Runs it at this rate for `seconds`, with `wrapper` before the gateway's command.
pub(crate) fn run(
    site: &Site,
    wrapper: &[&str],
    surroundings: Surroundings,
    rate: &str,
    seconds: usize,
) -> Outcome<ChangesOutcome> {
    let folder = site.checkout.peer_folder("changes")?;
    let names = NameServer::start(TTL)?;
    let port = free_address()?.port();
    let mut upstreams = Upstreams::new(site, port)?;
    for index in 0..ADDRESSES.len() {
        upstreams.start(index)?;
    }
    names.answer(&set(0));
    let setting = Setting {
        listen: free_address()?,
        folder: folder.clone(),
        names: names.address,
        port,
        certificates: [
            certificate(site, &folder, "first")?,
            certificate(site, &folder, "second")?,
        ],
    };
    setting.write(0)?;
    let gateway = setting.start(site, wrapper)?;
    let url = format!("https://{}/page", setting.listen);
    let duration = format!("{seconds}s");
    let options = ["--rate", rate, "--duration", &duration, "--insecure"];
    let load = site.start_load(&[], &[[url.as_str()].as_slice(), &options].concat())?;

    let (mut removals, begin) = (Vec::new(), Instant::now());
    let steps = match surroundings {
        Surroundings::Changing => seconds,
        Surroundings::Constant => 0,
    };
    for step in 1..steps {
        sleep_until(begin + STEP * u32::try_from(step).unwrap_or(u32::MAX));
        setting.write(step)?;
        gateway.running.signal(Signal::HUP)?;
        change(step, &names, &mut upstreams, &mut removals)?;
    }
    let report = load.finish(seconds as u64 + 60)?;
    let output = gateway.running.output();
    let reloads = output.matches("the configuration was read again").count();
    check(reloads + 1 >= steps / 2, || {
        format!("only {reloads} reloads in {seconds} s:\n{output}")
    })?;
    drop(gateway);
    Ok(ChangesOutcome {
        report,
        reloads,
        latest: upstreams.latest(&removals)?,
    })
}

/// An address that the name no longer has, from then on until it returns, in seconds since 1970.
struct Removal {
    index: usize,
    from: f64,
    until: f64,
}

/// Changes the name and the upstreams for this step.
fn change(
    step: usize,
    names: &NameServer,
    upstreams: &mut Upstreams<'_>,
    removals: &mut Vec<Removal>,
) -> Outcome<()> {
    let (round, within) = (step / STEPS_PER_SET, step % STEPS_PER_SET);
    let (before, now) = (
        SETS[round.saturating_sub(1) % SETS.len()],
        SETS[round % SETS.len()],
    );
    match within {
        0 => {
            for (removed, _) in in_set(before).filter(|(index, _)| !now.contains(index)) {
                removals.push(Removal {
                    index: removed,
                    from: unix_time(),
                    until: f64::INFINITY,
                });
            }
            for removal in &mut *removals {
                if now.contains(&removal.index) && removal.until.is_infinite() {
                    removal.until = unix_time();
                }
            }
            names.answer(&set(round));
        }
        1 if round % SETS.len() == DIES.0 => upstreams.kill(DIES.1),
        // Its time to live and the margin have passed.
        3 => {
            for index in 0..ADDRESSES.len() {
                if !now.contains(&index) {
                    upstreams.kill(index);
                }
            }
            for index in SETS[(round + 1) % SETS.len()] {
                upstreams.start(*index)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn in_set(set: &[usize]) -> impl Iterator<Item = (usize, Ipv4Addr)> {
    set.iter().map(|index| (*index, ADDRESSES[*index]))
}

/// Addresses of the name in this round.
fn set(round: usize) -> Vec<Ipv4Addr> {
    in_set(SETS[round % SETS.len()])
        .map(|(_, address)| address)
        .collect()
}

/// Configuration and files of the gateway.
struct Setting {
    listen: SocketAddr,
    folder: PathBuf,
    names: SocketAddr,
    port: u16,
    /// Folders of two certificates with their keys.
    certificates: [PathBuf; 2],
}

impl Setting {
    /// Writes the files of this step: the other certificate, and another value of a field.
    fn write(&self, step: usize) -> Outcome<()> {
        for file in ["certificate.pem", "key.pem"] {
            let from = self.certificates[step % 2].join(file);
            tools::copy(&from, &self.folder.join(file))?;
        }
        let path = |file: &str| self.folder.join(file).display().to_string();
        let text = format!(
            "listen = \"{}\"\n\
             [tls]\ncertificate = {:?}\nkey = {:?}\n\
             [resolver]\nservers = [\"{}\"]\n\
             [[route]]\npath = \"/\"\nupstream = [\"service.test:{}\"]\n\
             [route.request_headers]\nset = {{ X-Step = \"{step}\" }}\n\
             [route.retry]\nattempts = 3\n",
            self.listen,
            path("certificate.pem"),
            path("key.pem"),
            self.names,
            self.port,
        );
        tools::write(&self.file(), text)
    }

    fn file(&self) -> PathBuf {
        self.folder.join("gateway.toml")
    }

    fn start(&self, site: &Site, wrapper: &[&str]) -> Outcome<Server> {
        let (program, file) = (
            site.binary.display().to_string(),
            self.file().display().to_string(),
        );
        let own = [program.as_str(), "gateway", "--config", &file];
        let line = [wrapper, &own].concat();
        let mut command = Command::new(line[0]);
        site.serve("gateway", command.args(&line[1..]), self.listen)
    }
}

/// The upstreams: an nginx for each address, with a log of the times of its requests.
struct Upstreams<'s> {
    site: &'s Site,
    program: PathBuf,
    port: u16,
    running: [Option<Server>; ADDRESSES.len()],
}

impl<'s> Upstreams<'s> {
    fn new(site: &'s Site, port: u16) -> Outcome<Self> {
        Ok(Self {
            site,
            program: tools::debian(&site.checkout, "nginx", "nginx-light")?,
            port,
            running: [const { None }; ADDRESSES.len()],
        })
    }

    fn folder(&self, index: usize) -> Outcome<PathBuf> {
        let folder = format!("changes/upstream-{index}");
        self.site.checkout.peer_folder(&folder)
    }

    /// Starts one, unless it runs.
    fn start(&mut self, index: usize) -> Outcome<()> {
        if self.running[index].is_some() {
            return Ok(());
        }
        let folder = self.folder(index)?;
        let address = SocketAddr::from((ADDRESSES[index], self.port));
        let user = if rustix::process::geteuid().is_root() {
            "user root;"
        } else {
            ""
        };
        let text = format!(
            "{user} worker_processes 1; daemon off; pid nginx.pid; error_log stderr crit;
             events {{ worker_connections 4096; }}
             http {{
               log_format time '$msec'; access_log times.log time; keepalive_requests 1000000000;
               client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
               uwsgi_temp_path uwsgi; scgi_temp_path scgi;
               server {{ listen {address} backlog=4096; return 200 'a page\\n'; }}
             }}"
        );
        tools::write(&folder.join("nginx.conf"), text)?;
        let mut command = Command::new(&self.program);
        command
            .arg("-p")
            .arg(&folder)
            .args(["-c", "nginx.conf"])
            .current_dir(&folder);
        self.running[index] = Some(self.site.serve("nginx", &mut command, address)?);
        Ok(())
    }

    /// Kills one without notice.
    fn kill(&mut self, index: usize) {
        if let Some(server) = self.running[index].take() {
            // It may have ended; then there is nothing to kill.
            let _ = server.running.signal(Signal::KILL);
        }
    }

    /// Longest time from a removal to a request of the address before its return.
    fn latest(&self, removals: &[Removal]) -> Outcome<Duration> {
        let mut latest = 0.0_f64;
        for removal in removals {
            let file = self.folder(removal.index)?.join("times.log");
            let text = fs::read_to_string(&file).map_err(|error| TaskError::at(&file, error))?;
            let after = text
                .lines()
                .filter_map(|line| line.parse::<f64>().ok())
                .filter(|time| (removal.from..removal.until).contains(time))
                .map(|time| time - removal.from);
            latest = after.fold(latest, f64::max);
        }
        Ok(Duration::from_secs_f64(latest))
    }
}

/// A certificate in a folder of its own.
fn certificate(site: &Site, folder: &Path, name: &str) -> Outcome<PathBuf> {
    let folder = folder.join(name);
    fs::create_dir_all(&folder).map_err(|error| TaskError::at(&folder, error))?;
    nginx::certificate(site, &folder)?;
    Ok(folder)
}

fn sleep_until(time: Instant) {
    std::thread::sleep(time.saturating_duration_since(Instant::now()));
}

fn unix_time() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs_f64()
}
