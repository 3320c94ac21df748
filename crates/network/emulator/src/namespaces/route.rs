//! Route options that set TCP parameters, in the syntax of `ip route`: `initcwnd 3 rto_min 200ms congctl cubic`.
//!
//! An ordinary user sets TCP in a network namespace through routes. There is no sysctl for the congestion control of a
//! child namespace, and none at all for the initial window and the minimum timeout.

use std::fmt;
use std::str::FromStr;

use linux_raw_sys::netlink::{
    RTAX_ADVMSS, RTAX_CC_ALGO, RTAX_HOPLIMIT, RTAX_INITCWND, RTAX_INITRWND, RTAX_LOCK, RTAX_MTU,
    RTAX_QUICKACK, RTAX_RTO_MIN, RTAX_WINDOW,
};
use posthaste_units::Span;
use thiserror::Error;

/// The options of a route. The default leaves everything to the kernel.
///
/// Parsed from pairs of words as in `ip route`: `initcwnd`, `initrwnd`, `window`, `advmss`, `mtu`, `hoplimit` and
/// `quickack` with a number, `rto_min` with a time, `congctl` with a name. A later pair replaces an earlier one.
///
/// The kernel ignores `cwnd`, `ssthresh` and `reordering` of a route. It takes them from its memory of a host
/// (`tcp_init_metrics`), and in these namespaces that is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteOptions(Vec<(&'static str, OptionValue)>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum OptionValue {
    Number(u32),
    Time(Span),
    Name(String),
}

/// Error in the options of a route.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RouteError {
    /// A word that is not an option.
    #[error("{word:?} is no option of a route here; there are {}", names())]
    Unknown {
        /// The word.
        word: String,
    },
    /// An option of `ip route` without effect.
    #[error("{word} of a route changes nothing in today's kernels; {remedy}")]
    NoEffect {
        /// The option.
        word: &'static str,
        /// An option with this effect.
        remedy: &'static str,
    },
    /// An option without its value, or with an invalid one.
    #[error("{option} needs {wanted}, for example `{option} {example}`")]
    Value {
        /// The option.
        option: &'static str,
        /// Form of the value.
        wanted: &'static str,
        /// A valid value.
        example: &'static str,
    },
}

/// Syntax of an option's value.
#[derive(Clone, Copy)]
enum ValueSyntax {
    Number,
    Time,
    Name,
}

/// Options, with their kind of metric in linux/rtnetlink.h.
const OPTIONS: &[(&str, u32, ValueSyntax)] = &[
    ("advmss", RTAX_ADVMSS as u32, ValueSyntax::Number),
    ("congctl", RTAX_CC_ALGO as u32, ValueSyntax::Name),
    ("hoplimit", RTAX_HOPLIMIT as u32, ValueSyntax::Number),
    ("initcwnd", RTAX_INITCWND as u32, ValueSyntax::Number),
    ("initrwnd", RTAX_INITRWND as u32, ValueSyntax::Number),
    ("mtu", RTAX_MTU as u32, ValueSyntax::Number),
    ("quickack", RTAX_QUICKACK as u32, ValueSyntax::Number),
    ("rto_min", RTAX_RTO_MIN as u32, ValueSyntax::Time),
    ("window", RTAX_WINDOW as u32, ValueSyntax::Number),
];

/// A metric of a route, as the kernel reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RouteMetric {
    pub(crate) kind: u32,
    pub(crate) value: Vec<u8>,
}

/// Options that the kernel ignores, with their replacement.
const WITHOUT_EFFECT: [(&str, &str); 3] = [
    (
        "cwnd",
        "`window N` at the other end, in bytes, limits what is under way",
    ),
    ("reordering", "use --sysctl net.ipv4.tcp_reordering=N"),
    ("ssthresh", "nothing sets it from outside"),
];

fn names() -> String {
    let names: Vec<&str> = OPTIONS.iter().map(|(name, ..)| *name).collect();
    names.join(", ")
}

impl RouteOptions {
    /// These options, replaced or extended by those of `over`.
    pub fn with(mut self, over: &Self) -> Self {
        for (name, value) in &over.0 {
            self.set(name, value.clone());
        }
        self
    }

    fn set(&mut self, name: &'static str, value: OptionValue) {
        self.0.retain(|(other, _)| *other != name);
        self.0.push((name, value));
    }

    /// The options as metrics for the kernel.
    pub(crate) fn metrics(&self) -> Vec<RouteMetric> {
        let kind = |wanted: &str| {
            let option = OPTIONS.iter().find(|(name, ..)| *name == wanted);
            option.expect("only options of the table are set").1
        };
        let metric = |(name, value): &(&'static str, OptionValue)| match value {
            OptionValue::Number(number) => RouteMetric::number(kind(name), *number),
            OptionValue::Time(span) => RouteMetric::number(kind(name), whole_millis(*span)),
            OptionValue::Name(text) => RouteMetric {
                kind: kind(name),
                value: [text.as_bytes(), &[0]].concat(),
            },
        };
        let kinds = self.0.iter().map(|(name, _)| kind(name));
        let locks = kinds.filter(|kind| LOCKED.contains(kind));
        let locks = locks.fold(0, |locks, kind| locks | 1 << kind);
        let lock = (locks != 0).then(|| RouteMetric::number(RTAX_LOCK as u32, locks));
        self.0.iter().map(metric).chain(lock).collect()
    }
}

impl RouteMetric {
    fn number(kind: u32, number: u32) -> Self {
        let value = number.to_ne_bytes().to_vec();
        Self { kind, value }
    }
}

/// Metrics that the kernel ignores unless they are locked (RTAX_LOCK in linux/rtnetlink.h; net/ipv4/tcp_output.c and
/// tcp_metrics.c check the lock).
const LOCKED: [u32; 1] = [RTAX_RTO_MIN as u32];

/// The kernel counts the minimum timeout in milliseconds.
fn whole_millis(span: Span) -> u32 {
    u32::try_from(span.as_nanos().div_ceil(1_000_000)).unwrap_or(u32::MAX)
}

impl FromStr for RouteOptions {
    type Err = RouteError;

    fn from_str(text: &str) -> Result<Self, RouteError> {
        let mut options = Self::default();
        let mut parts = text.split_whitespace();
        while let Some(word) = parts.next() {
            let without_effect = WITHOUT_EFFECT.into_iter().find(|(name, _)| *name == word);
            if let Some((word, remedy)) = without_effect {
                return Err(RouteError::NoEffect { word, remedy });
            }
            let &(name, _, form) =
                OPTIONS
                    .iter()
                    .find(|(name, ..)| *name == word)
                    .ok_or_else(|| RouteError::Unknown {
                        word: word.to_owned(),
                    })?;
            let value = parts.next();
            let read = match form {
                ValueSyntax::Number => value
                    .and_then(|text| text.parse().ok())
                    .map(OptionValue::Number)
                    .ok_or(("a whole number", "3")),
                ValueSyntax::Time => value
                    .and_then(|text| text.parse().ok())
                    .map(OptionValue::Time)
                    .ok_or(("a time", "200ms")),
                // The kernel's TCP_CA_NAME_MAX, less the final zero.
                ValueSyntax::Name => value
                    .filter(|text| text.len() < 16)
                    .map(|text| OptionValue::Name(text.to_owned()))
                    .ok_or(("the name of a congestion control", "cubic")),
            };
            let value = read.map_err(|(wanted, example)| RouteError::Value {
                option: name,
                wanted,
                example,
            })?;
            options.set(name, value);
        }
        Ok(options)
    }
}

impl fmt::Display for RouteOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.0.iter().enumerate() {
            let gap = if index == 0 { "" } else { " " };
            match value {
                OptionValue::Number(number) => write!(f, "{gap}{name} {number}")?,
                OptionValue::Time(span) => write!(f, "{gap}{name} {span}")?,
                OptionValue::Name(text) => write!(f, "{gap}{name} {text}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<RouteOptions, RouteError> {
        text.parse()
    }

    #[test]
    fn options_are_read_as_ip_route_writes_them() {
        let text = "initcwnd 3 rto_min 200ms congctl cubic";
        let options = read(text).unwrap();
        assert_eq!(options.to_string(), text);
        assert_eq!(
            options.metrics(),
            [
                RouteMetric::number(11, 3),
                RouteMetric::number(13, 200),
                RouteMetric {
                    kind: 16,
                    value: b"cubic\0".to_vec(),
                },
                RouteMetric::number(1, 1 << 13),
            ]
        );
        assert_eq!(read("initcwnd 3").unwrap().metrics().len(), 1);
        let over = options.with(&read("congctl reno quickack 1").unwrap());
        assert_eq!(
            over.to_string(),
            "initcwnd 3 rto_min 200ms congctl reno quickack 1"
        );
    }

    #[test]
    fn refusals_name_the_remedy() {
        let unknown = read("initcwind 3").unwrap_err().to_string();
        assert!(
            unknown.contains("initcwind") && unknown.contains("initcwnd"),
            "{unknown}"
        );
        let idle = read("initcwnd 3 reordering 12").unwrap_err().to_string();
        assert!(idle.contains("tcp_reordering"), "{idle}");
        for wrong in [
            "initcwnd",
            "initcwnd many",
            "rto_min 200",
            "congctl averyveryverylongname",
        ] {
            let refused = read(wrong).unwrap_err().to_string();
            assert!(refused.contains("for example"), "{refused}");
        }
    }
}
