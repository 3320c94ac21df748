//! What happens to offers: they are put in place, or withdrawn.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use posthaste_wsqos::qos::Offer;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Which offer: one name stands once for a provider and a type of interface.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    /// The type of interface: a UDDI tModel's key, or any name that providers and clients agree on.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whose it is.
    pub provider: String,
    /// The offer's name.
    pub name: String,
}

/// All that a provider offers for a type of interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Of {
    pub(crate) kind: String,
    pub(crate) provider: String,
}

/// One entry of a store's log: what happened, in the order of its number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Grows from change to change of one store; numbers may be left out.
    pub number: u64,
    /// When it was stored, by the store's clock.
    pub at: Timestamp,
    /// Which offer.
    #[serde(flatten)]
    pub key: Key,
    /// What it says from now on; none where it was withdrawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<Offer>,
}

/// What an offer says, in a number: equal offers have equal ones. Written as an entity tag (RFC 9110, section 8.8.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tag(u64);

impl Key {
    /// Of three names.
    pub fn new(kind: &str, provider: &str, name: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            provider: provider.to_owned(),
            name: name.to_owned(),
        }
    }
}

impl Of {
    /// Whether an offer is one of them.
    pub(crate) fn has(&self, key: &Key) -> bool {
        (&key.kind, &key.provider) == (&self.kind, &self.provider)
    }
}

impl Tag {
    /// Of an offer.
    pub(crate) fn of(offer: &Offer) -> Self {
        // An offer is made of texts and finite numbers, which JSON can always hold.
        Self::of_json(&serde_json::to_vec(offer).unwrap_or_default())
    }

    /// Of an offer as [`serde_json`] writes it.
    pub(crate) fn of_json(json: &[u8]) -> Self {
        let digest = Sha256::digest(json);
        Self(
            digest
                .iter()
                .take(8)
                .fold(0, |tag, byte| tag << 8 | u64::from(*byte)),
        )
    }
}

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{:016x}\"", self.0)
    }
}

impl FromStr for Tag {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let digits = text
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'));
        let digits = digits.filter(|digits| digits.len() == 16).ok_or(())?;
        u64::from_str_radix(digits, 16).map(Self).map_err(drop)
    }
}
