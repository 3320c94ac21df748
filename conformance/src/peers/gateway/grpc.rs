//! grpcio for Python as client and server of the gateway: every kind of call, deadlines, refusals, plain and over TLS.

use std::process::Command;

use super::start;
use crate::error::Outcome;
use crate::nginx::certificate;
use crate::site::{Site, free_address};
use crate::tools;

/// Three gateways: plain, over TLS on both sides, and with a rate of one call.
pub(crate) fn grpc(site: &Site) -> Outcome<()> {
    let python = tools::python(
        &site.checkout,
        "grpc",
        "conformance/programs/grpc/requirements.txt",
    )?;
    let folder = site.checkout.peer_folder("grpc/tls")?;
    let certificate = certificate(site, &folder)?;
    let key = certificate.with_file_name("key.pem");
    let [upstream, secure] = [free_address()?, free_address()?];
    let (upstream, secure_port) = (upstream.to_string(), secure.port());
    let http2 = "protocol = \"http2\"";
    let plain = start(site, &upstream, "", http2)?;
    let tls = format!("[tls]\ncertificate = {certificate:?}\nkey = {key:?}");
    let trust = format!("{http2}\nauthority = {certificate:?}");
    let over_tls = start(
        site,
        &format!("https://localhost:{secure_port}"),
        &tls,
        &trust,
    )?;
    let rate = "[protection]\npolicy = \"rate\"\nrate = \"1/min\"\nburst = 1";
    let limited = start(site, &upstream, rate, http2)?;
    let gateways = [&plain, &over_tls, &limited].map(|gateway| gateway.address.to_string());
    let mut client = Command::new(python);
    client
        .arg(site.checkout.path("conformance/programs/grpc/client.py"))
        .args([&upstream, &secure.to_string()])
        .args([&certificate, &key])
        .args(gateways);
    let done = site.run("grpc", &mut client, 300)?;
    for line in done.stdout.lines() {
        println!("  grpc: {line}");
    }
    Ok(())
}
