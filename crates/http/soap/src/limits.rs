//! Limits on the size and structure of a document.
//!
//! Limits are enforced while reading, so the limit and not the document bounds the cost of a rejection. The defaults
//! suit requests; [`Limits::description`] suits WSDL files.

use std::fmt;

/// Upper bounds of one document, and the permission of processing instructions. Each bound is inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of the whole document.
    pub total: usize,
    /// Nesting depth of elements.
    pub depth: usize,
    /// Attributes of one element, namespace declarations not counted.
    pub attributes: usize,
    /// Namespace declarations of one element.
    pub namespaces: usize,
    /// Namespace declarations in scope at one point. A prefix is searched among them.
    pub scope: usize,
    /// Bytes of one element or attribute name with its prefix, and of one namespace, which every element in it repeats.
    pub name: usize,
    /// Bytes of one attribute value, or of the text of one element.
    pub text: usize,
    /// Bytes of an envelope before its Body starts.
    pub header: usize,
    /// Child elements of a Body's first child that are kept as fields.
    pub fields: usize,
    /// Skips processing instructions like comments, as needed for published documents. By default they are rejected, as
    /// R1009 requires for messages.
    pub instructions: bool,
}

/// The name of a limit, for errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// [`Limits::total`].
    Total,
    /// [`Limits::depth`].
    Depth,
    /// [`Limits::attributes`].
    Attributes,
    /// [`Limits::namespaces`].
    Namespaces,
    /// [`Limits::scope`].
    Scope,
    /// [`Limits::name`].
    Name,
    /// [`Limits::text`].
    Text,
    /// [`Limits::header`].
    Header,
    /// [`Limits::fields`].
    Fields,
}

impl Limits {
    /// Limits for a description: 16 MiB in total, and longer texts, because documentation is text.
    pub const fn description() -> Self {
        Self {
            total: 16 << 20,
            text: 1 << 20,
            ..Self::request()
        }
    }

    const fn request() -> Self {
        Self {
            total: 1 << 20,
            depth: 64,
            attributes: 128,
            namespaces: 64,
            scope: 256,
            name: 1024,
            text: 256 << 10,
            header: 64 << 10,
            fields: 256,
            instructions: false,
        }
    }
}

impl Default for Limits {
    /// 1 MiB in total, 64 KiB before Body, depth 64, 128 attributes and 64 declarations per element.
    fn default() -> Self {
        Self::request()
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Total => "bytes in the document",
            Self::Depth => "elements inside one another",
            Self::Attributes => "attributes of one element",
            Self::Namespaces => "namespace declarations of one element",
            Self::Scope => "namespace declarations in scope",
            Self::Name => "bytes in a name or namespace",
            Self::Text => "bytes in one text",
            Self::Header => "bytes before Body",
            Self::Fields => "fields in one message",
        })
    }
}
