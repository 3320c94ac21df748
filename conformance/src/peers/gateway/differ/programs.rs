//! The gateway, nginx and HAProxy in front of one origin, each with one configuration for all families.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};

use super::certificate_files::CertificateFiles;
use super::origin::CaseOrigin;
use crate::error::{Outcome, TaskError};
use crate::site::{Server, Site, free_address};
use crate::tools;

/// Time limit of the proxies for the head of a request.
const HEAD: &str = "3s";

/// Time limit for the end of an exchange. More than the proxies have for an incomplete head.
const PATIENCE: Duration = Duration::from_secs(8);

/// Address of senders of PROXY headers. The gateway expects a header from it.
pub(super) const BALANCER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// Address of a proxy that is believed about its client. ProxyAddresses in 10.0.0.0/8 are, too.
pub(super) const TRUSTED: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);

/// Address of a client.
pub(super) const CLIENT: Ipv4Addr = Ipv4Addr::LOCALHOST;

/// ProxyAddresses of a proxy, by use.
#[derive(Clone, Copy)]
pub(super) struct ProxyAddresses {
    pub(super) proxy_header: SocketAddr,
    pub(super) forwarded_for: SocketAddr,
    pub(super) upgrade: SocketAddr,
    pub(super) tls: SocketAddr,
}

/// All running programs.
pub(super) struct ComparedPrograms<'s> {
    pub(super) site: &'s Site,
    /// Folder for files of this test.
    pub(super) folder: PathBuf,
    pub(super) files: CertificateFiles,
    pub(super) origin: CaseOrigin,
    pub(super) gateway: ProxyAddresses,
    pub(super) nginx: ProxyAddresses,
    pub(super) haproxy: ProxyAddresses,
    /// A gRPC server that replies with the remaining time of the call.
    pub(super) grpc: SocketAddr,
    access_log: PathBuf,
    _servers: [Server; 4],
}

impl<'s> ComparedPrograms<'s> {
    pub(super) fn start(site: &'s Site) -> Outcome<Self> {
        let folder = site.checkout.peer_folder("gateway-parsers")?;
        let files = CertificateFiles::make(site, &folder)?;
        let origin = CaseOrigin::start()?;
        let grpc = grpc_server(site)?;
        let access_log = folder.join("access.log");
        let _ = std::fs::remove_file(&access_log);
        let addresses = [addresses()?, addresses()?, addresses()?];
        let [mut gateway, nginx, haproxy] = addresses;
        // One address for all but TLS.
        gateway.proxy_header = gateway.upgrade;
        gateway.forwarded_for = gateway.upgrade;
        let servers = [
            start_gateway(site, &folder, gateway, origin.address, grpc.address)?,
            start_nginx(site, &folder, nginx, origin.address)?,
            start_haproxy(site, &folder, haproxy, origin.address)?,
        ];
        let grpc_address = grpc.address;
        let [first, second, third] = servers;
        Ok(Self {
            site,
            folder,
            files,
            origin,
            gateway,
            nginx,
            haproxy,
            grpc: grpc_address,
            access_log,
            _servers: [first, second, third, grpc],
        })
    }

    /// Waits for the gateway's log line about `path`. Returns the client's address.
    pub(super) fn logged_client(&self, path: &str) -> Outcome<String> {
        let end = Instant::now() + PATIENCE;
        let path = format!("\"path\":\"{path}\"");
        loop {
            let log = std::fs::read_to_string(&self.access_log).unwrap_or_default();
            let mut lines = log.lines().filter(|line| line.ends_with('}'));
            if let Some(line) = lines.find(|line| line.contains(&path)) {
                let line: serde_json::Value = serde_json::from_str(line)
                    .map_err(|error| TaskError::at(&self.access_log, error))?;
                let client = line["client"].as_str().unwrap_or_default();
                return Ok(client.to_owned());
            }
            if Instant::now() > end {
                return Err(TaskError::at(
                    &self.access_log,
                    format!("no line with {path}"),
                ));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Connects from an address of this host.
pub(super) fn connect_from(source: Ipv4Addr, address: SocketAddr) -> Outcome<TcpStream> {
    let failed = |error| TaskError::Failed(format!("{address} from {source}: {error}"));
    let (family, kind) = (AddressFamily::INET, SocketType::STREAM);
    let socket = socket_with(family, kind, SocketFlags::CLOEXEC, None).map_err(failed)?;
    bind(&socket, &SocketAddr::from((source, 0))).map_err(failed)?;
    connect(&socket, &address).map_err(failed)?;
    Ok(TcpStream::from(socket))
}

/// Sends `bytes` on a connection of its own and returns the reply up to its end.
pub(super) fn exchange(source: Ipv4Addr, address: SocketAddr, bytes: &[u8]) -> Outcome<Vec<u8>> {
    let mut stream = connect_from(source, address)?;
    // A proxy that refuses may close before reading everything.
    let _ = stream.write_all(bytes);
    let mut reply = Vec::new();
    let end = Instant::now() + PATIENCE;
    while read_some(&mut stream, &mut reply, end)? {}
    Ok(reply)
}

/// Appends received bytes. False at the end of the connection, and at `end`.
pub(super) fn read_some(
    stream: &mut TcpStream,
    reply: &mut Vec<u8>,
    end: Instant,
) -> Outcome<bool> {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Ok(false);
    }
    stream
        .set_read_timeout(Some(left))
        .map_err(|error| TaskError::Failed(format!("no time limit for a read: {error}")))?;
    let mut piece = [0; 4096];
    match stream.read(&mut piece) {
        Ok(0) => return Ok(false),
        Ok(length) => reply.extend_from_slice(&piece[..length]),
        Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(true),
        Err(_) => return Ok(false),
    }
    Ok(true)
}

fn addresses() -> Outcome<ProxyAddresses> {
    Ok(ProxyAddresses {
        proxy_header: free_address()?,
        forwarded_for: free_address()?,
        upgrade: free_address()?,
        tls: free_address()?,
    })
}

fn start_gateway(
    site: &Site,
    folder: &Path,
    addresses: ProxyAddresses,
    origin: SocketAddr,
    grpc: SocketAddr,
) -> Outcome<Server> {
    let ProxyAddresses { upgrade, tls, .. } = addresses;
    let configuration = format!(
        "listen = \"{tls}\"
         threads = 1
         access_log = \"access.log\"
         [http]
         listen = \"{upgrade}\"
         mode = \"serve\"
         [tls]
         certificate = \"server.pem\"
         key = \"server.key\"
         client_ca = \"ca.pem\"
         client_auth = \"required\"
         [timeouts]
         head = \"{HEAD}\"
         [trust]
         proxy_protocol = [\"{BALANCER}\"]
         forwarded = [\"{TRUSTED}\", \"10.0.0.0/8\"]
         [[route]]
         path = \"/\"
         upstream = [\"{origin}\"]
         [[route]]
         path = \"/peer.Peer/\"
         upstream = [\"{grpc}\"]
         protocol = \"http2\"
        "
    );
    tools::write(&folder.join("gateway.toml"), configuration)?;
    let mut command = Command::new(&site.binary);
    command
        .args(["gateway", "--config", "gateway.toml"])
        .current_dir(folder);
    site.serve("gateway", &mut command, upgrade)
}

fn start_nginx(
    site: &Site,
    folder: &Path,
    addresses: ProxyAddresses,
    origin: SocketAddr,
) -> Outcome<Server> {
    let program = tools::debian(&site.checkout, "nginx", "nginx-light")?;
    let user = if rustix::process::geteuid().is_root() {
        "user root;"
    } else {
        ""
    };
    let ProxyAddresses {
        proxy_header,
        forwarded_for,
        upgrade,
        tls,
    } = addresses;
    let configuration = format!(
        "{user} worker_processes 1; daemon off; pid nginx.pid; error_log stderr info;
         events {{ worker_connections 512; }}
         http {{
           access_log off; client_header_timeout {HEAD};
           client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
           uwsgi_temp_path uwsgi; scgi_temp_path scgi;
           map $http_upgrade $connection_upgrade {{ default upgrade; '' close; }}
           server {{
             listen {proxy_header} proxy_protocol;
             set_real_ip_from 127.0.0.0/8; real_ip_header proxy_protocol;
             location / {{ proxy_pass http://{origin}; proxy_set_header X-Client $remote_addr; }}
           }}
           server {{
             listen {forwarded_for}; large_client_header_buffers 4 32k;
             set_real_ip_from {TRUSTED}; set_real_ip_from 10.0.0.0/8;
             real_ip_header X-Forwarded-For; real_ip_recursive on;
             location / {{ proxy_pass http://{origin}; proxy_set_header X-Client $remote_addr; }}
           }}
           server {{
             listen {upgrade};
             location / {{
               proxy_pass http://{origin}; proxy_http_version 1.1;
               proxy_set_header Upgrade $http_upgrade;
               proxy_set_header Connection $connection_upgrade;
             }}
           }}
           server {{
             listen {tls} ssl; ssl_certificate server.pem; ssl_certificate_key server.key;
             ssl_client_certificate ca.pem; ssl_verify_client on; ssl_verify_depth 5;
             location / {{
               proxy_pass http://{origin}; proxy_set_header X-Cert $ssl_client_escaped_cert;
             }}
           }}
         }}"
    );
    tools::write(&folder.join("nginx.conf"), configuration)?;
    let mut command = Command::new(program);
    command.arg("-p").arg(folder).args(["-c", "nginx.conf"]);
    site.serve("nginx", command.current_dir(folder), upgrade)
}

fn start_haproxy(
    site: &Site,
    folder: &Path,
    addresses: ProxyAddresses,
    origin: SocketAddr,
) -> Outcome<Server> {
    let program = tools::debian(&site.checkout, "haproxy", "haproxy")?;
    let ProxyAddresses {
        proxy_header,
        upgrade,
        tls,
        ..
    } = addresses;
    // HAProxy reads certificate and key from one file, or from NAME and NAME.key.
    tools::copy(&folder.join("server.key"), &folder.join("server.pem.key"))?;
    let configuration = format!(
        "global\n  nbthread 1\ndefaults\n  mode http\n  timeout connect 5s\n  timeout client 10s
  timeout server 10s\n  timeout tunnel 10s\n  timeout http-request {HEAD}\n  default_backend back
frontend proxy-header\n  bind {proxy_header} accept-proxy\n  http-request set-header X-Client %[src]
frontend upgrade\n  bind {upgrade}
frontend tls\n  bind {tls} ssl crt server.pem verify required ca-file ca.pem
  http-request set-header X-Cert %[ssl_c_der,base64]
backend back\n  server origin {origin}\n"
    );
    tools::write(&folder.join("haproxy.cfg"), configuration)?;
    let mut command = Command::new(program);
    command.args(["-db", "-f", "haproxy.cfg"]);
    site.serve("haproxy", command.current_dir(folder), upgrade)
}

/// Starts grpcio with a method that returns the remaining time.
fn grpc_server(site: &Site) -> Outcome<Server> {
    let python = tools::python(
        &site.checkout,
        "grpc",
        "conformance/programs/grpc/requirements.txt",
    )?;
    let address = free_address()?;
    let mut command = Command::new(python);
    command
        .arg(
            site.checkout
                .path("conformance/programs/differ/deadline.py"),
        )
        .arg(address.to_string());
    site.serve("grpc-deadline", &mut command, address)
}
