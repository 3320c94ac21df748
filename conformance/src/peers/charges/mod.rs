//! Charges while gateways, broker and PostgreSQL are killed at random moments.
//!
//! Two gateways charge requests of three accounts, one of which both share, at one broker on a PostgreSQL. Clients add up
//! the prices of their replies. In the end the booked charges of each account are compared with that sum:
//!
//! - At least the sum is booked, except for `accounts.unreported` of each life of a gateway that was killed.
//! - At most the sum is booked, except for requests whose reply a kill has cut off: they may be charged.

mod client;
mod system;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use self::client::{ChargedClients, Paid};
use self::system::{ACCOUNTS, ChargeSystem, GATEWAYS, UNREPORTED, Victim};
use crate::error::{Outcome, check};
use crate::site::Site;

/// Kills of the short form. `POSTHASTE_KILLS` states another number.
const KILLS: u64 = 20;

/// Longest time between two kills, in milliseconds.
const LONGEST: u64 = 600;

/// Sums over all accounts, in millionths.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Comparison {
    /// Requests with a price in their reply.
    pub(crate) replies: u64,
    /// Sum of those prices.
    pub(crate) paid: u64,
    /// Booked in the store.
    pub(crate) booked: u64,
    /// Paid and not booked.
    pub(crate) lost: u64,
    /// Permitted loss.
    pub(crate) may_be_lost: u64,
    /// Booked and not paid, beyond the requests without a reply.
    pub(crate) twice: u64,
}

/// The short form, or as many kills as `POSTHASTE_KILLS` states.
pub(crate) fn charges(site: &Site) -> Outcome<()> {
    let kills = std::env::var("POSTHASTE_KILLS").ok();
    let kills = kills.and_then(|kills| kills.parse().ok()).unwrap_or(KILLS);
    let Comparison {
        replies,
        paid,
        booked,
        lost,
        may_be_lost,
        twice,
    } = killed(site, kills)?;
    println!(
        "  charges: {kills} kills, {replies} paid requests, {} paid, {} booked, {} lost of {} that may be, {} taken twice",
        units(paid),
        units(booked),
        units(lost),
        units(may_be_lost),
        units(twice)
    );
    check(lost <= may_be_lost && twice == 0, || {
        "charges are lost beyond the bound, or taken twice".to_owned()
    })
}

/// Kills processes so often and compares. Lost and doubled charges are no failure here.
pub(crate) fn killed(site: &Site, kills: u64) -> Outcome<Comparison> {
    let mut system = ChargeSystem::start(site)?;
    let clients = ChargedClients::start(&system.gateways()?, &system.keys);
    let mut chance = KillChance(0x9e37_79b9_7f4a_7c15);
    let mut killed: BTreeMap<usize, u64> = BTreeMap::new();
    for _ in 0..kills {
        std::thread::sleep(Duration::from_millis(chance.below(LONGEST)));
        let victim = Victim::from_number(chance.below(4));
        if let Victim::Gateway(number) = victim {
            *killed.entry(number).or_default() += 1;
        }
        system.kill(victim)?;
        std::thread::sleep(Duration::from_millis(chance.below(LONGEST / 2)));
        system.revive(victim)?;
    }
    std::thread::sleep(Duration::from_secs(3));
    let paid = clients.stop();
    // The last charges are reported while the gateways drain.
    system.drain()?;
    let booked = booked(&system)?;
    let mut sum = Comparison::default();
    for (number, account) in ACCOUNTS.iter().enumerate() {
        let Paid {
            replies,
            micros,
            cut_off,
        } = paid[number];
        let booked = booked.get(*account).copied().unwrap_or(0);
        let lives: u64 = match number {
            // The last account is of both gateways.
            number if number < GATEWAYS => killed.get(&number).copied().unwrap_or(0),
            _ => killed.values().sum(),
        };
        sum.replies += replies;
        sum.paid += micros;
        sum.booked += booked;
        sum.lost += micros.saturating_sub(booked);
        sum.may_be_lost += lives * UNREPORTED;
        sum.twice += booked.saturating_sub(micros + cut_off);
        println!(
            "  {account}: {replies} replies, {} paid, {} booked, {} in replies that were cut off, {lives} lives",
            units(micros),
            units(booked),
            units(cut_off)
        );
        check(micros.saturating_sub(booked) <= lives * UNREPORTED, || {
            format!("{account} has lost more than its gateways may lose")
        })?;
    }
    check(sum.replies > 10 * kills, || {
        format!("only {} requests were paid: nothing is shown", sum.replies)
    })?;
    Ok(sum)
}

/// Booked money of each account, in millionths, from the audit record.
fn booked(system: &ChargeSystem<'_>) -> Outcome<BTreeMap<String, u64>> {
    let mut sums = BTreeMap::new();
    for line in system.charges()?.lines() {
        let record: Value = serde_json::from_str(line).unwrap_or_default();
        let account = record["account"].as_str().unwrap_or_default().to_owned();
        let amount = record["charge"]["amount"].as_str().unwrap_or_default();
        *sums.entry(account).or_default() += client::micros(amount);
    }
    Ok(sums)
}

fn units(micros: u64) -> String {
    format!("{:.2}", micros as f64 / 1e6)
}

/// Random moments and victims (SplitMix64).
struct KillChance(u64);

impl KillChance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }
}
