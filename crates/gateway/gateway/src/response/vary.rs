//! The names that compression adds to `Vary`.

use hyper::header::{HeaderMap, HeaderValue, VARY};
use posthaste_http::fields::split;

use crate::request::headers::field_lines;
use crate::request::varying::VaryingFields;

/// Adds Accept-Encoding and `fields`, as far as the upstream has not named them.
pub(super) fn extend(headers: &mut HeaderMap, fields: VaryingFields) {
    let (mut encoding, mut prefer, mut save_data) = (true, fields.prefer, fields.save_data);
    for name in field_lines(headers, VARY).flat_map(|line| split(line, b',')) {
        if name == b"*" {
            return;
        }
        encoding &= !name.eq_ignore_ascii_case(b"accept-encoding");
        prefer &= !name.eq_ignore_ascii_case(b"prefer");
        save_data &= !name.eq_ignore_ascii_case(b"save-data");
    }
    let names = match (encoding, prefer, save_data) {
        (false, false, false) => return,
        (true, false, false) => "accept-encoding",
        (true, true, false) => "accept-encoding, prefer",
        (true, false, true) => "accept-encoding, save-data",
        (true, true, true) => "accept-encoding, prefer, save-data",
        (false, true, false) => "prefer",
        (false, false, true) => "save-data",
        (false, true, true) => "prefer, save-data",
    };
    headers.append(VARY, HeaderValue::from_static(names));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_added_that_are_not_there() {
        let both = VaryingFields {
            prefer: true,
            save_data: true,
        };
        for (before, fields, after) in [
            (&[][..], VaryingFields::default(), &["accept-encoding"][..]),
            (&[], both, &["accept-encoding, prefer, save-data"]),
            (
                &["Accept-Encoding"],
                VaryingFields::default(),
                &["Accept-Encoding"],
            ),
            (
                &["origin, Accept-Encoding", "Prefer"],
                both,
                &["origin, Accept-Encoding", "Prefer", "save-data"],
            ),
            (&["*"], both, &["*"]),
        ] {
            let mut headers = HeaderMap::new();
            for line in before {
                headers.append(VARY, HeaderValue::from_static(line));
            }
            extend(&mut headers, fields);
            let lines: Vec<_> = headers.get_all(VARY).iter().collect();
            assert_eq!(lines, after, "{before:?}");
        }
    }
}
