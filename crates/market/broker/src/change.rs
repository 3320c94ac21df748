//! Changes of offers: an offer is put or withdrawn.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use posthaste_qos::Offer;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

/// Identity of an offer. A name is unique per provider and interface type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct OfferKey {
    /// Interface type: the key of a UDDI tModel, or any name that providers and clients agree on.
    #[serde(rename = "type")]
    pub kind: String,
    /// Provider of the offer.
    pub provider: String,
    /// Name of the offer.
    pub name: String,
}

/// All offers of one provider for one interface type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OfferGroup {
    pub(crate) kind: String,
    pub(crate) provider: String,
}

/// One entry of a store's log, in the order of its number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OfferChange {
    /// Number of the change. Increases within one store, possibly with gaps.
    pub number: u64,
    /// Time of storage, by the store's clock.
    pub at: Timestamp,
    /// Identity of the offer.
    #[serde(flatten)]
    pub key: OfferKey,
    /// New content of the offer; `None` after a withdrawal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<Offer>,
}

/// Hash of an offer's content. Equal offers have equal tags. Written as an entity tag (RFC 9110, section 8.8.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tag(u64);

impl OfferKey {
    /// Creates a key from three names.
    pub fn new(kind: &str, provider: &str, name: &str) -> Self {
        Self {
            kind: kind.to_owned(),
            provider: provider.to_owned(),
            name: name.to_owned(),
        }
    }
}

impl OfferGroup {
    /// Returns true if the offer belongs to this provider and type.
    pub(crate) fn has(&self, key: &OfferKey) -> bool {
        (&key.kind, &key.provider) == (&self.kind, &self.provider)
    }
}

impl Tag {
    /// Tag of an offer.
    pub(crate) fn from_offer(offer: &Offer) -> Self {
        Self::of_json(&serde_json::to_vec(offer).expect("an offer has texts and finite numbers"))
    }

    /// Tag of an offer serialised by [`serde_json`].
    pub(crate) fn of_json(json: &[u8]) -> Self {
        let digest = digest(&SHA256, json);
        Self(
            digest
                .as_ref()
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
