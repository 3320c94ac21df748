//! Reads a request: version, header blocks, the Body's only child and its simple fields.
//!
//! One pass, no tree. The whole message is read before anything is returned, so a message with an error near its end
//! has no effect. Header blocks are checked before the Body (R1025).

use std::borrow::Cow;

use thiserror::Error;

use crate::fault::{Code, Fault};
use crate::limits::{Limit, Limits};
use crate::version::Version;
use crate::xml::{Name, Scanner, Token, XmlError, shortened};

/// Maximum number of header blocks in an error message.
const NAMED: usize = 4;

/// Maximum number of quoted characters of a value in an error message.
const QUOTED: usize = 40;

/// A child of Header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderBlock<'a> {
    /// Its name.
    pub name: Name<'a>,
    /// The sender requires that the block is understood.
    pub must_understand: bool,
    /// `actor` in SOAP 1.1, `role` in SOAP 1.2. `None` means the ultimate receiver, this service.
    pub role: Option<Cow<'a, str>>,
}

/// A child of the Body's child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// Its name.
    pub name: Name<'a>,
    /// Its text, or `None` if it has child elements.
    pub text: Option<Cow<'a, str>>,
}

/// A request that obeys every rule that does not depend on the service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The envelope's version.
    pub version: Version,
    /// The header blocks, in order.
    pub headers: Vec<HeaderBlock<'a>>,
    /// Name of the Body's child, the operation.
    pub operation: Name<'a>,
    /// The children of that element, in order.
    pub fields: Vec<Field<'a>>,
}

/// Reason for the rejection of a request. [`Refusal::fault`] is the reply.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// Not XML, or larger than the limits allow.
    #[error("{0}")]
    Xml(#[from] XmlError),
    /// The root is not an envelope.
    #[error("the root element is {0:?}, not an Envelope")]
    NotAnEnvelope(String),
    /// R1015: an unknown version, or another one than that of the media type.
    #[error(
        "the envelope's namespace is {0:?}: send SOAP 1.1 as text/xml or SOAP 1.2 as application/soap+xml (R1015)"
    )]
    VersionMismatch(String),
    /// R1027: mandatory header blocks that the service does not understand.
    #[error("header blocks that must be understood are not: {0} (R1027)")]
    MustUnderstand(String),
    /// R1013: a value other than 0 or 1 (SOAP 1.2 also has true and false).
    #[error("mustUnderstand is {0:?}: write 0 or 1 (R1013)")]
    MustUnderstandValue(String),
    /// R1011, or another element in place of Header or Body.
    #[error(
        "{0:?} is not allowed here: an Envelope has one Header at most, then one Body and nothing after it (R1011)"
    )]
    Misplaced(String),
    /// There is no Body.
    #[error("the Envelope has no Body")]
    NoBody,
    /// The Body has no child and therefore no operation (R2201).
    #[error("the Body is empty")]
    EmptyBody,
    /// The Body has more than one child (R2201, R2210).
    #[error("the Body has a second child, {0:?}: one is allowed (R2201)")]
    SecondChild(String),
    /// R1014: a child of Body without a namespace.
    #[error("the Body's child {0:?} has no namespace (R1014)")]
    Unqualified(String),
}

impl Refusal {
    /// The fault to reply with.
    pub fn fault(&self) -> Fault {
        let code = match self {
            Self::VersionMismatch(_) => Code::VersionMismatch,
            Self::MustUnderstand(_) => Code::MustUnderstand,
            _ => Code::Client,
        };
        Fault::new(code, self.to_string())
    }
}

impl<'a> Request<'a> {
    /// Reads the envelope in `text`.
    ///
    /// `expected` is the version of the media type. `understood` lists the header blocks (namespace, local name) that
    /// the caller handles. Any other mandatory block causes a rejection.
    pub fn read(
        text: &'a str,
        expected: Version,
        limits: &Limits,
        understood: &[(&str, &str)],
    ) -> Result<Self, Refusal> {
        let mut scanner = Scanner::new(text, limits);
        let version = read_root(&mut scanner, expected)?;
        let mut headers = Vec::new();
        let mut seen_header = false;
        loop {
            let child = read_child(&mut scanner)?.ok_or(Refusal::NoBody)?;
            if scanner.position() > limits.header {
                return Err(XmlError::Limit {
                    limit: Limit::Header,
                    allowed: limits.header,
                    position: scanner.position(),
                }
                .into());
            }
            if child.is(version.namespace(), "Body") {
                break;
            }
            if !child.is(version.namespace(), "Header") || seen_header {
                return Err(Refusal::Misplaced(child.local.to_owned()));
            }
            seen_header = true;
            read_header(&mut scanner, version, limits, &mut headers)?;
            judge_headers(version, &headers, understood)?;
        }
        let (operation, fields) = read_body(&mut scanner, limits)?;
        if let Some(extra) = read_child(&mut scanner)? {
            return Err(Refusal::Misplaced(extra.local.to_owned()));
        }
        while scanner.token()? != Token::Eof {}
        Ok(Self {
            version,
            headers,
            operation,
            fields,
        })
    }

    /// A scanner that has just started the first field called `local` of the envelope in `text`. The envelope must be
    /// one that [`Request::read`] has accepted. `None` without such a field.
    pub fn enter(text: &'a str, limits: &Limits, local: &str) -> Option<Scanner<'a>> {
        let mut scanner = Scanner::new(text, limits);
        // The envelope; its children up to Body; the operation; its children.
        read_child(&mut scanner).ok()??;
        while read_child(&mut scanner).ok()??.local != "Body" {
            scanner.skip().ok()?;
        }
        read_child(&mut scanner).ok()??;
        while read_child(&mut scanner).ok()??.local != local {
            scanner.skip().ok()?;
        }
        Some(scanner)
    }

    /// Text of the first field called `local`, in any namespace.
    pub fn field(&self, local: &str) -> Option<&str> {
        let found = self.fields.iter().find(|field| field.name.local == local)?;
        found.text.as_deref()
    }
}

fn read_root(scanner: &mut Scanner<'_>, expected: Version) -> Result<Version, Refusal> {
    let Some(root) = read_child(scanner)? else {
        return Err(Refusal::NotAnEnvelope(String::new()));
    };
    if root.local != "Envelope" {
        return Err(Refusal::NotAnEnvelope(root.local.to_owned()));
    }
    match Version::from_namespace(&root.namespace) {
        Some(version) if version == expected => Ok(version),
        _ => Err(Refusal::VersionMismatch(root.namespace.into_owned())),
    }
}

/// Name of the next child element, or `None` at the end of the parent. White space is skipped.
fn read_child<'a>(scanner: &mut Scanner<'a>) -> Result<Option<Name<'a>>, XmlError> {
    loop {
        match scanner.token()? {
            Token::Start(name) => return Ok(Some(name)),
            Token::End | Token::Eof => return Ok(None),
            Token::Text(text) if text.trim().is_empty() => {}
            Token::Text(_) => {
                return Err(XmlError::Malformed {
                    violation: "text where only elements may be".to_owned(),
                    position: scanner.position(),
                });
            }
        }
    }
}

fn read_header<'a>(
    scanner: &mut Scanner<'a>,
    version: Version,
    limits: &Limits,
    headers: &mut Vec<HeaderBlock<'a>>,
) -> Result<(), Refusal> {
    while let Some(name) = read_child(scanner)? {
        let (mut must_understand, mut role) = (false, None);
        for attribute in scanner.attributes() {
            if attribute.name.namespace != version.namespace() {
                continue;
            }
            match (attribute.name.local, version) {
                ("mustUnderstand", _) => {
                    must_understand = match (&*attribute.value, version) {
                        ("1", _) | ("true", Version::Soap12) => true,
                        ("0", _) | ("false", Version::Soap12) => false,
                        (other, _) => {
                            return Err(Refusal::MustUnderstandValue(shortened(other, QUOTED)));
                        }
                    }
                }
                ("actor", Version::Soap11) | ("role", Version::Soap12) => {
                    role = Some(attribute.value.clone());
                }
                _ => {}
            }
        }
        headers.push(HeaderBlock {
            name,
            must_understand,
            role,
        });
        scanner.skip()?;
        if scanner.position() > limits.header {
            break; // the caller reports it with the position
        }
    }
    Ok(())
}

fn judge_headers(
    version: Version,
    headers: &[HeaderBlock<'_>],
    understood: &[(&str, &str)],
) -> Result<(), Refusal> {
    let unknown: Vec<String> = headers
        .iter()
        .filter(|block| block.must_understand && version.is_ours(block.role.as_deref()))
        .filter(|block| {
            !understood
                .iter()
                .any(|(ns, local)| block.name.is(ns, local))
        })
        .map(|block| format!("{{{}}}{}", block.name.namespace, block.name.local))
        .collect();
    let mut named = unknown[..unknown.len().min(NAMED)].join(", ");
    if unknown.len() > NAMED {
        named.push_str(&format!(" and {} more", unknown.len() - NAMED));
    }
    if unknown.is_empty() {
        Ok(())
    } else {
        Err(Refusal::MustUnderstand(named))
    }
}

fn read_body<'a>(
    scanner: &mut Scanner<'a>,
    limits: &Limits,
) -> Result<(Name<'a>, Vec<Field<'a>>), Refusal> {
    let operation = read_child(scanner)?.ok_or(Refusal::EmptyBody)?;
    if operation.namespace.is_empty() {
        return Err(Refusal::Unqualified(operation.local.to_owned()));
    }
    let mut fields = Vec::new();
    while let Some(name) = read_child(scanner)? {
        if fields.len() == limits.fields {
            return Err(XmlError::Limit {
                limit: Limit::Fields,
                allowed: limits.fields,
                position: scanner.position(),
            }
            .into());
        }
        let text = scanner.text()?;
        fields.push(Field { name, text });
    }
    match read_child(scanner)? {
        None => Ok((operation, fields)),
        Some(second) => Err(Refusal::SecondChild(second.local.to_owned())),
    }
}
