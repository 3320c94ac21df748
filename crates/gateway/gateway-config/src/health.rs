//! `[route.health]`: health checks of upstreams, and the results in a row that change the use of an address.

use posthaste_units::Span;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::names::check_path;

/// Lower bound on the interval of health checks, and on their timeout.
const MIN_CHECK_INTERVAL: Span = Span::from_millis(10);

/// Health of the upstreams.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Health {
    /// Path for health checks. Without it, failed connections count. Starts with `/`.
    pub path: Option<String>,
    /// Statuses of replies that pass a check, as single ones (`"204"`) and ranges (`"200-299"`), from 100 to 599.
    #[schemars(with = "Vec<String>", length(min = 1), extend("default" = ["200-399"]))]
    pub statuses: StatusRanges,
    /// Interval and timeout of checks. At least 10 ms.
    pub every: Span,
    /// Consecutive failures, of checks or connections, that take an address of an upstream out of use.
    #[schemars(range(min = 1))]
    pub failures: u32,
    /// Consecutive passed checks that return such an address to use. Only with `path`.
    #[schemars(range(min = 1))]
    pub successes: u32,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            path: None,
            statuses: StatusRanges::default(),
            every: Span::from_secs(2),
            failures: 3,
            successes: 1,
        }
    }
}

impl Health {
    pub(crate) fn check(&self) -> Result<(), String> {
        if let Some(path) = &self.path {
            check_path("health.path", path)?;
        }
        if self.every < MIN_CHECK_INTERVAL {
            return Err(format!("health.every is at least {MIN_CHECK_INTERVAL}"));
        }
        if self.failures == 0 || self.successes == 0 {
            return Err("health.failures and health.successes must be at least 1".to_owned());
        }
        if self.path.is_none() {
            let name = if self.successes > 1 {
                "successes"
            } else if self.statuses != StatusRanges::default() {
                "statuses"
            } else {
                return Ok(());
            };
            return Err(format!("health.{name} does nothing without health.path"));
        }
        Ok(())
    }
}

/// Statuses of HTTP, as ranges with both ends included.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusRanges(Vec<(u16, u16)>);

impl Default for StatusRanges {
    /// Success and redirection: 200 to 399.
    fn default() -> Self {
        Self(vec![(200, 399)])
    }
}

impl StatusRanges {
    /// Returns true if one of the ranges has `status`.
    pub fn contains(&self, status: u16) -> bool {
        let mut ranges = self.0.iter();
        ranges.any(|(first, last)| (*first..=*last).contains(&status))
    }

    fn parse(texts: &[String]) -> Result<Self, String> {
        if texts.is_empty() {
            return Err("no status passes: write ranges such as \"200-399\"".to_owned());
        }
        let wrong = |text| {
            format!(
                "{text:?} is no status and no range of statuses from 100 to 599, such as \"204\" or \"200-399\""
            )
        };
        let ranges = texts
            .iter()
            .map(|text| range(text).ok_or_else(|| wrong(text)));
        Ok(Self(ranges.collect::<Result<_, _>>()?))
    }
}

impl<'de> Deserialize<'de> for StatusRanges {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        Self::parse(&texts).map_err(D::Error::custom)
    }
}

/// Reads `204` or `200-299`.
fn range(text: &str) -> Option<(u16, u16)> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let status = |text: &str| {
        let is_number = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
        let status = is_number.then(|| text.parse::<u16>().ok()).flatten();
        status.filter(|status| (100..600).contains(status))
    };
    let (first, last) = (status(first)?, status(last)?);
    (first <= last).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(texts: &[&str]) -> Result<StatusRanges, String> {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        StatusRanges::parse(&texts)
    }

    #[test]
    fn ranges_include_both_ends() {
        let ranges = parsed(&["200-299", "401"]).unwrap();
        for (status, is_in) in [
            (199, false),
            (200, true),
            (299, true),
            (300, false),
            (401, true),
        ] {
            assert_eq!(ranges.contains(status), is_in, "{status}");
        }
    }

    #[test]
    fn the_default_is_success_and_redirection() {
        let ranges = StatusRanges::default();
        let passing = [200, 204, 302, 399];
        assert!(passing.into_iter().all(|status| ranges.contains(status)));
        let failing = [101, 400, 401, 404, 429, 500, 503];
        assert!(!failing.into_iter().any(|status| ranges.contains(status)));
    }

    #[test]
    fn wrong_ranges_are_named() {
        for text in ["", "20", "2xx", "299-200", "099", "600", "200-", "+20-300"] {
            let error = parsed(&[text]).unwrap_err();
            assert!(error.contains(&format!("{text:?}")), "{error}");
        }
        assert!(parsed(&[]).is_err());
    }
}
