//! Installation of posthaste: from a file, a checkout or a URL with its SHA-256, never by a registry's name.
//!
//! The project has registered no name, so anybody can register it, and one is taken by another program with the command
//! `posthaste`. The test reads commands in all tracked text, requirements of pip, and defaults and packages in YAML.

use crate::files::{Source, tracked};
use crate::{Finding, expect_none};

/// Distribution of another program with the command `posthaste`, split so that this file does not find itself.
const OTHER_PROGRAM: &str = concat!("posthaste", "-cli");

/// Programs that install by name, with the verbs that do.
const INSTALLERS: &[(&str, &[&str])] = &[
    ("pip", &["install", "download", "wheel"]),
    ("pip3", &["install", "download", "wheel"]),
    ("pipx", &["install", "run"]),
    ("uv", &["install", "run", "add"]),
    ("uvx", &[]),
    ("npm", &["install", "i", "exec", "add"]),
    ("npx", &[]),
    ("cargo", &["install", "binstall", "add"]),
    ("apt", &["install"]),
    ("apt-get", &["install"]),
    ("brew", &["install"]),
    ("docker", &["pull"]),
    ("podman", &["pull"]),
];

/// Keys of YAML whose value can be installed. The action checks URLs with its input `sha256`.
const KEYS: &[&str] = &["package:", "default:"];

/// Number of words in which the verb has to follow the program, as in `uv tool install`.
const VERB_WITHIN: usize = 3;

/// Options whose value is the package. The other arguments are a command and its own.
const PACKAGE_OPTIONS: &[&str] = &["--from", "--spec"];

/// Endings of files that are installed.
const FILES: &[&str] = &[".whl", ".deb", ".tar", ".gz", ".txt"];

const REMEDY: &str =
    "install from a file, a checkout or a URL with #sha256=; the project has registered no name";

#[test]
fn nothing_installs_by_a_registrys_name() {
    let findings: Vec<Finding> = tracked().iter().flat_map(findings).collect();
    expect_none(&findings);
}

fn findings(source: &Source) -> Vec<Finding> {
    let file = source.path.rsplit('/').next().unwrap_or_default();
    let is_list = file.starts_with("requirements") && file.ends_with(".txt");
    let has_yaml = [".yml", ".yaml", ".md"]
        .iter()
        .any(|end| file.ends_with(end));
    let mut findings = Vec::new();
    for (number, line) in commands(source) {
        let mut found = |violation: String| {
            findings.push(Finding::new(source.line(number), violation, REMEDY));
        };
        if normal(&line).contains(OTHER_PROGRAM) {
            found(format!("{OTHER_PROGRAM} is another program"));
        }
        if !line.to_lowercase().contains("posthaste") {
            continue;
        }
        let tokens: Vec<&str> = line.split_whitespace().collect();
        let installed = if is_list {
            by_name(&tokens)
        } else {
            installed_by_name(&tokens)
        };
        let value = value_by_name(&tokens).filter(|_| has_yaml);
        if let Some(name) = installed.or(value) {
            found(format!("installs {name}"));
        }
    }
    findings
}

/// Lines with their numbers. A line that ends with a backslash is joined to the next.
fn commands(source: &Source) -> Vec<(usize, String)> {
    let mut commands: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (number, line) in source.lines() {
        let (text, is_open) = match line.strip_suffix('\\') {
            Some(text) => (text, true),
            None => (line, false),
        };
        match commands.last_mut() {
            Some((_, command)) if goes_on => command.push_str(text),
            _ => commands.push((number, text.to_owned())),
        }
        goes_on = is_open;
    }
    commands
}

/// The name or URL that a line of words installs from a registry or without a checksum.
fn installed_by_name(tokens: &[&str]) -> Option<String> {
    (0..tokens.len()).find_map(|at| {
        let program = bare(tokens[at]).rsplit('/').next()?;
        let (_, verbs) = INSTALLERS.iter().find(|(name, _)| *name == program)?;
        let mut arguments = &tokens[at + 1..];
        if !verbs.is_empty() {
            let mut first = arguments.iter().take(VERB_WITHIN);
            let verb = first.position(|word| verbs.contains(&bare(word)))?;
            arguments = &arguments[verb + 1..];
        }
        by_name(package(command(arguments)))
    })
}

/// The name that a line of YAML gives as a package.
fn value_by_name(tokens: &[&str]) -> Option<String> {
    match tokens {
        [key, value, ..] if KEYS.contains(key) && is_our_name(bare(value)) => {
            Some((*value).to_owned())
        }
        _ => None,
    }
}

/// The arguments up to the end of the command.
fn command<'a>(arguments: &'a [&'a str]) -> &'a [&'a str] {
    let mut before = arguments.iter();
    let end = before.position(|word| word.starts_with(['#', '|', '&', ';']));
    let mut last = arguments.iter();
    let last = last.position(|word| word.ends_with(['`', ';']));
    let ends = [end, last.map(|last| last + 1)];
    let end = ends.into_iter().flatten().min();
    &arguments[..end.unwrap_or(arguments.len())]
}

/// The value of an option that names the package, or all arguments without such an option.
fn package<'a>(arguments: &'a [&'a str]) -> &'a [&'a str] {
    let mut options = arguments.iter();
    let Some(option) = options.position(|word| PACKAGE_OPTIONS.contains(word)) else {
        return arguments;
    };
    let value = &arguments[option + 1..];
    // A requirement `NAME @ URL` is three words.
    let length = match value.get(1) {
        Some(&"@") => 3,
        _ => 1,
    };
    &value[..length.min(value.len())]
}

/// The first word that is a name of posthaste, or a URL of it without a checksum.
fn by_name(tokens: &[&str]) -> Option<String> {
    (0..tokens.len()).find_map(|at| {
        let word = bare(tokens[at]);
        let is_refused = if word.contains("://") {
            let is_ours = word.contains("posthaste") || at > 0 && tokens[at - 1] == "@";
            is_ours && !word.contains("#sha256=")
        } else {
            is_our_name(word) && tokens.get(at + 1) != Some(&"@")
        };
        is_refused.then(|| word.to_owned())
    })
}

/// True for `posthaste` and what begins with `posthaste-`, with or without a version, and not as a file.
fn is_our_name(word: &str) -> bool {
    let is_file = word.contains('/') || FILES.iter().any(|ending| word.ends_with(ending));
    let name: String = normal(word)
        .chars()
        .take_while(|character| character.is_ascii_alphanumeric() || *character == '-')
        .collect();
    !is_file && (name == "posthaste" || name.starts_with("posthaste-"))
}

/// A name as a Python registry compares it.
fn normal(text: &str) -> String {
    text.to_lowercase().replace(['_', '.'], "-")
}

/// A word without quotes and punctuation around it.
fn bare(word: &str) -> &str {
    word.trim_matches(['"', '\'', '`', '(', ')', '[', ']', ',', ';', '.'])
}

#[test]
fn commands_that_install_by_name_are_found() {
    let refused = [
        "pip install NAME",
        "`pip install NAME-http`, then",
        "python3 -m pip install --quiet 'NAME_HTTP==0.1.0'",
        "\"$RUNNER_TEMP/venv/bin/pip\" install NAME.http",
        "pip install NAME-http @ https://example.org/NAME_http.whl",
        "pip install https://example.org/NAME_http.whl",
        "pipx run --spec NAME-http NAME load",
        "run: uvx --from NAME-http NAME load http://127.0.0.1:8080/",
        "uvx NAME load",
        "uv tool install NAME",
        "npx NAME",
        "cargo install --locked NAME",
        "cargo install --git https://example.org/NAME NAME",
        "sudo apt-get install NAME",
        "    default: NAME-http",
        "          package: NAME-http==0.1.0",
    ];
    let accepted = [
        "pip install --no-index ./NAME_http-0.1.0-py3-none-any.whl",
        "pip install --no-index NAME_http-0.1.0-py3-none-any.whl    # NAME",
        "pip install \"NAME-http @ https://example.org/NAME_http.whl#sha256=00\"",
        "uvx --from ./FILE NAME load http://127.0.0.1:8080/",
        "cargo install --locked --path crates/NAME && NAME doctor",
        "`pip install FILE` installs NAME",
        "apt-get install ./NAME_0.1.0-1_amd64.deb; NAME doctor",
        "npx autocannon http://127.0.0.1:8080/    # NAME",
        "podman run --rm NAME load http://127.0.0.1:8080/",
        "          package: https://example.org/NAME_http.whl",
    ];
    let installs = |line: &str| {
        let line = line.replace("NAME", "posthaste");
        let tokens: Vec<&str> = line.split_whitespace().collect();
        installed_by_name(&tokens).is_some() || value_by_name(&tokens).is_some()
    };
    for line in refused {
        assert!(installs(line), "{line}");
    }
    for line in accepted {
        assert!(!installs(line), "{line}");
    }
}
