//! Coarse codes of offered and wanted values: 16 bits each, a higher code is better, 0 if nothing is stated.
//!
//! Codes are monotonic: a value that meets a requirement has at least its code. The reverse need not hold, because a
//! code keeps about three digits. An offer with operations gets the best code of all of them, because a requirement may
//! concern only one.

use std::hash::{DefaultHasher, Hash, Hasher as _};

use posthaste_units::{Rate, Ratio, Span};

use crate::{Contract, Custom, Definition, Info, Priority, Requires, Term};

/// Number of coded values.
pub(super) const COLUMNS: usize = 8;

/// Codes of an offer, or minimum codes of a requirement. 0 in a requirement requires nothing.
pub(super) type Codes = [u16; COLUMNS];

/// Greatest code of each value in `definition`: the best of an offer, the strictest of a requirement.
pub(super) fn codes(definition: &Definition) -> Codes {
    let operations = definition.operations.values().map(of_info);
    operations.fold(of_info(&definition.default), |a, b| {
        std::array::from_fn(|column| a[column].max(b[column]))
    })
}

fn of_info(info: &Info) -> Codes {
    let (server, transport) = (&info.server, &info.transport);
    [
        server.processing_time.map_or(0, time),
        server.requests_per_second.map_or(0, rate),
        server.reliability.map_or(0, share),
        server.availability.map_or(0, share),
        transport.delay.map_or(0, priority),
        transport.jitter.map_or(0, priority),
        transport.throughput.map_or(0, priority),
        transport.packet_loss.map_or(0, priority),
    ]
}

/// Exponent and first eight binary digits of a number that is not negative.
fn digits(number: f32) -> u16 {
    (number.to_bits() >> 15) as u16
}

fn time(span: Span) -> u16 {
    u16::MAX - digits(span.as_nanos() as f32)
}

fn rate(rate: Rate) -> u16 {
    digits(rate.as_per_second() as f32).max(1)
}

fn share(share: Ratio) -> u16 {
    ((share.get() * f64::from(u16::MAX)) as u16).max(1)
}

fn priority(priority: Priority) -> u16 {
    u16::from(*Priority::RANGE.end() - priority.get()) + 1
}

/// Names that an offer states or a requirement needs, one bit each. Several names may share a bit.
pub(super) type Bits = u64;

/// One bit for each name that an offer states.
pub(super) fn stated(definition: &Definition) -> Bits {
    let infos = definition.operations.values().chain([&definition.default]);
    let infos = infos.fold(0, |bits, info| {
        let security = info.security.iter().flat_map(|group| &group.protocols);
        bits | customs(info) | all(security)
    });
    let contracts = definition.contracts.iter().map(of_contract);
    contracts.fold(infos, |bits, more| bits | more)
}

/// One bit for each name that an adequate offer must state. A list of several with `Requires::One` needs none of them.
pub(super) fn needed(wanted: &Definition) -> Bits {
    let is_needed = |requires, count: usize| match requires {
        Requires::None => false,
        Requires::One => count == 1,
        Requires::All => true,
    };
    let infos = wanted.operations.values().chain([&wanted.default]);
    let infos = infos.fold(0, |bits, info| {
        let groups = info.security.iter();
        let groups = groups.filter(|group| is_needed(group.requires, group.protocols.len()));
        bits | customs(info) | all(groups.flat_map(|group| &group.protocols))
    });
    wanted.contracts.iter().fold(infos, |bits, contract| {
        let protocols = is_needed(contract.requires, contract.protocols.len());
        let parties = is_needed(contract.requires, contract.parties.len());
        let protocols = if protocols {
            all(&contract.protocols)
        } else {
            0
        };
        let parties = if parties { of_parties(contract) } else { 0 };
        bits | protocols | parties
    })
}

fn customs(info: &Info) -> Bits {
    let metrics = info.server.custom.iter().map(of_custom);
    let priorities = info.transport.custom.iter().map(of_custom);
    metrics.chain(priorities).fold(0, |bits, more| bits | more)
}

fn of_custom<T>(custom: &Custom<T>) -> Bits {
    bit(&(&custom.name, &custom.ontology))
}

fn all<'d>(terms: impl IntoIterator<Item = &'d Term>) -> Bits {
    let bits = terms
        .into_iter()
        .map(|term| bit(&(&term.name, &term.ontology)));
    bits.fold(0, |bits, more| bits | more)
}

fn of_contract(contract: &Contract) -> Bits {
    all(&contract.protocols) | of_parties(contract)
}

fn of_parties(contract: &Contract) -> Bits {
    let parties = contract.parties.iter().map(|party| bit(&party.url));
    parties.fold(0, |bits, more| bits | more)
}

fn bit(name: &impl Hash) -> Bits {
    // The hash is the same in every run. Names chosen to share a bit only slow down the lookups of their author.
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    1 << (hasher.finish() % u64::from(Bits::BITS))
}
