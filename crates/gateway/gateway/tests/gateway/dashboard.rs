//! The dashboard for Grafana: its fields, its layout, and that the metrics and labels in it exist.

use std::collections::{BTreeMap, BTreeSet};

use posthaste_gateway::{GatewayConfig, start};
use serde_json::Value;

use crate::support::{OK, TestOrigin, get};
use crate::watching::fetch_admin;

const DASHBOARD: &str = include_str!("../../../../../deploy/grafana-gateway.json");
const PAGE: &str = include_str!("../../../../../docs/reference/metrics.md");
const PREFIX: &str = "posthaste_gateway_";

/// Labels that Prometheus adds.
const OF_SCRAPE: [&str; 2] = ["job", "instance"];

fn dashboard() -> Value {
    serde_json::from_str(DASHBOARD).unwrap()
}

/// The panels that are not rows.
fn panels(dashboard: &Value) -> Vec<&Value> {
    let panels = dashboard["panels"].as_array().unwrap().iter();
    panels.filter(|panel| panel["type"] != "row").collect()
}

/// The queries of all panels and variables.
fn queries(dashboard: &Value) -> Vec<String> {
    let mut queries = Vec::new();
    for panel in panels(dashboard) {
        for target in panel["targets"].as_array().unwrap() {
            queries.push(target["expr"].as_str().unwrap().to_owned());
        }
    }
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        if let Some(query) = variable["query"]["query"].as_str() {
            queries.push(query.to_owned());
        }
    }
    queries
}

/// The metrics of a query with their matched labels.
fn metrics(query: &str) -> Vec<(&str, Vec<&str>)> {
    let is_name = |c: char| c.is_ascii_lowercase() || c == '_';
    let found = query.match_indices(PREFIX).map(|(at, _)| {
        let rest = &query[at..];
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        let matchers = rest.strip_prefix('{').and_then(|rest| rest.split_once('}'));
        let matchers = matchers.map_or("", |(matchers, _)| matchers);
        let labels = matchers.split(", ").filter_map(|matcher| {
            let end = matcher.find(['=', '!']);
            end.map(|end| &matcher[..end])
        });
        (name, labels.collect())
    });
    found.collect()
}

/// The names after `by` in a query.
fn grouped(query: &str) -> Vec<&str> {
    let groups = query.split("by (").skip(1);
    groups
        .flat_map(|group| group.split(')').next().unwrap().split(", "))
        .collect()
}

/// Types of the families of a gateway with these keys, after one request.
fn families(keys: &str) -> BTreeMap<String, String> {
    let origin = TestOrigin::answering(OK);
    let text = format!(
        "listen = \"127.0.0.1:0\"\naccess_log = \"/dev/null\"\n{keys}\n[[route]]\npath = \"/\"\nupstream = [\"{}\"]\n",
        origin.address
    );
    let gateway = start(GatewayConfig::read(&text).unwrap()).unwrap();
    get(&gateway, "/", "");
    let text = String::from_utf8(fetch_admin(&gateway, "/metrics").body).unwrap();
    let types = text.lines().filter_map(|line| {
        let (name, kind) = line.strip_prefix("# TYPE ")?.split_once(' ')?;
        Some((name.to_owned(), kind.to_owned()))
    });
    types.collect()
}

#[test]
fn every_metric_of_the_dashboard_exists() {
    let token = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(token.path(), "pht_gateway\n").unwrap();
    let file = token.path();
    let tiers =
        "[protection]\npolicy = \"limit\"\n[[protection.tier]]\nname = \"all\"\nshare = \"100%\"";
    let prices = format!(
        "[protection]\npolicy = \"prices\"\n[accounts]\nbroker = {{ url = \"http://127.0.0.1:9\", token = {file:?} }}"
    );
    let mut known = families(tiers);
    known.extend(families(&prices));
    let dashboard = dashboard();
    let mut used = BTreeSet::new();
    for query in queries(&dashboard) {
        let found = metrics(&query);
        assert!(!found.is_empty(), "{query}");
        for (name, labels) in found {
            let family = name.strip_suffix("_bucket").unwrap_or(name);
            let kind = known.get(family);
            let kind = kind.unwrap_or_else(|| panic!("there is no {family}"));
            assert_eq!(kind == "histogram", name != family, "{query}");
            if kind == "counter" {
                assert!(query.contains(&format!("rate({name}")), "{query}");
            }
            let row_start = format!("| `{}` |", family.strip_prefix(PREFIX).unwrap());
            let row = PAGE.lines().find(|line| line.starts_with(&row_start));
            let row = row.unwrap_or_else(|| panic!("metrics.md has no row for {family}"));
            for label in labels.into_iter().chain(grouped(&query)) {
                let is_known = label == "le"
                    || OF_SCRAPE.contains(&label)
                    || row.contains(&format!("`{label}`"));
                assert!(is_known, "{family} has no label {label}: {query}");
            }
            used.insert(family.to_owned());
        }
    }
    assert!(used.len() > 25, "{used:?}");
}

#[test]
fn the_dashboard_has_the_fields_that_grafana_reads() {
    let dashboard = dashboard();
    for field in ["uid", "title"] {
        assert!(dashboard[field].is_string(), "{field}");
    }
    assert!(dashboard["schemaVersion"].as_u64().unwrap() >= 36);
    assert!(dashboard["time"]["from"].is_string());
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let names: Vec<&str> = variables
        .iter()
        .map(|variable| variable["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["datasource", "job", "instance"]);
    let mut numbers = BTreeSet::new();
    let mut cells = BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let title = panel["title"].as_str().unwrap();
        assert!(numbers.insert(panel["id"].as_u64().unwrap()), "{title}");
        let at = |key: &str| panel["gridPos"][key].as_u64().unwrap();
        assert!(at("x") + at("w") <= 24 && at("h") > 0, "{title}");
        for x in at("x")..at("x") + at("w") {
            for y in at("y")..at("y") + at("h") {
                assert!(cells.insert((x, y)), "{title} lies on another panel");
            }
        }
    }
    for panel in panels(&dashboard) {
        let title = panel["title"].as_str().unwrap();
        assert!(["stat", "timeseries"].contains(&panel["type"].as_str().unwrap()));
        assert!(panel["description"].is_string(), "{title}");
        assert!(
            panel["fieldConfig"]["defaults"]["unit"].is_string(),
            "{title}"
        );
        let mut letters = BTreeSet::new();
        for target in panel["targets"].as_array().unwrap() {
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{title}");
            assert!(letters.insert(target["refId"].as_str().unwrap()), "{title}");
        }
    }
}
