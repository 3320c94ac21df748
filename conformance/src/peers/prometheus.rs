//! A real Prometheus scrapes every service: no scrape fails, counters have rates, and every histogram has quantiles
//! that are numbers. Its promtool lints the scraped pages.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::error::{Outcome, TaskError, check};
use crate::peers::broker::broker;
use crate::peers::generators::first_isbn;
use crate::process::Running;
use crate::site::{Server, Site, free_address};
use crate::tools;

/// Histograms that must exist, so that no test passes because a service no longer exposes any.
const HISTOGRAMS: [&str; 2] = [
    "posthaste_gateway_service_seconds",
    "posthaste_gateway_upstream_seconds",
];

/// Maximum wait until Prometheus has scraped the data of a query. A second on an idle machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Accepted complaints of `promtool check metrics`: the metric, the beginning of the complaint, the reason.
const EXEMPT: [(&str, &str, &str); 0] = [];

/// A family on a page: its type, and the presence of a sample.
struct Family {
    kind: String,
    has_sample: bool,
}

/// Prometheus on all services, with traffic through the gateway.
pub(crate) fn prometheus(site: &Site) -> Outcome<()> {
    let program = tools::debian(&site.checkout, "prometheus", "prometheus")?;
    let promtool = tools::debian(&site.checkout, "promtool", "prometheus")?;
    let folder = site.checkout.peer_folder("prometheus")?;
    let shop = site.bookshop(&[])?;
    let (broker, token) = broker(site, "prometheus-broker")?;
    let admin = free_address()?;
    let gateway = gateway(site, &folder, admin, [&shop, &broker], &token)?;
    let targets = [
        ("bookshop", shop.address),
        ("broker", broker.address),
        ("gateway", admin),
    ];
    let prometheus = start(site, &folder, &program, &targets)?;
    wait("all targets are scraped", || {
        all_are_up(site, &prometheus, targets.len())
    })?;
    traffic(site, &gateway, &shop, &broker)?;

    let mut exposed = BTreeMap::new();
    for (name, address) in targets {
        let page = fetch(site, address, "/metrics", &[])?;
        lint(site, &promtool, &folder.join(name), &page)?;
        exposed.extend(families(&page));
    }
    for name in HISTOGRAMS {
        let there = exposed.get(name).is_some_and(|family| family.has_sample);
        check(there, || format!("no service exposes {name}"))?;
    }
    for (name, family) in &exposed {
        measured(site, &prometheus, name, family)?;
    }
    all_are_up(site, &prometheus, targets.len())?;
    let output = prometheus.running.output();
    let mut complaints = output
        .lines()
        .filter(|line| line.contains("level=warn") || line.contains("level=error"));
    match complaints.next() {
        None => Ok(()),
        Some(first) => Err(TaskError::Failed(format!("Prometheus complains: {first}"))),
    }
}

/// Starts a gateway with every option that adds metrics.
fn gateway(
    site: &Site,
    folder: &Path,
    admin: SocketAddr,
    [shop, broker]: [&Server; 2],
    token: &str,
) -> Outcome<Server> {
    let address = free_address()?;
    let token_file = folder.join("ada.token");
    tools::write(&token_file, token)?;
    let log = folder.join("access.jsonl");
    // There is no collector at the shop's address: lost spans are metrics too.
    let text = format!(
        "listen = \"{address}\"\nadmin = \"{admin}\"\naccess_log = {log:?}\n\
         [traces]\ncollector = \"{}\"\n\
         [protection]\npolicy = \"prices\"\n\
         [prices]\noffer = \"standard\"\n\
         [prices.broker]\nurl = \"{}\"\ntype = \"books\"\nprovider = \"ada\"\ntoken = {token_file:?}\n\
         [[route]]\npath = \"/\"\nupstream = [\"{}\"]\n",
        shop.url("/v1/traces"),
        broker.url(""),
        shop.address
    );
    let file = folder.join("gateway.toml");
    tools::write(&file, text)?;
    let mut command = Command::new(&site.binary);
    command.args(["gateway", "--config"]).arg(&file);
    site.serve("gateway", &mut command, address)
}

/// Starts Prometheus with its own configuration and data, on a port of its own.
fn start(
    site: &Site,
    folder: &Path,
    program: &Path,
    targets: &[(&str, SocketAddr)],
) -> Outcome<Server> {
    let data = folder.join("data");
    // Data of an earlier run. Usually there are none.
    let _ = std::fs::remove_dir_all(&data);
    let jobs: String = targets
        .iter()
        .map(|(name, address)| {
            format!("  - job_name: {name}\n    static_configs: [{{ targets: [\"{address}\"] }}]\n")
        })
        .collect();
    let file = folder.join("prometheus.yml");
    let every = "global: { scrape_interval: 1s, scrape_timeout: 1s }";
    tools::write(&file, format!("{every}\nscrape_configs:\n{jobs}"))?;
    let address = free_address()?;
    let option = |name: &str, value: &Path| format!("--{name}={}", value.display());
    let mut command = Command::new(program);
    command
        .arg(option("config.file", &file))
        .arg(option("storage.tsdb.path", &data))
        .arg(format!("--web.listen-address={address}"))
        .current_dir(folder);
    site.serve("prometheus", &mut command, address)
}

/// Sends requests through the gateway and to the broker.
fn traffic(site: &Site, gateway: &Server, shop: &Server, broker: &Server) -> Outcome<()> {
    let url = gateway.url(&format!("/page/{}", first_isbn(site, shop)?));
    let report = site.load(&[&url, "--rate", "100/s", "--duration", "3s"], 60)?;
    check(report.outcome("ok") > 0, || {
        format!("nothing went through the gateway: {}", report.outcomes())
    })?;
    let mut ask = Command::new(&site.binary);
    ask.args(["offers", "list", "books", "--broker", &broker.url("")]);
    site.run("offers", &mut ask, 30).map(drop)
}

/// True if `count` targets answered their last scrape. A failed scrape is an error.
fn all_are_up(site: &Site, prometheus: &Server, count: usize) -> Outcome<bool> {
    let answer = ask(site, prometheus, "/api/v1/targets", &[])?;
    let targets = answer["activeTargets"].as_array();
    let targets = targets.map(Vec::as_slice).unwrap_or_default();
    for target in targets {
        let error = target["lastError"].as_str().unwrap_or_default();
        check(error.is_empty(), || {
            format!("scraping {} failed: {error}", target["scrapeUrl"])
        })?;
    }
    let up = targets.iter().filter(|target| target["health"] == "up");
    Ok(up.count() == count)
}

/// Fails on every complaint of promtool that is not exempt.
fn lint(site: &Site, promtool: &Path, file: &Path, page: &str) -> Outcome<()> {
    let file = file.with_extension("txt");
    tools::write(&file, plain(page))?;
    let mut command = Command::new("sh");
    command
        .args(["-c", "exec \"$0\" check metrics < \"$1\""])
        .args([promtool, &file]);
    let running = Running::start("promtool", &mut command, &site.logs)?;
    let done = running.finish(Duration::from_secs(60))?;
    let complaints: Vec<&str> = done
        .stderr
        .lines()
        .chain(done.stdout.lines())
        .filter(|line| {
            let mut exempt = EXEMPT.iter();
            !exempt.any(|(name, complaint, _)| {
                let rest = line.strip_prefix(name).map(str::trim_start);
                rest.is_some_and(|rest| rest.starts_with(complaint))
            })
        })
        .collect();
    check(complaints.is_empty(), || {
        format!("promtool on {}:\n{}", file.display(), complaints.join("\n"))
    })?;
    check(matches!(done.code, Some(0 | 3)), || {
        format!("promtool ended with {:?}", done.code)
    })
}

/// Converts to the older text format, which promtool reads: there a counter's family has the name of its samples.
fn plain(page: &str) -> String {
    let mut text = String::with_capacity(page.len());
    for line in page.lines().filter(|line| *line != "# EOF") {
        let mut parts = line.splitn(4, ' ');
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some("#"), Some(keyword), Some(name), Some(rest))
                if kind_of(page, name) == Some("counter") =>
            {
                let name = of_samples(name, "counter");
                text += &format!("# {keyword} {name} {rest}\n");
            }
            _ => {
                text += line;
                text.push('\n');
            }
        }
    }
    text
}

/// The type that a page states for a family.
fn kind_of<'p>(page: &'p str, name: &str) -> Option<&'p str> {
    page.lines().find_map(|line| {
        let (named, kind) = line.strip_prefix("# TYPE ")?.split_once(' ')?;
        (named == name).then_some(kind)
    })
}

/// The name of a family's samples.
fn of_samples(name: &str, kind: &str) -> String {
    match kind {
        "counter" if !name.ends_with("_total") => format!("{name}_total"),
        _ => name.to_owned(),
    }
}

/// All families of a page, by the name of their samples.
fn families(page: &str) -> impl Iterator<Item = (String, Family)> {
    let types = page.lines().filter_map(|line| {
        let (name, kind) = line.strip_prefix("# TYPE ")?.split_once(' ')?;
        Some((of_samples(name, kind), kind))
    });
    types.map(|(name, kind)| {
        let sample = match kind {
            "histogram" => format!("{name}_bucket"),
            _ => name.clone(),
        };
        let mut samples = page.lines().filter_map(|line| line.strip_prefix(&sample));
        let has_sample = samples.any(|rest| rest.starts_with(['{', ' ']));
        let kind = kind.to_owned();
        (name, Family { kind, has_sample })
    })
}

/// Fails unless Prometheus gets numbers for a family that has samples.
fn measured(site: &Site, prometheus: &Server, name: &str, family: &Family) -> Outcome<()> {
    if !family.has_sample {
        return Ok(());
    }
    let numbers = |query: String, least: f64| {
        let mut last = String::new();
        let known = wait(&query, || {
            let values = values(site, prometheus, &query)?;
            last = format!("{values:?}");
            // A series that appears with its last event has no rate, such as that of a rare status.
            let are_numbers = values.iter().all(|value| value.is_finite());
            Ok(are_numbers && values.iter().any(|value| *value >= least))
        });
        known.map_err(|error| TaskError::Failed(format!("{error}: the last answer was {last}")))
    };
    match &*family.kind {
        "histogram" => {
            for share in ["0.5", "0.9", "0.99"] {
                let rate = format!("sum by (le) (rate({name}_bucket[5m]))");
                // No quantile is less than half of the first bucket, which ends at 1 µs.
                numbers(format!("histogram_quantile({share}, {rate})"), 1e-9)?;
            }
            numbers(format!("rate({name}_count[5m])"), 1e-9)?;
            numbers(format!("rate({name}_sum[5m])"), 1e-9)
        }
        "counter" => numbers(format!("rate({name}[5m])"), 0.0),
        _ => numbers(name.to_owned(), f64::MIN),
    }
}

/// The values of the answer to an instant query, `NaN` included.
fn values(site: &Site, prometheus: &Server, query: &str) -> Outcome<Vec<f64>> {
    let question = format!("query={query}");
    let options = ["--get", "--data-urlencode", &question];
    let answer = ask(site, prometheus, "/api/v1/query", &options)?;
    let series = answer["result"].as_array();
    let series = series.map(Vec::as_slice).unwrap_or_default().iter();
    series
        .map(|series| {
            let value = series["value"][1].as_str().unwrap_or_default();
            let value = value.parse();
            value.map_err(|_| TaskError::Failed(format!("{query}: no value in {series}")))
        })
        .collect()
}

/// The data of an answer of Prometheus' API.
fn ask(site: &Site, prometheus: &Server, path: &str, options: &[&str]) -> Outcome<Value> {
    let text = fetch(site, prometheus.address, path, options)?;
    let answer: Value = serde_json::from_str(&text)
        .map_err(|error| TaskError::Failed(format!("{path} of Prometheus: {error} in {text}")))?;
    check(answer["status"] == "success", || {
        format!("{path} of Prometheus: {text}")
    })?;
    Ok(answer["data"].clone())
}

/// The body at a path, by curl.
fn fetch(site: &Site, address: SocketAddr, path: &str, options: &[&str]) -> Outcome<String> {
    let mut command = Command::new(tools::debian(&site.checkout, "curl", "curl")?);
    command
        .args(["--silent", "--show-error", "--fail", "--max-time", "10"])
        .args(options)
        .arg(format!("http://{address}{path}"));
    Ok(site.run("curl", &mut command, 20)?.stdout)
}

/// Waits until something holds.
fn wait(condition: &str, mut holds: impl FnMut() -> Outcome<bool>) -> Outcome<()> {
    let end = Instant::now() + PATIENCE;
    while !holds()? {
        check(Instant::now() < end, || {
            let seconds = PATIENCE.as_secs();
            format!("{condition}: not within {seconds} s")
        })?;
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# HELP a_replies Replies.
# TYPE a_replies counter
a_replies_total{status=\"200\"} 4.0
# HELP a_price What a request costs.
# TYPE a_price gauge
# HELP a_wait_seconds Waits.
# TYPE a_wait_seconds histogram
a_wait_seconds_sum 1.0
a_wait_seconds_count 2
a_wait_seconds_bucket{le=\"+Inf\"} 2
# EOF
";

    #[test]
    fn families_keep_their_type_and_counters_their_sample_name() {
        let text = plain(PAGE);
        assert!(text.starts_with(
            "# HELP a_replies_total Replies.\n# TYPE a_replies_total counter\na_replies_total{"
        ));
        assert!(!text.contains("EOF"));
        let found: Vec<_> = families(PAGE)
            .map(|(name, family)| (name, family.kind, family.has_sample))
            .collect();
        let expected = [
            ("a_replies_total", "counter", true),
            ("a_price", "gauge", false),
            ("a_wait_seconds", "histogram", true),
        ];
        let expected = expected.map(|(name, kind, has)| (name.to_owned(), kind.to_owned(), has));
        assert_eq!(found, expected);
    }
}
