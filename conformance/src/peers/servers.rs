//! `posthaste load` against foreign servers with counters of their own.

use crate::error::{Outcome, check};
use crate::nginx::Nginx;
use crate::peers::generators::get;
use crate::peers::toolkits;
use crate::site::Site;
use crate::tools;

/// The counts of `ok` and `status-error` equal the access log's, with both uses of connections.
pub(crate) fn nginx(site: &Site) -> Outcome<()> {
    for connection in ["keep-alive", "new"] {
        let nginx = Nginx::start(site, "nginx", true, &[])?;
        for (path, status, outcome) in [("/1k", 200, "ok"), ("/absent", 404, "status-error")] {
            let url = nginx.server.url(path);
            let report = site.load(
                &[
                    &url,
                    "--rate",
                    "500/s",
                    "--duration",
                    "2s",
                    "--connection",
                    connection,
                ],
                60,
            )?;
            report.expect_all(outcome)?;
            let (counted, logged) = (report.outcome(outcome), nginx.logged(status)?);
            check(counted == logged, || {
                format!(
                    "{connection}: {counted} {outcome}, {logged} lines with {status} in nginx's log"
                )
            })?;
        }
    }
    Ok(())
}

/// A self-signed certificate: refused by default, accepted if named as trusted, or without verification.
pub(crate) fn nginx_tls(site: &Site) -> Outcome<()> {
    let nginx = Nginx::start(site, "nginx", true, &[])?;
    let url = format!("https://localhost:{}/1k", nginx.tls.port());
    let address = format!("localhost:{}:127.0.0.1", nginx.tls.port());
    let certificate = nginx.certificate.display().to_string();
    let base = [
        url.as_str(),
        "--rate",
        "100/s",
        "--duration",
        "1s",
        "--resolve",
        &address,
    ];
    let with = |more: &[&str]| site.load(&[base.as_slice(), more].concat(), 60);
    with(&[])?.expect_all("tls-failed")?;
    with(&["--insecure"])?.expect_all("ok")?;
    with(&["--ca", &certificate])?.expect_all("ok")?;
    with(&["--ca", &certificate, "--connection", "new"])?.expect_all("ok")
}

/// Requests made from a WSDL and a CSV of ISBNs are understood by our server and by gSOAP's.
pub(crate) fn from_wsdl(site: &Site) -> Outcome<()> {
    let shop = site.bookshop(&[])?;
    let folder = site.checkout.peer_folder("wsdl-load")?;
    let isbns = folder.join("isbns.csv");
    tools::write(&isbns, get(site, &shop, "/isbns.csv")?)?;
    let isbns = isbns.display().to_string();
    let wsdl = shop.url("/soap?wsdl");
    let load = |url: &str| {
        let made = ["--wsdl", &wsdl, "--operation", "BookLite", "--data", &isbns];
        let pace = ["--rate", "200/s", "--duration", "1s"];
        site.load(&[[url].as_slice(), &made, &pace].concat(), 60)?
            .expect_all("ok")
    };
    load(&shop.url("/soap"))?;
    let gsoap = toolkits::gsoap_server(site, &shop, &[])?;
    load(&gsoap.url("/"))
}
