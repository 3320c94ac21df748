//! Link options with lists or ranges: `--bandwidth 160kbit,300kbit --delay 5ms..200ms`.
//!
//! They are the options of `path`, with the same help. Each value of a list is parsed as that option's own, so every
//! property of a link can be swept. Every combination is one path.

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use posthaste_sim::sweep::{self, SweepError, SweptOption, expand};

use crate::commands::Failure;
use crate::commands::path::{self, PathArgs};

/// The values given for each option, in the order of the help.
#[derive(Clone, Debug, Default)]
pub(super) struct SweptPath {
    given: Vec<SweptOption>,
}

/// The path of one combination, and the values that differ between combinations.
#[derive(Clone, Debug)]
pub(super) struct LabelledPath {
    pub(super) path: PathArgs,
    pub(super) labels: Vec<(String, String)>,
}

/// A list, kept as text. The option's possible values still appear in its help.
#[derive(Clone)]
struct ValueList(Vec<PossibleValue>);

impl TypedValueParser for ValueList {
    type Value = Vec<String>;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<Self::Value, clap::Error> {
        let text = StringValueParser::new().parse_ref(command, arg, value)?;
        expand(&text).map_err(|error| refusal(command, arg, &error))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let any = !self.0.is_empty();
        any.then(|| Box::new(self.0.iter().cloned()) as Box<dyn Iterator<Item = PossibleValue>>)
    }
}

fn refusal(command: &Command, arg: Option<&Arg>, error: &SweepError) -> clap::Error {
    let name = arg.map(ToString::to_string).unwrap_or_default();
    clap::Error::raw(
        clap::error::ErrorKind::ValueValidation,
        format!("{name}: {error}\n"),
    )
    .with_cmd(command)
}

fn options() -> Vec<Arg> {
    let command = PathArgs::augment_args(Command::new("path"));
    command.get_arguments().cloned().collect()
}

impl Args for SweptPath {
    fn augment_args(command: Command) -> Command {
        let command = PathArgs::augment_args(command);
        options().into_iter().fold(command, |command, option| {
            if !option.get_action().takes_values() {
                return command;
            }
            let list = ValueList(option.get_possible_values());
            command.mut_arg(option.get_id(), |arg| {
                arg.value_parser(list).allow_hyphen_values(true)
            })
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SweptPath {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = options().into_iter().filter_map(|option| {
            let id = option.get_id().as_str();
            let values = if option.get_action().takes_values() {
                Some(matches.get_one::<Vec<String>>(id)?.clone())
            } else if matches.get_flag(id) {
                None
            } else {
                return None;
            };
            let name = option.get_long().unwrap_or(id).to_owned();
            Some(SweptOption { name, values })
        });
        Ok(Self {
            given: given.collect(),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl SweptPath {
    /// The profile, if all combinations have the same.
    pub(super) fn profile(&self) -> Option<&str> {
        let mut given = self.given.iter();
        let given = given.find(|given| given.name == "profile")?;
        match given.values.as_deref() {
            Some([profile]) => Some(profile),
            _ => None,
        }
    }

    /// Every combination. The last option varies fastest.
    pub(super) fn combinations(&self) -> Result<Vec<LabelledPath>, Failure> {
        let all = sweep::combinations(&self.given).map_err(Failure::usage)?;
        let labelled = all.iter().map(|combination| {
            let options = combination.texts();
            let path = path::typed(options.iter().map(String::as_str));
            Ok(LabelledPath {
                path: path.map_err(Failure::Usage)?,
                labels: combination.labels(),
            })
        });
        labelled.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct SweepLine {
        #[command(flatten)]
        path: SweptPath,
    }

    fn combinations(options: &[&str]) -> Result<Vec<LabelledPath>, String> {
        use clap::Parser as _;
        let typed = SweepLine::try_parse_from([&["simulate"], options].concat());
        let typed = typed.map_err(|error| error.to_string())?;
        let combinations = typed.path.combinations();
        combinations.map_err(|failure| failure.to_string())
    }

    #[test]
    fn every_combination_is_a_path() {
        let all = combinations(&[
            "--bandwidth",
            "160kbit,300kbit",
            "--delay",
            "5ms,10ms",
            "--overtake",
        ]);
        let labels: Vec<String> = all
            .unwrap()
            .iter()
            .map(|one| {
                one.labels
                    .iter()
                    .map(|(_, value)| value.as_str())
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .collect();
        assert_eq!(
            labels,
            ["160kbit 5ms", "160kbit 10ms", "300kbit 5ms", "300kbit 10ms"]
        );
        let single = combinations(&["--loss", "2%", "--profile", "gprs"]).unwrap();
        assert!(single.len() == 1 && single[0].labels.is_empty());
    }

    #[test]
    fn impossible_links_are_refused_by_name() {
        for (options, remedy) in [
            (["--bandwidth", "0kbit"], "from 1bit"),
            (["--delay", "-5ms"], "negative"),
            (["--loss", "120%"], "a loss"),
            (["--profile", "gprs,4g"], "4g"),
        ] {
            let error = combinations(&options).unwrap_err();
            assert!(
                error.contains(options[0]) && error.contains(remedy),
                "{error}"
            );
        }
    }
}
