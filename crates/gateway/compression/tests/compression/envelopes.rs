//! Splits messages at the Body and joins them with a packed Body.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use posthaste_compression::{Coding, packed};
use posthaste_soap::EXTENSION_NAMESPACE;
use posthaste_soap::head::EnvelopeParts;
use posthaste_soap::xml::{Scanner, Token};
use posthaste_soap::{Limits, Version};
use proptest::prelude::*;

fn parts(message: &str) -> Option<[&str; 3]> {
    let found = EnvelopeParts::split(message.as_bytes(), &Limits::default())?;
    Some([found.before, found.content, found.after].map(|part| std::str::from_utf8(part).unwrap()))
}

fn message(header: &str, body: &str) -> String {
    let namespace = Version::Soap12.namespace();
    format!("<?xml version='1.0'?><s:Envelope xmlns:s='{namespace}'>{header}{body}</s:Envelope>\n")
}

#[test]
fn the_body_is_found_behind_any_header() {
    for header in [
        "",
        "<s:Header/>",
        "<s:Header><a><s:Body>no</s:Body></a></s:Header>",
        "<s:Header></s:Header> <!-- <s:Body> --> ",
    ] {
        let text = message(header, "<s:Body a='>'><b/>c</s:Body >");
        let [before, content, after] = parts(&text).unwrap();
        assert!(before.ends_with("<s:Body a='>'>"), "{text}");
        assert_eq!(
            (content, after),
            ("<b/>c", "</s:Body ></s:Envelope>\n"),
            "{text}"
        );
    }
}

#[test]
fn envelopes_without_a_separable_body_are_not_split() {
    for text in [
        "",
        "<html><body>x</body></html>",
        &message("", "<s:Body/>"),
        &message("", "<s:Body></s:Body>"),
        &message("", "<x>y</x>"),
        &message("<s:Header/>", "<s:Other>y</s:Other>"),
        &message("", "<s:Body>x</s:Body><!-- more -->"),
        &message("", "<s:Body>x"),
        &message("<s:Header>", "<s:Body>x</s:Body>"),
        "<s:Envelope xmlns:s='http://www.w3.org/2003/05/soap-envelope'><s:Header></s:Header>",
        "<s:Envelope xmlns:s='http://www.w3.org/2003/05/soap-envelope'><s:Header></s:Header><",
    ] {
        assert_eq!(parts(text), None, "{text}");
    }
    let tight = Limits {
        header: 60,
        ..Limits::default()
    };
    let text = message("", "<s:Body>x</s:Body>");
    assert_eq!(
        EnvelopeParts::split(text.as_bytes(), &tight),
        None,
        "a Body too far off"
    );
}

proptest! {
    #[test]
    fn packed_it_is_an_envelope_and_unpacked_the_same(
        content in "(<a b='[a-z>]{0,9}'>[a-z ]{0,20}</a>|<c/>|<d><e>&amp;</e></d>){1,4}",
        coded in prop::collection::vec(any::<u8>(), 0..200),
        header: bool,
    ) {
        let header = if header { "<s:Header><h xmlns='urn:h'>i</h></s:Header>" } else { "" };
        let text = message(header, &format!("<s:Body>{content}</s:Body>"));
        let [before, inner, after] = parts(&text).unwrap();
        prop_assert_eq!(inner, &content);
        prop_assert_eq!([before, inner, after].concat(), text.clone());

        let envelope = EnvelopeParts::split(text.as_bytes(), &Limits::default()).unwrap();
        let packed = String::from_utf8(packed(&envelope, Coding::Gzip, &coded)).unwrap();
        // Read by soap's scanner, the Body contains our element, which contains the words.
        let limits = Limits::default();
        let mut scanner = Scanner::new(&packed, &limits);
        let mut text = None;
        loop {
            match scanner.token().unwrap() {
                Token::Start(name) if name.is(EXTENSION_NAMESPACE, "packed") => {
                    prop_assert_eq!(scanner.depth(), 3);
                    prop_assert_eq!(scanner.attribute("coding").unwrap(), "gzip");
                    text = scanner.text().unwrap();
                }
                Token::Eof => break,
                _ => {}
            }
        }
        prop_assert_eq!(STANDARD.decode(text.unwrap().as_bytes()).unwrap(), coded);
        let [around, _, _] = parts(&packed).unwrap();
        prop_assert_eq!(around, before);
    }
}
