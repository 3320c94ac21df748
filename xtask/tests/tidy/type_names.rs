//! A type name has at most two meanings in the workspace, so that a search for it is of use.

use crate::comments::{Parts, is_name_part};
use crate::files::rust;
use crate::ratchet::{Found, held};
use crate::{Finding, expect_none};

/// Permitted number of definitions of one name.
const MEANINGS: usize = 2;

/// Names of siblings that share a shape, with the shape.
const SIBLINGS: &[(&str, &str)] = &[("Args", "arguments of one command, for clap")];

/// Numbers of names above that.
const RATCHETS: &[(&str, usize)] = &[
    ("Answer", 7),
    ("Arrival", 5),
    ("Asked", 7),
    ("Background", 3),
    ("Binding", 4),
    ("Blank", 3),
    ("Body", 3),
    ("Bound", 3),
    ("Broker", 4),
    ("Capture", 3),
    ("Case", 15),
    ("Cell", 5),
    ("Change", 4),
    ("Choice", 4),
    ("Client", 7),
    ("Clock", 5),
    ("Compression", 3),
    ("Config", 4),
    ("Connection", 13),
    ("Counters", 6),
    ("Counts", 4),
    ("Demand", 3),
    ("Described", 3),
    ("Direction", 3),
    ("Document", 5),
    ("Door", 3),
    ("Drops", 3),
    ("End", 3),
    ("Ended", 3),
    ("Engine", 3),
    ("Entry", 7),
    ("Error", 5),
    ("Estimate", 3),
    ("Event", 4),
    ("Exchange", 3),
    ("Figure", 5),
    ("Form", 4),
    ("Found", 4),
    ("Framing", 3),
    ("Front", 3),
    ("Given", 3),
    ("Half", 3),
    ("Held", 4),
    ("Kept", 6),
    ("Kernel", 3),
    ("Key", 4),
    ("Kind", 13),
    ("Known", 5),
    ("Law", 4),
    ("Limit", 3),
    ("Limits", 4),
    ("Line", 15),
    ("Lines", 3),
    ("Listed", 6),
    ("Look", 4),
    ("Made", 3),
    ("Marks", 5),
    ("Measured", 5),
    ("Metrics", 4),
    ("Names", 3),
    ("Network", 3),
    ("News", 4),
    ("Of", 3),
    ("Offer", 5),
    ("Open", 4),
    ("Origin", 6),
    ("Outcome", 5),
    ("Packet", 3),
    ("Page", 4),
    ("Pair", 7),
    ("Part", 6),
    ("Peer", 5),
    ("Phase", 3),
    ("Pipe", 3),
    ("Place", 10),
    ("Plan", 4),
    ("Postgres", 3),
    ("Problem", 3),
    ("Progress", 3),
    ("Protection", 3),
    ("Proxy", 3),
    ("Question", 3),
    ("Reading", 3),
    ("Reason", 4),
    ("Received", 3),
    ("Receiver", 3),
    ("Refusal", 6),
    ("Refused", 3),
    ("Reply", 9),
    ("Report", 4),
    ("Room", 4),
    ("Route", 3),
    ("Row", 8),
    ("Run", 8),
    ("Running", 14),
    ("Said", 4),
    ("Seen", 14),
    ("Segment", 5),
    ("Sender", 4),
    ("Sent", 4),
    ("Server", 7),
    ("Service", 8),
    ("Shape", 4),
    ("Share", 3),
    ("Shop", 4),
    ("Side", 6),
    ("Source", 4),
    ("Stack", 3),
    ("Stage", 3),
    ("State", 17),
    ("Step", 7),
    ("Steps", 3),
    ("Study", 3),
    ("Table", 4),
    ("Tally", 7),
    ("Target", 4),
    ("Tcp", 4),
    ("Thread", 3),
    ("Timer", 3),
    ("Times", 4),
    ("Token", 4),
    ("Told", 3),
    ("Trace", 3),
    ("Trial", 3),
    ("Typed", 5),
    ("Value", 4),
    ("Verdict", 5),
    ("Waiting", 5),
    ("Way", 3),
    ("Window", 3),
    ("Wire", 3),
    ("World", 8),
    ("Writer", 3),
    ("Written", 3),
];

/// Definitions of structs and enums: line and name.
fn defined(code: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut last = "";
    for (number, line) in (1..).zip(code.lines()) {
        let words = line.split(|character| !is_name_part(character));
        for word in words.filter(|word| !word.is_empty()) {
            if last == "struct" || last == "enum" {
                found.push((number, word));
            }
            last = word;
        }
    }
    found
}

#[test]
fn a_type_name_has_two_meanings_at_most() {
    let mut found = Found::new();
    for source in rust() {
        if source.member().is_none() {
            continue;
        }
        for (line, name) in defined(&Parts::of(&source.text).code) {
            found.entry(name.to_owned()).or_default().push(Finding::new(
                source.line(line),
                format!("one of many types of the name {name}"),
                "name the thing with its kind, as in `UpstreamConnection`",
            ));
        }
    }
    for (name, _) in SIBLINGS {
        let count = found.remove(*name).map_or(0, |places| places.len());
        assert!(
            count > MEANINGS,
            "{name} has {count} definitions: remove it from SIBLINGS"
        );
    }
    found.retain(|_, places| places.len() > MEANINGS);
    expect_none(&held(found, RATCHETS, file!()));
}

#[test]
fn definitions_are_seen_and_uses_are_not() {
    let code = Parts::of(
        "pub(crate) struct Line<'a>(&'a str);\n/// A struct Comment.\nenum\n Kind { Line }\nfn f(l: Line) -> Kind {}\n\
         const A: &str = \"struct Text\"; impl Line<'_> {}",
    )
    .code;
    assert_eq!(defined(&code), [(1, "Line"), (4, "Kind")]);
}
