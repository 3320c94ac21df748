//! The fields of a plan's requests, each with a number.
//!
//! Most fields of a load are the same in every request. A connection then needs no strings to encode them: the number
//! leads to the bytes, or to the position in the table of the connection's field compression.

use thiserror::Error;

use crate::streams::field_class::{is_valid_name, is_valid_value};

/// Maximum number of constants, and of variable fields.
const LIMIT: usize = u16::MAX as usize;

/// Longest cookie that counts as a secret of low entropy (RFC 7541, section 7.1.3), in bytes. nghttp2 and Firefox have
/// the same limit.
const SHORT_COOKIE: usize = 20;

/// Number of a field with a constant value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConstantField(u16);

/// Number of a field whose value differs between requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VariableField(u16);

/// A field of one request. Pseudo-fields come first.
#[derive(Clone, Copy, Debug)]
pub enum RequestField<'a> {
    /// A field with a constant value.
    Constant(ConstantField),
    /// A field with the value of this request.
    Variable(VariableField, &'a [u8]),
}

/// A field that a request must not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InvalidField {
    /// The name.
    #[error("a field name has lower-case letters and no white space, control characters or colons")]
    Name,
    /// The value.
    #[error("a field value has no CR, LF or NUL, and no white space at its ends")]
    Value,
    /// A field that HTTP/2 and HTTP/3 forbid.
    #[error("fields about the connection are forbidden in HTTP/2 and HTTP/3")]
    ConnectionSpecific,
    /// More fields than the catalogue can number.
    #[error("more than {LIMIT} different fields")]
    TooMany,
}

/// A constant field: name, value, and whether it is a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Constant {
    pub(crate) name: Box<[u8]>,
    pub(crate) value: Box<[u8]>,
    pub(crate) secret: bool,
}

/// A name whose values differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Variable {
    pub(crate) name: Box<[u8]>,
    pub(crate) secret: bool,
}

/// The fields of all requests of a plan.
#[derive(Clone, Debug, Default)]
pub struct FieldCatalogue {
    constants: Vec<Constant>,
    variables: Vec<Variable>,
}

impl FieldCatalogue {
    /// Adds a constant field. Returns the earlier number of an equal one.
    pub fn constant(&mut self, name: &[u8], value: &[u8]) -> Result<ConstantField, InvalidField> {
        check_name(name)?;
        if !is_valid_value(value) {
            return Err(InvalidField::Value);
        }
        let short = value.len() < SHORT_COOKIE;
        let constant = Constant {
            name: name.into(),
            value: value.into(),
            secret: is_secret(name) && (name != b"cookie" || short),
        };
        number_of(&mut self.constants, constant).map(ConstantField)
    }

    /// Adds a field whose value differs between requests. Returns the earlier number of the same name.
    pub fn variable(&mut self, name: &[u8]) -> Result<VariableField, InvalidField> {
        check_name(name)?;
        let variable = Variable {
            name: name.into(),
            secret: is_secret(name),
        };
        number_of(&mut self.variables, variable).map(VariableField)
    }

    pub(crate) fn constants(&self) -> &[Constant] {
        &self.constants
    }

    pub(crate) fn variables(&self) -> &[Variable] {
        &self.variables
    }
}

impl ConstantField {
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl VariableField {
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// True if a proxy must not store the field in a compression table (RFC 7541, section 7.1.3).
fn is_secret(name: &[u8]) -> bool {
    const SECRET: &[&[u8]] = &[
        b"authorization",
        b"proxy-authorization",
        b"cookie",
        b"api-key",
        b"apikey",
        b"x-api-key",
        b"x-auth-token",
    ];
    SECRET.contains(&name)
}

fn check_name(name: &[u8]) -> Result<(), InvalidField> {
    const FORBIDDEN: &[&[u8]] = &[
        b"connection",
        b"keep-alive",
        b"proxy-connection",
        b"transfer-encoding",
        b"upgrade",
    ];
    if FORBIDDEN.contains(&name) {
        return Err(InvalidField::ConnectionSpecific);
    }
    if is_valid_name(name.strip_prefix(b":").unwrap_or(name)) {
        Ok(())
    } else {
        Err(InvalidField::Name)
    }
}

fn number_of<T: PartialEq>(list: &mut Vec<T>, item: T) -> Result<u16, InvalidField> {
    let known = list.iter().position(|other| *other == item);
    let index = known.unwrap_or(list.len());
    let number = u16::try_from(index).map_err(|_| InvalidField::TooMany)?;
    if known.is_none() {
        list.push(item);
    }
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_fields_have_one_number() {
        let mut fields = FieldCatalogue::default();
        let first = fields.constant(b":path", b"/").unwrap();
        assert_ne!(fields.constant(b":path", b"/a").unwrap(), first);
        assert_eq!(fields.constant(b":path", b"/").unwrap(), first);
        let name = fields.variable(b":path").unwrap();
        assert_eq!(fields.variable(b":path").unwrap(), name);
    }

    #[test]
    fn only_fields_of_http2_are_accepted() {
        let mut fields = FieldCatalogue::default();
        let mut field = |name: &[u8], value: &[u8]| fields.constant(name, value).unwrap_err();
        assert_eq!(field(b"Host", b"a"), InvalidField::Name);
        assert_eq!(field(b"::a", b"a"), InvalidField::Name);
        assert_eq!(field(b"a", b"b\r\n"), InvalidField::Value);
        assert_eq!(field(b"upgrade", b"a"), InvalidField::ConnectionSpecific);
    }

    #[test]
    fn keys_and_short_cookies_are_secret() {
        let mut fields = FieldCatalogue::default();
        fields.constant(b"authorization", &[b'a'; 99]).unwrap();
        fields.constant(b"cookie", b"a=1").unwrap();
        fields.constant(b"cookie", &[b'a'; 20]).unwrap();
        fields.constant(b"accept", b"*/*").unwrap();
        let secret: Vec<bool> = fields.constants().iter().map(|one| one.secret).collect();
        assert_eq!(secret, [true, true, false, false]);
    }
}
