//! Accounts, without their names: each would be a series.

use std::fmt::Error;

use posthaste_serve::exposition::{counters, gauge};
use prometheus_client::encoding::DescriptorEncoder;

use crate::accounts::GatewayAccounts;

pub(super) fn encode(out: &mut DescriptorEncoder, shared: &GatewayAccounts) -> Result<(), Error> {
    let counts = &shared.counters;
    let rows = |(label, count): (&'static str, u64)| ([("outcome", label)], count as f64);
    let help = "API keys shown, by outcome";
    counters(out, "account_keys", help, counts.by_key().map(rows))?;
    let help = "Requests with a price paid from an account, by outcome";
    counters(out, "account_payments", help, counts.by_payment().map(rows))?;
    let help = "Reports of charges to the broker, by outcome";
    counters(out, "charge_reports", help, counts.by_report().map(rows))?;
    let [charged, lost] = counts.sums();
    let help = "Money charged, in the currency of the prices";
    counters(out, "charged", help, [([], charged)])?;
    let help = "Money in batches of charges that the broker has refused and may not have booked";
    counters(out, "charges_lost", help, [([], lost)])?;
    let totals = shared.lock().totals();
    let help = "Accounts that are not closed";
    gauge(out, "accounts_open", help, totals.open as f64)?;
    let help = "Money held or charged that the broker has not acknowledged";
    let pending = totals.pending.micros() as f64 / 1e6;
    gauge(out, "charges_pending", help, pending)
}
