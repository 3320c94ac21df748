//! Hostile documents: each is rejected early and for its own reason, without a panic.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use posthaste_soap::xml::{Scanner, Token, XmlError};
use posthaste_soap::{Limit, Limits, Refusal, Request, Version, reply, wsdl, xml};
use proptest::prelude::*;

use crate::{envelope, read};

const V: Version = Version::Soap11;

fn limit(text: &str) -> Limit {
    match read(text, V) {
        Err(Refusal::Xml(XmlError::Limit {
            limit, position, ..
        })) => {
            assert!(position <= text.len());
            limit
        }
        other => panic!("not a limit: {other:?}"),
    }
}

fn ask(inside: &str) -> String {
    envelope(
        V,
        &format!("<e:Body><o:Ask xmlns:o='urn:o'>{inside}</o:Ask></e:Body>"),
    )
}

#[test]
fn billion_laughs_end_at_the_doctype() {
    let mut text = String::from("<!DOCTYPE lolz [<!ENTITY lol0 'lol'>");
    for n in 1..10 {
        let _ = write!(
            text,
            "<!ENTITY lol{n} '{}'>",
            format!("&lol{};", n - 1).repeat(10)
        );
    }
    text.push_str("]>");
    text.push_str(&ask("<a>&lol9;</a>"));
    assert!(matches!(
        read(&text, V),
        Err(Refusal::Xml(XmlError::Doctype { position: 0 }))
    ));
}

#[test]
fn entities_that_are_not_the_five_are_refused() {
    for entity in [
        "lol9",
        "nbsp",
        "#0",
        "#x1F",
        "#xD800",
        "#xFFFE",
        "#x110000",
        "#+65",
        "#99999999999",
    ] {
        for text in [
            ask(&format!("<a>&{entity};</a>")),
            ask(&format!("<a b='&{entity};'/>")),
        ] {
            let refusal = read(&text, V);
            assert!(
                matches!(refusal, Err(Refusal::Xml(XmlError::Entity { .. }))),
                "{entity}: {refusal:?}"
            );
        }
    }
    assert!(
        read(
            &ask("<a b='&lt;&#65;&#x42;'>&lt;&gt;&amp;&apos;&quot;&#x10FFFF;</a>"),
            V
        )
        .is_ok()
    );
}

#[test]
fn the_end_of_a_section_without_its_beginning_is_refused() {
    for (inside, is_xml) in [
        ("<a>]]></a>", false),
        ("<a>x]]]>y</a>", false),
        ("<a>]]&gt; ]> ]] ></a>", true),
        ("<a><![CDATA[]]]]><![CDATA[>]]></a>", true),
        ("<a b=']]>'/>", true),
    ] {
        assert_eq!(read(&ask(inside), V).is_ok(), is_xml, "{inside}");
    }
}

#[test]
fn utf_8_that_is_declared_as_utf_16_is_refused() {
    let limits = Limits::default();
    let text = format!("<?xml version='1.0' encoding=\"UTF-16\"?>{}", ask("<a/>"));
    let refused = xml::decode(text.as_bytes(), &limits);
    assert!(matches!(refused, Err(XmlError::Encoding { .. })));
    let units = text.encode_utf16().flat_map(u16::to_le_bytes);
    let utf16: Vec<u8> = [0xFF, 0xFE].into_iter().chain(units).collect();
    assert_eq!(xml::decode(&utf16, &limits).unwrap(), text);
    let right = text.replace("UTF-16", "UTF-8");
    assert_eq!(xml::decode(right.as_bytes(), &limits).unwrap(), right);
}

#[test]
fn depth_is_bounded() {
    // Envelope, Body and Ask are three of the 64.
    let nested = |n: usize| ask(&("<a>".repeat(n) + &"</a>".repeat(n)));
    assert!(read(&nested(61), V).is_ok());
    assert_eq!(limit(&nested(62)), Limit::Depth);
    assert_eq!(limit(&nested(100_000)), Limit::Depth);
    // The same in a header, which is skipped.
    let header = envelope(V, &format!("<e:Header>{}", "<a>".repeat(200)));
    assert_eq!(limit(&header), Limit::Depth);
}

#[test]
fn attributes_and_declarations_are_bounded() {
    let attributes = |n: usize| (0..n).fold(String::new(), |s, i| s + &format!(" a{i}='1'"));
    let namespaces =
        |n: usize| (0..n).fold(String::new(), |s, i| s + &format!(" xmlns:n{i}='urn:{i}'"));
    assert!(read(&ask(&format!("<a{}/>", attributes(128))), V).is_ok());
    assert_eq!(
        limit(&ask(&format!("<a{}/>", attributes(129)))),
        Limit::Attributes
    );
    assert!(read(&ask(&format!("<a{}/>", namespaces(64))), V).is_ok());
    assert_eq!(
        limit(&ask(&format!("<a{}/>", namespaces(65)))),
        Limit::Namespaces
    );
    let nested = (0..10).fold(String::new(), |s, _| s + &format!("<a{}>", namespaces(64)));
    assert_eq!(limit(&ask(&nested)), Limit::Scope);
    assert_eq!(
        limit(&ask(&format!("<a{}/>", attributes(80_000)))),
        Limit::Attributes
    );
}

#[test]
fn names_texts_headers_fields_and_the_whole_are_bounded() {
    let long = "n".repeat(1025);
    assert_eq!(limit(&ask(&format!("<{long}/>"))), Limit::Name);
    assert_eq!(limit(&ask(&format!("<a {long}='1'/>"))), Limit::Name);
    assert_eq!(
        limit(&ask(&format!("<a>{}</a>", "x".repeat((256 << 10) + 1)))),
        Limit::Text
    );
    // A text made of many pieces counts as one.
    assert_eq!(
        limit(&ask(&format!("<a>{}</a>", "xxxxxxx&lt;".repeat(40_000)))),
        Limit::Text
    );
    let header = format!("<e:Header>{}</e:Header><e:Body/>", "<h/>".repeat(20_000));
    assert_eq!(limit(&envelope(V, &header)), Limit::Header);
    assert_eq!(limit(&ask(&"<f/>".repeat(257))), Limit::Fields);
    assert_eq!(limit(&" ".repeat((1 << 20) + 1)), Limit::Total);
}

/// Each element under it would repeat it: a quarter of a megabyte, two hundred thousand times.
#[test]
fn a_namespace_is_bounded_like_a_name() {
    let long = |n: usize| format!("<a xmlns='urn:&amp;{}'><b/></a>", "n".repeat(n - 5));
    assert!(read(&ask(&long(1024)), V).is_ok());
    assert_eq!(limit(&ask(&long(1025))), Limit::Name);
    assert_eq!(limit(&ask(&long(200_000))), Limit::Name);
}

/// Quotations of a document are short, so that a fault does not burden its sender.
#[test]
fn refusals_do_not_repeat_the_document() {
    let long = "x".repeat(60_000);
    let block = "<h:X xmlns:h='urn:h:long:enough:to:count' e:mustUnderstand='1'/>".repeat(900);
    let text = ask("");
    let header = |inside: &str| envelope(V, &format!("<e:Header>{inside}</e:Header><e:Body/>"));
    for document in [
        header(&block),
        header(&format!("<X e:mustUnderstand='{long}'/>")),
        format!("<?xml version='1.0' encoding='{long}'?>{text}"),
        ask(&format!("<a></{long}>")),
        ask(&format!("<a>&{long};</a>")),
        ask(&format!("<a><{long}</a>")),
        ask(&format!("<a b='&{long};'/>")),
    ] {
        let refusal = read(&document, V).unwrap_err();
        let fault = refusal.fault().envelope(V);
        assert!(fault.len() < 2_000, "{} bytes: {fault:.200}", fault.len());
    }
}

#[test]
fn duplicates_bad_names_and_bad_prefixes_are_refused() {
    for wrong in [
        "<a b='1' b='2'/>",
        "<a xmlns:p='urn:x' xmlns:q='urn:x' p:b='1' q:b='2'/>",
        "<a xmlns:p='1' xmlns:p='2'/>",
        "<p:a/>",
        "<a p:b='1'/>",
        "<a xmlns:p=''/>",
        "<a xmlns:xml='urn:x'/>",
        "<a xmlns:xmlns='urn:x'/>",
        "<1a/>",
        "<a:/>",
        "<:a/>",
        "<a:b:c/>",
        "<a b=1/>",
        "<a b/>",
        "<a b='<'/>",
        "<a></b>",
        "<a",
        "<a>\u{1}</a>",
        "&",
        "&amp",
        "<![CDATA[",
        "<!-- ",
        "</a>",
        "<a b='1\u{2}'/>",
        "<a>\u{FFFE}</a>",
        "<a b='\u{FFFF}'/>",
        "<![CDATA[\u{FFFF}]]>",
    ] {
        assert!(read(&ask(wrong), V).is_err(), "{wrong:?} was accepted");
    }
    for outside in ["x", "<![CDATA[x]]>", "&lt;", "<b/>"] {
        let text = ask("") + outside;
        assert!(
            read(&text, V).is_err(),
            "{outside:?} after the root was accepted"
        );
    }
}

#[test]
fn truncated_at_every_byte_it_is_refused() {
    let whole = format!(
        "<?xml version='1.0' encoding='utf-8'?>{}",
        ask("<isbn a='é'>0<!-- c --><![CDATA[1]]>&lt;</isbn>")
    );
    assert!(read(&whole, V).is_ok());
    for end in 0..whole.len() {
        let bytes = &whole.as_bytes()[..end];
        let limits = Limits::default();
        let outcome = xml::decode(bytes, &limits)
            .map_err(Refusal::from)
            .and_then(|text| Request::read(&text, V, &limits, &[]).map(drop));
        assert!(outcome.is_err(), "the first {end} bytes were accepted");
        let _ = reply::inspect(bytes);
        assert!(wsdl::read(bytes).is_err());
    }
}

/// Reads to the end or the first error.
fn drain(text: &str, limits: &Limits) {
    let mut scanner = Scanner::new(text, limits);
    while !matches!(scanner.token(), Err(_) | Ok(Token::Eof)) {}
}

/// The worst documents found within the limits, a megabyte each. All must stay well under a second even unoptimised.
#[test]
fn a_megabyte_of_the_worst_is_read_in_bounded_time() {
    let scope = (0..4).map(|n| {
        let declared: String = (0..60)
            .map(|i| format!(" xmlns:p{n}x{i}='urn:{i}'"))
            .collect();
        format!("<a{declared}>")
    });
    let scope: String = scope.collect();
    let declared: String = (0..128).map(|i| format!(" b{i}='1'")).collect();
    let documents = [
        scope.clone() + &"<p0x0:b/>".repeat(110_000),
        format!("<r>{}", format!("<a{declared}/>").repeat(900)),
        "<a>".to_owned() + &"&lt;".repeat(250_000),
        "<a ".to_owned() + &"b='".repeat(330_000),
        "<!--".repeat(250_000),
        "<!DOCTYPE [".repeat(90_000),
        "<![CDATA[".repeat(110_000),
        "<a b='&amp;".to_owned() + &"&amp;".repeat(200_000) + "'/>",
    ];
    for document in documents {
        // A busy machine may take longer, but not each time.
        let quick = (1..=5).any(|number| {
            let begin = Instant::now();
            drain(
                &document,
                &Limits {
                    text: 1 << 20,
                    ..Limits::default()
                },
            );
            let took = begin.elapsed();
            println!("try {number} of 5: {took:?} for {document:.40}");
            took < Duration::from_secs(5)
        });
        assert!(quick, "never within 5 s: {document:.40}");
    }
}

proptest! {
    #[test]
    fn nothing_panics_on_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let limits = Limits::default();
        if let Ok(text) = xml::decode(&bytes, &limits) {
            drain(&text, &limits);
        }
        let _ = reply::inspect(&bytes);
        let _ = wsdl::read(&bytes);
    }

    #[test]
    fn nothing_panics_on_almost_xml(parts in proptest::collection::vec(
        prop_oneof![
            Just("<a>"), Just("</a>"), Just("<a/>"), Just("<a b='"), Just("'"), Just(">"), Just("<"), Just("/>"),
            Just("&lt;"), Just("&"), Just(";"), Just("<!--"), Just("-->"), Just("<![CDATA["), Just("]]>"), Just("<?x"),
            Just("?>"), Just("é"), Just(" xmlns:p='u'"), Just("p:"), Just("<!DOCTYPE"), Just("<e:Envelope xmlns:e='http://schemas.xmlsoap.org/soap/envelope/'>"),
            Just("<e:Body>"), Just("</e:Body>"), Just("\u{0}"), Just("\r\n"),
        ], 0..40)) {
        let text = parts.concat();
        drain(&text, &Limits::default());
        let _ = read(&text, V);
        let _ = reply::inspect(text.as_bytes());
    }
}
