//! Names and comments use the terms of the glossary. The table lists former metaphors with the term to use.

use std::collections::BTreeSet;

use crate::comments::{Comment, CommentKind, Parts, is_name_part};
use crate::files::{Source, rust, tracked};
use crate::ratchet::{Found, held};
use crate::{Finding, expect_none};

/// Names in which a word is banned.
#[derive(Clone, Copy, PartialEq, Eq)]
enum In {
    /// Every identifier with this word as one of its parts, once per file. For words without another meaning here.
    Identifiers,
    /// Types, functions and modules of exactly this name.
    Names,
    /// Types and modules of exactly this name. For words that are also ordinary verbs.
    Types,
}

struct Term {
    /// In the form of a function's name.
    word: &'static str,
    instead: &'static str,
    banned: In,
    /// Also banned in comments, as a whole word or its plural.
    in_comments: bool,
    /// Ordinary meanings: a path with such a name, or a phrase of comments. Each with the reason.
    except: &'static [(&'static str, &'static str)],
}

const fn identifiers(word: &'static str, instead: &'static str) -> Term {
    Term {
        word,
        instead,
        banned: In::Identifiers,
        in_comments: true,
        except: &[],
    }
}

const fn names(word: &'static str, instead: &'static str) -> Term {
    Term {
        banned: In::Names,
        in_comments: false,
        ..identifiers(word, instead)
    }
}

const fn types(word: &'static str, instead: &'static str) -> Term {
    Term {
        banned: In::Types,
        in_comments: false,
        ..identifiers(word, instead)
    }
}

impl Term {
    const fn also_in_comments(self) -> Self {
        Self {
            in_comments: true,
            ..self
        }
    }

    const fn except(self, except: &'static [(&'static str, &'static str)]) -> Self {
        Self { except, ..self }
    }
}

const TERMS: &[Term] = &[
    types("room", "crate; for space: its unit, as in `free_bytes`")
        .also_in_comments()
        .except(&[
            ("makes room", "free space"),
            ("is room", "free space"),
            ("room runs out", "free space"),
        ]),
    // Shared state and processes.
    identifiers(
        "house",
        "context, as in `GatewayContext`; of crates: workspace",
    )
    .except(&[("crates/lab/bookshop/", "publishing houses")]),
    identifiers("workshop", "compression worker"),
    identifiers("ward", "supervised process"),
    names("mind_the_guard", "`die_with_parent`"),
    types("guard", "supervisor of processes; admission of requests"),
    types("news", "event, as in `ChildEvent`"),
    types("eye", "loop or sampler, as in `PriceLoop`"),
    // CPU time.
    identifiers("purse", "CPU token bucket"),
    types("bill", "reservation"),
    identifiers("outlook", "load estimate"),
    names("look_ahead", "`publish`"),
    types("demand", "load controller").except(&[(
        "crates/gateway/gateway-config/",
        "the section `demand` of the configuration keeps its public name",
    )]),
    // The gateway.
    types("door", "admission; of a relay: destination").also_in_comments(),
    types("pass", "admission guard"),
    types("entered", "admitted"),
    types("turned", "rejected"),
    names("be_away", "`pause`"),
    names("say_for_whom", "`add_forwarded`"),
    names("one_length", "`normalize_content_length`"),
    names("strip_hop", "`strip_hop_by_hop`"),
    names("look_after", "the purpose: `grow_while_idle`, `watch_load`"),
    names("look_out", "the purpose: `sample_load`"),
    types("home", "pooled guard").except(&[("crates/lab/bookshop/", "the home page of the shop")]),
    types("patience", "idle timeout"),
    types(
        "place",
        "permit; of a document: URL; of a parser or a grid: position",
    ),
    types("site", "router").except(&[("conformance/src/", "the web site of the documentation")]),
    types("driven", "driver of a connection"),
    types("passing", "upstream body"),
    types("outgoing", "request body"),
    types("protection", "admission").except(&[(
        "crates/gateway/gateway-config/",
        "a public name of the configuration",
    )]),
    types("packed", "compressed body"),
    types("press", "compressor"),
    // The broker.
    identifiers("keeper", "store writer"),
    identifiers("shelf", "offer source"),
    types("trouble", "outage; for failures: error"),
    types("means", "fetch context"),
    types("filling", "index update"),
    types("front", "http"),
    // The emulator and its links.
    identifiers("chronicle", "event order, event log"),
    identifiers("sighting", "packet record"),
    identifiers("pen", "trace writer").except(&[(
        "crates/base/draw/",
        "the pen of a drawing, as in graphics libraries",
    )]),
    types("beside", "middleboxes"),
    types("hand", "segment builder"),
    types("gate", "destination opener").except(&[
        (
            "crates/gateway/compression/",
            "a switch with hysteresis, open or closed",
        ),
        ("conformance/src/bench", "a regression gate, as in CI"),
    ]),
    names("lane", "queue"),
    types("others", "cross traffic"),
    types("passage", "departure"),
    types("speak", "http"),
    // The demo and the drawings.
    types("story", "event log").except(&[(
        "crates/http/soap/tests/",
        "the events of one parser, compared",
    )]),
    types("crowd", "clients"),
    types("director", "controller"),
    types("deed", "workload"),
    types("matter", "alert"),
    names("ink", "palette"),
    // The studies.
    names("twin", "paired run").also_in_comments(),
    names("parting", "divergence").also_in_comments(),
    names("played", "simulated run"),
    types("cast", "stacks"),
    types("stand", "proxy under test"),
    types("rig", "testbed").also_in_comments(),
    types("tiny", "test study"),
];

/// Numbers that the past left, by member.
const RATCHETS: &[(&str, usize)] = &[];

/// `EventOrder` as `event_order`.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    let mut last = '_';
    for character in name.chars() {
        if character.is_uppercase() && !last.is_uppercase() && last != '_' {
            snake.push('_');
        }
        snake.extend(character.to_lowercase());
        last = character;
    }
    snake
}

/// True for a word and its plural.
fn is_word(text: &str, word: &str) -> bool {
    let plural = |ending: &str| text.strip_suffix(ending) == Some(word);
    text == word || plural("s") || (word == "shelf" && text == "shelves")
}

/// A word of code.
struct Word<'a> {
    line: usize,
    text: &'a str,
    snake: String,
}

/// The words of code, in order.
fn names_in(code: &str) -> Vec<Word<'_>> {
    let lines = (1..).zip(code.lines());
    let names = lines.flat_map(|(line, text)| {
        let names = text.split(|character| !is_name_part(character));
        names.map(move |text| Word {
            line,
            text,
            snake: snake(text),
        })
    });
    names.filter(|word| !word.text.is_empty()).collect()
}

/// Violations in identifiers.
fn in_names<'a, 'b>(names: &'b [Word<'a>], term: &Term) -> Vec<&'b Word<'a>> {
    let has_part = |word: &&Word<'_>| word.snake.split('_').any(|part| is_word(part, term.word));
    let defines: &[&str] = match term.banned {
        In::Identifiers => {
            let mut seen = BTreeSet::new();
            return names
                .iter()
                .filter(has_part)
                .filter(|word| seen.insert(word.text))
                .collect();
        }
        In::Names => &["struct", "enum", "trait", "type", "mod", "fn"],
        In::Types => &["struct", "enum", "trait", "type", "mod"],
    };
    names
        .windows(2)
        .filter(|pair| defines.contains(&pair[0].text) && is_word(&pair[1].snake, term.word))
        .map(|pair| &pair[1])
        .collect()
}

/// A comment without identifiers: no code spans and no targets of links.
fn plain(comment: &str) -> String {
    let outside = comment.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    let mut parts = outside.split("](");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| {
        text + part.split_once(')').map_or("", |(_, after)| after)
    })
}

/// Number of violations in a comment.
fn in_comment(comment: &str, term: &Term) -> usize {
    let mut text = plain(comment).to_lowercase();
    for (phrase, _) in term.except {
        text = text.replace(phrase, "");
    }
    let tokens = text.split(|character: char| !is_name_part(character));
    tokens.filter(|word| is_word(word, term.word)).count()
}

/// The comments of a manifest. No value of ours contains ` #`.
fn of_manifest(text: &str) -> Parts {
    let comment = |(line, text): (usize, &str)| {
        let at = text
            .starts_with('#')
            .then_some(0)
            .or_else(|| text.find(" #"))?;
        Some(Comment {
            line,
            kind: CommentKind::Plain,
            text: text[at..].trim_start_matches([' ', '#']).to_owned(),
        })
    };
    Parts {
        comments: (1..).zip(text.lines()).filter_map(comment).collect(),
        code: String::new(),
    }
}

/// All violations in a file.
fn violations(source: &Source, parts: &Parts) -> Vec<Finding> {
    let mut findings = Vec::new();
    let names = names_in(&parts.code);
    for term in TERMS {
        let remedy = format!("use the glossary's term: {}", term.instead);
        let is_exempt = term
            .except
            .iter()
            .any(|(path, _)| source.path.starts_with(path));
        if !is_exempt {
            findings.extend(in_names(&names, term).into_iter().map(|word| {
                let violation = format!("the name {}", word.text);
                Finding::new(source.line(word.line), violation, &remedy)
            }));
        }
        for comment in parts.prose().into_iter().filter(|_| term.in_comments) {
            let violation = format!("the comment says {}", term.word);
            let finding = |_| Finding::new(source.line(comment.line), &violation, &remedy);
            findings.extend((0..in_comment(&comment.text, term)).map(finding));
        }
    }
    findings
}

#[test]
fn names_and_comments_use_the_glossary() {
    let mut found = Found::new();
    for source in tracked() {
        let parts = match source.path.rsplit('/').next() {
            // The table itself names them.
            _ if source.path == file!() => continue,
            Some("Cargo.toml") => of_manifest(&source.text),
            Some(name) if name.ends_with(".rs") => Parts::from_text(&source.text),
            _ => continue,
        };
        let findings = violations(&source, &parts);
        if !findings.is_empty() {
            let member = source
                .member()
                .unwrap_or(if source.path.starts_with("fuzz/") {
                    "fuzz"
                } else {
                    "the workspace"
                });
            found.entry(member.to_owned()).or_default().extend(findings);
        }
    }
    expect_none(&held(found, RATCHETS, file!()));
}

#[test]
fn no_word_stands_twice_and_every_exception_is_needed() {
    let sources = rust();
    let parts: Vec<(&str, Parts)> = sources
        .iter()
        .filter(|source| source.path != file!())
        .map(|source| (source.path.as_str(), Parts::from_text(&source.text)))
        .collect();
    let mut seen = BTreeSet::new();
    for term in TERMS {
        assert!(seen.insert(term.word), "{} is there twice", term.word);
        for (exception, reason) in term.except {
            assert!(!reason.is_empty(), "{exception} has no reason");
            let is_needed = parts.iter().any(|(path, parts)| {
                let is_path = exception.contains('/');
                let says = |comment: &Comment| comment.text.to_lowercase().contains(exception);
                (is_path
                    && path.starts_with(exception)
                    && !in_names(&names_in(&parts.code), term).is_empty())
                    || (!is_path && parts.comments.iter().any(says))
            });
            assert!(
                is_needed,
                "nothing needs the exception {exception} of {}: remove it",
                term.word
            );
        }
    }
}

#[test]
fn metaphors_are_seen_in_names() {
    let names_found = |code: &str, word: &str| {
        let term = TERMS.iter().find(|term| term.word == word).expect("a term");
        in_names(&names_in(code), term).len()
    };
    assert_eq!(
        names_found(
            "struct House; fn a(house: &House) { house.in_house(); }",
            "house"
        ),
        3
    );
    assert_eq!(names_found("let household = greenhouses;", "house"), 0);
    assert_eq!(names_found("let shelves = 1;", "shelf"), 1);
    assert_eq!(names_found("fn is_forward(open: u8) {}", "ward"), 0);
    assert_eq!(
        names_found(
            "pub(super) struct Lane<P> {} fn lanes() {} let lane = 1; fn fast_lane() {}",
            "lane"
        ),
        2
    );
    assert_eq!(
        names_found("fn pass() {} struct Pass; mod pass; struct PassBy;", "pass"),
        2
    );
}

#[test]
fn metaphors_are_seen_in_comments_and_ordinary_words_are_not() {
    let comments_found = |text: &str, word: &str| {
        let term = TERMS.iter().find(|term| term.word == word).expect("a term");
        in_comment(text, term)
    };
    assert_eq!(
        comments_found("The rooms of this workspace; a Room.", "room"),
        2
    );
    assert_eq!(
        comments_found("The oldest makes room for `room` bytes.", "room"),
        0
    );
    assert_eq!(
        comments_found("Charged to the [purse](crate::Purse) of `Purse`.", "purse"),
        1
    );
    assert_eq!(comments_found("Warehouses", "house"), 0);
    assert_eq!(plain("a [b](c) d `e` f"), "a [b d   f");
}

#[test]
fn names_are_split_at_capitals() {
    assert_eq!(snake("EventOrder"), "event_order");
    assert_eq!(snake("HTTP_HOUSE"), "http_house");
    assert_eq!(snake("in_house"), "in_house");
}

#[test]
fn comments_of_manifests_are_read() {
    let parts = of_manifest("# The rooms.\nname = \"a#room\"\nserde = \"1\" # of a room\n");
    let found: Vec<(usize, &str)> = parts
        .comments
        .iter()
        .map(|comment| (comment.line, comment.text.as_str()))
        .collect();
    assert_eq!(found, [(1, "The rooms."), (3, "of a room")]);
}
