//! The documentation matches the program: the example holds the defaults, and the page names each key.

use posthaste_gateway::GatewayConfig;

const EXAMPLE: &str = include_str!("../../../../../examples/gateway.toml");
const PAGE: &str = include_str!("../../../../../docs/reference/gateway-config.md");

#[test]
fn the_example_shows_the_defaults() {
    let shown = GatewayConfig::read(EXAMPLE).unwrap();
    let smallest =
        "listen = \"127.0.0.1:8080\"\n[[route]]\npath = \"/\"\nupstream = [\"127.0.0.1:9000\"]";
    let default = GatewayConfig::read(smallest).unwrap();
    assert_eq!(format!("{shown:#?}"), format!("{default:#?}"));
}

#[test]
fn the_example_can_be_used_with_every_key() {
    let mut uncommented = String::new();
    for line in EXAMPLE.lines() {
        // A commented key is one word and an equals sign, or a table.
        let key = line.strip_prefix("# ").filter(|rest| {
            let word = rest.split(" = ").next().unwrap_or_default();
            rest.starts_with('[')
                || rest.starts_with("type = ")
                || (rest.contains(" = ") && !word.contains(' '))
        });
        uncommented.push_str(key.unwrap_or(line));
        uncommented.push('\n');
    }
    // No configuration has the keys of two policies.
    let text = uncommented.replace("policy = \"none\"", "policy = \"prices\"");
    let text = text.replace("rate = \"500/s\"", "");
    let config = GatewayConfig::read(&text).unwrap();
    assert!(config.prices.is_some_and(|prices| prices.broker.is_some()));
    assert!(
        config.tls.is_some()
            && config.traces.is_some()
            && config.access_log.is_some()
            && config.connections.is_some()
    );
    let [route] = &config.routes[..] else {
        panic!("one route");
    };
    assert!(route.authority.is_some() && route.wsdl.is_some() && route.health.path.is_some());
    assert!(route.mark.is_some() && config.marking.allow.is_some());
}

#[test]
fn the_page_names_each_key() {
    let mut table = String::new();
    for line in EXAMPLE.lines() {
        let line = line.trim_start_matches("# ");
        if let Some(name) = line.strip_prefix('[') {
            table = name.trim_matches(['[', ']']).to_owned() + ".";
        } else if let Some((key, _)) = line.split_once(" = ").filter(|(key, _)| !key.contains(' '))
        {
            let name = format!("`{table}{key}`");
            assert!(
                PAGE.contains(&name),
                "docs/reference/gateway-config.md has no row for {name}"
            );
        }
    }
}
