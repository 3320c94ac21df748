//! Other proxies as programs of this machine: HAProxy, nginx and Envoy, one worker thread each.
//!
//! A figure omits missing ones and says so. Reproduction therefore needs nothing but this program.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};

use posthaste_study::Failure;

use super::proxy::ProxyUnderTest;

/// Maximum time until a proxy listens.
const LISTENING: Duration = Duration::from_secs(30);

/// Folders of administrators' programs, which are not in every user's path.
const FURTHER: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

/// A third-party proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Software {
    Haproxy,
    Nginx,
    Envoy,
}

impl Software {
    /// Name of the program.
    pub(crate) const fn program(self) -> &'static str {
        match self {
            Self::Haproxy => "haproxy",
            Self::Nginx => "nginx",
            Self::Envoy => "envoy",
        }
    }

    /// Starts it on `core` with this configuration, in which `{listen}`, `{port}`, `{origin}` and `{origin_port}` are
    /// replaced. Its files are in `folder`, which is its own. `None` if it is not installed.
    pub(crate) fn start(
        self,
        folder: &Path,
        configuration: &str,
        origin: SocketAddr,
        core: Option<usize>,
    ) -> Result<Option<ProxyUnderTest>, Failure> {
        let Some(program) = find(self.program()) else {
            return Ok(None);
        };
        let listen = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        fs::create_dir_all(folder)?;
        let configuration = configuration
            .replace("{listen}", &listen.to_string())
            .replace("{port}", &listen.port().to_string())
            .replace("{origin}", &origin.to_string())
            .replace("{origin_port}", &origin.port().to_string());
        // Envoy tells the format of a file by its name.
        let name = if self == Self::Envoy {
            "configuration.yaml"
        } else {
            "configuration"
        };
        let file = folder.join(name);
        fs::write(&file, configuration)?;
        let complaints = folder.join("complaints");
        let mut command = Command::new(program);
        match self {
            Self::Haproxy => command.arg("-db").arg("-f").arg(&file),
            Self::Nginx => command.arg("-p").arg(folder).arg("-c").arg(&file),
            Self::Envoy => command
                .args(["--concurrency", "1", "--disable-hot-restart", "-l", "error"])
                .arg("-c")
                .arg(&file),
        };
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&complaints)?)
            .spawn()?;
        let pid = Pid::from_child(&child);
        // From here on it ends with `proxy`.
        let proxy = ProxyUnderTest::peer(child, listen);
        pin(pid, core)?;
        if !listens(listen) {
            let output = fs::read_to_string(&complaints)?;
            let last = output.lines().last().unwrap_or("it prints nothing");
            let name = self.program();
            return Err(format!("{name} does not listen within {LISTENING:?}: {last}").into());
        }
        Ok(Some(proxy.with_threads()))
    }
}

/// A folder for the files of proxies. Dropping it removes it.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    /// Creates a folder of this process.
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let (process, number) = (std::process::id(), NEXT.fetch_add(1, Relaxed));
        Self(std::env::temp_dir().join(format!("posthaste-{process}-{number}")))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Remaining files stay in the folder for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Path of an installed program.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(FURTHER.map(PathBuf::from));
    folders
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

/// Pins a started program to a core.
fn pin(process: Pid, core: Option<usize>) -> Result<(), Failure> {
    if let Some(core) = core {
        let mut set = CpuSet::new();
        set.set(core);
        sched_setaffinity(Some(process), &set)?;
    }
    Ok(())
}

/// True if a connection to `address` succeeds in time.
fn listens(address: SocketAddr) -> bool {
    let end = Instant::now() + LISTENING;
    while Instant::now() < end {
        if TcpStream::connect(address).is_ok() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}
