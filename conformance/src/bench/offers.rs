//! Cost of routing by offers: a gateway with 1,000 offers at a broker and one with the same upstream in its
//! configuration, in turns.

use std::fmt::Write as _;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::bench::result::Bounds;
use crate::bench::{Bench, Figure, Measure, in_turns, median, pair_ratio};
use crate::cores::{generator, server};
use crate::error::{Outcome, check};
use crate::peers::broker::broker;
use crate::peers::generators::first_isbn;
use crate::site::{Server, Site, free_address};
use crate::tools;

/// Offers of the type.
const OFFERS: u32 = 1_000;

/// Highest permitted addition to the CPU time of a request, in µs.
const BAR: f64 = 3.0;

/// Term of the requests. Some 650 of the offers satisfy it.
const TERM: &str = "Max-Latency: 700ms";

/// Time within which the gateway has to know the offers.
const KNOWN: Duration = Duration::from_secs(30);

/// CPU time per request that routing by offers adds.
pub(crate) fn offers(bench: &Bench) -> Outcome<Vec<Figure>> {
    let site = &bench.site;
    let origin = site.bookshop_on(generator(), &["--threads", "1"])?;
    let path = format!("/json/{}", first_isbn(site, &origin)?);
    let (broker, token) = broker(site, "offers-bench")?;
    publish(site, &broker, &token, &origin)?;
    let plain = gateway(site, "gateway-without-offers", &origin, None)?;
    let routed = gateway(site, "gateway-with-offers", &origin, Some(&broker))?;
    await_offers(site, &routed.url(&path))?;

    let length = bench.or_quick("1s", "300ms");
    let options = ["--clients", "16", "--duration", length, "--header", TERM];
    let cost = |server: &Server| Ok(bench.server_cost(server, &options, &server.url(&path))?.0);
    let rounds = bench.or_quick(40, 2);
    let [without, with] = in_turns(rounds, [&mut || cost(&plain), &mut || cost(&routed)])?;
    let mut added: Vec<f64> = without.iter().zip(&with).map(|(a, b)| b - a).collect();
    let middle = median(&added);
    added.sort_by(f64::total_cmp);
    let quarter = added.len() / 4;
    let (low, high) = (added[quarter], added[added.len() - 1 - quarter]);
    let name = format!("CPU per request, routed by {OFFERS} offers");
    let ratio = pair_ratio(&with, &without);
    Ok(vec![
        Figure::new(&name, Measure::median(&with, "µs")).paired(
            "without offers",
            Measure::median(&without, "µs"),
            ratio,
        ),
        Figure::new(
            format!("{name}: added, median of pairs"),
            Measure::new(middle, "µs")
                .between(low, high, Bounds::MiddleHalf)
                .n(added.len() as u64),
        )
        .target(format!("at most {BAR} µs"), middle <= BAR),
    ])
}

/// Publishes the offers. All name `origin`; each has a price and a time of its own.
fn publish(site: &Site, broker: &Server, token: &str, origin: &Server) -> Outcome<()> {
    let mut text = String::from("<q:wsqos xmlns:q=\"http://wsqos.org/\"><definition><offers>");
    for number in 0..OFFERS {
        let (time, price) = (50 + number, 500 + 5 * number);
        let _ = write!(
            text,
            "<qosOffer name=\"o{number}\" expires=\"2099-01-01T00:00:00Z\" endpoint=\"{}\">\
             <defaultQoSInfo><serverQoSMetrics><processingTime>{time}</processingTime>\
             <reliability>0.99</reliability></serverQoSMetrics></defaultQoSInfo>\
             <price currency=\"EUR\">{}.{:04}</price></qosOffer>",
            origin.url(""),
            price / 10_000,
            price % 10_000,
        );
    }
    text.push_str("</offers></definition></q:wsqos>");
    let file = site.logs.join("offers.wsqos");
    tools::write(&file, text)?;
    let secret = site.logs.join("ada.token");
    tools::write(&secret, token)?;
    let mut put = Command::new(&site.binary);
    put.args(["offers", "put", "books", "ada"])
        .arg(file)
        .arg("--token-file")
        .arg(secret)
        .args(["--broker", &broker.url("")]);
    site.run("offers", &mut put, 60)?;
    Ok(())
}

/// Starts a gateway on the server's core. With a broker, its route uses the offers.
fn gateway(site: &Site, name: &str, origin: &Server, broker: Option<&Server>) -> Outcome<Server> {
    let address = free_address()?;
    let mut text = format!(
        "listen = \"{address}\"\n[[route]]\npath = \"/\"\nupstream = [\"{}\"]\n",
        origin.address
    );
    if let Some(broker) = broker {
        let _ = write!(
            text,
            "[route.offers]\nbroker = \"{}\"\ntype = \"books\"\nallow = [\"127.0.0.1\"]\nprobe = \"0s\"\n",
            broker.url("")
        );
    }
    let file = site.logs.join(format!("{name}.toml"));
    tools::write(&file, text)?;
    let binary = site.binary.display().to_string();
    let line = [server(), &[binary.as_str(), "gateway", "--config"]].concat();
    let mut command = Command::new(line[0]);
    site.serve(name, command.args(&line[1..]).arg(file), address)
}

/// Waits until a request is routed by its terms.
fn await_offers(site: &Site, url: &str) -> Outcome<()> {
    let curl = tools::debian(&site.checkout, "curl", "curl")?;
    let end = Instant::now() + KNOWN;
    loop {
        let mut ask = Command::new(&curl);
        ask.args(["-sS", "-o", "/dev/null", "-D", "-", "-H", TERM, url]);
        let head = site.run("curl", &mut ask, 20)?.stdout;
        if head.contains("offer-decision: cheapest") {
            return Ok(());
        }
        check(Instant::now() < end, || {
            format!("the gateway does not route by offers:\n{head}")
        })?;
        std::thread::sleep(Duration::from_millis(100));
    }
}
