//! Delay and throughput of toxiproxy compared with `posthaste net`: the same client and the same service through both.
//!
//! toxiproxy relays streams. It delays data after reading, not packets, and has no handshakes, losses or positions.
//! Only common functions are compared.

use std::process::Command;

use crate::bench::{Bench, Figure, Measure, in_turns};
use crate::error::Outcome;
use crate::load::LoadReport;
use crate::peers::generators::first_isbn;
use crate::site::{Server, free_address};
use crate::tools;

const MODULE: &str = "github.com/Shopify/toxiproxy/v2/cmd/server@v2.12.0";
/// Address of the service inside `net`.
const INSIDE: &str = "10.0.0.2:8080";

/// The error of 5 ms in each direction, and requests per second without delay.
pub(in crate::bench) fn toxiproxy(bench: &Bench) -> Outcome<Vec<Figure>> {
    let proxy = Proxy::start(bench)?;
    let path = format!("/page/{}", first_isbn(&bench.site, &proxy.shop)?);
    let direct = proxy.shop.url(&path);
    let rounds = bench.or_quick(5, 1);
    let length = bench.or_quick("10s", "2s");
    let paced = ["--rate", "200/s", "--duration", length];
    let mut errors = [Vec::new(), Vec::new()];
    for _ in 0..rounds {
        let base = bench
            .site
            .load(&[[direct.as_str()].as_slice(), &paced].concat(), 60)?;
        proxy.delay(bench, 5)?;
        let theirs = bench.site.load(
            &[[proxy.url(&path).as_str()].as_slice(), &paced].concat(),
            60,
        )?;
        let ours = through_net(bench, &path, "5ms", &paced)?;
        for (errors, report) in errors.iter_mut().zip([ours, theirs]) {
            report.expect_all("ok")?;
            let off = |name: &str| -> Outcome<f64> {
                let name = format!("service_time_ms/{name}");
                Ok((report.number(&name)? - base.number("service_time_ms/p50")? - 10.0) * 1000.0)
            };
            errors.push((off("p50")?, off("p99")?));
        }
    }
    let quantiles = |errors: &[(f64, f64)]| {
        let (p50, p99): (Vec<f64>, Vec<f64>) = errors.iter().copied().unzip();
        [p50, p99].map(|errors| Measure::median(&errors, "µs"))
    };
    let ([p50, p99], [their_p50, their_p99]) = (quantiles(&errors[0]), quantiles(&errors[1]));
    let [fast, peer] = throughput(bench, &proxy, &path, rounds)?;
    let beyond = "response time beyond 2 x 5 ms and its time without, 200/s";
    let is_near = p50.value.abs() <= their_p50.value.abs();
    Ok(vec![
        Figure::new(format!("{beyond}: p50"), p50)
            .peer("toxiproxy", their_p50)
            .target("no further off than toxiproxy's", is_near),
        Figure::new(format!("{beyond}: p99"), p99).peer("toxiproxy", their_p99),
        Figure::new("throughput without delay, 50 clients", fast).peer("toxiproxy", peer),
    ])
}

/// Requests per second through both, in turns.
fn throughput(bench: &Bench, proxy: &Proxy, path: &str, rounds: usize) -> Outcome<[Measure; 2]> {
    proxy.delay(bench, 0)?;
    let length = bench.or_quick("5s", "1s");
    let closed = ["--clients", "50", "--duration", length];
    let url = proxy.url(path);
    let mut ours = || through_net(bench, path, "0ms", &closed)?.number("achieved_rate");
    let mut theirs = || {
        let arguments = [[url.as_str()].as_slice(), &closed].concat();
        bench.site.load(&arguments, 60)?.number("achieved_rate")
    };
    let measured = in_turns(rounds, [&mut ours, &mut theirs])?;
    Ok(measured.map(|rates| Measure::median(&rates, "requests/s")))
}

/// A bookshop behind a toxiproxy with a latency toxic in each direction.
struct Proxy {
    shop: Server,
    proxy: Server,
    control: String,
}

impl Proxy {
    fn start(bench: &Bench) -> Outcome<Self> {
        let site = &bench.site;
        let program = tools::go(&site.checkout, "toxiproxy", MODULE)?;
        let shop = site.bookshop(&["--threads", "1"])?;
        let (control, listen) = (free_address()?, free_address()?);
        let mut command = Command::new(program);
        let port = control.port().to_string();
        command.args(["-host", "127.0.0.1", "-port", &port]);
        let running = site.serve("toxiproxy", &mut command, control)?.running;
        let proxy = Self {
            control: format!("http://{control}/proxies"),
            proxy: Server {
                running,
                address: listen,
            },
            shop,
        };
        let own = serde_json::json!({
            "name": "shop",
            "listen": listen.to_string(),
            "upstream": proxy.shop.address.to_string(),
        });
        proxy.ask(bench, "", &own)?;
        for stream in ["upstream", "downstream"] {
            let toxic = serde_json::json!({
                "name": stream, "type": "latency", "stream": stream, "attributes": {"latency": 0},
            });
            proxy.ask(bench, "/shop/toxics", &toxic)?;
        }
        Ok(proxy)
    }

    fn url(&self, path: &str) -> String {
        self.proxy.url(path)
    }

    /// Sets the delay in each direction.
    fn delay(&self, bench: &Bench, milliseconds: u64) -> Outcome<()> {
        let latency = serde_json::json!({"attributes": {"latency": milliseconds}});
        for stream in ["upstream", "downstream"] {
            self.ask(bench, &format!("/shop/toxics/{stream}"), &latency)?;
        }
        Ok(())
    }

    fn ask(&self, bench: &Bench, path: &str, body: &serde_json::Value) -> Outcome<()> {
        let curl = tools::debian(&bench.site.checkout, "curl", "curl")?;
        let mut command = Command::new(curl);
        let (url, body) = (format!("{}{path}", self.control), body.to_string());
        command.args(["--silent", "--show-error", "--fail", "--data", &body, &url]);
        bench.site.run("curl", &mut command, 20).map(drop)
    }
}

/// The same through an emulated network.
fn through_net(bench: &Bench, path: &str, delay: &str, options: &[&str]) -> Outcome<LoadReport> {
    let program = bench.site.binary.display().to_string();
    let server = format!("'{program}' bookshop --listen {INSIDE} --threads 1");
    let wrapper = [
        &program, "net", "--quiet", "--delay", delay, "--server", &server, "--",
    ];
    let url = format!("http://{INSIDE}{path}");
    let arguments = [[url.as_str()].as_slice(), options].concat();
    bench.site.start_load(&wrapper, &arguments)?.finish(90)
}
