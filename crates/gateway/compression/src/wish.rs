//! Wishes of a client about compression, by source, and the form of the reply.
//!
//! The papers give a client three options in its request: do not compress, compress, compress if possible ("Performance
//! Considerations for Mobile Web Services", section 5). A client without any of them has stated no preference. Policies
//! treat that as "if possible", and it is counted separately.

use std::fmt;

use schemars::JsonSchema;

/// A client's wish for one reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, JsonSchema)]
#[schemars(rename_all = "kebab-case", inline)]
pub enum Wish {
    /// Do not compress.
    Never,
    /// Compress at any load.
    Always,
    /// Compress if the server has the CPU time.
    IfPossible,
    /// No preference.
    #[default]
    Unstated,
}

/// Form of a compressed reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Form {
    /// The whole content, as in HTTP: Content-Encoding.
    #[default]
    Content,
    /// The content of the SOAP Body, as in the papers, for clients that cannot decode content. See
    /// [`packed`](crate::packed).
    Body,
}

/// Source of a preference, in order of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The `compression` header block of the request's SOAP envelope.
    SoapHeader,
    /// `Accept-Encoding` that refuses every coding, or the uncompressed reply.
    AcceptEncoding,
    /// `Prefer: compression=...`.
    Prefer,
    /// `Save-Data: on`.
    SaveData,
    /// The service's description, for calls that state nothing.
    Wsdl,
    /// The route's default.
    Route,
}

impl Wish {
    /// Every preference.
    pub const ALL: [Self; 4] = [Self::Never, Self::Always, Self::IfPossible, Self::Unstated];

    /// Parses one of the three words that a client can state, ignoring case.
    pub fn from_word(word: &[u8]) -> Option<Self> {
        let stated = [Self::Never, Self::Always, Self::IfPossible];
        stated
            .into_iter()
            .find(|wish| word.eq_ignore_ascii_case(wish.name().as_bytes()))
    }

    /// Its name: the word of a client and the label of metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Always => "always",
            Self::IfPossible => "if-possible",
            Self::Unstated => "unstated",
        }
    }
}

impl Form {
    /// Parses one of the two words of the attribute `form`, in lower case.
    pub fn from_word(word: &[u8]) -> Option<Self> {
        match word {
            b"content" => Some(Self::Content),
            b"body" => Some(Self::Body),
            _ => None,
        }
    }
}

impl Origin {
    /// Every origin, in order of precedence.
    pub const ALL: [Self; 6] = [
        Self::SoapHeader,
        Self::AcceptEncoding,
        Self::Prefer,
        Self::SaveData,
        Self::Wsdl,
        Self::Route,
    ];

    /// Its name in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SoapHeader => "soap-header",
            Self::AcceptEncoding => "accept-encoding",
            Self::Prefer => "prefer",
            Self::SaveData => "save-data",
            Self::Wsdl => "wsdl",
            Self::Route => "route",
        }
    }
}

impl fmt::Display for Wish {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_words_are_read() {
        for wish in Wish::ALL {
            let read = Wish::from_word(wish.name().to_uppercase().as_bytes());
            assert_eq!(read, (wish != Wish::Unstated).then_some(wish));
        }
    }
}
