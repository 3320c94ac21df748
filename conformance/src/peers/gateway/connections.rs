//! HAProxy, curl and openssl as clients of the gateway: the PROXY protocol, certificates by name and of clients, and the
//! redirect from plain HTTP.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::start;
use crate::error::{Outcome, check};
use crate::process::Running;
use crate::site::{Server, Site, free_address};
use crate::tools;

/// Source address of clients behind HAProxy, which connects from 127.0.0.1.
const CLIENT: &str = "127.0.0.9";

/// Files made by openssl, in this folder.
struct Files(PathBuf);

impl Files {
    /// Creates certificates for `first.example` and `shop.example`, an authority, and a certificate issued by it.
    fn make(site: &Site) -> Outcome<Self> {
        let openssl = tools::debian(&site.checkout, "openssl", "openssl")?;
        let folder = site.checkout.peer_folder("gateway-connections")?;
        let server = |name: &str| {
            format!(
                "req -x509 -newkey rsa:2048 -nodes -keyout {name}.key -out {name}.pem -days 2 \
                 -subj /CN={name} -addext subjectAltName=DNS:{name}.example"
            )
        };
        let authority =
            "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=ca";
        // Of version 3, unlike those of `openssl x509 -req` without extensions, which webpki rejects.
        let client = "req -x509 -newkey rsa:2048 -nodes -keyout client.key -out client.pem -days 2 \
                      -subj /CN=client -CA ca.pem -CAkey ca.key \
                      -addext basicConstraints=critical,CA:FALSE";
        for step in [&server("first"), &server("shop"), authority, client] {
            let mut command = Command::new(&openssl);
            command.args(step.split_whitespace()).current_dir(&folder);
            site.run("openssl", &mut command, 60)?;
        }
        Ok(Self(folder))
    }

    fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// `[tls]` with both certificates and the authority, and `[http]` in this mode.
    fn tables(&self, http: SocketAddr, mode: &str) -> String {
        let files = |name: &str| {
            let (certificate, key) = (format!("{name}.pem"), format!("{name}.key"));
            let (certificate, key) = (self.path(&certificate), self.path(&key));
            format!("certificate = {certificate:?}\nkey = {key:?}\n")
        };
        let authority = self.path("ca.pem");
        format!(
            "[http]\nlisten = \"{http}\"\nmode = \"{mode}\"\n[tls]\n{}client_ca = {authority:?}\n\
             client_auth = \"optional\"\n[[tls.certificates]]\n{}",
            files("first"),
            files("shop")
        )
    }
}

/// nginx that replies with the fields that it gets: client, scheme and certificate.
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
           access_log off; large_client_header_buffers 4 32k;
           client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
           uwsgi_temp_path uwsgi; scgi_temp_path scgi;
           server {{
             listen {address};
             location / {{
               return 200 \"$http_x_forwarded_for $http_x_forwarded_proto $http_client_cert\";
             }}
           }}
         }}"
    );
    tools::write(&folder.join("nginx.conf"), configuration)?;
    let mut command = Command::new(program);
    command.arg("-p").arg(folder).args(["-c", "nginx.conf"]);
    site.serve("nginx-fields", command.current_dir(folder), address)
}

/// Starts HAProxy with a TCP frontend in front of each of `upstreams`: an address and the option of its server.
fn haproxy(
    site: &Site,
    folder: &Path,
    upstreams: &[(SocketAddr, &str)],
) -> Outcome<(Server, Vec<SocketAddr>)> {
    let program = tools::debian(&site.checkout, "haproxy", "haproxy")?;
    let mut configuration = String::from(
        "global\n  nbthread 1\ndefaults\n  mode tcp\n  timeout connect 1s\n  timeout client 10s\n  timeout server 10s\n",
    );
    let mut addresses = Vec::new();
    for (number, (upstream, option)) in upstreams.iter().enumerate() {
        let address = free_address()?;
        configuration += &format!(
            "listen l{number}\n  bind {address}\n  server s {upstream} {option} check inter 100ms\n"
        );
        addresses.push(address);
    }
    let file = folder.join("haproxy.cfg");
    tools::write(&file, configuration)?;
    let mut command = Command::new(program);
    command.args(["-db", "-f"]).arg(&file);
    let server = site.serve("haproxy-proxy", &mut command, addresses[0])?;
    Ok((server, addresses))
}

/// Runs curl. Returns the body, or `exit` and the exit code.
fn curl(site: &Site, options: &[&str], url: &str) -> Outcome<String> {
    let mut command = Command::new(tools::debian(&site.checkout, "curl", "curl")?);
    let write_out = "\n%{exitcode} %{redirect_url}";
    command
        .args(["--silent", "--max-time", "10", "--write-out", write_out])
        .args(options)
        .arg(url);
    let running = Running::start("curl", &mut command, &site.logs)?;
    let output = running.finish(Duration::from_secs(20))?.stdout;
    Ok(match output.rsplit_once("\n0 ") {
        Some((body, "")) => body.to_owned(),
        Some((_, redirect)) => redirect.to_owned(),
        None => format!(
            "exit {}",
            output.rsplit('\n').next().unwrap_or_default().trim()
        ),
    })
}

fn expect(output: &str, wanted: &str, case: &str) -> Outcome<()> {
    check(output == wanted, || {
        format!("{case}: {output:?}, not {wanted:?}")
    })
}

/// Certificates by name and of clients, and the redirect.
fn certificates(site: &Site, files: &Files, upstream: &str) -> Outcome<()> {
    let http = free_address()?;
    let gateway = start(site, upstream, &files.tables(http, "redirect"), "")?;
    let port = gateway.address.port();
    for (name, trusted, expected) in [
        ("first", "first", "127.0.0.1 https "),
        ("shop", "shop", "127.0.0.1 https "),
        // CURLE_PEER_FAILED_VERIFICATION.
        ("shop", "first", "exit 60"),
    ] {
        let resolve = format!("{name}.example:{port}:127.0.0.1");
        let trusted = files.path(&format!("{trusted}.pem"));
        let url = format!("https://{name}.example:{port}/");
        let options = ["--resolve", &resolve, "--cacert", &trusted];
        expect(&curl(site, &options, &url)?, expected, &url)?;
    }
    for (options, subject) in [
        (&["-servername", "shop.example"][..], "CN = shop"),
        (&["-servername", "SHOP.example"], "CN = shop"),
        (&["-servername", "other.example"], "CN = first"),
        (&["-noservername"], "CN = first"),
    ] {
        let mut command = Command::new(tools::debian(&site.checkout, "openssl", "openssl")?);
        let address = gateway.address.to_string();
        command
            .args(["s_client", "-connect", &address])
            .args(options);
        command.stdin(std::process::Stdio::null());
        let output = site.run("s_client", &mut command, 20)?.stdout;
        check(output.contains(&format!("subject={subject}")), || {
            format!("s_client {options:?}: {output}")
        })?;
    }
    let url = format!("https://{}/", gateway.address);
    let (certificate, key) = (files.path("client.pem"), files.path("client.key"));
    let own = ["--insecure", "--cert", &certificate, "--key", &key];
    let output = curl(site, &own, &url)?;
    check(
        output.starts_with("127.0.0.1 https :MII") && output.ends_with(':'),
        || format!("a client's certificate: {output}"),
    )?;
    let spoofed = ["--insecure", "--header", "Client-Cert: :AAAA:"];
    expect(&curl(site, &spoofed, &url)?, "127.0.0.1 https ", "spoofed")?;
    let location = format!("https://shop.example:{port}/a?b");
    let host = ["--header", "Host: shop.example"];
    expect(
        &curl(site, &host, &format!("http://{http}/a?b"))?,
        &location,
        "redirect",
    )
}

/// The PROXY protocol of curl and HAProxy, with its health checks.
fn stated(site: &Site, files: &Files, upstream: &str) -> Outcome<()> {
    let (http, admin) = (free_address()?, free_address()?);
    let before = format!(
        "admin = \"{admin}\"\n{}\n[trust]\nproxy_protocol = [\"127.0.0.1\"]",
        files.tables(http, "serve")
    );
    let gateway = start(site, upstream, &before, "")?;
    let https = gateway.address;
    let from_curl = ["--insecure", "--haproxy-protocol"];
    for (scheme, address) in [("https", https), ("http", http)] {
        let url = format!("{scheme}://{address}/");
        expect(
            &curl(site, &from_curl, &url)?,
            &format!("127.0.0.1 {scheme} "),
            &url,
        )?;
    }
    let (_haproxy, addresses) = haproxy(
        site,
        &files.0,
        &[
            (https, "send-proxy"),
            (https, "send-proxy-v2"),
            (http, "send-proxy"),
            (http, "send-proxy-v2"),
        ],
    )?;
    for (address, scheme) in addresses.iter().zip(["https", "https", "http", "http"]) {
        for protocol in ["--http1.1", "--http2-prior-knowledge"] {
            let options = ["--insecure", "--interface", CLIENT, protocol];
            let url = format!("{scheme}://{address}/");
            expect(
                &curl(site, &options, &url)?,
                &format!("{CLIENT} {scheme} "),
                &url,
            )?;
        }
    }
    let metrics = curl(site, &[], &format!("http://{admin}/metrics"))?;
    for event in ["proxy-header-error", "tls-failure", "protocol-error"] {
        let line = format!("posthaste_gateway_connections_total{{event=\"{event}\"}} 0.0");
        check(metrics.contains(&line), || {
            format!("health checks count as {event}")
        })?;
    }
    Ok(())
}

/// All connections.
pub(crate) fn connections(site: &Site) -> Outcome<()> {
    let files = Files::make(site)?;
    let nginx = nginx(site, &files.0)?;
    let upstream = nginx.address.to_string();
    certificates(site, &files, &upstream)?;
    stated(site, &files, &upstream)
}
