//! PostgreSQL as a peer: a temporary cluster for one test.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::error::{Outcome, TaskError};
use crate::nginx::certificate;
use crate::site::{Server, Site, free_address};
use crate::tools;

/// Debian's folder of the programs, by version.
const VERSIONS: &str = "/usr/lib/postgresql";
/// User of the server if we are root, because it refuses to run as root.
const USER: &str = "postgres";
/// Time limit for the server to answer.
const READY: Duration = Duration::from_secs(30);

/// An empty server. Dropping it stops it and removes its files.
pub(crate) struct Postgres {
    // Stops before its folder is removed. `None` after a kill.
    server: Option<Server>,
    address: SocketAddr,
    /// For 127.0.0.1. It listens on 127.0.0.2 too.
    pub(crate) certificate: PathBuf,
    folder: Folder,
    programs: PathBuf,
}

struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        // It is in the folder for temporary files, which the system cleans up.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Postgres {
    /// Creates a cluster and starts it on a free port of 127.0.0.1. Its user has all rights, without a password.
    pub(crate) fn start(site: &Site) -> Outcome<Self> {
        let programs = programs(site)?;
        let (folder, certificate) = folder(site)?;
        let data = folder.0.join("data");
        let mut make = as_user(&programs.join("initdb"));
        make.arg("--pgdata").arg(&data);
        make.args(["--username", "posthaste", "--auth", "trust", "--no-sync"]);
        site.run("initdb", make.current_dir(&folder.0), 60)?;
        let server = serve(site, &programs, &folder.0, &certificate, free_address()?)?;
        let this = Self {
            address: server.address,
            server: Some(server),
            certificate,
            folder,
            programs,
        };
        this.wait(site)?;
        Ok(this)
    }

    /// Kills it. Its processes notice and end.
    pub(crate) fn kill(&mut self) -> Outcome<()> {
        // Dropped here, because a new one believes that a process runs until it is waited for.
        match self.server.take() {
            Some(server) => server.running.signal(Signal::KILL),
            None => Err(TaskError::Failed("postgres is not running".to_owned())),
        }
    }

    /// Starts it again at its address, after [`Postgres::kill`]. It recovers.
    pub(crate) fn restart(&mut self, site: &Site) -> Outcome<()> {
        let (folder, address) = (&self.folder.0, self.address);
        let end = Instant::now() + READY;
        self.server = Some(loop {
            match serve(site, &self.programs, folder, &self.certificate, address) {
                // Processes of the killed server may still use its shared memory.
                Err(_) if Instant::now() < end => std::thread::sleep(Duration::from_millis(100)),
                served => break served?,
            }
        });
        self.wait(site)
    }

    /// Its URL, without a database.
    pub(crate) fn url(&self) -> String {
        format!("postgres://posthaste@{}", self.address)
    }

    /// The same by a Unix socket, for programs in a network namespace of their own.
    pub(crate) fn socket_url(&self) -> String {
        let folder = self.folder.0.display().to_string().replace('/', "%2F");
        format!("postgres://posthaste@{folder}:{}", self.address.port())
    }

    /// Its address.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits until it answers. It listens before that.
    fn wait(&self, site: &Site) -> Outcome<()> {
        let end = Instant::now() + READY;
        let mut ask = Command::new(self.programs.join("pg_isready"));
        ask.args(["--quiet", "--dbname", &format!("{}/postgres", self.url())]);
        loop {
            match site.run("pg_isready", &mut ask, 10) {
                Err(error) if Instant::now() > end => return Err(error),
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
                Ok(_) => return Ok(()),
            }
        }
    }
}

/// Starts the server of a cluster in `folder` at this address.
fn serve(
    site: &Site,
    programs: &Path,
    folder: &Path,
    certificate: &Path,
    address: SocketAddr,
) -> Outcome<Server> {
    let mut serve = as_user(&programs.join("postgres"));
    serve.arg("-D").arg(folder.join("data")).current_dir(folder);
    for setting in [
        "listen_addresses=127.0.0.1,127.0.0.2".to_owned(),
        format!("port={}", address.port()),
        format!("unix_socket_directories={}", folder.display()),
        "ssl=on".to_owned(),
        format!("ssl_cert_file={}", certificate.display()),
        format!("ssl_key_file={}", folder.join("key.pem").display()),
    ] {
        serve.arg("-c").arg(setting);
    }
    site.serve("postgres", &mut serve, address)
}

/// The folder with the newest version's programs.
fn programs(site: &Site) -> Outcome<PathBuf> {
    let newest = || {
        let versions = std::fs::read_dir(VERSIONS).ok()?;
        let versions = versions.filter_map(|version| Some(version.ok()?.path().join("bin")));
        versions
            .filter(|programs| programs.join("initdb").is_file())
            .max()
    };
    if let Some(programs) = newest() {
        return Ok(programs);
    }
    tools::install(&site.checkout, "postgresql")?;
    newest().ok_or_else(|| {
        TaskError::Missing(format!("postgresql is installed, but not in {VERSIONS}"))
    })
}

/// A folder that the server's user may write, outside of a checkout that this user may not see, and a certificate in
/// it.
fn folder(site: &Site) -> Outcome<(Folder, PathBuf)> {
    let name = format!("posthaste-postgres-{}", std::process::id());
    let folder = Folder(std::env::temp_dir().join(name));
    std::fs::create_dir(&folder.0).map_err(|error| TaskError::at(&folder.0, error))?;
    let certificate = certificate(site, &folder.0)?;
    if rustix::process::geteuid().is_root() {
        let mut give = Command::new("chown");
        give.args(["--recursive", USER]).arg(&folder.0);
        site.run("chown", &mut give, 10)?;
    }
    Ok((folder, certificate))
}

/// A program of the server, which must not run as root.
fn as_user(program: &Path) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", USER, "--regid", USER, "--clear-groups"])
        .arg(program);
    command
}
