//! Other proxies for comparison with the gateway, if installed: HAProxy and nginx, one thread each.
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

use crate::testbed::Testbed;
use crate::testbed::proxy::ProxyUnderTest;

/// Maximum time until a proxy listens.
const LISTENING: Duration = Duration::from_secs(30);

/// Folders of administrators' programs, which are not in every user's path.
const FURTHER: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

/// A third-party proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeerProxy {
    /// HAProxy that starts no compression while its thread is idle for less than a fifth of the time.
    Haproxy,
    /// HAProxy that compresses everything.
    HaproxyAll,
    /// HAProxy that compresses nothing.
    HaproxyPlain,
    /// nginx that compresses everything, at level 1.
    NginxGzip,
    /// nginx that compresses nothing.
    NginxPlain,
}

const HAPROXY: &str = "global
  nbthread 1
  maxconn 4000
  {gate}
defaults
  mode http
  timeout connect 1s
  timeout client 30s
  timeout server 30s
  option http-keep-alive
frontend clients
  bind {listen}
  default_backend origins
backend origins
  http-reuse always
  {compression}
  server origin {origin}
";

const NGINX: &str = "worker_processes 1;
daemon off;
master_process off;
pid nginx.pid;
error_log stderr crit;
events { worker_connections 16384; }
http {
  access_log off;
  keepalive_requests 1000000000;
  tcp_nodelay on;
  client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  upstream origin { server {origin}; keepalive 256; keepalive_requests 1000000000; }
  server {
    listen {listen} backlog=4096;
    gzip {gzip};
    gzip_comp_level 1;
    gzip_types text/xml;
    gzip_proxied any;
    location / {
      proxy_pass http://origin;
      proxy_http_version 1.1;
      proxy_set_header Connection \"\";
    }
  }
}
";

impl PeerProxy {
    /// Name in pictures, sentences and records.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Haproxy => "HAProxy, maxcompcpuusage 80",
            Self::HaproxyAll => "HAProxy, gzip",
            Self::HaproxyPlain => "HAProxy, plain",
            Self::NginxGzip => "nginx, gzip",
            Self::NginxPlain => "nginx, plain",
        }
    }

    /// Starts it between generator and origin, with its files in `folder`. `None` if it is not installed.
    pub(super) fn start(
        self,
        testbed: &Testbed,
        folder: &Path,
    ) -> Result<Option<ProxyUnderTest>, Failure> {
        let (program, configuration) = match self {
            Self::Haproxy | Self::HaproxyAll | Self::HaproxyPlain => ("haproxy", HAPROXY),
            Self::NginxGzip | Self::NginxPlain => ("nginx", NGINX),
        };
        let Some(program) = find(program) else {
            return Ok(None);
        };
        let listen = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let folder = folder.join(format!("{self:?}"));
        fs::create_dir_all(&folder)?;
        let (gate, compression, gzip) = self.compresses();
        let configuration = configuration
            .replace("{gate}", gate)
            .replace("{compression}", compression)
            .replace("{listen}", &listen.to_string())
            .replace("{origin}", &testbed.origin.address.to_string())
            .replace("{gzip}", gzip);
        let file = folder.join("configuration");
        fs::write(&file, configuration)?;
        let complaints = folder.join("complaints");
        let mut command = Command::new(program);
        match self {
            Self::Haproxy | Self::HaproxyAll | Self::HaproxyPlain => {
                command.arg("-db").arg("-f").arg(&file)
            }
            Self::NginxGzip | Self::NginxPlain => {
                command.arg("-p").arg(&folder).arg("-c").arg(&file)
            }
        };
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&complaints)?)
            .spawn()?;
        let pid = Pid::from_child(&child);
        // From here on it ends with `proxy`.
        let proxy = ProxyUnderTest::peer(child, listen);
        pin(pid, testbed.cores.server)?;
        if !listens(listen) {
            let said = fs::read_to_string(&complaints)?;
            let last = said.lines().last().unwrap_or("it says nothing");
            let name = self.name();
            return Err(format!("{name} does not listen within {LISTENING:?}: {last}").into());
        }
        Ok(Some(proxy.with_threads()))
    }
}

impl PeerProxy {
    /// Parts of the configuration: HAProxy's CPU limit and compression, and nginx's gzip.
    const fn compresses(self) -> (&'static str, &'static str, &'static str) {
        let haproxy = "compression algo gzip\n  compression type text/xml";
        match self {
            Self::Haproxy => ("maxcompcpuusage 80", haproxy, ""),
            Self::HaproxyAll => ("", haproxy, ""),
            Self::HaproxyPlain => ("", "", ""),
            Self::NginxGzip => ("", "", "on"),
            Self::NginxPlain => ("", "", "off"),
        }
    }
}

/// A folder for the files of proxies. Dropping it removes it.
pub(super) struct Folder(pub(super) PathBuf);

impl Folder {
    /// Creates a folder of this process.
    pub(super) fn new() -> Self {
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
pub(super) fn find(program: &str) -> Option<PathBuf> {
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
