//! The header scan of messages that stream by: cuts change nothing, what is kept is bounded by the
//! header, what comes behind it does not matter, and the scanner of whole documents is of one opinion.
//! A message that can be taken apart at its Body is as well-formed with its Body packed as it was.

use posthaste_compression::{COMPRESSION, Coding, Form, PreferenceBlock, ScanResult, Wish, packed};
use posthaste_qos::{Priorities, QosBlock};
use posthaste_soap::EXTENSION_NAMESPACE;
use posthaste_soap::head::{EnvelopeParts, HeadScan};
use posthaste_soap::xml::{Name, Scanner, Token, XmlError, decode};
use posthaste_soap::{Limits, Version};

use crate::cuts::Cut;
use crate::within;

/// Limits that a short input can meet.
const TIGHT: Limits = Limits {
    header: 200,
    depth: 6,
    namespaces: 3,
    scope: 5,
    ..Limits::description()
};

/// Both readers of header blocks, as in a gateway.
type Blocks = (PreferenceBlock, QosBlock);

/// All that a scan has found: its result, the priorities, the selected offer, and an invalid priority.
type Found = (ScanResult, Option<Priorities>, Option<String>, bool);

fn found(scan: &HeadScan<Blocks>) -> Found {
    let (preference, qos) = scan.blocks();
    (
        ScanResult::from_scan(scan.head(), preference),
        qos.priorities().cloned(),
        qos.selected().map(str::to_owned),
        qos.has_unread_priority(),
    )
}

/// Cuts and a message; the flag asks for tight limits.
pub fn soap_head(input: &[u8]) {
    let Some(cut) = Cut::from_input(input) else {
        return;
    };
    let limits = if cut.flag { TIGHT } else { Limits::default() };
    let head = cut.stream.len().min(limits.header);
    // What is cut is kept once, in a buffer that doubles; declarations beside it.
    let seen = within("HeadScan", head, 32, 16 << 10, || {
        let mut scan = HeadScan::new(&limits, Blocks::default());
        for piece in cut.pieces() {
            let wants_more = scan.feed(piece);
            assert_eq!(wants_more, found(&scan).0 == ScanResult::Unfinished);
        }
        found(&scan)
    });
    let whole = |bytes: &[u8]| {
        let mut scan = HeadScan::new(&limits, Blocks::default());
        scan.feed(bytes);
        found(&scan)
    };
    assert_eq!(whole(cut.stream), seen, "cuts change nothing");
    if seen.0 != ScanResult::Unfinished {
        let longer = [cut.stream, b"<&\xFF\x00"].concat();
        assert_eq!(whole(&longer), seen, "what has been seen settles it");
    }
    let seen = seen.0;
    packable(cut.stream, &limits);
    let text = std::str::from_utf8(cut.stream);
    let Some(text) = text.ok().filter(|text| !cut.flag && !text.contains('&')) else {
        return;
    };
    if let (Ok(expected), false) = (read(text, &limits), seen == ScanResult::TooMuch) {
        assert_eq!(seen, expected, "{text}");
    }
}

/// What is taken apart is the message, and packed it can be taken apart again.
fn packable(message: &[u8], limits: &Limits) {
    let Some(envelope) = EnvelopeParts::split(message, limits) else {
        return;
    };
    let EnvelopeParts {
        before,
        content,
        after,
    } = envelope;
    assert_eq!([before, content, after].concat(), message);
    let packed = packed(&envelope, Coding::Gzip, b"packed");
    let again = EnvelopeParts::split(&packed, limits).expect("a packed message has a Body");
    assert_eq!((again.before, again.after), (before, after));
    let whole = |message: &[u8]| {
        let text = std::str::from_utf8(message).ok()?;
        let mut scanner = Scanner::new(text, limits);
        while scanner.token().ok()? != Token::Eof {}
        Some(())
    };
    if whole(message).is_some() && limits.depth > 6 {
        assert_eq!(whole(&packed), Some(()), "it stays well-formed");
    }
}

/// What must be seen of a document that is whole and well-formed, without references.
fn read(text: &str, limits: &Limits) -> Result<ScanResult, XmlError> {
    let text = &*decode(text.as_bytes(), limits)?;
    let mut whole = Scanner::new(text, limits);
    while whole.token()? != Token::Eof {}
    let mut scanner = Scanner::new(text, limits);
    let root = child(&mut scanner)?.filter(|root| root.local == "Envelope");
    let Some(version) = root.and_then(|root| Version::from_namespace(&root.namespace)) else {
        return Ok(ScanResult::NotSoap);
    };
    let (mut word, mut form) = (None, Form::Content);
    while let Some(part) = child(&mut scanner)? {
        if part.is(version.namespace(), "Body") {
            break;
        }
        if part.is(version.namespace(), "Header") {
            while let Some(block) = child(&mut scanner)? {
                if word.is_none() && block.is(EXTENSION_NAMESPACE, COMPRESSION) {
                    let wanted = scanner
                        .attribute("form")
                        .map(|form| Form::from_word(form.as_bytes()));
                    let text = scanner.text()?;
                    word = Some(text.filter(|_| wanted != Some(None)));
                    form = wanted.flatten().unwrap_or_default();
                } else {
                    scanner.skip()?;
                }
            }
            break;
        }
        scanner.skip()?;
    }
    let is_blank = |c| matches!(c, ' ' | '\t' | '\n' | '\r');
    let wish = word
        .as_ref()
        .and_then(|word| Wish::from_word(word.as_deref()?.trim_matches(is_blank).as_bytes()));
    Ok(ScanResult::Soap {
        version,
        wish,
        form: wish.map_or(Form::Content, |_| form),
        is_unknown: word.is_some() && wish.is_none(),
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
