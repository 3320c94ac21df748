//! The schema of gateway.toml matches the program: keys, defaults, and unknown keys.

use posthaste_gateway::{GatewayConfig, config};
use serde_json::{Map, Value, json};

/// A configuration with only the required keys.
fn smallest() -> Value {
    json!({ "listen": "127.0.0.1:8080", "route": [{ "path": "/", "upstream": ["127.0.0.1:9000"] }] })
}

fn read(value: Value) -> Result<GatewayConfig, serde_json::Error> {
    serde_json::from_value(value)
}

/// Resolves a `$ref`, or returns the schema itself.
fn resolved<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let name = schema["$ref"].as_str();
    let name = name.and_then(|name| name.strip_prefix("#/$defs/"));
    name.map_or(schema, |name| &root["$defs"][name])
}

/// The defaults of a table and its subtables.
fn defaults(root: &Value, table: &Value) -> Value {
    let mut found = Map::new();
    for (key, property) in table["properties"].as_object().expect("a table") {
        let below = resolved(root, property);
        if let Some(default) = property.get("default") {
            found.insert(key.clone(), default.clone());
        } else if below["properties"].is_object() && below.get("required").is_none() {
            found.insert(key.clone(), defaults(root, below));
        }
    }
    Value::Object(found)
}

#[test]
fn defaults_are_those_of_the_program() {
    let schema = config::schema();
    let mut written = defaults(&schema, &schema);
    let smallest = smallest();
    written["listen"] = smallest["listen"].clone();
    let mut route = defaults(&schema, &schema["$defs"]["Route"]);
    let keys = smallest["route"][0].as_object().unwrap().clone();
    route.as_object_mut().unwrap().extend(keys);
    written["route"] = json!([route]);
    // These tables change the behaviour by being there, and are tested separately.
    let prices = written.as_object_mut().unwrap().remove("prices").unwrap();
    let accounts = written.as_object_mut().unwrap().remove("accounts").unwrap();
    let route = written["route"][0].as_object_mut().unwrap();
    let ejection = route.remove("ejection").unwrap();
    let read_back = read(written).unwrap();
    assert_eq!(
        format!("{read_back:#?}"),
        format!("{:#?}", read(smallest).unwrap())
    );
    let prices: config::Prices = serde_json::from_value(prices).unwrap();
    assert_eq!(prices, config::Prices::default());
    let accounts: config::AccountsConfig = serde_json::from_value(accounts).unwrap();
    assert_eq!(accounts, config::AccountsConfig::default());
    let ejection: config::Ejection = serde_json::from_value(ejection).unwrap();
    assert_eq!(ejection, config::Ejection::default());
}

/// Every table with its path of keys and its schema.
fn tables<'a>(
    root: &'a Value,
    table: &'a Value,
    path: &[&'a str],
) -> Vec<(Vec<&'a str>, &'a Value)> {
    let mut found = vec![(path.to_vec(), table)];
    for (key, property) in table["properties"].as_object().expect("a table") {
        let below = resolved(root, property);
        let items = resolved(root, &property["items"]);
        for schema in [below, items] {
            if schema["properties"].is_object() {
                found.extend(tables(root, schema, &[path, &[key.as_str()]].concat()));
            }
        }
    }
    found
}

#[test]
fn unknown_keys_are_refused_in_every_table() {
    let schema = config::schema();
    let tables = tables(&schema, &schema, &[]);
    assert!(tables.len() >= 12, "{} tables", tables.len());
    for (path, table) in tables {
        assert_eq!(table["additionalProperties"], false, "{path:?}");
        let mut value = json!({ "unknown": 1 });
        for key in path.iter().rev() {
            let lists = ["route", "table", "certificates", "tier", "match", "account"];
            let is_list = lists.contains(key);
            value = json!({ *key: if is_list { json!([value]) } else { value } });
        }
        let error = read(value).unwrap_err().to_string();
        assert!(
            error.contains("unknown field `unknown`"),
            "{path:?}: {error}"
        );
    }
}

#[test]
fn names_are_those_that_are_read() {
    let schema = config::schema();
    for (table, key) in [
        ("Compression", "policy"),
        ("Route", "wish"),
        ("Protection", "policy"),
    ] {
        let property = &schema["$defs"][table]["properties"][key];
        let variants = property["oneOf"].as_array().expect("names");
        assert!(variants.len() >= 4);
        for variant in variants {
            let mut value = smallest();
            match table {
                "Route" => value["route"][0][key] = variant["const"].clone(),
                _ => value[table.to_lowercase()] = json!({ key: variant["const"] }),
            }
            assert!(read(value).is_ok(), "{table}.{key}: {variant}");
        }
    }
    for step in schema["$defs"]["step"]["oneOf"].as_array().expect("names") {
        let mut value = smallest();
        value["compression"] = json!({ "steps": [step["const"]] });
        assert!(read(value).is_ok(), "{step}");
    }
}
