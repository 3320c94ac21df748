//! `posthaste load --http 3` against foreign servers: its accounts are those of their logs.

use std::path::PathBuf;
use std::process::Command;

use crate::error::{Outcome, check};
use crate::peers::streams::{count_lines, folder};
use crate::site::{Server, Site, free_address, free_udp_address};
use crate::tools;

/// A foreign server of HTTP/3 with a page at `/1k` and a log of its requests.
struct Http3Peer {
    server: Server,
    log: PathBuf,
    certificate: PathBuf,
    /// Text of a line of the log for each request.
    request: &'static str,
}

/// Requests in flight at once on few connections, and a connection for each request.
const USES: [&[&str]; 3] = [
    &["--rate", "500/s", "--connections", "4"],
    &["--rate", "500/s", "--connections", "2", "--streams", "20"],
    &["--rate", "50/s", "--connection", "new"],
];

/// Each request is `ok` and in the log: Caddy and quic-go use quic-go, gtlsserver ngtcp2. quic-go permits five streams
/// on a connection for 20 ms each, so that requests wait for one.
pub(crate) fn logs(site: &Site) -> Outcome<()> {
    for server in [caddy(site)?, gtlsserver(site)?, quic_go(site)?] {
        for options in USES {
            compare(site, &server, options)?;
        }
        compare(site, &server, &[USES[0], &["--no-gso"]].concat())?;
    }
    Ok(())
}

/// Loads a server and compares the counts.
fn compare(site: &Site, server: &Http3Peer, options: &[&str]) -> Outcome<()> {
    let before = count_lines(&server.log, server.request)?;
    let port = server.server.address.port();
    let url = format!("https://localhost:{port}/1k");
    let address = format!("localhost:{port}:127.0.0.1");
    let trusted = server.certificate.display().to_string();
    let own = ["--http", "3", "--ca", &trusted, "--resolve", &address];
    let pace = ["--duration", "2s"];
    let report = site.load(&[&[url.as_str()], options, &own, &pace].concat(), 120)?;
    report.expect_all("ok")?;
    let attempted = report.intended()? - report.outcome("dropped") - report.outcome("no-stream");
    let logged = count_lines(&server.log, server.request)? - before;
    check(attempted - report.outcome("rejected") == logged, || {
        format!("{options:?}: {logged} logged, {}", report.outcomes())
    })
}

/// Caddy serves TCP and UDP on the same port.
fn caddy(site: &Site) -> Outcome<Http3Peer> {
    const NAME: &str = "http3-caddy";
    let program = tools::debian(&site.checkout, "caddy", "caddy")?;
    let (folder, certificate) = folder(site, NAME)?;
    let address = free_address()?;
    let log = folder.join("access.log");
    tools::write(&log, "")?;
    let configuration = format!(
        "{{\n admin off\n auto_https off\n servers {{\n protocols h1 h3\n }}\n}}\n\
         https://localhost:{} {{\n bind 127.0.0.1\n root * pages\n file_server\n \
         log {{\n output file access.log\n }}\n tls certificate.pem key.pem\n}}\n",
        address.port(),
    );
    tools::write(&folder.join("Caddyfile"), configuration)?;
    let mut command = Command::new(program);
    command
        .args(["run", "--config", "Caddyfile"])
        .env("HOME", &folder)
        .current_dir(&folder);
    Ok(Http3Peer {
        server: site.serve_quic(NAME, &mut command, address)?,
        log,
        certificate,
        request: "\"proto\":\"HTTP/3.0\",\"method\":\"GET\"",
    })
}

/// The example server of ngtcp2 with GnuTLS. Its log has each frame and each header field.
fn gtlsserver(site: &Site) -> Outcome<Http3Peer> {
    const NAME: &str = "http3-gtlsserver";
    let program = tools::debian(&site.checkout, "gtlsserver", "ngtcp2-server")?;
    let (folder, certificate) = folder(site, NAME)?;
    let address = free_udp_address()?;
    let log = folder.join("access.log");
    let line = "exec \"$0\" --no-quic-dump --no-http-dump --htdocs=pages 127.0.0.1 \"$1\" key.pem certificate.pem \
                >access.log 2>&1";
    let mut command = Command::new("sh");
    command
        .args(["-c", line])
        .arg(program)
        .arg(address.port().to_string())
        .current_dir(&folder);
    Ok(Http3Peer {
        server: site.serve_quic(NAME, &mut command, address)?,
        log,
        certificate,
        request: "[:path: /1k]",
    })
}

/// A program of ours with quic-go.
fn quic_go(site: &Site) -> Outcome<Http3Peer> {
    const NAME: &str = "quic-go";
    let program = tools::go_built(&site.checkout, NAME, "conformance/programs/quic-go")?;
    let (folder, certificate) = folder(site, NAME)?;
    let address = free_udp_address()?;
    let log = folder.join("access.log");
    tools::write(&log, "")?;
    let mut command = Command::new(program);
    command
        .args(["-listen", &address.to_string()])
        .args(["-cert", "certificate.pem", "-key", "key.pem"])
        .args(["-processing", "20ms", "-streams", "5", "-log"])
        .arg(&log)
        .current_dir(&folder);
    Ok(Http3Peer {
        server: site.serve_quic(NAME, &mut command, address)?,
        log,
        certificate,
        request: "request GET /1k 0",
    })
}
