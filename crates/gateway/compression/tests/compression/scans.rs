//! The header scan: results, end of the scan, and messages cut into pieces.

use posthaste_compression::{COMPRESSION, Form, PreferenceBlock, ScanResult, Wish};
use posthaste_soap::EXTENSION_NAMESPACE;
use posthaste_soap::head::HeadScan;
use posthaste_soap::xml::{Name, Scanner, Token, XmlError};
use posthaste_soap::{Limits, Version};
use proptest::prelude::*;

fn new(limits: &Limits) -> HeadScan<PreferenceBlock> {
    HeadScan::new(limits, PreferenceBlock::default())
}

fn result(scan: &HeadScan<PreferenceBlock>) -> ScanResult {
    ScanResult::from_scan(scan.head(), scan.blocks())
}

fn scan(text: &str) -> ScanResult {
    let mut scan = new(&Limits::default());
    scan.feed(text.as_bytes());
    result(&scan)
}

fn soap(wish: Option<Wish>) -> ScanResult {
    ScanResult::Soap {
        version: Version::Soap11,
        wish,
        form: Form::Content,
        is_unknown: false,
    }
}

const UNKNOWN: ScanResult = ScanResult::Soap {
    version: Version::Soap11,
    wish: None,
    form: Form::Content,
    is_unknown: true,
};

fn envelope(header: &str) -> String {
    let namespace = Version::Soap11.namespace();
    format!(
        "<?xml version=\"1.0\"?>\n<s:Envelope xmlns:s=\"{namespace}\" xmlns:p='{EXTENSION_NAMESPACE}'>\
         {header}<s:Body><a/></s:Body></s:Envelope>"
    )
}

#[test]
fn a_wish_is_found_however_it_is_written() {
    for block in [
        "<p:compression>always</p:compression>",
        "<p:compression>\n Always </p:compression >",
        "<compression xmlns=\"urn:posthaste:wsqos\">always</compression>",
        "<q:x xmlns:q='a>b'><p:compression>never</p:compression></q:x><p:compression a='>'>al<!-- > -->ways</p:compression>",
        "<p:compression><![CDATA[always]]></p:compression><p:compression>never</p:compression>",
        "<x xmlns:p='urn:other'><y/></x><p:compression>always</p:compression>",
    ] {
        let text = envelope(&format!("<s:Header>{block}</s:Header>"));
        assert_eq!(scan(&text), soap(Some(Wish::Always)), "{text}");
    }
}

#[test]
fn the_sample_says_what_its_schema_allows() {
    let sample = include_str!("../../schema/request.xml");
    assert_eq!(scan(sample), soap(Some(Wish::IfPossible)));
    let schema = include_str!("../../schema/compression.xsd");
    assert!(schema.contains(&format!("targetNamespace=\"{EXTENSION_NAMESPACE}\"")));
    assert!(schema.contains(&format!("name=\"{COMPRESSION}\"")));
    for wish in Wish::ALL {
        let listed = schema.contains(&format!("<xs:enumeration value=\"{wish}\"/>"));
        assert_eq!(
            listed,
            Wish::from_word(wish.name().as_bytes()).is_some(),
            "{wish}"
        );
    }
}

#[test]
fn the_form_is_an_attribute_of_the_wish() {
    let block = |form: &str| {
        let text = format!("<s:Header><p:compression {form}>always</p:compression></s:Header>");
        scan(&envelope(&text))
    };
    let body = ScanResult::Soap {
        version: Version::Soap11,
        wish: Some(Wish::Always),
        form: Form::Body,
        is_unknown: false,
    };
    assert_eq!(block("form='body'"), body);
    assert_eq!(block("a='1'  form = \"body\" "), body);
    assert_eq!(block("form='content'"), soap(Some(Wish::Always)));
    assert_eq!(block("p:form='body'"), soap(Some(Wish::Always)));
    assert_eq!(block("form='Body'"), UNKNOWN);
}

#[test]
fn elements_that_resemble_a_wish_state_none() {
    for header in [
        "",
        "<s:Header/>",
        "<s:Header></s:Header><p:compression>always</p:compression>",
        "<p:compression>always</p:compression>",
        "<s:Header><x><p:compression>always</p:compression></x></s:Header>",
        "<s:Header><compression>always</compression></s:Header>",
        "<s:Header><p:compression xmlns:p='urn:other'>always</p:compression></s:Header>",
        "<s:Header><!-- <p:compression>always</p:compression> --></s:Header>",
        "<s:Header><x><![CDATA[<p:compression>always</p:compression>]]></x></s:Header>",
        "<Header><p:compression>always</p:compression></Header>",
    ] {
        assert_eq!(scan(&envelope(header)), soap(None), "{header}");
    }
    for word in [
        "",
        "allways",
        "always never",
        "a&#108;ways",
        "always<x/>",
        "<x>always</x>",
    ] {
        let block = format!("<s:Header><p:compression>{word}</p:compression></s:Header>");
        assert_eq!(scan(&envelope(&block)), UNKNOWN, "{word}");
    }
    assert_eq!(
        scan(&envelope("<s:Header><p:compression/></s:Header>")),
        UNKNOWN
    );
}

#[test]
fn other_messages_are_told_apart() {
    assert_eq!(scan("{\"a\": 1}"), ScanResult::NotSoap);
    assert_eq!(scan("<html><body>"), ScanResult::NotSoap);
    assert_eq!(scan("<Envelope xmlns='urn:x'>"), ScanResult::NotSoap);
    assert_eq!(scan("</a>"), ScanResult::NotSoap);
    assert_eq!(scan("<!doctype html><html>"), ScanResult::Doctype);
    assert_eq!(
        scan("<?xml version='1.0'?> <!DOCTYPE x [<!ENTITY y 'z'>]>"),
        ScanResult::Doctype
    );
    assert_eq!(scan("\u{FEFF}<a"), ScanResult::Unfinished);
    assert_eq!(scan(""), ScanResult::Unfinished);
    let mut utf16 = new(&Limits::default());
    utf16.feed(&[0xFF, 0xFE, b'<', 0]);
    assert_eq!(result(&utf16), ScanResult::Encoding);
}

#[test]
fn it_stops_at_the_body_and_at_its_limits() {
    let whole = envelope("<s:Header><x/></s:Header>");
    let end = whole.find("</s:Header>").unwrap() + "</s:Header>".len();
    assert_eq!(scan(&whole[..end - 1]), ScanResult::Unfinished);
    assert_eq!(scan(&whole[..end]), soap(None));
    let without = envelope("");
    let body = without.find("<s:Body>").unwrap() + "<s:Body>".len();
    assert_eq!(scan(&without[..body]), soap(None));

    let filled = |n: usize| envelope(&format!("<s:Header>{}</s:Header>", "<x/>".repeat(n)));
    assert_eq!(scan(&filled(16_000)), soap(None));
    assert_eq!(scan(&filled(17_000)), ScanResult::TooMuch, "64 KiB");
    let nested = |n: usize| envelope(&format!("<s:Header>{}", "<x>".repeat(n)));
    assert_eq!(scan(&nested(60)), ScanResult::Unfinished);
    assert_eq!(
        scan(&nested(61)),
        ScanResult::TooMuch,
        "depth 64, Body and its child counted"
    );
    let declared = |n: usize| {
        let all: String = (0..n).map(|i| format!(" xmlns:n{i}='u'")).collect();
        envelope(&format!("<s:Header><x{all}/></s:Header>"))
    };
    assert_eq!(scan(&declared(64)), soap(None));
    assert_eq!(scan(&declared(65)), ScanResult::TooMuch, "64 declarations");
}

/// A section end without a section start is not XML.
#[test]
fn the_end_of_a_section_without_its_beginning_is_no_xml() {
    let block = |text: &str| envelope(&format!("<a xmlns='urn:a'>{text}</a>"));
    for (text, is_xml) in [
        ("]]>", false),
        ("a]]]>b", false),
        ("a]>b]] >c]]&gt;", true),
        ("]<b/>]>", true),
        ("]]<!-- -->>", true),
        ("<![CDATA[a]]>", true),
        ("<![CDATA[a]]]]><![CDATA[>]]>", true),
        ("<b c=']]>'/>", true),
    ] {
        let message = block(text);
        let expected = if is_xml {
            soap(None)
        } else {
            ScanResult::NotSoap
        };
        assert_eq!(scan(&message), expected, "{message}");
        for cut in 0..message.len() {
            let pieces = in_pieces(message.as_bytes(), &[cut], &Limits::default());
            assert_eq!(pieces, expected, "{cut}: {message}");
        }
    }
}

#[test]
fn a_declaration_of_utf_16_is_believed() {
    for (encoding, expected) in [
        ("utf-8", soap(None)),
        ("UTF-16", ScanResult::Encoding),
        ("utf-16le", ScanResult::Encoding),
    ] {
        let message = format!(
            "<?xml version='1.0' encoding='{encoding}'?>{}",
            envelope("")
        );
        assert_eq!(scan(&message), expected, "{encoding}");
    }
}

fn in_pieces(text: &[u8], cuts: &[usize], limits: &Limits) -> ScanResult {
    let mut scan = new(limits);
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
    cuts.extend([0, text.len()]);
    cuts.sort_unstable();
    for piece in cuts.windows(2) {
        let wants = scan.feed(&text[piece[0]..piece[1]]);
        assert_eq!(wants, result(&scan) == ScanResult::Unfinished);
    }
    result(&scan)
}

/// Parts of envelopes, valid and invalid, to be combined in any order.
const BITS: &[&str] = &[
    "<?xml version=\"1.0\"?>",
    "<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\">",
    "<Envelope xmlns='http://www.w3.org/2003/05/soap-envelope' xmlns:s='http://www.w3.org/2003/05/soap-envelope'>",
    "<s:Header>",
    "<s:Header/>",
    "</s:Header>",
    "<compression xmlns=\"urn:posthaste:wsqos\">",
    "</compression>",
    "always",
    " never ",
    "<s:Body>",
    "</s:Body></s:Envelope>",
    "<x a='>' b=\"'/>\">",
    "</x>",
    "<y/>",
    "<!-- > -- -->",
    "<![CDATA[if-possible]]>",
    "<!DOCTYPE x>",
    "<",
    ">",
    "\u{FEFF}",
    "&amp;",
];

proptest! {
    #[test]
    fn cuts_change_nothing(
        bits in proptest::collection::vec(0..BITS.len(), 0..14),
        cuts in proptest::collection::vec(0usize..1500, 0..12),
        header in 1usize..600,
    ) {
        let text: String = bits.into_iter().map(|bit| BITS[bit]).collect();
        for limits in [Limits::default(), Limits { header, ..Limits::default() }] {
            let whole = in_pieces(text.as_bytes(), &[], &limits);
            prop_assert_eq!(in_pieces(text.as_bytes(), &cuts, &limits), whole);
            let bytes: Vec<usize> = (0..text.len()).collect();
            prop_assert_eq!(in_pieces(text.as_bytes(), &bytes, &limits), whole);
        }
    }
}

/// The expected result of this crate's scan for a document that the full scanner of `soap` accepts.
fn oracle(text: &str) -> Result<ScanResult, XmlError> {
    let limits = Limits::default();
    let mut whole = Scanner::new(text, &limits);
    while whole.token()? != Token::Eof {}
    let mut scanner = Scanner::new(text, &limits);
    let root = child(&mut scanner)?;
    let version = root.filter(|root| root.local == "Envelope");
    let Some(version) = version.and_then(|root| Version::from_namespace(&root.namespace)) else {
        return Ok(ScanResult::NotSoap);
    };
    let (mut found, mut form) = (None, Form::Content);
    while let Some(part) = child(&mut scanner)? {
        if part.is(version.namespace(), "Body") {
            break;
        }
        if !part.is(version.namespace(), "Header") {
            scanner.skip()?;
            continue;
        }
        while let Some(block) = child(&mut scanner)? {
            if !block.is(EXTENSION_NAMESPACE, COMPRESSION) || found.is_some() {
                scanner.skip()?;
                continue;
            }
            let wanted = scanner
                .attribute("form")
                .map(|form| Form::from_word(form.as_bytes()));
            let text = scanner.text()?;
            let wish = text.and_then(|text| Wish::from_word(text.trim().as_bytes()));
            found = Some(wish.filter(|_| wanted != Some(None)));
            form = wanted.flatten().unwrap_or_default();
        }
        break;
    }
    Ok(ScanResult::Soap {
        version,
        wish: found.flatten(),
        form: found.flatten().map_or(Form::Content, |_| form),
        is_unknown: found == Some(None),
    })
}

fn child<'a>(scanner: &mut Scanner<'a>) -> Result<Option<Name<'a>>, XmlError> {
    loop {
        match scanner.token()? {
            Token::Start(name) => return Ok(Some(name)),
            Token::End | Token::Eof => return Ok(None),
            Token::Text(_) => {}
        }
    }
}

/// Nested elements, comments, sections and text, with namespaces that shadow others.
fn content() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "always",
        " never\n",
        "if-possible",
        "text",
        "<!-- <p:x> -->",
        "<![CDATA[always]]>",
        "<e/>",
        "",
    ]);
    leaf.prop_map(str::to_owned)
        .prop_recursive(4, 24, 4, |inner| {
            let name = prop::sample::select(vec![
                "p:compression",
                "compression",
                "s:Header",
                "s:Body",
                "q:x",
                "x",
                "s:Envelope",
            ]);
            let attributes = prop::sample::select(vec![
                "",
                " xmlns='urn:posthaste:wsqos'",
                " xmlns:p='urn:other'",
                " xmlns:s='http://www.w3.org/2003/05/soap-envelope'",
                " xmlns=''",
                " a='/>' b=\"'>\"",
                " form='body'",
                " form='both' xmlns='urn:posthaste:wsqos'",
                "\n\tp:a = '1'",
            ]);
            let inside = prop::collection::vec(inner, 0..4);
            (name, attributes, inside).prop_map(|(name, attributes, inside)| {
                format!("<{name}{attributes}>{}</{name}>", inside.concat())
            })
        })
}

proptest! {
    #[test]
    fn it_agrees_with_a_reader_of_whole_documents(
        soap12: bool,
        header in prop::collection::vec(content(), 0..4),
        parts in prop::collection::vec(content(), 0..3),
        first: bool,
    ) {
        let version = if soap12 { Version::Soap12 } else { Version::Soap11 };
        let header = format!("<s:Header>{}</s:Header>", header.concat());
        let parts = parts.concat();
        let inside = if first { header + &parts } else { parts + &header };
        let text = format!(
            "<s:Envelope xmlns:s='{}' xmlns:p='{EXTENSION_NAMESPACE}' xmlns:q='urn:q'>{inside}</s:Envelope>",
            version.namespace(),
        );
        if let Ok(expected) = oracle(&text) {
            prop_assert_eq!(scan(&text), expected, "{}", text);
        }
    }
}
