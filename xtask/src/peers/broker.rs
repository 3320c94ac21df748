//! The broker and clients of another ecosystem.

use std::process::Command;

use crate::site::{Server, Site, free_address};
use crate::tools;
use crate::trouble::Outcome;

/// A broker on a store of its own, and the token of a provider called ada.
pub(crate) fn broker(site: &Site, name: &str) -> Outcome<(Server, String)> {
    let store = format!("sqlite:{}", site.logs.join(format!("{name}.db")).display());
    let broker = || {
        let mut command = Command::new(&site.binary);
        command.arg("broker");
        command
    };
    let mut make = broker();
    make.args(["token", "new", "ada", "--store", &store]);
    let token = site.run("token", &mut make, 30)?.stdout.trim().to_owned();
    let address = free_address()?;
    let mut serve = broker();
    serve.args(["--store", &store, "--listen", &address.to_string()]);
    Ok((site.serve(name, &mut serve, address)?, token))
}

/// Python: requests and the OpenAPI description, zeep and the WSDL, lxml and the schema.
pub(crate) fn python(site: &Site) -> Outcome<()> {
    let python = tools::python(&site.checkout, "broker", "peers/broker/requirements.txt")?;
    let (broker, token) = broker(site, "broker")?;
    let mut client = Command::new(python);
    client
        .arg(site.checkout.path("peers/broker/client.py"))
        .args([&broker.url(""), &token])
        .arg(site.checkout.path("crates/wsqos/schema/wsqos.xsd"));
    let done = site.run("python", &mut client, 120)?;
    for line in done.stdout.lines() {
        println!("  broker: {line}");
    }
    Ok(())
}
