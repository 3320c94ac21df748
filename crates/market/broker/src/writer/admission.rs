//! Admission of writes: the limits on offers.
//!
//! The limits are checked by the store's only writer, so a confirmed offer is always published. Brokers that share a
//! database count separately and can together exceed a limit by the writes of a moment.

use posthaste_qos::index::{Full, Held, Index, Limits};

use crate::change::OfferKey;
use crate::store::Write;

/// Writes of one transaction, counted in addition to the index.
pub(super) struct Admission<'i> {
    index: &'i Index,
    limits: &'i Limits,
    /// Admitted offers that are not in the index.
    admitted: Held,
    /// Bytes by which admitted offers exceed the offers that they replace.
    grown: usize,
}

impl<'i> Admission<'i> {
    pub(super) fn new(index: &'i Index, limits: &'i Limits) -> Self {
        Self {
            index,
            limits,
            admitted: Held::default(),
            grown: 0,
        }
    }

    /// Admits a write completely or not at all.
    pub(super) fn admit(&mut self, write: &Write) -> Result<(), Full> {
        // First without the offers that it replaces: finding them takes longer and matters only near a limit.
        self.admit_beside(write, Vec::new())
            .or_else(|_| self.admit_beside(write, self.gone(write)))
    }

    /// Admits a write that removes offers of the sizes `gone`, in bytes.
    fn admit_beside(&mut self, write: &Write, mut gone: Vec<usize>) -> Result<(), Full> {
        let mut added: Vec<(&OfferKey, usize)> = Vec::new();
        let grown = self.grown;
        let taken = write.changes.iter().try_for_each(|(key, offer)| {
            let Some(offer) = offer else { return Ok(()) };
            let (kind, provider, bytes) = (&*key.kind, &*key.provider, offer.bytes());
            let mut counts = self.index.held().counts(kind, provider);
            counts += self.admitted.counts(kind, provider);
            if let Some(replaced) = gone.pop() {
                let counts = counts.without(replaced);
                self.limits.admit(&counts, bytes + self.grown)?;
                self.grown += bytes.saturating_sub(replaced);
                return Ok(());
            }
            self.limits.admit(&counts, bytes + self.grown)?;
            self.admitted.add(kind, provider, bytes);
            added.push((key, bytes));
            Ok(())
        });
        debug_assert!(self.grown >= grown, "an admission frees space");
        if taken.is_err() {
            self.grown = grown;
            for (key, bytes) in added {
                self.admitted.remove(&key.kind, &key.provider, bytes);
            }
        }
        taken
    }

    /// Sizes in bytes of all offers that a write replaces or withdraws.
    fn gone(&self, write: &Write) -> Vec<usize> {
        if let Some(group) = &write.alone {
            let offers = self.index.offers(&group.kind);
            let own = offers.filter(|found| found.provider == group.provider);
            return own.map(|found| found.offer.bytes()).collect();
        }
        let changes = write.changes.iter();
        changes
            .filter_map(|(key, _)| self.index.get(&key.kind, &key.provider, &key.name))
            .map(|offer| offer.bytes())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use posthaste_qos::{Offer, Ontologies, Rates};

    use super::*;
    use crate::change::OfferGroup;
    use crate::offered::all;
    use crate::store::Condition;

    const LIMITS: Limits = Limits {
        offers: 4,
        per_type: 4,
        per_provider: 2,
        bytes: usize::MAX,
    };

    fn offer(name: &str) -> Offer {
        let json = format!(
            r#"{{"name":"{name}","expires":"2100-01-01T00:00:00Z","qos":{{"price":{{"amount":"1","currency":"EUR"}}}}}}"#
        );
        serde_json::from_str(&json).unwrap()
    }

    fn put(provider: &str, name: &str) -> Write {
        Write {
            by: 1,
            changes: vec![(OfferKey::new("books", provider, name), Some(offer(name)))],
            only_if: Condition::Any,
            alone: None,
        }
    }

    fn these(provider: &str, names: &[&str]) -> Write {
        let group = OfferGroup {
            kind: "books".to_owned(),
            provider: provider.to_owned(),
        };
        all(group, names.iter().map(|name| offer(name)).collect(), 1)
    }

    #[test]
    fn growth_of_an_offer_counts_for_later_writes() {
        let index = index(&[("ada", "a"), ("ada", "b")]);
        let one = offer("a").bytes();
        let limits = Limits {
            bytes: 2 * one + 100,
            ..LIMITS
        };
        let longer = |name: &str| {
            let mut write = put("ada", name);
            let offer = write.changes[0].1.as_mut().unwrap();
            offer.endpoint = Some("x".repeat(60));
            write
        };
        let mut admission = Admission::new(&index, &limits);
        assert_eq!(admission.admit(&longer("a")), Ok(()));
        let full = Err(Full::Bytes(limits.bytes));
        assert_eq!(admission.admit(&longer("b")), full);
        assert_eq!(admission.admit(&put("ada", "b")), Ok(()));
    }

    /// Index with these offers for the type "books".
    fn index(offers: &[(&str, &str)]) -> Index {
        let mut index = Index::new(Rates::new("EUR".parse().unwrap()), Ontologies::default());
        for (provider, name) in offers {
            index.put("books", provider, &offer(name)).unwrap();
        }
        index.expire(Timestamp::UNIX_EPOCH);
        index
    }

    #[test]
    fn a_transaction_takes_what_there_is_room_for() {
        let index = index(&[("ada", "Gold")]);
        let mut admission = Admission::new(&index, &LIMITS);
        assert_eq!(admission.admit(&put("ada", "Silver")), Ok(()));
        let full = Err(Full::Provider(2));
        assert_eq!(admission.admit(&put("ada", "Iron")), full);
        assert_eq!(admission.admit(&put("bob", "Gold")), Ok(()));
        assert_eq!(admission.admit(&put("bob", "Iron")), Ok(()));
        assert_eq!(admission.admit(&put("eve", "Gold")), Err(Full::Type(4)));
    }

    #[test]
    fn replacements_count_no_more_than_the_offers_they_replace() {
        let index = index(&[("ada", "Gold"), ("ada", "Silver"), ("bob", "Gold")]);
        let mut admission = Admission::new(&index, &LIMITS);
        for name in ["Gold", "Silver", "Gold"] {
            assert_eq!(admission.admit(&put("ada", name)), Ok(()), "{name}");
        }
        assert_eq!(admission.admit(&these("ada", &["Iron", "Tin"])), Ok(()));
        let full = Err(Full::Provider(2));
        let three = these("ada", &["Gold", "Iron", "Tin"]);
        assert_eq!(admission.admit(&three), full);
        // The rejected write took no space.
        assert_eq!(admission.admit(&put("bob", "Tin")), Ok(()));
    }
}
