//! The value of a grpc-timeout field.

use posthaste_http::fields::grpc_timeout as parse;

use crate::within;

/// Any bytes as the value of the field: a length of time only for the form of the specification, and the right one.
pub fn grpc_timeout(bytes: &[u8]) {
    let timeout = within("grpc_timeout", bytes.len(), 0, 0, || parse(bytes));
    let Some(timeout) = timeout else {
        // What is in that form is understood.
        let digits = bytes
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        let is_form = (1..=8).contains(&digits)
            && bytes.len() == digits + 1
            && b"HMSmun".contains(&bytes[digits]);
        assert!(!is_form, "{bytes:?} is not understood");
        return;
    };
    let text = std::str::from_utf8(bytes).expect("digits and a letter");
    let (digits, unit) = text.split_at(text.len() - 1);
    assert!((1..=8).contains(&digits.len()), "{text}");
    let count: u128 = digits.parse().expect("a number");
    let nanos = match unit {
        "H" => 3_600_000_000_000,
        "M" => 60_000_000_000,
        "S" => 1_000_000_000,
        "m" => 1_000_000,
        "u" => 1_000,
        "n" => 1,
        other => panic!("{other:?} is no unit"),
    };
    assert_eq!(timeout.as_nanos(), count * nanos, "{text}");
}
