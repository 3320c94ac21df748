//! The broker and clients of another ecosystem.

use std::net::SocketAddr;
use std::process::Command;

use crate::error::Outcome;
use crate::site::{Server, Site, free_address};
use crate::tools;

/// Starts a broker with a store of its own. Returns it and the token of a provider called ada.
pub(crate) fn broker(site: &Site, name: &str) -> Outcome<(Server, String)> {
    let store = format!("sqlite:{}", site.logs.join(format!("{name}.db")).display());
    let token = token(site, &store)?;
    Ok((broker_on(site, name, &store)?, token))
}

/// Starts a broker on this store.
pub(crate) fn broker_on(site: &Site, name: &str, store: &str) -> Outcome<Server> {
    broker_at(site, name, store, free_address()?)
}

/// Starts a broker on this store, at this address.
pub(crate) fn broker_at(
    site: &Site,
    name: &str,
    store: &str,
    address: SocketAddr,
) -> Outcome<Server> {
    let mut serve = Command::new(&site.binary);
    serve.args(["broker", "--store", store, "--listen", &address.to_string()]);
    site.serve(name, &mut serve, address)
}

/// Creates a token of a provider called ada in this store.
pub(crate) fn token(site: &Site, store: &str) -> Outcome<String> {
    let mut make = Command::new(&site.binary);
    make.args(["broker", "token", "new", "ada", "--store", store]);
    Ok(site.run("token", &mut make, 30)?.stdout.trim().to_owned())
}

/// Python: requests and the OpenAPI description, zeep and the WSDL, lxml and the schema.
pub(crate) fn python(site: &Site) -> Outcome<()> {
    let python = tools::python(
        &site.checkout,
        "broker",
        "conformance/programs/broker/requirements.txt",
    )?;
    let (broker, token) = broker(site, "broker")?;
    let mut client = Command::new(python);
    client
        .arg(site.checkout.path("conformance/programs/broker/client.py"))
        .args([&broker.url(""), &token])
        .arg(site.checkout.path("crates/market/qos/schema/wsqos.xsd"));
    let done = site.run("python", &mut client, 120)?;
    for line in done.stdout.lines() {
        println!("  broker: {line}");
    }
    Ok(())
}
