//! PyPI's websockets as client and upstream of the gateway, over HTTP/1.1 and TLS; PyPI's h2 as a client of RFC 8441.

use std::process::Command;

use super::start;
use crate::error::Outcome;
use crate::peers::self_signed::certificate;
use crate::site::{Site, free_address};
use crate::tools;

/// The last step of a certificate for localhost.
const CERTIFICATE: &str =
    "req -x509 -key key.pem -subj /CN=posthaste -addext subjectAltName=DNS:localhost";

/// Two gateways in front of one upstream, which is part of the client's program.
pub(crate) fn websocket(site: &Site) -> Outcome<()> {
    let python = tools::python(
        &site.checkout,
        "websocket",
        "conformance/programs/websocket/requirements.txt",
    )?;
    let folder = site.checkout.peer_folder("websocket-tls")?;
    let certificate = certificate(site, &folder, CERTIFICATE)?;
    let key = folder.join("key.pem");
    let tls = format!("[tls]\ncertificate = {certificate:?}\nkey = {key:?}");
    let upstream = free_address()?.to_string();
    let plain = start(site, &upstream, "", "")?;
    let secure = start(site, &upstream, &tls, "")?;
    let mut client = Command::new(python);
    client
        .arg(
            site.checkout
                .path("conformance/programs/websocket/client.py"),
        )
        .args([plain.address.to_string(), secure.address.to_string()])
        .args([upstream.into(), certificate.into_os_string()]);
    let done = site.run("websocket", &mut client, 120)?;
    for line in done.stdout.lines() {
        println!("  websocket: {line}");
    }
    Ok(())
}
