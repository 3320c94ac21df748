//! Self-signed certificates of openssl, at nginx: `load --ca` accepts and refuses the same as `curl --cacert`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Outcome, TaskError, check};
use crate::site::{Server, Site, free_address};
use crate::tools;

/// A name for which no certificate here is valid.
const ELSEWHERE: &str = "elsewhere.example";

/// Kinds of certificates: the name, and the last step, with `key.pem` and for some with `request.pem`.
const KINDS: [(&str, &str); 4] = [
    (
        "names",
        "req -x509 -key key.pem -subj /CN=posthaste -addext subjectAltName=DNS:localhost",
    ),
    (
        "no-authority",
        "req -x509 -key key.pem -subj /CN=posthaste -addext subjectAltName=DNS:localhost \
         -addext basicConstraints=critical,CA:FALSE",
    ),
    ("subject", "req -x509 -key key.pem -subj /CN=localhost"),
    // Without extensions, and so of version 1 by OpenSSL 3.0.
    (
        "no-extensions",
        "x509 -req -in request.pem -signkey key.pem",
    ),
];

/// Every kind: accepted for its name, refused for another name and if another certificate is trusted.
pub(crate) fn self_signed(site: &Site) -> Outcome<()> {
    let mut wrong = Vec::new();
    let mut servers = Vec::new();
    for (kind, last_step) in KINDS {
        let folder = site.checkout.peer_folder(&format!("self-signed/{kind}"))?;
        let certificate = certificate(site, &folder, last_step)?;
        servers.push((kind, nginx(site, &folder)?, certificate));
    }
    for (index, (kind, server, certificate)) in servers.iter().enumerate() {
        // With another key.
        let (.., other) = &servers[(index + 1) % servers.len()];
        for (case, host, trusted, fits) in [
            ("trusted", "localhost", certificate, true),
            ("another name", ELSEWHERE, certificate, false),
            ("another certificate", "localhost", other, false),
        ] {
            let by_curl = curl(site, server, host, trusted)?;
            let by_load = load(site, server, host, trusted)?;
            if [by_curl, by_load] != [fits; 2] {
                wrong.push(format!(
                    "{kind}, {case}: accepted by curl {by_curl}, by load {by_load}"
                ));
            }
        }
    }
    check(wrong.is_empty(), || wrong.join("\n"))
}

/// Creates a key, and a certificate of this kind for it.
pub(super) fn certificate(site: &Site, folder: &Path, last_step: &str) -> Outcome<PathBuf> {
    let openssl = tools::debian(&site.checkout, "openssl", "openssl")?;
    for step in [
        "ecparam -name prime256v1 -genkey -noout -out key.pem",
        "req -new -key key.pem -subj /CN=localhost -out request.pem",
        &format!("{last_step} -days 2 -out certificate.pem"),
    ] {
        let mut command = Command::new(&openssl);
        command.args(step.split_whitespace()).current_dir(folder);
        site.run("openssl", &mut command, 30)?;
    }
    Ok(folder.join("certificate.pem"))
}

/// Starts nginx with the certificate in `folder`.
fn nginx(site: &Site, folder: &Path) -> Outcome<Server> {
    let program = tools::debian(&site.checkout, "nginx", "nginx-light")?;
    let address = free_address()?;
    let user = if rustix::process::geteuid().is_root() {
        "user root;"
    } else {
        ""
    };
    let configuration = format!(
        "{user} worker_processes 1; daemon off; pid nginx.pid; error_log stderr crit;
         events {{ worker_connections 256; }}
         http {{
           access_log off;
           client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
           uwsgi_temp_path uwsgi; scgi_temp_path scgi;
           server {{
             listen {address} ssl; ssl_certificate certificate.pem; ssl_certificate_key key.pem;
             location / {{ return 200 posthaste; }}
           }}
         }}"
    );
    tools::write(&folder.join("nginx.conf"), configuration)?;
    let mut command = Command::new(program);
    command
        .arg("-p")
        .arg(folder)
        .args(["-c", "nginx.conf"])
        .current_dir(folder);
    site.serve("nginx", &mut command, address)
}

/// Returns true if curl accepts the server.
fn curl(site: &Site, server: &Server, host: &str, trusted: &Path) -> Outcome<bool> {
    let port = server.address.port();
    let mut command = Command::new(tools::debian(&site.checkout, "curl", "curl")?);
    command
        .args([
            "--silent",
            "--max-time",
            "10",
            "--write-out",
            " %{exitcode}",
        ])
        .args(["--resolve", &format!("{host}:{port}:127.0.0.1"), "--cacert"])
        .arg(trusted)
        .arg(format!("https://{host}:{port}/"));
    let running = crate::process::Running::start("curl", &mut command, &site.logs)?;
    let output = running.finish(std::time::Duration::from_secs(20))?.stdout;
    match output.rsplit(' ').next() {
        Some("0") => Ok(true),
        // CURLE_PEER_FAILED_VERIFICATION.
        Some("60") => Ok(false),
        _ => Err(TaskError::Failed(format!("curl ended with {output}"))),
    }
}

/// Returns true if `posthaste load` accepts the server. A refusal must name the remedies.
fn load(site: &Site, server: &Server, host: &str, trusted: &Path) -> Outcome<bool> {
    let port = server.address.port();
    let url = format!("https://{host}:{port}/");
    let resolve = format!("{host}:{port}:127.0.0.1");
    let trusted = trusted.display().to_string();
    let plan = ["--rate", "20/s", "--duration", "500ms"];
    let options = ["--resolve", &resolve, "--ca", &trusted];
    let report = site.load(&[&[&*url], &plan[..], &options[..]].concat(), 60)?;
    if report.outcome("ok") > 0 {
        return report.expect_all("ok").map(|()| true);
    }
    report.expect_all("tls-failed")?;
    let reason = report.reason("tls-failed");
    let is_helpful = reason.contains("--ca") && reason.contains("--insecure");
    check(is_helpful, || format!("no remedy in: {reason}"))?;
    Ok(false)
}
