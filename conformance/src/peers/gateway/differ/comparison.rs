//! The rule of a differential test: the gateway is never more permissive than the strictest of the others.
//!
//! Pure: readings in, differences out. The programs are for [`programs`](super::programs), the cases for the families.

/// A program's reading of a case. `None` if the program stopped it.
pub(super) type CaseReading = Option<String>;

/// A case, as the gateway and others read it.
pub(super) struct ComparedCase {
    /// Description of the case, unique in its family.
    pub(super) about: String,
    pub(super) ours: CaseReading,
    /// Name of a program, and its reading.
    pub(super) others: Vec<(&'static str, CaseReading)>,
}

/// The rule of a family.
pub(super) struct FamilyRule {
    /// Correct cases, and the value that every program reads.
    pub(super) controls: &'static [(&'static str, &'static str)],
    /// Cases in which the gateway is more permissive or reads another value, and the reason. Each must occur.
    pub(super) exceptions: &'static [(&'static str, &'static str)],
    /// True for two readings of the same value.
    pub(super) is_same: fn(&str, &str) -> bool,
    /// True if the gateway may read its value (the first) where another program reads its own.
    pub(super) is_permitted: fn(&str, &str) -> bool,
}

impl ComparedCase {
    /// True if another program stops what the gateway reads, or reads it to a value with which ours is not permitted.
    fn differs(&self, rule: &FamilyRule) -> bool {
        let Some(ours) = &self.ours else {
            return false;
        };
        let is_stricter = |other: &CaseReading| match other {
            Some(other) => !(rule.is_permitted)(ours, other),
            None => true,
        };
        self.others.iter().any(|(_, other)| is_stricter(other))
    }

    /// The readings of all programs in a line.
    pub(super) fn line(&self) -> String {
        let shown = |reading: &CaseReading| reading.clone().unwrap_or_else(|| "stopped".to_owned());
        let others = self
            .others
            .iter()
            .map(|(name, other)| format!(", {name} {}", shown(other)));
        let others: String = others.collect();
        format!("{}: posthaste {}{others}", self.about, shown(&self.ours))
    }
}

/// True for the same text.
pub(super) fn equal(one: &str, other: &str) -> bool {
    one == other
}

/// Returns a line for each violation: a difference without an exception, an exception without a difference, and a
/// control without its value.
pub(super) fn violations(rule: &FamilyRule, comparisons: &[ComparedCase]) -> Vec<String> {
    let mut wrong = Vec::new();
    for comparison in comparisons {
        let about = comparison.about.as_str();
        let exceptions = || rule.exceptions.iter().any(|(name, _)| *name == about);
        match (comparison.differs(rule), exceptions()) {
            (true, false) => wrong.push(format!("more permissive: {}", comparison.line())),
            (false, true) => wrong.push(format!("no exception: {}", comparison.line())),
            _ => {}
        }
    }
    for (about, value) in rule.controls {
        let control = comparisons.iter().find(|case| case.about == *about);
        let holds = control.is_some_and(|case| {
            let mut all = case.others.iter().map(|(_, other)| other);
            let is_it = |reading: &CaseReading| {
                let is_same = |reading: &String| (rule.is_same)(reading, value);
                reading.as_ref().is_some_and(is_same)
            };
            !case.others.is_empty() && is_it(&case.ours) && all.all(is_it)
        });
        if !holds {
            let line = control.map_or_else(|| format!("{about}: no such case"), ComparedCase::line);
            wrong.push(format!("control, not {value:?}: {line}"));
        }
    }
    let is_unknown = |name: &str| !comparisons.iter().any(|case| case.about == name);
    let unknown = rule.exceptions.iter().filter(|(name, _)| is_unknown(name));
    wrong.extend(unknown.map(|(name, _)| format!("exception: {name}: no such case")));
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: FamilyRule = FamilyRule {
        controls: &[("good", "1")],
        exceptions: &[("odd", "the others are wrong")],
        is_same: equal,
        is_permitted: equal,
    };

    fn case(about: &str, ours: &str, other: &str) -> ComparedCase {
        let reading = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        ComparedCase {
            about: about.to_owned(),
            ours: reading(ours),
            others: vec![("nginx", reading(other))],
        }
    }

    fn wrong(cases: &[ComparedCase]) -> usize {
        violations(&RULE, cases).len()
    }

    #[test]
    fn the_gateway_may_be_stricter_and_not_more_permissive() {
        let with = |ours, other| {
            wrong(&[
                case("good", "1", "1"),
                case("odd", "1", ""),
                case("x", ours, other),
            ])
        };
        assert_eq!(with("1", "1"), 0);
        assert_eq!(with("", ""), 0);
        assert_eq!(with("", "1"), 0);
        assert_eq!(with("1", ""), 1);
        assert_eq!(with("1", "2"), 1);
    }

    #[test]
    fn controls_and_exceptions_must_occur() {
        let (good, odd) = (case("good", "1", "1"), case("odd", "1", ""));
        assert_eq!(wrong(&[good, odd]), 0);
        assert_eq!(wrong(&[case("good", "1", "1")]), 1);
        assert_eq!(wrong(&[case("good", "1", "1"), case("odd", "1", "1")]), 1);
        assert_eq!(wrong(&[case("odd", "1", "")]), 1);
        assert_eq!(wrong(&[case("good", "", "1"), case("odd", "1", "")]), 1);
        assert_eq!(wrong(&[case("good", "2", "2"), case("odd", "1", "")]), 1);
    }
}
