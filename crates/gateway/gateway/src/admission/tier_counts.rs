//! Counts of requests by tier.

use posthaste_units::Span;

/// Counts of each tier. Empty without tiers.
#[derive(Debug, Default)]
pub(super) struct TierCounts(Vec<TierCount>);

/// Counts of one tier since the start.
#[derive(Clone, Debug, Default)]
pub(super) struct TierCount {
    pub(super) name: String,
    pub(super) admitted: u64,
    pub(super) rejected: u64,
    /// Admitted requests that had waited, and their total time.
    pub(super) waited: u64,
    pub(super) wait: Span,
}

impl TierCounts {
    pub(super) fn new(names: &[String]) -> Self {
        let new = |name: &String| TierCount {
            name: name.clone(),
            ..TierCount::default()
        };
        Self(names.iter().map(new).collect())
    }

    /// Changes the tiers. Those with the same name keep their counts.
    pub(super) fn change(&mut self, names: &[String]) {
        let before = std::mem::replace(self, Self::new(names));
        for count in before.0 {
            let same = self.0.iter_mut().find(|new| new.name == count.name);
            same.into_iter().for_each(|new| *new = count.clone());
        }
    }

    /// Counts an admitted request.
    pub(super) fn admitted(&mut self, tier: usize) {
        if let Some(count) = self.0.get_mut(tier) {
            count.admitted += 1;
        }
    }

    /// Counts a request that was admitted after a wait.
    pub(super) fn waited(&mut self, tier: usize, wait: Span) {
        if let Some(count) = self.0.get_mut(tier) {
            count.admitted += 1;
            count.waited += 1;
            count.wait += wait;
        }
    }

    /// Counts a rejected request.
    pub(super) fn rejected(&mut self, tier: usize) {
        if let Some(count) = self.0.get_mut(tier) {
            count.rejected += 1;
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &TierCount> {
        self.0.iter()
    }
}
