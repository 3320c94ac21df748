//! What a reply costs the server: as SOAP against gSOAP, and as SOAP against a page.

use crate::bench::pinned::server;
use crate::bench::{Bench, Row, in_turns, median};
use crate::peers::generators::{first_isbn, get};
use crate::peers::toolkits::gsoap_server;
use crate::tools;
use crate::trouble::Outcome;

/// CPU time per BookLite reply, one core each, the same requests made from the same WSDL.
pub(crate) fn gsoap(bench: &Bench) -> Outcome<Vec<Row>> {
    let shop = bench.bookshop(&[])?;
    let peer = gsoap_server(&bench.site, &shop, server())?;
    let isbns = isbns(bench, &shop)?;
    let wsdl = shop.url("/soap?wsdl");
    let mut rows = Vec::new();
    for connection in ["keep-alive", "new"] {
        let options = options(bench, connection, &wsdl, &isbns);
        let mut ours = || Ok(bench.server_cost(&shop, &options, &shop.url("/soap"))?.0);
        let mut theirs = || Ok(bench.server_cost(&peer, &options, &peer.url("/"))?.0);
        let [ours, theirs] = in_turns(bench.or_quick(5, 2), [&mut ours, &mut theirs])?;
        let (ours, theirs) = (median(&ours), median(&theirs));
        rows.push(Row::judged(
            format!("server CPU per SOAP reply, {connection}"),
            format!(
                "{ours:.1} µs; gSOAP {theirs:.1} µs; ratio {:.2}",
                ours / theirs
            ),
            "at most 0.70 of gSOAP's",
            ours <= 0.7 * theirs,
        ));
    }
    Ok(rows)
}

/// Replies per second on one core as a Web service over those as a page.
pub(crate) fn page(bench: &Bench) -> Outcome<Vec<Row>> {
    let shop = bench.bookshop(&[])?;
    let isbns = isbns(bench, &shop)?;
    let wsdl = shop.url("/soap?wsdl");
    let page = shop.url(&format!("/page/{}", first_isbn(&bench.site, &shop)?));
    let mut rows = Vec::new();
    for connection in ["new", "keep-alive"] {
        let soap_options = options(bench, connection, &wsdl, &isbns);
        let page_options = [
            "--clients",
            "50",
            "--duration",
            soap_options[3],
            "--connection",
            connection,
        ];
        let (mut soap_cpu, mut page_cpu) = (Vec::new(), Vec::new());
        let mut soap = || {
            let (cpu, rate) = bench.server_cost(&shop, &soap_options, &shop.url("/soap"))?;
            soap_cpu.push(cpu);
            Ok(rate)
        };
        let mut page = || {
            let (cpu, rate) = bench.server_cost(&shop, &page_options, &page)?;
            page_cpu.push(cpu);
            Ok(rate)
        };
        let [soap, page] = in_turns(bench.or_quick(5, 2), [&mut soap, &mut page])?;
        let (soap, page) = (median(&soap), median(&page));
        let measured = format!(
            "SOAP {soap:.0}/s; page {page:.0}/s; ratio {:.2}",
            soap / page
        );
        let what = format!("capacity, {connection}");
        rows.push(if connection == "new" {
            Row::judged(
                what,
                measured,
                "at least 0.85 of the page's",
                soap >= 0.85 * page,
            )
        } else {
            Row::told(what, measured)
        });
        let (soap, page) = (median(&soap_cpu), median(&page_cpu));
        rows.push(Row::told(
            format!("server CPU per reply, {connection}"),
            format!("SOAP {soap:.1} µs; page {page:.1} µs"),
        ));
    }
    Ok(rows)
}

/// A closed loop of BookLite requests made from the WSDL.
fn options<'a>(bench: &Bench, connection: &'a str, wsdl: &'a str, isbns: &'a str) -> [&'a str; 12] {
    let duration = bench.or_quick("5s", "1s");
    [
        "--clients",
        "50",
        "--duration",
        duration,
        "--connection",
        connection,
        "--wsdl",
        wsdl,
        "--operation",
        "BookLite",
        "--data",
        isbns,
    ]
}

/// A file of ISBNs.
fn isbns(bench: &Bench, shop: &crate::site::Server) -> Outcome<String> {
    let file = bench.site.checkout.peer_folder("bench")?.join("isbns.csv");
    tools::write(&file, get(&bench.site, shop, "/isbns.csv")?)?;
    Ok(file.display().to_string())
}
