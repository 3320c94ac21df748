//! Counts of offers and limits on them.

use std::collections::HashMap;
use std::ops::AddAssign;

use thiserror::Error;

use crate::Offer;

/// Maximum numbers of offers, and their memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// In total.
    pub offers: usize,
    /// For one type of interface.
    pub per_type: usize,
    /// Of one provider.
    pub per_provider: usize,
    /// Approximate memory of all offers, in bytes ([`Offer::bytes`]).
    pub bytes: usize,
}

/// A limit of [`Limits`] is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Full {
    /// Number of all offers.
    #[error("the limit of {0} offers is reached")]
    Offers(usize),
    /// Number of offers for one type of interface.
    #[error("the limit of {0} offers for one type is reached")]
    Type(usize),
    /// Number of offers of one provider.
    #[error("the limit of {0} offers of one provider is reached")]
    Provider(usize),
    /// Memory of all offers, in bytes.
    #[error("all offers would take more than {0} bytes of memory")]
    Bytes(usize),
}

/// Counts of offers by type and by provider.
#[derive(Clone, Debug, Default)]
pub struct Held {
    all: Counts,
    types: HashMap<Box<str>, usize>,
    providers: HashMap<Box<str>, usize>,
}

/// The counts that the limits on one offer concern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    offers: usize,
    bytes: usize,
    of_type: usize,
    of_provider: usize,
}

impl Full {
    /// Name of the limit, as in [`Limits`].
    pub const fn limit(&self) -> &'static str {
        match self {
            Self::Offers(_) => "offers",
            Self::Type(_) => "per_type",
            Self::Provider(_) => "per_provider",
            Self::Bytes(_) => "bytes",
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            offers: 1_000_000,
            per_type: 1_000_000,
            per_provider: 100_000,
            bytes: 512 << 20,
        }
    }
}

impl Limits {
    /// Fails if one more offer of `bytes` bytes would exceed a limit, given `counts`.
    pub fn admit(&self, counts: &Counts, bytes: usize) -> Result<(), Full> {
        if counts.of_provider >= self.per_provider {
            return Err(Full::Provider(self.per_provider));
        }
        if counts.of_type >= self.per_type {
            return Err(Full::Type(self.per_type));
        }
        if counts.offers >= self.offers {
            return Err(Full::Offers(self.offers));
        }
        if counts.bytes + bytes <= self.bytes {
            Ok(())
        } else {
            Err(Full::Bytes(self.bytes))
        }
    }
}

impl Held {
    /// The counts for an offer of `provider` for the interface `kind`.
    pub fn counts(&self, kind: &str, provider: &str) -> Counts {
        let count = |counts: &HashMap<Box<str>, usize>, name| counts.get(name).copied();
        let counts = Counts {
            of_type: count(&self.types, kind).unwrap_or_default(),
            of_provider: count(&self.providers, provider).unwrap_or_default(),
            ..self.all
        };
        debug_assert!(
            counts.of_type <= counts.offers && counts.of_provider <= counts.offers,
            "each offer is in the sum: {counts:?}"
        );
        counts
    }

    /// The number of offers.
    pub const fn offers(&self) -> usize {
        self.all.offers
    }

    /// Counts one more offer of `bytes` bytes.
    pub fn add(&mut self, kind: &str, provider: &str, bytes: usize) {
        self.all.offers += 1;
        self.all.bytes += bytes;
        for (counts, name) in [(&mut self.types, kind), (&mut self.providers, provider)] {
            match counts.get_mut(name) {
                Some(count) => *count += 1,
                None => drop(counts.insert(name.into(), 1)),
            }
        }
    }

    /// Removes one offer of `bytes` bytes from the counts.
    pub fn remove(&mut self, kind: &str, provider: &str, bytes: usize) {
        self.all.offers -= 1;
        self.all.bytes -= bytes;
        for (counts, name) in [(&mut self.types, kind), (&mut self.providers, provider)] {
            debug_assert!(counts.contains_key(name), "{name:?} has no counted offer");
            if let Some(count) = counts.get_mut(name) {
                *count -= 1;
                if *count == 0 {
                    counts.remove(name);
                }
            }
        }
        debug_assert!(
            self.all.offers > 0
                || (self.all.bytes == 0 && self.types.is_empty() && self.providers.is_empty()),
            "without offers nothing is counted"
        );
    }
}

impl Counts {
    /// The counts without one offer of `bytes` bytes, which must be among them.
    #[must_use]
    pub const fn without(self, bytes: usize) -> Self {
        Self {
            offers: self.offers - 1,
            bytes: self.bytes - bytes,
            of_type: self.of_type - 1,
            of_provider: self.of_provider - 1,
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.offers += other.offers;
        self.bytes += other.bytes;
        self.of_type += other.of_type;
        self.of_provider += other.of_provider;
    }
}

/// Bytes of any offer in the index: its row, codes and numbers, and its part of the tables.
const ROW: usize = 240;

impl Offer {
    /// Approximate memory in an index, in bytes.
    pub fn bytes(&self) -> usize {
        let endpoint = self.endpoint.as_ref().map_or(0, String::len);
        ROW + self.name.len() + endpoint + self.qos.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        offers: 4,
        per_type: 3,
        per_provider: 2,
        bytes: 100,
    };

    fn held(offers: &[(&str, &str, usize)]) -> Held {
        let mut held = Held::default();
        for (kind, provider, bytes) in offers {
            held.add(kind, provider, *bytes);
        }
        held
    }

    #[test]
    fn each_limit_is_named() {
        let admit =
            |held: &Held, kind, provider, bytes| LIMITS.admit(&held.counts(kind, provider), bytes);
        let mut two = held(&[("books", "ada", 10), ("films", "ada", 10)]);
        assert_eq!(admit(&two, "music", "ada", 1), Err(Full::Provider(2)));
        assert_eq!(admit(&two, "music", "bob", 80), Ok(()));
        assert_eq!(admit(&two, "music", "bob", 81), Err(Full::Bytes(100)));
        two.add("books", "bob", 10);
        two.add("books", "bob", 10);
        assert_eq!(admit(&two, "books", "eve", 1), Err(Full::Type(3)));
        assert_eq!(admit(&two, "music", "eve", 1), Err(Full::Offers(4)));
        two.remove("books", "bob", 10);
        assert_eq!(admit(&two, "books", "eve", 1), Ok(()));
        let counts = two.counts("books", "bob");
        assert_eq!(LIMITS.admit(&counts.without(10), 80), Ok(()));
    }

    #[test]
    fn removing_the_last_offer_leaves_no_entry() {
        let mut held = held(&[("books", "ada", 10)]);
        held.remove("books", "ada", 10);
        assert_eq!(held.offers(), 0);
        assert!(held.types.is_empty() && held.providers.is_empty());
    }
}
