//! Comparison of lists of protocols and trusted parties, both ways. Each side requires none, one or all members.

use std::ops::ControlFlow;

use super::effective::Effective;
use super::mismatch::Side;
use super::{Mismatch, Objector};
use crate::definition::{Contract, Definition, Protocols, Requires, Term};

/// The lists of both sides.
pub(super) struct Groups<'d> {
    operation: Option<&'d str>,
    provider: Lists<'d>,
    client: Lists<'d>,
}

/// Members and requirements of one side.
#[derive(Default)]
struct Lists<'d> {
    protocols: Vec<(Requires, &'d [Term])>,
    parties: Vec<(Requires, &'d Contract)>,
}

impl<'d> Groups<'d> {
    /// Security and transactions of an operation, together with those of the default.
    pub(super) fn of_security(
        operation: Option<&'d str>,
        offered: Effective<'d>,
        wanted: Effective<'d>,
    ) -> Self {
        let lists = |side: Effective<'d>| Lists {
            protocols: side
                .infos()
                .flat_map(|info| &info.security)
                .map(listed)
                .collect(),
            parties: Vec::new(),
        };
        Self {
            operation,
            provider: lists(offered),
            client: lists(wanted),
        }
    }

    /// Contracts and monitoring.
    pub(super) fn of_contracts(offered: &'d Definition, wanted: &'d Definition) -> Self {
        let lists = |side: &'d Definition| {
            let contracts = side.contracts.iter();
            Lists {
                protocols: contracts
                    .clone()
                    .map(|c| (c.requires, &c.protocols[..]))
                    .collect(),
                parties: contracts
                    .map(|contract| (contract.requires, contract))
                    .collect(),
            }
        };
        Self {
            operation: None,
            provider: lists(offered),
            client: lists(wanted),
        }
    }

    pub(super) fn compare(&self, object: Objector<'_, 'd>) -> ControlFlow<()> {
        self.one_way(Side::Client, &self.client, &self.provider, object)?;
        self.one_way(Side::Provider, &self.provider, &self.client, object)
    }

    /// Checks the requirements of side `by` on the other side.
    fn one_way(
        &self,
        by: Side,
        requiring: &Lists<'d>,
        other: &Lists<'d>,
        object: Objector<'_, 'd>,
    ) -> ControlFlow<()> {
        for &(requires, required) in &requiring.protocols {
            let has = |term: &&Term| {
                other
                    .protocols
                    .iter()
                    .any(|(_, terms)| terms.contains(term))
            };
            if is_met(
                requires,
                required.len(),
                required.iter().filter(has).count(),
            ) {
                continue;
            }
            object(Mismatch::Protocols {
                operation: self.operation,
                by,
                requires,
                required: required.iter().collect(),
                lacking: required.iter().filter(|term| !has(term)).collect(),
            })?;
        }
        for &(requires, contract) in &requiring.parties {
            let urls = contract.parties.iter().map(|party| party.url.as_str());
            let trusts = |url: &&str| {
                let mut parties = other
                    .parties
                    .iter()
                    .flat_map(|(_, contract)| &contract.parties);
                parties.any(|party| party.url == *url)
            };
            if is_met(
                requires,
                contract.parties.len(),
                urls.clone().filter(trusts).count(),
            ) {
                continue;
            }
            let required = urls.collect();
            object(Mismatch::Parties {
                by,
                requires,
                required,
            })?;
        }
        ControlFlow::Continue(())
    }
}

/// Returns true if `present` of `count` members satisfy `requires`. An empty list lacks nothing.
const fn is_met(requires: Requires, count: usize, present: usize) -> bool {
    match requires {
        Requires::None => true,
        Requires::One => present > 0 || count == 0,
        Requires::All => present == count,
    }
}

fn listed(protocols: &Protocols) -> (Requires, &[Term]) {
    (protocols.requires, &protocols.protocols)
}
