//! Ratchets: numbers of findings that may only fall, for rules that the past does not meet yet.

use std::collections::BTreeMap;

use crate::Finding;

/// Findings by the key of their ratchet, such as a crate.
pub(crate) type Found = BTreeMap<String, Vec<Finding>>;

/// Compares the findings of each key with its ratchet; without one, none is permitted.
///
/// Above the ratchet, all findings of the key are returned, because the new one is not known. Below it, the remedy is
/// the number to write into `table`.
pub(crate) fn held(found: Found, ratchets: &[(&str, usize)], table: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (key, permitted) in ratchets {
        let count = found.get(*key).map_or(0, Vec::len);
        if count < *permitted {
            findings.push(Finding::new(
                table,
                format!("{key} has {count} left, and its ratchet is {permitted}"),
                match count {
                    0 => "remove the row: it may only fall".to_owned(),
                    count => format!("lower it to {count}: it may only fall"),
                },
            ));
        }
    }
    for (key, places) in found {
        let ratchet = ratchets.iter().find(|(name, _)| *name == key);
        let permitted = ratchet.map_or(0, |(_, permitted)| *permitted);
        if places.len() > permitted {
            findings.extend(places.into_iter().map(|finding| Finding {
                violation: format!("{} ({key}: ratchet {permitted})", finding.violation),
                ..finding
            }));
        }
    }
    findings
}

#[cfg(test)]
fn sample(count: usize) -> Found {
    let finding = |line| Finding::new(format!("a.rs:{line}"), "a word", "another");
    BTreeMap::from([("link".to_owned(), (1..=count).map(finding).collect())])
}

#[test]
fn a_count_at_its_ratchet_holds() {
    assert!(held(sample(2), &[("link", 2)], "t.rs").is_empty());
    assert!(held(Found::new(), &[], "t.rs").is_empty());
}

#[test]
fn above_the_ratchet_every_place_is_named() {
    assert_eq!(held(sample(3), &[("link", 2)], "t.rs").len(), 3);
    assert_eq!(held(sample(1), &[], "t.rs")[0].location, "a.rs:1");
}

#[test]
fn below_the_ratchet_the_number_is_named() {
    let findings = held(sample(1), &[("link", 2)], "t.rs");
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].location, "t.rs");
    assert!(findings[0].remedy.contains("lower it to 1"));
    let gone = held(Found::new(), &[("link", 2)], "t.rs");
    assert!(gone[0].remedy.contains("remove the row"));
}
