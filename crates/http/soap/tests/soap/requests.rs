//! Requests: one test per rule of WS-I Basic Profile that a program can check.

use posthaste_soap::xml::XmlError;
use posthaste_soap::{Code, Detail, Fault, Limits, Refusal, Request, Version, reply, write, xml};
use proptest::prelude::*;

use crate::{envelope, read};

const BOTH: [Version; 2] = [Version::Soap11, Version::Soap12];
const BODY: &str = "<e:Body><o:Ask xmlns:o='urn:o'><isbn>1</isbn></o:Ask></e:Body>";

fn code(refusal: &Refusal) -> Code {
    refusal.fault().code
}

#[test]
fn a_plain_request_gives_its_operation_and_fields() {
    for version in BOTH {
        let inside = "<e:Header/><e:Body><o:Ask xmlns:o='urn:o' xmlns='urn:p'>\
             <o:a> x&amp;<![CDATA[<y>]]>&#x41; </o:a><b/><c><d/>t<d/></c><e>after</e></o:Ask></e:Body>";
        let text = envelope(version, inside);
        let request = Request::read(&text, version, &Limits::default(), &[]).unwrap();
        assert!(request.operation.is("urn:o", "Ask"));
        assert_eq!(request.field("a"), Some(" x&<y>A "));
        assert_eq!(request.field("b"), Some(""));
        assert_eq!(request.field("c"), None, "it has a structure");
        assert_eq!(request.field("e"), Some("after"));
        assert!(request.fields[0].name.is("urn:o", "a") && request.fields[1].name.is("urn:p", "b"));
    }
}

#[test]
fn r1008_no_doctype() {
    let text = format!("<!DOCTYPE x>{}", envelope(Version::Soap11, BODY));
    let refusal = read(&text, Version::Soap11).unwrap_err();
    assert_eq!(refusal, Refusal::Xml(XmlError::Doctype { position: 0 }));
    assert_eq!(code(&refusal), Code::Client);
}

#[test]
fn r1009_no_processing_instruction() {
    let text = envelope(
        Version::Soap11,
        &BODY.replace("1</isbn>", "<?php 1?></isbn>"),
    );
    let refusal = read(&text, Version::Soap11).unwrap_err();
    assert!(
        matches!(refusal, Refusal::Xml(XmlError::Instruction { .. })),
        "{refusal}"
    );
    let declared = format!("<?xml version='1.0'?>{}", envelope(Version::Soap11, BODY));
    assert_eq!(
        read(&declared, Version::Soap11).unwrap(),
        "Ask",
        "an XML declaration is none"
    );
}

#[test]
fn r1011_nothing_after_body() {
    for version in BOTH {
        let after = envelope(version, &format!("{BODY}<x xmlns='urn:x'/>"));
        assert_eq!(
            read(&after, version).unwrap_err(),
            Refusal::Misplaced("x".to_owned())
        );
        let header = envelope(version, &format!("{BODY}<e:Header/>"));
        assert!(matches!(read(&header, version), Err(Refusal::Misplaced(_))));
        let two = envelope(version, &format!("<e:Header/><e:Header/>{BODY}"));
        assert!(matches!(read(&two, version), Err(Refusal::Misplaced(_))));
    }
}

#[test]
fn r1012_utf_8_or_utf_16() {
    let text = envelope(Version::Soap11, &BODY.replace(">1<", ">é€𝄞<"));
    let limits = Limits::default();
    for (mark, bytes) in [
        (
            [0xFF, 0xFE],
            text.encode_utf16()
                .flat_map(u16::to_le_bytes)
                .collect::<Vec<_>>(),
        ),
        (
            [0xFE, 0xFF],
            text.encode_utf16()
                .flat_map(u16::to_be_bytes)
                .collect::<Vec<_>>(),
        ),
    ] {
        let document = [&mark[..], &bytes].concat();
        let decoded = xml::decode(&document, &limits).unwrap();
        let request = Request::read(&decoded, Version::Soap11, &limits, &[]).unwrap();
        assert_eq!(request.field("isbn"), Some("é€𝄞"));
    }
    let latin = format!("<?xml version='1.0' encoding='ISO-8859-1'?>{text}");
    let refusal = read(&latin, Version::Soap11).unwrap_err();
    assert!(refusal.to_string().contains("R1012"), "{refusal}");
    let bad = xml::decode(b"<a>\xE9</a>", &limits).unwrap_err();
    assert!(
        matches!(bad, XmlError::Encoding { position: 3, .. }),
        "{bad}"
    );
}

#[test]
fn r1013_must_understand_is_0_or_1() {
    let header = |value: &str| {
        format!("<e:Header><h:X xmlns:h='urn:h' e:mustUnderstand='{value}'/></e:Header>{BODY}")
    };
    for (value, soap11, soap12) in [
        ("0", true, true),
        ("true", false, false),
        ("false", false, true),
        ("yes", false, false),
    ] {
        for (version, good) in [(Version::Soap11, soap11), (Version::Soap12, soap12)] {
            let outcome = read(&envelope(version, &header(value)), version);
            assert_eq!(outcome.is_ok(), good, "{value} in {version:?}: {outcome:?}");
        }
    }
    let wrong = read(&envelope(Version::Soap11, &header("2")), Version::Soap11).unwrap_err();
    assert_eq!(
        (code(&wrong), wrong.to_string().contains("R1013")),
        (Code::Client, true)
    );
}

#[test]
fn r1014_body_children_are_qualified() {
    let text = envelope(Version::Soap11, "<e:Body><Ask/></e:Body>");
    assert_eq!(
        read(&text, Version::Soap11).unwrap_err(),
        Refusal::Unqualified("Ask".to_owned())
    );
}

#[test]
fn r1015_another_namespace_is_a_version_mismatch() {
    let text = format!("<e:Envelope xmlns:e='urn:soap2'>{BODY}</e:Envelope>");
    let refusal = read(&text, Version::Soap11).unwrap_err();
    assert_eq!(code(&refusal), Code::VersionMismatch);
    // An envelope of another version than that of the media type is a mismatch, too.
    let other = read(&envelope(Version::Soap12, BODY), Version::Soap11).unwrap_err();
    assert_eq!(code(&other), Code::VersionMismatch);
    let none = read("<html/>", Version::Soap11).unwrap_err();
    assert_eq!(code(&none), Code::Client);
}

#[test]
fn r1025_and_r1027_mandatory_headers_are_understood_or_refused() {
    for version in BOTH {
        let (actor, foreign) = match version {
            Version::Soap11 => ("actor", "role"),
            Version::Soap12 => ("role", "actor"),
        };
        let header = |name: &str, role: &str| {
            format!(
                "<e:Header><h:{name} xmlns:h='urn:h' e:mustUnderstand='1'{role}>x<y/></h:{name}></e:Header>"
            )
        };
        let known = envelope(version, &(header("Known", "") + BODY));
        assert_eq!(read(&known, version).unwrap(), "Ask");
        // Checked before the Body: errors in the Body no longer matter (R1025).
        let unknown = envelope(
            version,
            &(header("Strange", "") + "<e:Body><Ask/></e:Body>"),
        );
        let refusal = read(&unknown, version).unwrap_err();
        assert_eq!(
            refusal,
            Refusal::MustUnderstand("{urn:h}Strange".to_owned())
        );
        assert_eq!(
            (code(&refusal), refusal.fault().status(version)),
            (Code::MustUnderstand, 500)
        );
        let elsewhere = envelope(
            version,
            &(header("Strange", &format!(" e:{actor}='urn:somebody'")) + BODY),
        );
        assert_eq!(
            read(&elsewhere, version).unwrap(),
            "Ask",
            "it is for another"
        );
        // The other version's attribute has no effect: the block is for us.
        let ours = elsewhere.replace(&format!(" e:{actor}="), &format!(" e:{foreign}="));
        assert_eq!(
            code(&read(&ours, version).unwrap_err()),
            Code::MustUnderstand
        );
    }
}

#[test]
fn r2201_one_child_of_body() {
    let two = envelope(
        Version::Soap11,
        "<e:Body><a xmlns='urn:a'/><b xmlns='urn:a'/></e:Body>",
    );
    assert_eq!(
        read(&two, Version::Soap11).unwrap_err(),
        Refusal::SecondChild("b".to_owned())
    );
    let none = envelope(Version::Soap11, "<e:Body/>");
    assert_eq!(
        read(&none, Version::Soap11).unwrap_err(),
        Refusal::EmptyBody
    );
    assert_eq!(
        read(&envelope(Version::Soap11, ""), Version::Soap11).unwrap_err(),
        Refusal::NoBody
    );
}

#[test]
fn r1000_r1001_r1031_faults_hold_what_they_may() {
    for code in [
        Code::VersionMismatch,
        Code::MustUnderstand,
        Code::Client,
        Code::Server,
    ] {
        for version in BOTH {
            let mut fault = Fault::new(code, "because <it> & \"that\"");
            fault.detail = Some(Detail {
                namespace: "urn:d",
                name: "Why",
                fields: vec![("a", "1<2".to_owned())],
            });
            let text = fault.envelope(version);
            assert!(!code.name(version).contains('.'), "R1031");
            let limits = Limits::default();
            let mut scanner = xml::Scanner::new(&text, &limits);
            let mut names = Vec::new();
            loop {
                match scanner.token().unwrap() {
                    xml::Token::Start(name) if scanner.depth() == 4 => names.push(name),
                    xml::Token::Eof => break,
                    _ => {}
                }
            }
            let written: Vec<_> = names.iter().map(|name| name.local).collect();
            match version {
                Version::Soap11 => {
                    assert_eq!(written, ["faultcode", "faultstring", "detail"]);
                    assert!(names.iter().all(|name| name.namespace.is_empty()), "R1001");
                }
                Version::Soap12 => {
                    assert_eq!(written, ["Code", "Reason", "Detail"]);
                    assert!(
                        names
                            .iter()
                            .all(|name| name.namespace == version.namespace())
                    );
                }
            }
            let status = fault.status(version);
            assert_eq!(
                status == 400,
                version == Version::Soap12 && code == Code::Client
            );
        }
    }
}

proptest! {
    #[test]
    fn fields_come_back_as_they_were_written(values in proptest::collection::vec("\\PC{0,30}", 0..8)) {
        for version in BOTH {
            let mut text = String::new();
            write::open(version, &mut text);
            text.push_str("<o:Ask xmlns:o='urn:o'>");
            for (n, value) in values.iter().enumerate() {
                write::element(&format!("f{n}"), value, &mut text);
            }
            text.push_str("</o:Ask>");
            write::close(&mut text);
            let request = Request::read(&text, version, &Limits::default(), &[]).unwrap();
            for (n, value) in values.iter().enumerate() {
                prop_assert_eq!(request.field(&format!("f{n}")), Some(&**value));
            }
            prop_assert_eq!(reply::inspect(text.as_bytes()), reply::Inspection::Reply(version));
        }
    }

    #[test]
    fn a_fault_is_inspected_as_it_was_written(reason in "[^\\p{C}\\s]{1,20}( [^\\p{C}\\s]{1,20}){0,3}") {
        for version in BOTH {
            let text = Fault::new(Code::Server, reason.clone()).envelope(version);
            let code = Code::Server.name(version).to_owned();
            let expected = reply::Inspection::Fault { version, code, reason: reason.clone() };
            prop_assert_eq!(reply::inspect(text.as_bytes()), expected);
        }
    }
}
