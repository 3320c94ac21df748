//! A nats-server on a free port of 127.0.0.1, that can be killed and started again.

use std::future::Future;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use posthaste_fleet::connection::{Connection, NatsOptions, ServerSafety};
use posthaste_fleet::subjects::Subjects;
use tempfile::TempDir;

/// Time limit of everything that a busy machine delays.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// Password of each user of the deployed configuration.
const PASSWORD: &str = "12345";

/// A running server. Dropping it ends it and removes its files.
pub(super) struct NatsServer {
    process: Option<Child>,
    address: SocketAddr,
    folder: TempDir,
    /// The certificate, if the server uses TLS.
    pub(super) certificate: Option<PathBuf>,
}

impl NatsServer {
    /// A server with JetStream that lets everybody in.
    pub(super) fn open() -> Self {
        let this = Self::with(None, |address, store| {
            format!("listen: \"{address}\"\njetstream {{ store_dir: {store:?} }}\n")
        });
        this.started()
    }

    /// A server without a store.
    pub(super) fn without_jetstream() -> Self {
        Self::with(None, |address, _| format!("listen: \"{address}\"\n")).started()
    }

    /// A server that knows an operator and one account, whose users need credentials.
    pub(super) fn by_operator(operator: &str, account: &str, token: &str) -> Self {
        let this = Self::with(None, |address, _| {
            format!(
                "listen: \"{address}\"\noperator: {operator}\nresolver: MEMORY\n\
                 resolver_preload: {{ {account}: {token} }}\n"
            )
        });
        this.started()
    }

    /// A server with the deployed configuration: paths and the port are replaced.
    pub(super) fn deployed() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = certificate(folder.path());
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../deploy/nats.conf");
        let text = std::fs::read_to_string(path).unwrap();
        let (shown, key) = (certificate.display().to_string(), key.display().to_string());
        let this = Self::with(Some((folder, certificate)), move |address, store| {
            let replacements = [
                ("\"0.0.0.0:4222\"", format!("\"{address}\"")),
                ("\"/var/lib/nats\"", format!("{store:?}")),
                ("\"/etc/nats/server.pem\"", format!("{shown:?}")),
                ("\"/etc/nats/server.key\"", format!("{key:?}")),
            ];
            replacements.into_iter().fold(text, |text, (from, to)| {
                assert_eq!(text.matches(from).count(), 1, "{from}");
                text.replace(from, &to)
            })
        });
        this.started()
    }

    fn with(
        secured: Option<(TempDir, PathBuf)>,
        config: impl FnOnce(SocketAddr, &Path) -> String,
    ) -> Self {
        let (folder, certificate) = match secured {
            Some((folder, certificate)) => (folder, Some(certificate)),
            None => (tempfile::tempdir().unwrap(), None),
        };
        let address = unused_address();
        let config = config(address, &folder.path().join("store"));
        std::fs::write(folder.path().join("nats.conf"), config).unwrap();
        Self {
            process: None,
            address,
            folder,
            certificate,
        }
    }

    fn started(mut self) -> Self {
        self.start();
        self
    }

    /// Starts the server with the store that it left.
    pub(super) fn start(&mut self) {
        let program = std::env::var_os("POSTHASTE_NATS_SERVER");
        let program = program.expect("POSTHASTE_NATS_SERVER names the program nats-server");
        let log = std::fs::File::create(self.log()).unwrap();
        let mut command = Command::new(program);
        command
            .arg("-c")
            .arg(self.folder.path().join("nats.conf"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log);
        for user in ["PH_CONDUCTOR", "PH_AGENT_1", "PH_AGENT_2", "PH_POOL"] {
            command.env(user, format!("{PASSWORD:?}"));
        }
        self.process = Some(command.spawn().unwrap());
        let end = Instant::now() + PATIENCE;
        while TcpStream::connect(self.address).is_err() {
            let ended = self.process.as_mut().unwrap().try_wait().unwrap();
            assert!(ended.is_none() && Instant::now() < end, "{}", self.output());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Kills the server.
    pub(super) fn kill(&mut self) {
        let mut process = self.process.take().expect("it runs");
        process.kill().unwrap();
        process.wait().unwrap();
    }

    /// Folder of its store.
    pub(super) fn store(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    /// Output so far.
    pub(super) fn output(&self) -> String {
        std::fs::read_to_string(self.log()).unwrap_or_default()
    }

    /// Options of a client with this user of the deployed configuration, or of any client of an open server.
    pub(super) fn options(&self, user: &str) -> NatsOptions {
        NatsOptions {
            url: self.url(user).parse().unwrap(),
            name: user.to_owned(),
            credentials: None,
            authority: self.certificate.clone(),
            safety: ServerSafety::Required,
        }
    }

    /// The URL of the server for this user.
    pub(super) fn url(&self, user: &str) -> String {
        let login = match self.certificate {
            Some(_) => format!("{user}:{PASSWORD}@"),
            None => String::new(),
        };
        format!("nats://{login}{}", self.address)
    }

    /// A connection of this user.
    pub(super) async fn connect(&self, user: &str) -> Connection {
        Connection::open(&self.options(user)).await.unwrap()
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("log")
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        if self.process.is_some() {
            self.kill();
        }
        if std::thread::panicking() {
            eprintln!("the server said:\n{}", self.output());
        }
    }
}

/// An address for a server that also restarts. Its port is below those that the kernel gives to connections
/// (`ip_local_port_range`): otherwise a connection of another test could take it while the server is away.
fn unused_address() -> SocketAddr {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    const PORTS: std::ops::Range<u16> = 20_000..30_000;
    let span = u32::from(PORTS.end - PORTS.start);
    let first = std::process::id().wrapping_mul(61) % span;
    loop {
        let step = u32::from(TAKEN.fetch_add(1, Ordering::Relaxed));
        let port = PORTS.start + u16::try_from((first + step) % span).expect("within PORTS");
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}

/// Writes a certificate for 127.0.0.1 and its key.
pub(super) fn certificate(folder: &Path) -> (PathBuf, PathBuf) {
    let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let (certificate, key) = (folder.join("server.pem"), folder.join("server.key"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    (certificate, key)
}

/// The fleet of the deployed configuration.
pub(super) fn subjects() -> Subjects {
    Subjects::new("default".parse().unwrap())
}

/// Runs a test on one thread, as the agent and the conductor do.
pub(super) fn on_one_thread(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let limited = tokio::time::timeout(2 * PATIENCE, test).await;
        limited.expect("the test ends in time");
    });
}

/// Waits until something holds.
pub(super) async fn eventually(description: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !holds() {
        assert!(
            Instant::now() < end,
            "not within {PATIENCE:?}: {description}"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
