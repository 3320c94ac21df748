//! The JSON Schema of `gateway.toml`, for editors and for the reference.
//!
//! Derived from the types that read the file: descriptions from their doc comments, defaults from their defaults.
//! Rules between keys ("at most `threshold`") are stated in descriptions only; `--check` checks them.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use serde_json::{Value, json};

use crate::GatewayConfig;

/// The schema (JSON Schema 2020-12).
pub fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12().with_transform(ForToml);
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<GatewayConfig>();
    schema.insert("title".to_owned(), "posthaste gateway.toml".into());
    // Read as an empty list where it is absent, for an error that says how to write one.
    schema.insert("required".to_owned(), json!(["listen", "route"]));
    schema.into()
}

/// Removes `null`, which TOML does not have (an optional key is absent), and line breaks in descriptions.
#[derive(Clone, Debug)]
struct ForToml;

impl Transform for ForToml {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        let Some(object) = schema.as_object_mut() else {
            return;
        };
        if let Some(Value::String(about)) = object.get_mut("description") {
            *about = about.replace('\n', " ");
        }
        match object.get_mut("default") {
            Some(Value::Null) => drop(object.remove("default")),
            Some(default) => without_null(default),
            None => {}
        }
        if let Some(Value::Array(types)) = object.get_mut("type") {
            types.retain(|kind| kind != "null");
            if let [kind] = types.as_slice() {
                let kind = kind.clone();
                object.insert("type".to_owned(), kind);
            }
        }
        if let Some(Value::Array(any)) = object.get_mut("anyOf") {
            any.retain(|schema| schema.get("type").is_none_or(|kind| kind != "null"));
            if let [Value::Object(only)] = any.as_slice() {
                let only = only.clone();
                object.remove("anyOf");
                for (key, value) in only {
                    object.entry(key).or_insert(value);
                }
            }
        }
    }
}

fn without_null(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(without_null);
        }
        Value::Array(values) => values.iter_mut().for_each(without_null),
        _ => {}
    }
}
