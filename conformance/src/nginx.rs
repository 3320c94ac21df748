//! nginx as a peer: one worker, a page of 1,024 bytes, an access log that counts, TLS.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::Command;

use crate::error::{Outcome, TaskError};
use crate::process;
use crate::site::{Server, Site, free_address};
use crate::tools;

/// The size of the page at `/1k`, in bytes.
const PAGE: usize = 1024;

/// nginx with its own configuration. Dropping it stops it.
pub(crate) struct Nginx {
    pub(crate) server: Server,
    pub(crate) tls: SocketAddr,
    /// The certificate of the TLS port, created for this run.
    pub(crate) certificate: PathBuf,
    log: PathBuf,
}

impl Nginx {
    /// Starts nginx under `name`, with `wrapper`, such as `taskset`, before its own command.
    pub(crate) fn start(site: &Site, name: &str, logged: bool, wrapper: &[&str]) -> Outcome<Self> {
        let program = tools::debian(&site.checkout, "nginx", "nginx-light")?;
        let folder = site.checkout.peer_folder(name)?;
        let (plain, tls) = (free_address()?, free_address()?);
        let log = folder.join("access.log");
        let certificate = certificate(site, &folder)?;
        std::fs::create_dir_all(folder.join("pages"))
            .map_err(|error| TaskError::at(&folder, error))?;
        tools::write(
            &folder.join("pages/1k"),
            "posthaste\n".repeat(PAGE).split_at(PAGE).0,
        )?;
        tools::write(&log, "")?;
        let access = if logged {
            "access_log access.log"
        } else {
            "access_log off"
        };
        let user = if rustix::process::geteuid().is_root() {
            "user root;"
        } else {
            ""
        };
        let configuration = format!(
            "{user} worker_processes 1; daemon off; pid nginx.pid; error_log stderr crit;
             events {{ worker_connections 16384; }}
             http {{
               {access}; keepalive_requests 1000000000; tcp_nodelay on;
               client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
               uwsgi_temp_path uwsgi; scgi_temp_path scgi;
               server {{
                 listen {plain} backlog=4096; listen {tls} ssl; root pages;
                 ssl_certificate certificate.pem; ssl_certificate_key key.pem;
               }}
             }}"
        );
        tools::write(&folder.join("nginx.conf"), configuration)?;
        let mut line = wrapper
            .iter()
            .map(std::ffi::OsString::from)
            .chain([program.into()]);
        let mut command = Command::new(line.next().unwrap_or_default());
        command
            .args(line)
            .arg("-p")
            .arg(&folder)
            .args(["-c", "nginx.conf"])
            .current_dir(&folder);
        let server = site.serve("nginx", &mut command, plain)?;
        Ok(Self {
            server,
            tls,
            certificate,
            log,
        })
    }

    /// Number of requests with this status in the access log.
    pub(crate) fn logged(&self, status: u16) -> Outcome<u64> {
        let text =
            std::fs::read_to_string(&self.log).map_err(|error| TaskError::at(&self.log, error))?;
        let status = format!("\" {status} ");
        Ok(text.lines().filter(|line| line.contains(&status)).count() as u64)
    }
}

/// A self-signed certificate for 127.0.0.1 and localhost, in `folder`, with its key in `key.pem`.
pub(crate) fn certificate(site: &Site, folder: &std::path::Path) -> Outcome<PathBuf> {
    let openssl = tools::debian(&site.checkout, "openssl", "openssl")?;
    let mut command = Command::new(openssl);
    command
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
        ])
        .args(["-days", "2", "-subj", "/CN=localhost"])
        .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
        // By default openssl makes an authority. rustls accepts it as a server's certificate only if it is named as
        // trusted.
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-keyout", "key.pem", "-out", "certificate.pem"])
        .current_dir(folder);
    process::run(
        "openssl",
        &mut command,
        std::time::Duration::from_secs(30),
        &site.logs,
    )?;
    Ok(folder.join("certificate.pem"))
}
