//! The scanner compared with quick-xml: quick-xml accepts all documents that ours accepts, with the same content.

use posthaste_soap::Limits;
use posthaste_soap::xml::{Scanner, Token};
use proptest::prelude::*;
use quick_xml::escape::{resolve_predefined_entity, unescape};
use quick_xml::events::Event;
use quick_xml::name::ResolveResult;
use quick_xml::reader::NsReader;

/// Tokens of a document, with pieces of text joined, because readers may split text differently.
#[derive(Debug, PartialEq)]
enum JoinedToken {
    Start(String, String, Vec<(String, String, String)>),
    Text(String),
    End,
}

#[derive(Default)]
struct Story(Vec<JoinedToken>);

impl Story {
    fn text(&mut self, more: &str) {
        match self.0.last_mut() {
            _ if more.is_empty() => {}
            Some(JoinedToken::Text(text)) => text.push_str(more),
            _ => self.0.push(JoinedToken::Text(more.to_owned())),
        }
    }
}

fn ours(document: &str) -> Option<Vec<JoinedToken>> {
    let limits = Limits::default();
    let mut scanner = Scanner::new(document, &limits);
    let mut story = Story::default();
    loop {
        match scanner.token().ok()? {
            Token::Start(name) => {
                let read = |a: &posthaste_soap::xml::Attribute<'_>| {
                    let (namespace, local) = (&a.name.namespace, a.name.local);
                    (namespace.to_string(), local.to_owned(), a.value.to_string())
                };
                let attributes = scanner.attributes().iter().map(read).collect();
                let (namespace, local) = (name.namespace.into_owned(), name.local.to_owned());
                story
                    .0
                    .push(JoinedToken::Start(namespace, local, attributes));
            }
            Token::Text(text) => story.text(&text),
            Token::End => story.0.push(JoinedToken::End),
            Token::Eof => return Some(story.0),
        }
    }
}

fn namespace(resolved: &ResolveResult<'_>) -> Option<String> {
    match resolved {
        ResolveResult::Bound(namespace) => Some(unescape(namespace.0).ok()?.into_owned()),
        ResolveResult::Unbound => Some(String::new()),
        ResolveResult::Unknown(_) => None,
    }
}

/// Normalises line ends as in XML 1.0, section 2.11. quick-xml leaves that to its caller.
fn lines(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

fn theirs(document: &str) -> Option<Vec<JoinedToken>> {
    let mut reader = NsReader::from_str(document);
    let config = reader.config_mut();
    config.expand_empty_elements = true;
    config.check_comments = true;
    let mut story = Story::default();
    let mut depth = 0_usize;
    loop {
        let (resolved, event) = reader.read_resolved_event().ok()?;
        match event {
            Event::Start(tag) => {
                depth += 1;
                let own = namespace(&resolved)?;
                let mut attributes = Vec::new();
                for attribute in tag.attributes() {
                    let attribute = attribute.ok()?;
                    if attribute.key.as_namespace_binding().is_some() {
                        continue;
                    }
                    let (resolved, local) = reader.resolver().resolve_attribute(attribute.key);
                    let value = lines(&attribute.value).replace(['\n', '\t'], " ");
                    let value = unescape(&value).ok()?.into_owned();
                    attributes.push((namespace(&resolved)?, local.as_ref().to_owned(), value));
                }
                let local = tag.local_name().as_ref().to_owned();
                story.0.push(JoinedToken::Start(own, local, attributes));
            }
            Event::End(_) => {
                depth -= 1;
                story.0.push(JoinedToken::End);
            }
            Event::Text(text) if depth > 0 => story.text(&lines(&text)),
            Event::CData(text) => story.text(&lines(&text)),
            Event::GeneralRef(name) => match name.resolve_char_ref().ok()? {
                Some(character) => story.text(&character.to_string()),
                None => story.text(resolve_predefined_entity(&name)?),
            },
            Event::Eof => return (depth == 0).then_some(story.0),
            _ => {}
        }
    }
}

/// Parts of documents. Many combinations are well formed, more are almost so.
fn pieces() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("<a>".to_owned()),
        Just("</a>".to_owned()),
        Just("<p:b xmlns:p='urn:p' c=\"1\" p:c = '&lt;\u{e9}\n' >".to_owned()),
        Just("</p:b >".to_owned()),
        Just("<d xmlns='urn:d&amp;'/>".to_owned()),
        Just("<e f='x' g=\"'\"\t/>".to_owned()),
        Just("<!-- a - comment -->".to_owned()),
        Just("<![CDATA[<a>&]]>".to_owned()),
        Just("&amp;&#65;&#x20AC;".to_owned()),
        Just(" \r\n".to_owned()),
        Just("text \u{4f60}".to_owned()),
        Just("<".to_owned()),
        Just(">".to_owned()),
        Just("'".to_owned()),
        Just("<xml:a xml:lang='de'/>".to_owned()),
        Just("<q:b/>".to_owned()),
        "[a-z<>/&;='\"! -]{1,3}",
    ]
}

/// A well-formed element with well-formed children.
fn whole() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("<d xmlns='urn:d&amp;'/>".to_owned()),
        Just("<!-- a - comment -->".to_owned()),
        Just("<![CDATA[<a>&]]]>".to_owned()),
        Just("&amp;&#65;&quot;".to_owned()),
        "[ a-z\u{e9}\r\n>']{0,12}",
    ];
    leaf.prop_recursive(5, 40, 5, |inside| {
        let children = proptest::collection::vec(inside, 0..5);
        let name = prop_oneof![Just("a"), Just("p:b"), Just("long-name.1")];
        (name, children, "[a-z &gt;]{0,4}").prop_map(|(name, children, value)| {
            let value = value.replace('&', "&amp;");
            let inside = children.concat();
            format!("<{name} xmlns:p = 'urn:p' p:c='{value}'\n d=\"{value}\">{inside}</{name}\t>")
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn documents_we_accept_are_read_alike_by_quick_xml(parts in proptest::collection::vec(pieces(), 0..12)) {
        let document = format!("<r>{}</r>", parts.concat());
        if let Some(read) = ours(&document) {
            prop_assert_eq!(Some(read), theirs(&document), "{}", document);
        }
    }

    #[test]
    fn complete_documents_are_read_alike_by_both(inside in whole()) {
        let document = format!("<?xml version=\"1.0\"?>\n<r xmlns='urn:r'>{inside}</r>\n");
        let read = ours(&document);
        prop_assert!(read.is_some(), "{}", document);
        prop_assert_eq!(read, theirs(&document), "{}", document);
    }
}
