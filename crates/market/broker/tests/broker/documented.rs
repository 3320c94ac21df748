//! Documentation tests: the example shows the defaults, the page names every key, and the description every path.

use std::path::Path;

use posthaste_broker::BrokerConfig;

const EXAMPLE: &str = include_str!("../../../../../examples/broker.toml");
const PAGE: &str = include_str!("../../../../../docs/reference/broker-api.md");

/// The example with all keys uncommented.
fn with_every_key() -> String {
    let bare = |line: &str| {
        let rest = line.strip_prefix("# ")?;
        let word = rest.split(" = ").next()?;
        (rest.starts_with('[') || word != rest && !word.contains(' ')).then(|| rest.to_owned())
    };
    let lines = EXAMPLE
        .lines()
        .map(|line| bare(line).unwrap_or_else(|| line.to_owned()) + "\n");
    lines.collect()
}

#[test]
fn the_example_shows_the_defaults() {
    let shown = BrokerConfig::read(EXAMPLE, Path::new("")).unwrap();
    assert_eq!(
        format!("{shown:#?}"),
        format!("{:#?}", BrokerConfig::default())
    );
}

#[test]
fn the_example_can_be_used_with_every_key() {
    let every = with_every_key();
    let read = |text: &str| BrokerConfig::read(text, Path::new("/etc"));
    let error = read(&every).unwrap_err().to_string();
    assert!(
        error.contains("leave out follow, or uddi and every source"),
        "{error}"
    );
    let (follows, rest) = every.split_once("follow = ").unwrap();
    let (_, fetches) = rest.split_once('\n').unwrap();
    let config = read(&format!("{follows}{fetches}")).unwrap();
    assert!(config.tls.is_some() && config.uddi.is_some());
    assert_eq!(config.currency.worth.len(), 2);
    assert_eq!(config.ontologies[0].file, Path::new("/etc/metrics.wsqos"));
    assert_eq!(config.sources[0].provider, "ada");
}

#[test]
fn the_page_names_each_key() {
    let mut table = String::new();
    for line in with_every_key().lines() {
        if let Some(name) = line.strip_prefix('[') {
            table = name.trim_matches(['[', ']']).to_owned() + ".";
        } else if let Some((key, _)) = line.split_once(" = ") {
            let name = format!("`{table}{key}`");
            assert!(
                PAGE.contains(&name),
                "docs/reference/broker-api.md does not say what {name} is"
            );
        }
    }
}

#[test]
fn configuration_errors_name_the_remedy() {
    for (text, expected) in [
        ("lisen = \"127.0.0.1:1\"", "did you mean `listen`?"),
        ("store = \"mysql:offers\"", "sqlite:FILE"),
        ("threads = 0", "threads must be at least 1"),
        (
            "[[source]]\ntype = \"a\"\nprovider = \"\"\nurl = \"u\"",
            "have names",
        ),
        (
            "[[source]]\ntype = \"a\"\nprovider = \"b\"\nurl = \"u\"\nevery = \"1ms\"",
            "at least 1s",
        ),
        ("[currency]\nworth = { USD = -1 }", "more than 0"),
    ] {
        let error = BrokerConfig::read(text, Path::new(""))
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn sources_that_would_withdraw_each_others_offers_are_refused() {
    let source = |url: &str, provider: &str| {
        format!(
            "[[source]]\nurl = \"http://{url}.example/offers\"\ntype = \"books\"\nprovider = \"{provider}\"\n"
        )
    };
    let read = |text: String| BrokerConfig::read(&text, Path::new("."));
    assert!(read(source("one", "ada") + &source("two", "eva")).is_ok());
    let error = read(source("one", "ada") + &source("two", "ada")).unwrap_err();
    assert!(
        error.to_string().contains("one type and one provider"),
        "{error}"
    );
}
