//! Accounts of gateways against a model of the broker: messages are lost and doubled, gateways are killed, and periods
//! end. Money is taken once, and what is lost or exceeds a budget stays within the stated bounds.

use std::collections::BTreeMap;

use posthaste_admission::Amount;
use posthaste_admission::accounts::{
    AccountHandle, Accounts, Budget, ChargeBatch, Definition, Hold, KeyHasher,
};
use posthaste_units::{Instant, Span};
use proptest::prelude::*;

use crate::{at, eur, price};

/// Bound of unacknowledged charges, in millionths.
const BOUND: u64 = 1_000;

/// Budget of the account, in millionths.
const BUDGET: u64 = 2_500;

const NAMES: [&str; 2] = ["ada", "bob"];

/// Model of the broker, exact and without failures of its own.
#[derive(Default)]
struct ModelBroker {
    /// Last batch of each gateway.
    gateways: BTreeMap<u64, u64>,
    /// Booked by account and number of the period.
    booked: BTreeMap<(String, u64), u64>,
    version: u64,
    /// Version of the last change by account.
    changed: BTreeMap<String, u64>,
}

/// Length of a period, in milliseconds.
const PERIOD: u64 = 10_000;

impl ModelBroker {
    fn new() -> Self {
        let changed = NAMES.map(|name| (name.to_owned(), 1));
        Self {
            version: 1,
            changed: changed.into(),
            ..Self::default()
        }
    }

    /// Books a batch, or refuses it.
    fn take(&mut self, gateway: u64, batch: &ChargeBatch, now: u64) -> Result<(), ()> {
        let last = self.gateways.get(&gateway).copied();
        if batch.charges.is_empty() {
            return match (last, batch.sequence) {
                (None, 0) => {
                    self.gateways.insert(gateway, 0);
                    Ok(())
                }
                (None, _) => Err(()),
                (Some(_), _) => Ok(()),
            };
        }
        match last {
            Some(last) if batch.sequence == last => Ok(()),
            Some(last) if batch.sequence == last + 1 => {
                self.gateways.insert(gateway, batch.sequence);
                for charge in &batch.charges {
                    let key = (charge.account.to_string(), now / PERIOD);
                    *self.booked.entry(key).or_default() += charge.amount.micros();
                    self.version += 1;
                    self.changed
                        .insert(charge.account.to_string(), self.version);
                }
                Ok(())
            }
            _ => Err(()),
        }
    }

    /// Accounts changed since a version.
    fn since(&self, known: u64, now: u64) -> Vec<Definition> {
        let changed = self.changed.iter().filter(|(_, version)| **version > known);
        changed
            .map(|(name, _)| {
                let spent = self.booked.get(&(name.clone(), now / PERIOD));
                definition(name, spent.copied().unwrap_or(0), PERIOD - now % PERIOD)
            })
            .collect()
    }

    fn sum(&self) -> u64 {
        self.booked.values().sum()
    }
}

fn definition(name: &str, spent: u64, ends_in: u64) -> Definition {
    Definition {
        name: name.to_owned(),
        key: None,
        subject: Some(name.to_owned()),
        budget: Some(Budget {
            amount: price(BUDGET),
            period: Span::from_millis(PERIOD),
            spent: price(spent),
            ends_in: Span::from_millis(ends_in),
            max_price: None,
        }),
        is_closed: false,
    }
}

/// A gateway in the model.
struct ModelGateway {
    id: u64,
    accounts: Accounts,
    holds: Vec<Hold>,
    /// Charged in this life and not known to be booked.
    unreported: BTreeMap<String, u64>,
}

impl ModelGateway {
    fn new(id: u64) -> Self {
        let hasher = KeyHasher::new(&[1; 32]);
        Self {
            id,
            accounts: Accounts::new(eur(), Amount::from_micros(BOUND), hasher),
            holds: Vec::new(),
            unreported: BTreeMap::new(),
        }
    }
}

/// One step of a history.
#[derive(Clone, Copy, Debug)]
enum AccountStep {
    /// A request of this account at this price.
    Ask { account: usize, micros: u64 },
    /// The oldest request in service ends: charged, or given back.
    End { charged: bool },
    /// A report arrives at the broker so often, and its reply at the gateway or not.
    Report { times: u8, replied: bool },
    /// The gateway is killed.
    Kill,
    /// The broker forgets the gateway.
    Forget,
    /// Time passes, in milliseconds.
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<(usize, AccountStep)>> {
    let step = prop_oneof![
        8 => (0..2usize, 0..600u64).prop_map(|(account, micros)| AccountStep::Ask { account, micros }),
        8 => prop::bool::weighted(0.8).prop_map(|charged| AccountStep::End { charged }),
        6 => (0..3u8, prop::bool::weighted(0.7))
            .prop_map(|(times, replied)| AccountStep::Report { times, replied: replied && times > 0 }),
        1 => Just(AccountStep::Kill),
        1 => Just(AccountStep::Forget),
        1 => (0..4_000u64).prop_map(AccountStep::Wait),
    ];
    prop::collection::vec((0..3usize, step), 0..400)
}

/// Sums of a history.
#[derive(Default)]
struct Sums {
    charged: u64,
    /// Charged by lives that ended, and not known to be booked.
    may_be_lost: u64,
}

fn run(history: &[(usize, AccountStep)], gateways: usize) {
    let mut broker = ModelBroker::new();
    let mut next_id = gateways as u64;
    let mut all: Vec<ModelGateway> = (0..next_id).map(ModelGateway::new).collect();
    let (mut now, mut sums) = (0, Sums::default());
    for (index, step) in history {
        let gateway = &mut all[index % gateways];
        match *step {
            AccountStep::Ask { account, micros } => ask(gateway, account, micros, at(now)),
            AccountStep::End { charged } => end(gateway, charged, &mut sums),
            AccountStep::Report { times, replied } => {
                let fresh_id = next_id;
                next_id += 1;
                report(
                    gateway,
                    &mut broker,
                    times,
                    replied,
                    now,
                    fresh_id,
                    &mut sums,
                );
            }
            AccountStep::Kill => {
                let lost: u64 = gateway.unreported.values().sum();
                for (account, lost) in &gateway.unreported {
                    assert!(*lost <= BOUND, "{account} loses {lost}");
                }
                sums.may_be_lost += lost;
                *gateway = ModelGateway::new(next_id);
                next_id += 1;
            }
            AccountStep::Forget => drop(broker.gateways.remove(&gateway.id)),
            AccountStep::Wait(ms) => now += ms,
        }
        check(&broker, &all, &sums, gateways as u64);
    }
}

fn ask(gateway: &mut ModelGateway, account: usize, micros: u64, now: Instant) {
    let Some(handle) = gateway.accounts.with_subject(NAMES[account]) else {
        return;
    };
    let means = gateway.accounts.means(now, &handle).unwrap();
    let hold = gateway
        .accounts
        .hold(now, &handle, Amount::from_micros(micros));
    assert_eq!(hold.is_some(), means.left.micros() >= micros);
    gateway.holds.extend(hold);
}

fn end(gateway: &mut ModelGateway, charged: bool, sums: &mut Sums) {
    if gateway.holds.is_empty() {
        return;
    }
    let hold = gateway.holds.remove(0);
    if !charged {
        return gateway.accounts.release(hold);
    }
    sums.charged += hold.amount().micros();
    let name = gateway.accounts.name_of(&hold).to_string();
    *gateway.unreported.entry(name).or_default() += hold.amount().micros();
    gateway.accounts.charge(hold);
}

fn report(
    gateway: &mut ModelGateway,
    broker: &mut ModelBroker,
    times: u8,
    replied: bool,
    now: u64,
    fresh_id: u64,
    sums: &mut Sums,
) {
    let batch = gateway.accounts.seal();
    assert_eq!(
        batch,
        gateway.accounts.seal(),
        "a batch changes while it is under way"
    );
    let mut outcome = Ok(());
    for _ in 0..times {
        outcome = broker.take(gateway.id, &batch, now);
    }
    if !replied {
        return;
    }
    if outcome.is_ok() {
        let known = gateway.accounts.known();
        gateway.accounts.acknowledge(at(now), batch.sequence);
        for charge in &batch.charges {
            let left = gateway.unreported.get_mut(&*charge.account).unwrap();
            *left -= charge.amount.micros();
        }
        let definitions = broker.since(known, now);
        gateway
            .accounts
            .apply(at(now), definitions, broker.version, false);
    } else {
        gateway.id = fresh_id;
        let lost = gateway.accounts.restart(at(now));
        for charge in lost.iter().flat_map(|batch| &batch.charges) {
            sums.may_be_lost += charge.amount.micros();
            *gateway.unreported.get_mut(&*charge.account).unwrap() -= charge.amount.micros();
        }
    }
}

/// Conservation and bounds.
fn check(broker: &ModelBroker, all: &[ModelGateway], sums: &Sums, gateways: u64) {
    let unreported: u64 = all
        .iter()
        .flat_map(|gateway| gateway.unreported.values())
        .sum();
    let booked = broker.sum();
    assert!(
        booked <= sums.charged,
        "{booked} booked, {} charged",
        sums.charged
    );
    let sure = sums.charged - unreported - sums.may_be_lost;
    assert!(
        booked >= sure,
        "{booked} booked, and {sure} was acknowledged"
    );
    for ((account, period), booked) in &broker.booked {
        // As documented. Charges of the period before count at each gateway as pending.
        let most = BUDGET + (gateways - 1) * BOUND;
        assert!(*booked <= most, "{account} has {booked} in period {period}");
    }
    for gateway in all {
        for (account, unreported) in &gateway.unreported {
            assert!(
                *unreported <= BOUND,
                "{account} has {unreported} unreported"
            );
        }
    }
}

proptest! {
    #[test]
    fn money_is_taken_once_and_lost_within_the_bounds(history in steps(), gateways in 1..=3usize) {
        run(&history, gateways);
    }
}

/// A gateway that knows both accounts.
fn gateway() -> Accounts {
    let hasher = KeyHasher::new(&[1; 32]);
    let mut accounts = Accounts::new(eur(), Amount::from_micros(BOUND), hasher);
    assert!(accounts.seal().charges.is_empty());
    accounts.acknowledge(at(0), 0);
    let all = NAMES.map(|name| definition(name, 0, PERIOD)).to_vec();
    assert_eq!(accounts.apply(at(0), all, 1, false), 0);
    accounts
}

fn spend(accounts: &mut Accounts, account: &AccountHandle, micros: u64, now: Instant) -> bool {
    let hold = accounts.hold(now, account, Amount::from_micros(micros));
    hold.map(|hold| accounts.charge(hold)).is_some()
}

/// Reports to a broker that knows no other gateway, and has booked `spent` before.
fn exchange(accounts: &mut Accounts, spent: &mut u64, now: u64) {
    let batch = accounts.seal();
    *spent += batch
        .charges
        .iter()
        .map(|charge| charge.amount.micros())
        .sum::<u64>();
    accounts.acknowledge(at(now), batch.sequence);
    let known = accounts.known() + 1;
    let state = definition("ada", *spent, PERIOD - now);
    accounts.apply(at(now), vec![state], known, false);
}

#[test]
fn one_gateway_never_exceeds_a_budget() {
    let mut accounts = gateway();
    let ada = accounts.with_subject("ada").unwrap();
    let mut spent = 0;
    for round in 0..5_000 {
        spend(&mut accounts, &ada, 300, at(1));
        if round % 7 == 0 {
            exchange(&mut accounts, &mut spent, 1);
        }
    }
    exchange(&mut accounts, &mut spent, 1);
    assert!(spent <= BUDGET && spent > BUDGET - 300, "{spent}");
    // The next period begins without a word of the broker.
    assert!(spend(&mut accounts, &ada, 300, at(PERIOD)));
}

#[test]
fn without_the_broker_the_bound_is_all() {
    let mut accounts = gateway();
    let ada = accounts.with_subject("ada").unwrap();
    let paid = (0..100).filter(|_| spend(&mut accounts, &ada, 300, at(1)));
    assert_eq!(paid.count(), 3);
    assert!(!accounts.is_reported());
    let bob = accounts.with_subject("bob").unwrap();
    assert!(
        spend(&mut accounts, &bob, 300, at(1)),
        "accounts do not share it"
    );
}

#[test]
fn a_key_identifies_its_account_until_it_is_replaced() {
    let hasher = KeyHasher::new(&[1; 32]);
    let mut accounts = Accounts::new(eur(), Amount::from_micros(BOUND), hasher.clone());
    let digest = |key: &str| {
        let digest = ring::digest::digest(&ring::digest::SHA256, key.as_bytes());
        <[u8; 32]>::try_from(digest.as_ref()).unwrap()
    };
    let with = |key: &str, is_closed| Definition {
        key: Some(digest(key)),
        is_closed,
        ..definition("ada", 0, PERIOD)
    };
    let name = |accounts: &Accounts, key: &str| {
        let found = accounts.with_key(&hasher.of_key(key.as_bytes()));
        found.map(|account| account.name.to_string())
    };
    let ada = Some("ada".to_owned());
    accounts.apply(at(0), vec![with("old", false)], 1, false);
    assert_eq!(name(&accounts, "old"), ada);
    assert_eq!(name(&accounts, "older"), None);
    accounts.apply(at(0), vec![with("new", false)], 2, false);
    assert_eq!(
        (name(&accounts, "old"), name(&accounts, "new")),
        (None, ada)
    );
    accounts.apply(at(0), vec![with("new", true)], 3, false);
    assert_eq!(name(&accounts, "new"), None);
    assert_eq!(accounts.with_subject("ada"), None);
}

#[test]
fn accounts_of_the_configuration_keep_their_names() {
    let mut accounts = gateway();
    let own = Definition {
        subject: Some("CN=ada".to_owned()),
        budget: None,
        ..definition("ada", 0, PERIOD)
    };
    accounts.configure(at(0), vec![own]);
    let ada = accounts.with_subject("CN=ada").unwrap();
    assert_eq!(
        accounts.means(at(0), &ada).map(|means| means.left),
        Some(Amount::ZERO)
    );
    let theirs = vec![definition("ada", 0, PERIOD)];
    assert_eq!(accounts.apply(at(0), theirs.clone(), 2, false), 1);
    assert_eq!(accounts.with_subject("ada"), None);
    accounts.configure(at(0), Vec::new());
    assert_eq!(accounts.with_subject("CN=ada"), None);
    assert_eq!(accounts.known(), 0, "the broker's account is read again");
    assert_eq!(accounts.apply(at(0), theirs, 2, false), 0);
    assert!(accounts.with_subject("ada").is_some());
}

#[test]
fn an_account_that_the_broker_no_longer_has_is_closed() {
    let mut accounts = gateway();
    let ada = accounts.with_subject("ada").unwrap();
    assert!(spend(&mut accounts, &ada, 300, at(1)));
    accounts.seal();
    assert!(accounts.restart(at(1)).is_some());
    let first = accounts.seal();
    assert!(first.charges.is_empty());
    accounts.acknowledge(at(1), first.sequence);
    accounts.apply(at(1), Vec::new(), 1, true);
    assert!(
        accounts.with_subject("ada").is_some(),
        "further accounts follow"
    );
    accounts.apply(at(1), vec![definition("bob", 0, PERIOD)], 2, false);
    assert_eq!(accounts.with_subject("ada"), None);
    assert!(!spend(&mut accounts, &ada, 1, at(PERIOD)));
    assert!(accounts.with_subject("bob").is_some());
    // Later replies have changed accounts only.
    accounts.apply(at(1), Vec::new(), 2, false);
    assert!(accounts.with_subject("bob").is_some());
}

#[test]
fn money_of_another_currency_is_no_budget() {
    let mut accounts = gateway();
    let mut dollars = definition("eve", 0, PERIOD);
    let usd = "USD".parse().unwrap();
    dollars.budget.as_mut().unwrap().amount = Amount::from_micros(BUDGET).to_money(usd);
    accounts.apply(at(0), vec![dollars], 2, false);
    let eve = accounts.with_subject("eve").unwrap();
    assert_eq!(accounts.means(at(0), &eve), None);
    assert!(accounts.hold(at(0), &eve, Amount::ZERO).is_none());
}
