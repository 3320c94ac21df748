//! The server's cost of a reply: as SOAP against gSOAP, and as SOAP against a page.

use crate::bench::{Bench, Figure, Measure, in_turns};
use crate::cores::server;
use crate::error::Outcome;
use crate::peers::generators::{first_isbn, get};
use crate::peers::toolkits::gsoap_server;
use crate::tools;

/// CPU time per BookLite reply, one core each, the same requests made from the same WSDL.
pub(crate) fn gsoap(bench: &Bench) -> Outcome<Vec<Figure>> {
    let shop = bench.bookshop(&[])?;
    let peer = gsoap_server(&bench.site, &shop, server())?;
    let isbns = isbns(bench, &shop)?;
    let wsdl = shop.url("/soap?wsdl");
    let mut figures = Vec::new();
    for connection in ["keep-alive", "new"] {
        let options = options(bench, connection, &wsdl, &isbns);
        let mut ours = || Ok(bench.server_cost(&shop, &options, &shop.url("/soap"))?.0);
        let mut theirs = || Ok(bench.server_cost(&peer, &options, &peer.url("/"))?.0);
        let [ours, theirs] = in_turns(bench.or_quick(5, 2), [&mut ours, &mut theirs])?;
        let [ours, theirs] = [ours, theirs].map(|values| Measure::median(&values, "µs"));
        let holds = ours.value <= 0.7 * theirs.value;
        figures.push(
            Figure::new(format!("server CPU per SOAP reply, {connection}"), ours)
                .peer("gSOAP", theirs)
                .target("at most 0.70 of gSOAP's", holds),
        );
    }
    Ok(figures)
}

/// Ratio of replies per second on one core: as a Web service to as a page.
pub(crate) fn page(bench: &Bench) -> Outcome<Vec<Figure>> {
    let shop = bench.bookshop(&[])?;
    let isbns = isbns(bench, &shop)?;
    let wsdl = shop.url("/soap?wsdl");
    let page = shop.url(&format!("/page/{}", first_isbn(&bench.site, &shop)?));
    let mut figures = Vec::new();
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
        let [soap, page] = [soap, page].map(|rates| Measure::median(&rates, "replies/s"));
        let holds = soap.value >= 0.85 * page.value;
        let capacity = Figure::new(format!("capacity as SOAP, {connection}"), soap);
        let capacity = capacity.peer("page", page);
        let name = format!("server CPU per SOAP reply, compared with a page, {connection}");
        figures.extend([
            match connection {
                "new" => capacity.target("at least 0.85 of the page's", holds),
                _ => capacity,
            },
            Figure::new(name, Measure::median(&soap_cpu, "µs"))
                .peer("page", Measure::median(&page_cpu, "µs"))
                .detail(),
        ]);
    }
    Ok(figures)
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
