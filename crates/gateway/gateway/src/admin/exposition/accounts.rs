//! Accounts, without their names: each would be a series.

use std::fmt::Error;

use posthaste_serve::exposition::{counters, gauge};
use prometheus_client::encoding::DescriptorEncoder;

use crate::accounts::GatewayAccounts;

pub(super) fn encode(out: &mut DescriptorEncoder, shared: &GatewayAccounts) -> Result<(), Error> {
    let counts = &shared.counters;
    let rows = |(label, count): (&'static str, u64)| ([("outcome", label)], count as f64);
    let keys_help = "API keys shown, by outcome";
    counters(out, "account_keys", keys_help, counts.by_key().map(rows))?;
    let payments_help = "Requests with a price paid from an account, by outcome";
    counters(
        out,
        "account_payments",
        payments_help,
        counts.by_payment().map(rows),
    )?;
    let reports_help = "Reports of charges to the broker, by outcome";
    counters(
        out,
        "charge_reports",
        reports_help,
        counts.by_report().map(rows),
    )?;
    let [charged, lost] = counts.sums();
    let charged_help = "Money charged, in the currency of the prices";
    counters(out, "charged", charged_help, [([], charged)])?;
    let lost_help =
        "Money in batches of charges that the broker has refused and may not have booked";
    counters(out, "charges_lost", lost_help, [([], lost)])?;
    let totals = shared.lock().totals();
    let open_help = "Accounts that are not closed";
    gauge(out, "accounts_open", open_help, totals.open as f64)?;
    let pending_help = "Money held or charged that the broker has not acknowledged";
    let pending = totals.pending.micros() as f64 / 1e6;
    gauge(out, "charges_pending", pending_help, pending)
}
