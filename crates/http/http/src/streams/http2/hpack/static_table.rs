//! The static table (RFC 7541, appendix A).

use crate::streams::field_class::FieldClass;

/// Name and value of the entries, from index 1.
pub(super) const FIELDS: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

/// Index of the first entry of the dynamic table.
pub(super) const FIRST_DYNAMIC: usize = FIELDS.len() + 1;

/// The class of the names of an index. All values of the table are valid.
pub(super) fn class(index: usize) -> FieldClass {
    match index {
        1..=7 => FieldClass::OtherPseudo,
        8..=14 => FieldClass::Status,
        28 => FieldClass::ContentLength,
        57 => FieldClass::ConnectionSpecific,
        _ => FieldClass::Regular,
    }
}

/// Index of an entry with this name and value.
pub(super) fn index_of(name: &[u8], value: &[u8]) -> Option<usize> {
    let is_same = |field: &(&str, &str)| field.0.as_bytes() == name && field.1.as_bytes() == value;
    FIELDS.iter().position(is_same).map(|position| position + 1)
}

/// Index of the first entry with this name.
pub(super) fn index_of_name(name: &[u8]) -> Option<usize> {
    let is_same = |field: &(&str, &str)| field.0.as_bytes() == name;
    FIELDS.iter().position(is_same).map(|position| position + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_indices_are_those_of_the_fields() {
        for (index, (name, value)) in (1..).zip(FIELDS) {
            let expected = FieldClass::of_name(name.as_bytes()).with_value(value.as_bytes());
            assert_eq!(class(index), expected, "{name}");
        }
    }
}
