//! Options of other programs that people type from habit: one table with the option of this program for each.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Normalised Damerau-Levenshtein similarity of two names, 1 for equal, below which one is no guess for the other.
/// Examples: `rat` and `rate` 0.75, `assertion` and `assert` 0.67, `proxy` and `proto` 0.6, `vus` and `cpus` 0.5.
const ALIKE: f64 = 0.65;

/// Names of an option in other programs, and what to write here.
type Habit = (&'static [&'static str], &'static str);

/// Habits from curl, wrk, wrk2, oha, hey, k6, vegeta and h2load.
const OF_LOAD: &[Habit] = &[
    (&["-X", "--request"], "write --method POST"),
    (
        &["-m"],
        "write --method POST, or --timeout 30s for the limit of curl",
    ),
    (&["-k", "--skip-verify"], "write --insecure"),
    (&["-u"], "write --user NAME:PASSWORD"),
    (
        &["-L", "--location", "--redirect"],
        "redirects are not followed: load the address that they lead to",
    ),
    (
        &["-x", "--proxy"],
        "no proxy is used: requests go to the server itself",
    ),
    (
        &["-n", "--requests", "--iterations"],
        "a run ends after a time, not after a number of requests: write --duration 10s",
    ),
    (
        &["-q", "-R", "--rps", "--qps", "--query-per-second"],
        "write --rate 500/s, the rate of all requests together",
    ),
    (&["--vus", "--users"], "write --clients 20"),
    (
        &["-t"],
        "write --threads 2 for event loops, --clients 20 for clients",
    ),
    (
        &["--latency", "--latency-correction"],
        "the report has response times from the due time of each request without an option",
    ),
    (
        &["-D", "--data-raw", "--data-binary", "--json-body"],
        "write --body FILE",
    ),
    (&["-T"], "write --header 'Content-Type: application/json'"),
    (
        &["-s", "--script"],
        "write --mix FILE for several requests, --data FILE.csv for values",
    ),
    (
        &["-o", "--output"],
        "write --out DIR, or --json for one document",
    ),
    (&["--cacert"], "write --ca FILE"),
    (&["-E"], "write --cert FILE --key FILE"),
    (&["--http1.1"], "write --http 1.1"),
    (&["--http2", "--h2"], "write --http 2"),
    (&["--http3", "--h3"], "write --http 3"),
    (
        &["--disable-keepalive", "--no-keepalive"],
        "write --connection new",
    ),
    (&["--max-time"], "write --timeout 30s"),
];

/// Habits from tc, Toxiproxy and comcast.
const OF_NET: &[Habit] = &[
    (&["--rate", "--bw"], "write --bandwidth 1Mbit"),
    (&["--latency", "--lat"], "write --delay 50ms"),
    (&["--packet-loss"], "write --loss 1%"),
    (&["--limit"], "write --queue 100"),
];

/// Improves the error of an unknown option: names this program's option for a known habit, and drops a guess that is
/// not similar. `arguments` are those of the command line.
pub(crate) fn advise(error: &mut clap::Error, command: &str, arguments: &[String]) {
    if command == "load" && has_body_of_curl(arguments) {
        let advice = "-d is the duration; write --body FILE for a body";
        let advice = ContextValue::StyledStrs(vec![advice.into()]);
        error.insert(ContextKind::Suggested, advice);
    }
    if error.kind() != ErrorKind::UnknownArgument {
        return;
    }
    let Some(ContextValue::String(given)) = error.get(ContextKind::InvalidArg) else {
        return;
    };
    let name = given.split('=').next().unwrap_or(given);
    if let Some(advice) = advice(command, name) {
        let advice = ContextValue::StyledStrs(vec![advice.into()]);
        error.insert(ContextKind::Suggested, advice);
    } else if is_alike(name, error.get(ContextKind::SuggestedArg)) {
        return;
    }
    error.remove(ContextKind::SuggestedArg);
    // It shows the guess.
    error.remove(ContextKind::Usage);
}

fn advice(command: &str, name: &str) -> Option<&'static str> {
    let habits = match command {
        "load" => OF_LOAD,
        "net" if !name.starts_with('-') => {
            return Some("write the command after --: posthaste net --profile 3g -- curl URL");
        }
        "net" => OF_NET,
        _ => return None,
    };
    let habit = habits.iter().find(|(names, _)| names.contains(&name));
    habit.map(|(_, advice)| *advice)
}

/// True if a body is given as in curl: `-d @FILE` or `-d name=value`.
fn has_body_of_curl(arguments: &[String]) -> bool {
    arguments.windows(2).any(|pair| {
        let is_body = pair[1].starts_with('@') || pair[1].contains('=');
        pair[0] == "-d" && is_body
    })
}

fn is_alike(name: &str, guess: Option<&ContextValue>) -> bool {
    match guess {
        Some(ContextValue::String(guess)) => {
            let [name, guess] = [name, guess].map(|name| name.trim_start_matches('-'));
            strsim::normalized_damerau_levenshtein(name, guess) >= ALIKE
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::commands::Cli;

    /// An option of this program is not in the table, and each that the table advises exists.
    #[test]
    fn habits_hide_no_option_and_advise_existing_ones() {
        let program = Cli::command();
        for (command, habits) in [("load", OF_LOAD), ("net", OF_NET)] {
            let Some(command) = program.find_subcommand(command) else {
                continue;
            };
            let own: Vec<String> = command
                .get_arguments()
                .flat_map(|option| {
                    let long = option.get_long().map(|long| format!("--{long}"));
                    let short = option.get_short_and_visible_aliases().unwrap_or_default();
                    long.into_iter()
                        .chain(short.into_iter().map(|short| format!("-{short}")))
                })
                .collect();
            for (names, advice) in habits {
                for name in *names {
                    assert!(!own.contains(&(*name).to_owned()), "{name}");
                }
                let advised = advice
                    .split([' ', ',', ':'])
                    .filter(|word| word.starts_with("--"));
                for option in advised {
                    assert!(own.contains(&option.to_owned()), "{option}");
                }
            }
        }
    }
}
