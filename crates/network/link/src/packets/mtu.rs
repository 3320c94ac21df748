//! The MTU of the network behind a link.

use std::fmt;
use std::str::FromStr;

use crate::SpellingError;

/// Smallest MTU of IPv6 (RFC 8200, section 5), below which Linux reduces no path.
const SMALLEST: u32 = 1280;
/// Largest packet of the devices.
const LARGEST: u32 = 1500;

/// The MTU behind a link: longer packets that may not be fragmented are dropped at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mtu {
    /// Maximum number of bytes of an IP packet, 1280 to 1500.
    pub bytes: u32,
    /// Drops without a message to the sender: a black hole (RFC 2923, section 2.1).
    pub silent: bool,
}

impl FromStr for Mtu {
    type Err = SpellingError;

    /// Parses `1400`, or `1400,silent` without messages.
    fn from_str(text: &str) -> Result<Self, SpellingError> {
        let wrong = || {
            SpellingError::new(
                text,
                "an MTU",
                "1280 to 1500, with ,silent behind it to send no messages",
            )
        };
        let (bytes, silent) = match text.strip_suffix(",silent") {
            Some(bytes) => (bytes, true),
            None => (text, false),
        };
        let bytes: u32 = bytes.parse().map_err(|_| wrong())?;
        if (SMALLEST..=LARGEST).contains(&bytes) {
            Ok(Self { bytes, silent })
        } else {
            Err(wrong())
        }
    }
}

impl fmt::Display for Mtu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let silent = if self.silent { ",silent" } else { "" };
        write!(f, "{}{silent}", self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_what_it_reads_and_refuses_with_the_remedy() {
        for text in ["1280", "1400", "1500,silent"] {
            assert_eq!(text.parse::<Mtu>().unwrap().to_string(), text);
        }
        for text in ["", "1279", "1501", "1400B", "1400,loud", "-1400"] {
            let error = text.parse::<Mtu>().unwrap_err().to_string();
            assert!(error.contains("1280 to 1500"), "{error}");
        }
    }
}
