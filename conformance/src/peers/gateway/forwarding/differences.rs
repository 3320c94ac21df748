//! Differences between two records of one request, by kind.

use super::message::{FieldLine, Message};

/// Kinds of differences, of `ours` from `other`. Empty if both are equal byte for byte.
pub(super) fn differences(ours: &Message, other: &Message) -> Vec<String> {
    let mut kinds = Vec::new();
    let parts = [
        ("protocol", ours.protocol != other.protocol),
        ("method", ours.method != other.method),
        ("target", ours.target != other.target),
        (":scheme or :authority", ours.origin != other.origin),
        ("content", ours.content != other.content),
        ("chunks", ours.chunks != other.chunks),
    ];
    let differing = parts.iter().filter(|(_, differs)| *differs);
    kinds.extend(differing.map(|(name, _)| (*name).to_owned()));
    compare_lines("field", &ours.fields, &other.fields, &mut kinds);
    compare_lines("trailer", &ours.trailers, &other.trailers, &mut kinds);
    kinds
}

fn compare_lines(part: &str, ours: &[FieldLine], other: &[FieldLine], kinds: &mut Vec<String>) {
    let all = ours.iter().chain(other).map(|line| &line.name);
    let mut names: Vec<_> = all.collect();
    names.sort_unstable();
    names.dedup();
    let mut is_equal = true;
    for name in names {
        let with_name = |lines: &[FieldLine]| {
            let texts = lines.iter().filter(|line| line.name == *name);
            texts.map(|line| line.text.clone()).collect::<Vec<_>>()
        };
        let (ours, other) = (with_name(ours), with_name(other));
        if ours == other {
            continue;
        }
        is_equal = false;
        let name = name.escape_ascii();
        kinds.push(match (ours.is_empty(), other.is_empty()) {
            (true, _) => format!("{part} {name}: missing"),
            (_, true) => format!("{part} {name}: added"),
            _ => format!("{part} {name}: other value"),
        });
    }
    if is_equal && ours != other {
        kinds.push(format!("order of {part}s"));
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::parse;
    use super::*;

    fn kinds(ours: &str, other: &str) -> Vec<String> {
        let [ours, other] = [ours, other].map(|text| parse(text.as_bytes()).unwrap().0);
        differences(&ours, &other)
    }

    #[test]
    fn every_part_is_compared() {
        let sent = "GET /a HTTP/1.1\r\na: 1\r\nb: 2\r\n\r\n";
        assert!(kinds(sent, sent).is_empty());
        let got = kinds("PUT /b HTTP/1.1\r\na: 1\r\nb:2\r\nc: 3\r\n\r\n", sent);
        assert_eq!(
            got,
            ["method", "target", "field b: other value", "field c: added"]
        );
        let got = kinds("GET /a HTTP/1.1\r\nb: 2\r\na: 1\r\n\r\n", sent);
        assert_eq!(got, ["order of fields"]);
        assert_eq!(kinds("GET /a HTTP/1.1\r\nA: 1\r\n\r\n", sent).len(), 3);
    }
}
