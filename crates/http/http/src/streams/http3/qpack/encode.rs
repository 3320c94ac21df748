//! Encoding of field sections: from the fields of a plan, and from names and values.

use super::FieldPlan;
use super::plan::encode_field;
use crate::streams::catalogue::RequestField;
use crate::streams::prefix_string;

/// Required Insert Count and base of a section without a dynamic table (RFC 9204, section 4.5.1).
const PREFIX: [u8; 2] = [0, 0];

/// Appends the section of a request.
pub fn encode(plan: &FieldPlan, fields: &[RequestField<'_>], section: &mut Vec<u8>) {
    section.extend_from_slice(&PREFIX);
    for field in fields {
        match field {
            RequestField::Constant(field) => section.extend_from_slice(plan.constant(*field)),
            RequestField::Variable(field, value) => {
                section.extend_from_slice(plan.variable(*field));
                prefix_string::encode(0, 7, value, section);
            }
        }
    }
}

/// Appends the section of these fields, such as those of a reply. Names are in lower case.
pub fn encode_fields<'a>(
    fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    section: &mut Vec<u8>,
) {
    section.extend_from_slice(&PREFIX);
    for (name, value) in fields {
        encode_field(name, value, false, section);
    }
}

#[cfg(test)]
mod tests {
    use super::super::SectionDecoder;
    use super::*;
    use crate::streams::catalogue::FieldCatalogue;

    #[test]
    fn sections_return_and_name_static_entries() {
        let mut catalogue = FieldCatalogue::default();
        let constants = [
            (":method", "GET"),
            (":scheme", "https"),
            (":authority", "shop.example:8443"),
            (":path", "/books/by-isbn?isbn=3161484100"),
            ("accept", "*/*"),
            ("authorization", "Bearer x"),
            ("x-own", "\u{7f}\u{7f}\u{7f}"),
        ];
        let mut fields: Vec<RequestField<'_>> = constants
            .iter()
            .map(|(name, value)| {
                let field = catalogue.constant(name.as_bytes(), value.as_bytes());
                RequestField::Constant(field.unwrap())
            })
            .collect();
        let id = catalogue.variable(b"x-request-id").unwrap();
        fields.push(RequestField::Variable(id, b"4711"));
        let path = catalogue.variable(b":path").unwrap();
        fields.push(RequestField::Variable(path, b"/a"));
        let plan = FieldPlan::new(&catalogue);
        let mut section = Vec::new();
        encode(&plan, &fields, &mut section);
        // :method GET and :scheme https by index, :authority by name.
        assert_eq!(section[..5], *b"\x00\x00\xd1\xd7\x50");
        let mut decoded = Vec::new();
        SectionDecoder::default()
            .decode(&section, |field| {
                let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                decoded.push((text(field.name), text(field.value)));
            })
            .unwrap();
        let last = [("x-request-id", "4711"), (":path", "/a")];
        let expected: Vec<(String, String)> = constants
            .iter()
            .chain(&last)
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        assert_eq!(decoded, expected);
    }

    #[test]
    fn secrets_are_marked() {
        let mut catalogue = FieldCatalogue::default();
        let name = catalogue.constant(b"authorization", b"!").unwrap();
        let own = catalogue.constant(b"x-api-key", b"!").unwrap();
        let cookie = catalogue.variable(b"cookie").unwrap();
        let plan = FieldPlan::new(&catalogue);
        // Index 84 with the bit N.
        assert_eq!(plan.constant(name), b"\x7f\x45\x01!");
        assert_eq!(plan.constant(own)[0] & 0xf0, 0x30);
        assert_eq!(plan.variable(cookie), b"\x75");
    }
}
