//! The features of the command: one table of their commands and options. Errors, help and tests derive from it.
//!
//! A command that is not built in stays known: the error names the feature that has it.

use std::ffi::OsStr;

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// A feature of `Cargo.toml`.
pub(crate) struct Feature {
    pub(crate) name: &'static str,
    /// True if this binary has it.
    pub(crate) is_built_in: bool,
    /// Its commands. Any feature that has a command builds it in.
    pub(crate) commands: &'static [&'static str],
    /// Its options of commands that other features have, too.
    pub(crate) options: &'static [&'static str],
}

macro_rules! features {
    ($($name:literal: $commands:expr, $options:expr;)*) => {
        &[$(Feature {
            name: $name,
            is_built_in: cfg!(feature = $name),
            commands: &$commands,
            options: &$options,
        }),*]
    };
}

/// All features.
pub(crate) const FEATURES: &[Feature] = features! {
    "load": ["load", "compare"], [];
    "net": ["net", "pattern", "doctor"], ["--client-capture", "--server-capture", "--grain"];
    "simulate": ["simulate", "pattern"], [];
    "gateway": ["gateway"], [];
    "broker": ["broker", "offers", "accounts"], [];
    "agents": ["agent"], [
        "--agents", "--nats", "--fleet", "--nats-creds", "--nats-ca", "--nats-insecure", "--on-lost", "--loose-start",
    ];
    "postgres": [], ["--store postgres://..."];
    "lab": ["bookshop", "demo", "reproduce"], [];
};

/// The error of a command or an option that exists, but not in this binary.
pub(crate) fn absent(error: &clap::Error) -> Option<String> {
    let kind = match error.kind() {
        ErrorKind::InvalidSubcommand => ContextKind::InvalidSubcommand,
        ErrorKind::UnknownArgument => ContextKind::InvalidArg,
        _ => return None,
    };
    let ContextValue::String(name) = error.get(kind)? else {
        return None;
    };
    let name = name.split('=').next().unwrap_or(name);
    absent_part(name)
}

fn absent_part(name: &str) -> Option<String> {
    let has = |feature: &&Feature| {
        let is_its = |parts: &[&str]| parts.iter().any(|part| OsStr::new(part) == name);
        is_its(feature.commands) || is_its(feature.options)
    };
    let having: Vec<&Feature> = FEATURES.iter().filter(has).collect();
    let first = having.first()?.name;
    if having.iter().any(|feature| feature.is_built_in) {
        return None;
    }
    let names: Vec<String> = having.iter().map(|it| format!("`{}`", it.name)).collect();
    Some(format!(
        "`{name}` is not in this binary: it is part of the feature {}\n\
         every complete package has it, and so has\n  \
         cargo install --locked --path crates/posthaste --features {first}",
        names.join(" and of ")
    ))
}

/// A line for the help that lists the absent features with their commands, or nothing if all are there.
pub(crate) fn absent_in_words() -> String {
    let absent = FEATURES.iter().filter(|feature| !feature.is_built_in);
    let absent: Vec<String> = absent
        .map(|feature| {
            let parts = match feature.commands {
                [] => feature.options,
                commands => commands,
            };
            format!("{} ({})", feature.name, parts.join(", "))
        })
        .collect();
    if absent.is_empty() {
        return String::new();
    }
    let list = absent.join(", ");
    format!("\nFeatures that are not in this binary: {list}.")
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use super::*;
    use crate::commands::Cli;

    /// Commands of every binary.
    const ALWAYS: [&str; 2] = ["completions", "man"];

    #[test]
    fn the_table_has_every_feature_of_the_manifest() {
        let manifest = include_str!("../Cargo.toml");
        let (_, section) = manifest.split_once("[features]\n").unwrap();
        let (section, _) = section.split_once("\n[").unwrap();
        let keys = section.lines().filter_map(|line| line.split_once(" = ["));
        let keys: Vec<&str> = keys.map(|(key, _)| key).collect();
        let names = FEATURES.iter().map(|feature| feature.name);
        let names: Vec<&str> = std::iter::once("default").chain(names).collect();
        assert_eq!(keys, names);
    }

    #[test]
    fn every_feature_has_a_command_or_an_option() {
        for feature in FEATURES {
            let parts = feature.commands.len() + feature.options.len();
            assert!(parts > 0, "{}", feature.name);
        }
    }

    #[test]
    fn the_commands_are_those_of_the_built_in_features() {
        let built_in = FEATURES.iter().filter(|feature| feature.is_built_in);
        let mut expected: Vec<&str> = built_in
            .flat_map(|feature| feature.commands)
            .copied()
            .collect();
        expected.extend(ALWAYS);
        expected.sort_unstable();
        expected.dedup();
        let command = Cli::command();
        let mut found: Vec<&str> = command
            .get_subcommands()
            .map(clap::Command::get_name)
            .collect();
        found.sort_unstable();
        assert_eq!(found, expected);
    }

    #[test]
    fn an_absent_command_names_its_feature() {
        let of_all = FEATURES.iter().flat_map(|feature| feature.commands);
        let command = Cli::command();
        for name in of_all.filter(|name| command.find_subcommand(name).is_none()) {
            for typed in [&["posthaste", name] as &[_], &["posthaste", "help", name]] {
                let error = Cli::try_parse_from(typed).err().unwrap();
                let text = absent(&error).unwrap();
                assert!(
                    text.starts_with(&format!("`{name}` is not in this binary")),
                    "{text}"
                );
                assert!(text.contains("cargo install"), "{text}");
            }
            let help = Cli::command().render_help().to_string();
            assert!(
                help.contains("Features that are not in this binary"),
                "{help}"
            );
        }
        let error = Cli::try_parse_from(["posthaste", "lood"]).err().unwrap();
        assert_eq!(absent(&error), None);
    }

    #[test]
    fn architecture_and_ci_list_the_features() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let read = |file: &str| std::fs::read_to_string(root.join(file)).unwrap();
        let architecture = read("ARCHITECTURE.md");
        for feature in FEATURES {
            let start = format!("| `{}` ", feature.name);
            let row = architecture.lines().find(|line| line.starts_with(&start));
            let row = row.unwrap_or_else(|| panic!("no row of {}", feature.name));
            for command in feature.commands {
                assert!(
                    row.contains(&format!("`{command}`")),
                    "{row} lacks {command}"
                );
            }
        }
        let names: Vec<&str> = FEATURES.iter().map(|feature| feature.name).collect();
        let matrix = format!("feature: [{}]", names.join(", "));
        assert!(
            read(".github/workflows/ci.yml").contains(&matrix),
            "{matrix}"
        );
    }

    #[cfg(all(feature = "load", not(feature = "agents")))]
    #[test]
    fn an_absent_option_names_its_feature() {
        for typed in ["--agents=3", "--nats"] {
            let error = Cli::try_parse_from(["posthaste", "load", "http://127.0.0.1/", typed]);
            let text = absent(&error.err().unwrap()).unwrap();
            assert!(text.contains("--features agents"), "{text}");
        }
    }
}
