//! Statuses: numbers, names, texts.

use posthaste_http::grpc::{Code, decode_message, encode_message};
use proptest::prelude::*;

#[test]
fn every_code_has_its_number_and_name() {
    for (number, code) in Code::ALL.into_iter().enumerate() {
        assert_eq!(usize::from(code.number()), number);
        assert_eq!(Code::from_number(number as u32), Some(code));
        assert_eq!(Code::read(number.to_string().as_bytes()), Some(code));
    }
    assert_eq!(Code::NotFound.name(), "NOT_FOUND");
    assert_eq!(Code::Unauthenticated.number(), 16);
    assert_eq!(Code::from_number(17), None);
}

#[test]
fn undefined_statuses_are_unknown_and_other_texts_invalid() {
    assert_eq!(Code::read(b"17"), Some(Code::Unknown));
    assert_eq!(Code::read(b"999999999"), Some(Code::Unknown));
    assert_eq!(Code::read(b"05"), Some(Code::NotFound));
    for text in ["", "-1", "+5", " 5", "5 ", "1.0", "OK", "9999999999"] {
        assert_eq!(Code::read(text.as_bytes()), None, "{text:?}");
    }
}

#[test]
fn http_statuses_have_the_codes_of_the_specification() {
    for (status, code) in [
        (400, Code::Internal),
        (401, Code::Unauthenticated),
        (403, Code::PermissionDenied),
        (404, Code::Unimplemented),
        (429, Code::Unavailable),
        (502, Code::Unavailable),
        (503, Code::Unavailable),
        (504, Code::Unavailable),
        (200, Code::Unknown),
        (500, Code::Unknown),
    ] {
        assert_eq!(Code::from_http(status), code, "{status}");
    }
}

#[test]
fn texts_are_percent_encoded() {
    assert_eq!(encode_message("no such book"), "no such book");
    assert_eq!(encode_message("100 % \u{fc}bel\n"), "100 %25 %C3%BCbel%0A");
    assert_eq!(decode_message(b"100 %25 %C3%BCbel%0a"), "100 % \u{fc}bel\n");
    // A status is not lost for its text.
    assert_eq!(decode_message(b"50 % of %zz %4"), "50 % of %zz %4");
    assert_eq!(decode_message(b"%ff"), "\u{fffd}");
}

proptest! {
    #[test]
    fn every_text_survives(text in "\\PC*|(?s).*") {
        let encoded = encode_message(&text);
        prop_assert!(encoded.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
        prop_assert_eq!(decode_message(encoded.as_bytes()), text);
    }

    #[test]
    fn any_bytes_have_a_text(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let _ = decode_message(&bytes);
        let _ = Code::read(&bytes);
    }
}
