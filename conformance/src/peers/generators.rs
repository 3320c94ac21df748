//! Foreign clients without a WSDL: curl and wrk against the bookshop.

use std::process::Command;

use crate::error::{Outcome, TaskError, check};
use crate::site::{Server, Site};
use crate::tools;

/// Correct and incorrect requests for each form of the service, checked by status.
pub(crate) fn curl(site: &Site) -> Outcome<()> {
    let shop = site.bookshop(&[])?;
    let isbn = first_isbn(site, &shop)?;
    let right = [
        format!("/page/{isbn}"),
        format!("/json/{isbn}"),
        "/soap?wsdl".into(),
        "/isbns.csv".into(),
    ];
    for path in &right {
        expect_status(site, &shop, path, &[], 200)?;
    }
    // Zero has a valid checksum as an ISBN of either length, but no book has it.
    for (path, status) in [
        ("/page/0000000000", 404),
        ("/json/0000000000", 404),
        ("/page/0000000001", 400),
        ("/json/0000000001", 400),
        ("/nowhere", 404),
    ] {
        expect_status(site, &shop, path, &[], status)?;
    }
    expect_status(
        site,
        &shop,
        "/soap",
        &["--request", "PUT", "--data", "x"],
        405,
    )?;
    let plain = ["--header", "Content-Type: text/plain", "--data", "x"];
    expect_status(site, &shop, "/soap", &plain, 415)?;
    let xml = [
        "--header",
        "Content-Type: text/xml",
        "--header",
        "SOAPAction: \"\"",
        "--data",
        "<not-soap/>",
    ];
    let status = status(site, &shop, "/soap", &xml)?;
    check([400, 500].contains(&status), || {
        format!("/soap answers {status} to an XML document that is no envelope")
    })?;
    let gone = site.run(
        "curl",
        &mut curl_command(site, &shop, &format!("/page/{isbn}"), &["--head"])?,
        20,
    )?;
    check(gone.stdout.starts_with("HTTP/1.1 200"), || {
        format!("HEAD of a page: {}", gone.stdout)
    })
}

/// wrk receives replies only, none of them an error.
pub(crate) fn wrk(site: &Site) -> Outcome<()> {
    let wrk = tools::debian(&site.checkout, "wrk", "wrk")?;
    let shop = site.bookshop(&["--threads", "1"])?;
    let isbn = first_isbn(site, &shop)?;
    for path in [format!("/page/{isbn}"), format!("/json/{isbn}")] {
        for header in ["Connection: keep-alive", "Connection: close"] {
            let mut command = Command::new(&wrk);
            command
                .args(["-t1", "-c20", "-d1s", "-H", header])
                .arg(shop.url(&path));
            let output = site.run("wrk", &mut command, 30)?.stdout;
            let clean = !output.contains("Non-2xx") && !output.contains("Socket errors");
            check(clean && output.contains(" requests in "), || {
                format!("wrk on {path}, {header}:\n{output}")
            })?;
        }
    }
    Ok(())
}

/// The first ISBN in the bookshop's list.
pub(crate) fn first_isbn(site: &Site, shop: &Server) -> Outcome<String> {
    let list = get(site, shop, "/isbns.csv")?;
    let isbn = list.lines().nth(1).and_then(|line| line.split(',').next());
    isbn.map(str::to_owned)
        .ok_or_else(|| TaskError::Failed(format!("/isbns.csv holds no book: {list}")))
}

/// The body at a path, which must exist.
pub(crate) fn get(site: &Site, server: &Server, path: &str) -> Outcome<String> {
    let mut command = curl_command(site, server, path, &["--fail"])?;
    Ok(site.run("curl", &mut command, 20)?.stdout)
}

fn expect_status(
    site: &Site,
    shop: &Server,
    path: &str,
    options: &[&str],
    wanted: u16,
) -> Outcome<()> {
    let status = status(site, shop, path, options)?;
    check(status == wanted, || {
        format!("{path} {options:?}: status {status} instead of {wanted}")
    })
}

fn status(site: &Site, shop: &Server, path: &str, options: &[&str]) -> Outcome<u16> {
    let mut command = curl_command(site, shop, path, options)?;
    command.args(["--output", "/dev/null", "--write-out", "%{http_code}"]);
    let output = site.run("curl", &mut command, 20)?.stdout;
    output
        .parse()
        .map_err(|_| TaskError::Failed(format!("curl reports status {output}")))
}

/// curl for a path, with these options.
pub(crate) fn curl_command(
    site: &Site,
    server: &Server,
    path: &str,
    options: &[&str],
) -> Outcome<Command> {
    let mut command = Command::new(tools::debian(&site.checkout, "curl", "curl")?);
    command
        .args(["--silent", "--show-error", "--max-time", "10"])
        .args(options)
        .arg(server.url(path));
    Ok(command)
}
