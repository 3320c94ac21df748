//! Fixed numbers of bytes in hexadecimal: digests and identities.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// `N` bytes, written as lower-case hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hex<const N: usize>(pub [u8; N]);

/// A text that is not such bytes. Omits the text, which may be a key by mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("expected {digits} hexadecimal digits: `printf %s KEY | sha256sum` writes those of a key")]
pub struct HexError {
    digits: usize,
}

impl<const N: usize> FromStr for Hex<N> {
    type Err = HexError;

    fn from_str(text: &str) -> Result<Self, HexError> {
        let wrong = HexError { digits: 2 * N };
        let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
        if text.len() != 2 * N {
            return Err(wrong);
        }
        let mut bytes = [0; N];
        for (byte, pair) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let (high, low) = (digit(pair[0]).ok_or(wrong)?, digit(pair[1]).ok_or(wrong)?);
            *byte = high << 4 | low;
        }
        Ok(Self(bytes))
    }
}

impl<const N: usize> fmt::Display for Hex<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl<const N: usize> fmt::Debug for Hex<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<const N: usize> Serialize for Hex<N> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de, const N: usize> Deserialize<'de> for Hex<N> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(from)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_return_from_their_text() {
        let bytes: Hex<3> = Hex([0, 0xab, 0xff]);
        assert_eq!(bytes.to_string(), "00abff");
        assert_eq!("00ABff".parse(), Ok(bytes));
    }

    #[test]
    fn other_texts_are_rejected_and_not_shown() {
        for text in ["", "00abf", "00abff0", "00abfg", "+0abff", "ää"] {
            let error = text.parse::<Hex<3>>().unwrap_err().to_string();
            assert!(error.contains("6 hexadecimal digits"), "{error}");
            assert!(text.is_empty() || !error.contains(text), "{error}");
        }
    }
}
