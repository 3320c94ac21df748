//! `posthaste load --http 2` against foreign servers: its accounts are those of their logs.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Outcome, TaskError, check};
use crate::load::LoadReport;
use crate::nginx::certificate;
use crate::site::{Server, Site, free_address};
use crate::tools;

/// A foreign server with a log of its requests.
struct LoggedServer {
    _server: Server,
    plain: SocketAddr,
    tls: Option<SocketAddr>,
    log: PathBuf,
    certificate: PathBuf,
    /// Text of a line of the log for each request.
    request: &'static str,
}

/// An empty message in the framing of gRPC: not compressed, no bytes.
const EMPTY_MESSAGE: [u8; 5] = [0; 5];

/// nginx closes each connection after 1,000 requests, nghttpd and Caddy never, grpc-go after half a second: each
/// request that was attempted and not rejected is in their logs.
pub(crate) fn logs(site: &Site) -> Outcome<()> {
    for server in [nginx(site)?, nghttpd(site)?, caddy(site)?] {
        let plain = format!("http://{}/1k", server.plain);
        compare(site, &server, &[&plain])?;
        compare(site, &server, &[&plain, "--rejected", "resend"])?;
        if let Some(tls) = server.tls {
            let trusted = server.certificate.display().to_string();
            let url = format!("https://localhost:{}/1k", tls.port());
            let address = format!("localhost:{}:127.0.0.1", tls.port());
            compare(
                site,
                &server,
                &[&url, "--ca", &trusted, "--resolve", &address],
            )?;
        }
    }
    calls(site)
}

/// Calls of grpc-go's health service. It permits five streams on a connection and sends GOAWAY every half a second.
fn calls(site: &Site) -> Outcome<()> {
    let server = grpc_go(site)?;
    let url = format!("http://{}/grpc.health.v1.Health/Check", server.plain);
    let message = site.checkout.peer_folder("streams-grpc-go")?.join("empty");
    tools::write(&message, EMPTY_MESSAGE)?;
    let message = message.display().to_string();
    let call = [
        url.as_str(),
        "--method",
        "POST",
        "--body",
        &message,
        "-H",
        "content-type: application/grpc",
        "-H",
        "te: trailers",
    ];
    compare(site, &server, &call)?;
    compare(
        site,
        &server,
        &[&call[..], &["--rejected", "resend"]].concat(),
    )
}

/// Loads a server and compares the counts.
fn compare(site: &Site, server: &LoggedServer, options: &[&str]) -> Outcome<()> {
    let before = server.logged()?;
    let pace = ["--rate", "2000/s", "--duration", "3s", "--connections", "2"];
    let report = load(site, &[options, &pace].concat())?;
    let attempted = report.intended()? - report.outcome("dropped") - report.outcome("no-stream");
    let rejected = report.outcome("rejected");
    let logged = server.logged()? - before;
    let all = || format!("{options:?}: {logged} logged, {}", report.outcomes());
    check(attempted - rejected == logged, all)?;
    check(report.outcome("reset") == 0, all)?;
    // On a busy machine a server rejects streams, or the generator drops requests.
    check(
        (report.outcome("ok") + rejected) * 100 >= attempted * 99 && report.outcome("ok") > 0,
        all,
    )?;
    // Few are rejected twice.
    check(
        !options.contains(&"resend") || rejected * 100 <= attempted,
        all,
    )
}

/// Runs `load --http 2`.
fn load(site: &Site, options: &[&str]) -> Outcome<LoadReport> {
    site.load(&[options, &["--http", "2"]].concat(), 120)
}

/// A server with 10 streams of 100 ms each, and one that sends GOAWAY after 100 requests: response times count from the
/// due times, and no due request is forgotten. h2load measures the same servers.
pub(crate) fn due_times(site: &Site) -> Outcome<()> {
    let h2load = tools::debian(&site.checkout, "h2load", "nghttp2-client")?;
    let measure = |options: &[&str]| site.run("h2load", Command::new(&h2load).args(options), 60);
    let scarce = scripted(site, "10", "0.1", "0")?;
    let url = scarce.url("/");
    let report = load(site, &[&url, "--rate", "200/s", "--duration", "5s"])?;
    report.expect_all("ok")?;
    let mean = report.number("response_time_ms/mean")?;
    // (1000 / 10 + 1) / 2 turns of 100 ms, less the mean due time of 2,497.5 ms, is 2,552.5 ms at least.
    check(mean > 2_550.0, || {
        format!("mean response time {mean} ms for at least 2,552 ms")
    })?;
    let theirs = measure(&["--rps=200", "-m100", "-n1000", &url])?.stdout;
    println!(
        "  due times: ours {mean:.0} ms; h2load {}",
        line(&theirs, "time for request")
    );
    let leaving = scripted(site, "100", "0.002", "100")?;
    let url = leaving.url("/");
    let pace = ["--rate", "100/s", "--duration", "8s", "--connections", "2"];
    let report = load(site, &[&[url.as_str()], pace.as_slice()].concat())?;
    check(report.intended()? == 800, || report.outcomes())?;
    // The server rejects what it gets after its GOAWAY, more of it on a busy machine. Without new connections, 200 at
    // most would be ok.
    let (ok, rejected) = (report.outcome("ok"), report.outcome("rejected"));
    let known = ok + rejected + report.outcome("dropped");
    check(ok > 400 && known == 800, || report.outcomes())?;
    let theirs = measure(&["-c2", "--rps=50", "-D8", &url])?.stdout;
    println!(
        "  GOAWAY: ours {} of 800 ok; h2load {}",
        report.outcome("ok"),
        line(&theirs, "requests:")
    );
    Ok(())
}

fn line<'t>(text: &'t str, beginning: &str) -> &'t str {
    let mut lines = text.lines();
    lines
        .find(|line| line.starts_with(beginning))
        .unwrap_or(text)
}

/// The scripted server: concurrent streams, seconds of each, requests before a GOAWAY.
pub(crate) fn scripted(site: &Site, streams: &str, seconds: &str, goaway: &str) -> Outcome<Server> {
    let python = tools::python(
        &site.checkout,
        "streams",
        "conformance/programs/streams/requirements.txt",
    )?;
    let address = free_address()?;
    let mut command = Command::new(python);
    command
        .arg(site.checkout.path("conformance/programs/streams/server.py"))
        .args([&address.to_string(), streams, seconds, goaway]);
    site.serve("streams", &mut command, address)
}

impl LoggedServer {
    /// Number of requests in the log.
    fn logged(&self) -> Outcome<u64> {
        count_lines(&self.log, self.request)
    }
}

/// Number of lines of a log with this text. A server may write it a moment after its reply.
pub(super) fn count_lines(log: &Path, text: &str) -> Outcome<u64> {
    let mut last = None;
    loop {
        let bytes = std::fs::read(log).map_err(|error| TaskError::at(log, error))?;
        let lines = String::from_utf8_lossy(&bytes);
        let count = lines.lines().filter(|line| line.contains(text)).count() as u64;
        if last.replace(count) == Some(count) {
            return Ok(count);
        }
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
}

/// A folder with a page of 1,024 bytes at `/1k`, a certificate and its key.
pub(super) fn folder(site: &Site, name: &str) -> Outcome<(PathBuf, PathBuf)> {
    let folder = site.checkout.peer_folder(name)?;
    let pages = folder.join("pages");
    std::fs::create_dir_all(&pages).map_err(|error| TaskError::at(&pages, error))?;
    tools::write(&pages.join("1k"), [b'x'; 1_024])?;
    let certificate = certificate(site, &folder)?;
    Ok((folder, certificate))
}

fn nginx(site: &Site) -> Outcome<LoggedServer> {
    let program = tools::debian(&site.checkout, "nginx", "nginx-light")?;
    let (folder, certificate) = folder(site, "streams-nginx")?;
    let (plain, tls) = (free_address()?, free_address()?);
    let log = folder.join("access.log");
    tools::write(&log, "")?;
    let user = if rustix::process::geteuid().is_root() {
        "user root;"
    } else {
        ""
    };
    let configuration = format!(
        "{user} worker_processes 1; daemon off; pid nginx.pid; error_log stderr crit;
         events {{ worker_connections 1024; }}
         http {{
           access_log access.log; keepalive_requests 1000;
           client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
           uwsgi_temp_path uwsgi; scgi_temp_path scgi;
           server {{
             listen {plain} http2; listen {tls} ssl http2; root pages;
             ssl_certificate certificate.pem; ssl_certificate_key key.pem;
           }}
         }}"
    );
    tools::write(&folder.join("nginx.conf"), configuration)?;
    let mut command = Command::new(program);
    command
        .arg("-p")
        .arg(&folder)
        .args(["-c", "nginx.conf"])
        .current_dir(&folder);
    Ok(LoggedServer {
        _server: site.serve("streams-nginx", &mut command, plain)?,
        plain,
        tls: Some(tls),
        log,
        certificate,
        request: "\" 200 ",
    })
}

fn nghttpd(site: &Site) -> Outcome<LoggedServer> {
    let program = tools::debian(&site.checkout, "nghttpd", "nghttp2-server")?;
    let (folder, certificate) = folder(site, "streams-nghttpd")?;
    let plain = free_address()?;
    let log = folder.join("access.log");
    // With --verbose it prints each frame.
    let line =
        "exec \"$0\" --no-tls --verbose --address=127.0.0.1 --htdocs=pages \"$1\" >access.log";
    let mut command = Command::new("sh");
    command
        .args(["-c", line])
        .arg(program)
        .arg(plain.port().to_string())
        .current_dir(&folder);
    Ok(LoggedServer {
        _server: site.serve("nghttpd", &mut command, plain)?,
        plain,
        tls: None,
        log,
        certificate,
        request: ":path: /1k",
    })
}

fn caddy(site: &Site) -> Outcome<LoggedServer> {
    let program = tools::debian(&site.checkout, "caddy", "caddy")?;
    let (folder, certificate) = folder(site, "streams-caddy")?;
    let (plain, tls) = (free_address()?, free_address()?);
    let log = folder.join("access.log");
    tools::write(&log, "")?;
    let site_block =
        "bind 127.0.0.1\n root * pages\n file_server\n log {\n output file access.log\n }";
    let configuration = format!(
        "{{\n admin off\n auto_https off\n servers {{\n protocols h1 h2 h2c\n }}\n}}\n\
         http://:{} {{\n {site_block}\n}}\n\
         https://localhost:{} {{\n {site_block}\n tls certificate.pem key.pem\n}}\n",
        plain.port(),
        tls.port(),
    );
    tools::write(&folder.join("Caddyfile"), configuration)?;
    let mut command = Command::new(program);
    command
        .args(["run", "--config", "Caddyfile"])
        .env("HOME", &folder)
        .current_dir(&folder);
    Ok(LoggedServer {
        _server: site.serve("caddy", &mut command, plain)?,
        plain,
        tls: Some(tls),
        log,
        certificate,
        request: "\"uri\":\"/1k\"",
    })
}

/// A program of ours with grpc-go: five streams on a connection, GOAWAY after half a second, a line for each call.
fn grpc_go(site: &Site) -> Outcome<LoggedServer> {
    const NAME: &str = "streams-grpc-go";
    let program = tools::go_built(&site.checkout, NAME, "conformance/programs/streams/grpc-go")?;
    let (folder, certificate) = folder(site, NAME)?;
    let plain = free_address()?;
    let log = folder.join("access.log");
    tools::write(&log, "")?;
    let mut command = Command::new(program);
    command
        .arg(plain.to_string())
        .arg(&log)
        .args(["5", "500ms"]);
    Ok(LoggedServer {
        _server: site.serve(NAME, &mut command, plain)?,
        plain,
        tls: None,
        log,
        certificate,
        request: "call /grpc.health.v1.Health/Check",
    })
}
