//! Link options with lists or ranges: `--bandwidth 160kbit,300kbit --delay 5ms..200ms`.
//!
//! They are the options of `path`, with the same help. Each value of a list is parsed as that option's own, so every
//! property of a link can be swept. Every combination is one path.

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use posthaste_units::{BitRate, Ratio, Span};

use crate::commands::path::{self, PathArgs};

/// Maximum number of combinations. More are a mistake.
pub(super) const MOST: usize = 100_000;
/// Maximum number of steps in a range.
const MOST_STEPS: usize = 1000;

/// The values given for each option, in the order of the help.
#[derive(Clone, Debug, Default)]
pub(super) struct SweptPath {
    given: Vec<Given>,
}

#[derive(Clone, Debug)]
struct Given {
    option: String,
    /// None for an option without a value.
    values: Option<Vec<String>>,
}

/// An option and one of its values.
type Choice<'a> = (&'a Given, Option<&'a str>);

/// One combination: the path, and the values that differ between combinations.
#[derive(Clone, Debug)]
pub(super) struct Combination {
    pub(super) path: PathArgs,
    pub(super) labels: Vec<(String, String)>,
}

/// A list, kept as text. The option's possible values still appear in its help.
#[derive(Clone)]
struct Listed(Vec<PossibleValue>);

impl TypedValueParser for Listed {
    type Value = Vec<String>;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<Self::Value, clap::Error> {
        let text = StringValueParser::new().parse_ref(command, arg, value)?;
        expand(&text).map_err(|why| refusal(command, arg, &why))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let any = !self.0.is_empty();
        any.then(|| Box::new(self.0.iter().cloned()) as Box<dyn Iterator<Item = PossibleValue>>)
    }
}

fn refusal(command: &Command, arg: Option<&Arg>, why: &str) -> clap::Error {
    let name = arg.map(ToString::to_string).unwrap_or_default();
    clap::Error::raw(
        clap::error::ErrorKind::ValueValidation,
        format!("{name}: {why}\n"),
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
            let list = Listed(option.get_possible_values());
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
            let values = match option.get_action().takes_values() {
                true => Some(matches.get_one::<Vec<String>>(id)?.clone()),
                false if matches.get_flag(id) => None,
                false => return None,
            };
            let option = option.get_long().unwrap_or(id).to_owned();
            Some(Given { option, values })
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
        let given = given.find(|given| given.option == "profile")?;
        match given.values.as_deref() {
            Some([profile]) => Some(profile),
            _ => None,
        }
    }

    /// Every combination. The last option varies fastest.
    pub(super) fn combinations(&self) -> Result<Vec<Combination>, String> {
        let count = |given: &Given| given.values.as_ref().map_or(1, Vec::len);
        let counts = self.given.iter().map(count);
        let all = counts.fold(1usize, usize::saturating_mul);
        if all > MOST {
            return Err(format!(
                "{all} combinations: at most {MOST} are possible; leave values out"
            ));
        }
        let mut chosen: Vec<Vec<Choice<'_>>> = vec![Vec::new()];
        for given in &self.given {
            let values: Vec<Option<&str>> = match &given.values {
                Some(values) => values.iter().map(|value| Some(value.as_str())).collect(),
                None => vec![None],
            };
            let mut longer = Vec::with_capacity(chosen.len() * values.len());
            for before in &chosen {
                for value in &values {
                    let mut choices = before.clone();
                    choices.push((given, *value));
                    longer.push(choices);
                }
            }
            chosen = longer;
        }
        chosen.iter().map(|choices| combination(choices)).collect()
    }
}

fn combination(given: &[Choice<'_>]) -> Result<Combination, String> {
    let words: Vec<String> = given
        .iter()
        .map(|(given, value)| match value {
            Some(value) => format!("--{}={value}", given.option),
            None => format!("--{}", given.option),
        })
        .collect();
    let labels = given.iter().filter_map(|(given, value)| {
        let swept = given.values.as_ref().is_some_and(|values| values.len() > 1);
        let value = value.filter(|_| swept)?;
        Some((given.option.clone(), value.to_owned()))
    });
    Ok(Combination {
        path: path::typed(words.iter().map(String::as_str))?,
        labels: labels.collect(),
    })
}

/// The values of a list, with expanded ranges.
pub(super) fn expand(text: &str) -> Result<Vec<String>, String> {
    let mut values = Vec::new();
    for item in text.split(',').map(str::trim) {
        match item.split_once("..") {
            Some((from, rest)) => values.extend(range(item, from, rest)?),
            None if item.is_empty() => return Err("a value is missing in the list".to_owned()),
            None => values.push(item.to_owned()),
        }
    }
    Ok(values)
}

/// `A..B`, or `A..B:N` for N values.
fn range(item: &str, from: &str, rest: &str) -> Result<Vec<String>, String> {
    let (to, steps) = match rest.split_once(':') {
        Some((to, steps)) => {
            let steps = steps.parse().ok();
            let steps = steps.filter(|steps| (2..=MOST_STEPS).contains(steps));
            let wrong = || format!("{item:?}: write A..B:N with N from 2 to {MOST_STEPS}");
            (to, Some(steps.ok_or_else(wrong)?))
        }
        None => (rest, None),
    };
    let places = |from: f64, to: f64| spaced(item, from, to, steps);
    if let (Ok(from), Ok(to)) = (from.parse::<u32>(), to.parse::<u32>()) {
        let steps = steps.or(Some(to.saturating_sub(from) as usize + 1));
        let values = spaced(item, f64::from(from), f64::from(to), steps)?;
        Ok(values.iter().map(|value| format!("{value:.0}")).collect())
    } else if let (Ok(from), Ok(to)) = (from.parse::<Span>(), to.parse::<Span>()) {
        let values = places(from.as_secs_f64(), to.as_secs_f64())?;
        let spans = values.into_iter().map(Span::from_secs_f64);
        Ok(spans.map(|span| span.to_string()).collect())
    } else if let (Ok(from), Ok(to)) = (from.parse::<BitRate>(), to.parse::<BitRate>()) {
        let values = places(from.as_bits() as f64, to.as_bits() as f64)?;
        let rates = values.into_iter();
        let rates = rates.filter_map(|bits| BitRate::per_second(bits.round() as u64));
        Ok(rates.map(|rate| rate.to_string()).collect())
    } else if let (Ok(from), Ok(to)) = (from.parse::<Ratio>(), to.parse::<Ratio>()) {
        let values = places(from.get(), to.get())?;
        let shares = values.into_iter().filter_map(Ratio::new);
        Ok(shares.map(|share| share.to_string()).collect())
    } else {
        Err(format!(
            "{item:?}: write a range with both ends alike: 5ms..200ms, 160kbit..10Mbit, 0%..5%:6 or 1..12"
        ))
    }
}

/// `steps` values at equal distances, or the ends and the values 1, 2, 5, 10, 20, 50... between them.
fn spaced(item: &str, from: f64, to: f64, steps: Option<usize>) -> Result<Vec<f64>, String> {
    if from >= to {
        return Err(format!("{item:?}: the first end is not below the second"));
    }
    match steps {
        Some(steps) if steps > MOST_STEPS => Err(format!(
            "{item:?} makes {steps} values: at most {MOST_STEPS} are possible"
        )),
        Some(steps) => {
            let gap = (to - from) / (steps - 1) as f64;
            Ok((0..steps).map(|n| from + gap * n as f64).collect())
        }
        None if from == 0.0 => Err(format!(
            "{item:?}: a range from zero needs a number of values, as in A..B:6"
        )),
        None => {
            let first = from.log10().floor() as i32;
            let decades = first..=to.log10().ceil() as i32;
            let marks = decades.flat_map(|decade| [1.0, 2.0, 5.0].map(|m| m * 10f64.powi(decade)));
            // A mark that equals an end except for rounding is that end.
            let within = marks.filter(|mark| *mark > from * 1.000_001 && *mark < to * 0.999_999);
            Ok([from].into_iter().chain(within).chain([to]).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Typed {
        #[command(flatten)]
        path: SweptPath,
    }

    fn combinations(words: &[&str]) -> Result<Vec<Combination>, String> {
        use clap::Parser as _;
        let typed = Typed::try_parse_from([&["simulate"], words].concat());
        let typed = typed.map_err(|error| error.to_string())?;
        typed.path.combinations()
    }

    #[test]
    fn lists_and_ranges_are_spelt_out() {
        let cases = [
            ("300kbit", "300kbit"),
            ("160kbit,300kbit", "160kbit 300kbit"),
            ("5ms..200ms", "5ms 10ms 20ms 50ms 100ms 200ms"),
            (
                "160kbit..10Mbit",
                "160kbit 200kbit 500kbit 1Mbit 2Mbit 5Mbit 10Mbit",
            ),
            ("0%..5%:6", "0% 1% 2% 3% 4% 5%"),
            ("0,8..11", "0 8 9 10 11"),
            ("10ms..20ms:3", "10ms 15ms 20ms"),
        ];
        for (text, values) in cases {
            assert_eq!(expand(text).unwrap().join(" "), values, "{text}");
        }
    }

    #[test]
    fn ranges_are_refused_with_the_remedy() {
        let cases = [
            ("5ms..10kbit", "both ends alike"),
            ("200ms..5ms", "not below"),
            ("0ms..5ms", "A..B:6"),
            ("1ms..5ms:1", "from 2 to 1000"),
            ("0..5000", "at most 1000"),
            ("5ms,", "missing"),
        ];
        for (text, remedy) in cases {
            let error = expand(text).unwrap_err();
            assert!(error.contains(remedy), "{text}: {error}");
        }
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
    fn what_no_link_can_do_is_refused_by_name() {
        for (words, remedy) in [
            (["--bandwidth", "0kbit"], "from 1bit"),
            (["--delay", "-5ms"], "negative"),
            (["--loss", "120%"], "a loss"),
            (["--profile", "gprs,4g"], "4g"),
        ] {
            let error = combinations(&words).unwrap_err();
            assert!(
                error.contains(words[0]) && error.contains(remedy),
                "{error}"
            );
        }
    }
}
