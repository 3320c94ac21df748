//! curl, wrk, h2load and PHP's SoapClient through the gateway: each protocol, each coding, each body complete.

use std::path::PathBuf;
use std::process::Command;

use super::start;
use crate::error::{Outcome, TaskError, check};
use crate::nginx::Nginx;
use crate::peers::generators::{first_isbn, get};
use crate::peers::toolkits::Book;
use crate::site::{Server, Site};
use crate::tools;

/// Every protocol, with the name that curl reports for it.
pub(crate) fn curl(site: &Site) -> Outcome<()> {
    let nginx = Nginx::start(site, "gateway-nginx", false, &[])?;
    let certificate = nginx.certificate.display().to_string();
    let key = nginx.certificate.with_file_name("key.pem");
    let tls = format!(
        "[tls]\ncertificate = {certificate:?}\nkey = {:?}",
        key.display().to_string()
    );
    let secure_upstream = format!("https://{}", nginx.tls);
    let trust = format!("authority = {certificate:?}");
    let plain_upstream = nginx.server.address.to_string();
    let wanted = get(site, &nginx.server, "/1k")?;

    let plain = start(site, &plain_upstream, "", "")?;
    let to_tls = start(site, &secure_upstream, "", &trust)?;
    let secure = start(site, &secure_upstream, &tls, &trust)?;
    let cacert = ["--cacert", certificate.as_str()];
    for (server, scheme, options, version) in [
        (&plain, "http", &["--http1.1"][..], "1.1"),
        (&plain, "http", &["--http1.0"], "1"),
        (&plain, "http", &["--http2-prior-knowledge"], "2"),
        (&to_tls, "http", &["--http1.1"], "1.1"),
        (&secure, "https", &["--http2"], "2"),
        (&secure, "https", &["--http1.1"], "1.1"),
    ] {
        let url = format!("{scheme}://{}/1k", server.address);
        let options = [options, &cacert].concat();
        let reply = ask(site, &url, &options)?;
        check(reply.body == wanted && reply.version == version, || {
            format!(
                "{url} {options:?}: version {}, {} bytes",
                reply.version,
                reply.body.len()
            )
        })?;
    }
    codings(site)
}

/// Each coding that this curl can decode returns the same text, with fewer bytes on the wire.
fn codings(site: &Site) -> Outcome<()> {
    let shop = site.bookshop(&[])?;
    let path = format!("/page/{}", first_isbn(site, &shop)?);
    let wanted = get(site, &shop, &path)?;
    let gateway = start(site, &shop.address.to_string(), "", "")?;
    for coding in ["gzip", "br", "zstd"] {
        let accept = format!("Accept-Encoding: {coding}");
        for protocol in ["--http1.1", "--http2-prior-knowledge"] {
            let options = [
                protocol,
                "--compressed",
                "--header",
                &accept,
                "--header",
                "Prefer: compression=always",
            ];
            let reply = ask(site, &gateway.url(&path), &options)?;
            check(reply.body == wanted && reply.length < wanted.len(), || {
                format!(
                    "{coding} {protocol}: {} bytes of {}",
                    reply.length,
                    wanted.len()
                )
            })?;
        }
    }
    Ok(())
}

/// Result of curl.
struct Said {
    body: String,
    version: String,
    /// Bytes of the body on the wire.
    length: usize,
}

fn ask(site: &Site, url: &str, options: &[&str]) -> Outcome<Said> {
    let mut command = Command::new(tools::debian(&site.checkout, "curl", "curl")?);
    command
        .args(["--silent", "--show-error", "--fail", "--max-time", "10"])
        .args(options)
        .args(["--write-out", "\n%{http_version} %{size_download}", url]);
    let output = site.run("curl", &mut command, 20)?.stdout;
    let odd = || TaskError::Failed(format!("curl reported {output:?}"));
    let (body, facts) = output.rsplit_once('\n').ok_or_else(odd)?;
    let (version, length) = facts.split_once(' ').ok_or_else(odd)?;
    Ok(Said {
        body: body.to_owned(),
        version: version.to_owned(),
        length: length.parse().map_err(|_| odd())?,
    })
}

/// wrk and h2load receive replies only, none of them an error.
pub(crate) fn load(site: &Site) -> Outcome<()> {
    let wrk = tools::debian(&site.checkout, "wrk", "wrk")?;
    let h2load = tools::debian(&site.checkout, "h2load", "nghttp2-client")?;
    let nginx = Nginx::start(site, "gateway-nginx", false, &[])?;
    let gateway = start(site, &nginx.server.address.to_string(), "", "")?;
    for header in ["Connection: keep-alive", "Connection: close"] {
        let mut command = Command::new(&wrk);
        command
            .args(["-t1", "-c20", "-d1s", "-H", header])
            .args(["-H", "Accept-Encoding: gzip"])
            .arg(gateway.url("/1k"));
        let output = site.run("wrk", &mut command, 30)?.stdout;
        let clean = !output.contains("Non-2xx") && !output.contains("Socket errors");
        check(clean && output.contains(" requests in "), || {
            format!("wrk, {header}:\n{output}")
        })?;
    }
    for protocol in [&["--h1"][..], &[]] {
        let mut command = Command::new(&h2load);
        command
            .args(["-n2000", "-c10", "-m10"])
            .args(protocol)
            .arg(gateway.url("/1k"));
        let output = site.run("h2load", &mut command, 60)?.stdout;
        check(
            output.contains("2000 succeeded, 0 failed, 0 errored, 0 timeout"),
            || format!("h2load {protocol:?}:\n{output}"),
        )?;
    }
    Ok(())
}

/// PHP calls the bookshop through the gateway, with the WSDL read there: once plainly and once with the header block
/// that requests compression.
pub(crate) fn php(site: &Site) -> Outcome<()> {
    let php: PathBuf = crate::peers::toolkits::php_with_soap(site)?;
    let shop = site.bookshop(&[])?;
    let gateway = start(site, &shop.address.to_string(), "", "")?;
    let mut client = Command::new(&php);
    client.arg(site.checkout.path("conformance/programs/php/client.php"));
    Book::first(site, &gateway)?.ask(site, "php", &mut client)?;
    asks_for_compression(site, &gateway, &php)
}

fn asks_for_compression(site: &Site, gateway: &Server, php: &PathBuf) -> Outcome<()> {
    let isbn = first_isbn(site, gateway)?;
    let mut client = Command::new(php);
    client
        .arg(
            site.checkout
                .path("conformance/programs/php/compressed.php"),
        )
        .arg(gateway.url("/soap?wsdl"))
        .arg(isbn);
    let output = site.run("php", &mut client, 30)?.stdout;
    check(!output.contains("FAILED"), || output.clone())
}
