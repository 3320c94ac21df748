//! Effect of reports and changes on accounts, the same for every store.
//!
//! Periods are counted from 1970 by the broker's clock. A charge belongs to the period in which it is booked. A clock
//! that is set back, or that of another broker that is behind, does not reopen a period.

use std::collections::BTreeMap;

use posthaste_broker_client::accounts::{AccountChange, ChargeReport};
use posthaste_qos::Money;

use super::{AccountOutcome, SEEN_AGAIN, StoredAccount, micros_of};

/// A gateway as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnownGateway {
    /// Number of its last booked batch.
    pub(crate) last: u64,
    /// Time of its last noted report, in microseconds since 1970.
    pub(crate) seen: i64,
    /// Number of the token that began it. 0 if an earlier version stored it.
    pub(crate) token: u64,
}

/// Effect of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Booking {
    /// A new gateway without charges: remember it.
    Begin,
    /// No charges, and no report was noted for long: note this one.
    Note,
    /// No charges, as in most reports: reply only, without a writing transaction.
    Nothing,
    /// Book the charges.
    Book,
    /// The charges are booked already.
    Repeat,
    /// It cannot be told if the charges are booked.
    Refuse,
}

/// Decides about a report with `token` of the gateway `known`, or of an unknown one, at `now` in microseconds.
///
/// The batches of a gateway belong to the token that began it: the bearer of another one could otherwise book a batch in
/// its place, and the gateway's own would count as a repetition.
///
/// A gateway begins with an empty report, so that a batch of an unknown gateway is one that was forgotten. It might
/// have been booked, and is refused.
pub(crate) fn booking(
    report: &ChargeReport,
    token: u64,
    known: Option<KnownGateway>,
    now: i64,
) -> Booking {
    let (sequence, is_empty) = (report.sequence, report.charges.is_empty());
    let Some(KnownGateway {
        last,
        seen,
        token: owner,
    }) = known
    else {
        return if is_empty && sequence == 0 {
            Booking::Begin
        } else {
            Booking::Refuse
        };
    };
    if owner != 0 && owner != token {
        return Booking::Refuse;
    }
    match is_empty {
        true if sequence > last => Booking::Refuse,
        true if now.saturating_sub(seen) >= SEEN_AGAIN => Booking::Note,
        true => Booking::Nothing,
        false if sequence == last => Booking::Repeat,
        false if Some(sequence) == last.checked_add(1) => Booking::Book,
        false => Booking::Refuse,
    }
}

/// Charges a report to its accounts, found in `accounts` by name. Returns the start of the period of each charge, in
/// microseconds since 1970. If an account is absent or has another currency, returns its name; nothing may be stored
/// then.
pub(crate) fn charge_all(
    accounts: &mut BTreeMap<String, StoredAccount>,
    report: &ChargeReport,
    now: i64,
) -> Result<Vec<i64>, String> {
    let charges = report.charges.iter().map(|reported| {
        let account = accounts.get_mut(&reported.account);
        let same = account.filter(|account| account.currency == reported.charge.currency());
        let account = same.ok_or_else(|| reported.account.clone())?;
        Ok(charge(account, reported.charge.micros(), now))
    });
    charges.collect()
}

/// Number of the period at a time, both in microseconds.
pub(crate) const fn period_at(now: i64, period: i64) -> i64 {
    let period = if period > 0 { period } else { 1 };
    now.div_euclid(period)
}

/// Money spent in the period at `now`.
pub(crate) fn spent_at(account: &StoredAccount, now: i64) -> i64 {
    if period_at(now, account.period) > account.spent_in {
        0
    } else {
        account.spent
    }
}

/// Books a charge. Returns the start of its period in microseconds since 1970.
fn charge(account: &mut StoredAccount, micros: u64, now: i64) -> i64 {
    let spent = spent_at(account, now);
    let micros = i64::try_from(micros).unwrap_or(i64::MAX);
    account.spent_in = account.spent_in.max(period_at(now, account.period));
    account.spent = spent.saturating_add(micros);
    account.spent_in.saturating_mul(account.period)
}

/// Applies a change, or returns the reason against it.
pub(crate) fn change(
    account: &mut StoredAccount,
    change: &AccountChange,
    now: i64,
) -> Result<(), AccountOutcome> {
    if account.closed.is_some() {
        return Err(AccountOutcome::Closed);
    }
    let amounts = [change.budget, change.max_price.flatten()];
    let is_other = |money: &&Money| money.currency() != account.currency;
    if amounts.iter().flatten().any(|money| is_other(&money)) {
        return Err(AccountOutcome::OtherCurrency(account.currency));
    }
    if let Some(key) = change.key_sha256 {
        account.key = key.map(|digest| digest.0);
    }
    if let Some(certificate) = &change.certificate {
        account.certificate.clone_from(certificate);
    }
    if let Some(budget) = change.budget {
        account.budget = budget.micros() as i64;
    }
    if let Some(price) = change.max_price {
        account.max_price = price.map(|price| price.micros() as i64);
    }
    if let Some(period) = change.period {
        // Money spent in the current period counts for the new one, too.
        account.spent = spent_at(account, now);
        account.period = micros_of(period);
        account.spent_in = period_at(now, account.period);
    }
    Ok(())
}

/// Closes an account, or returns the reason against it.
pub(crate) fn close(account: &mut StoredAccount, now: i64) -> Result<(), AccountOutcome> {
    if account.closed.is_some() {
        return Err(AccountOutcome::Closed);
    }
    account.closed = Some(now);
    (account.key, account.certificate) = (None, None);
    Ok(())
}

#[cfg(test)]
mod tests {
    use posthaste_broker_client::accounts::{Hex, ReportedCharge};

    use super::*;

    fn report(sequence: u64, charges: usize) -> ChargeReport {
        let charge = ReportedCharge {
            account: "ada".to_owned(),
            charge: Money::new("1", "EUR".parse().unwrap()).unwrap(),
            requests: 1,
        };
        ChargeReport {
            gateway: Hex([1; 16]),
            sequence,
            known: 0,
            charges: vec![charge; charges],
        }
    }

    #[test]
    fn only_the_next_batch_of_a_known_gateway_is_booked() {
        for (sequence, charges, last, expected) in [
            (0, 0, None, Booking::Begin),
            (1, 0, None, Booking::Refuse),
            (1, 1, None, Booking::Refuse),
            (0, 0, Some(0), Booking::Nothing),
            (1, 1, Some(0), Booking::Book),
            (1, 1, Some(1), Booking::Repeat),
            (1, 1, Some(2), Booking::Refuse),
            (2, 1, Some(0), Booking::Refuse),
            (2, 0, Some(1), Booking::Refuse),
            (1, 0, Some(2), Booking::Nothing),
            (0, 1, Some(0), Booking::Repeat),
            (u64::MAX, 1, Some(u64::MAX), Booking::Repeat),
        ] {
            let known = last.map(|last| KnownGateway {
                last,
                seen: 0,
                token: 7,
            });
            let found = booking(&report(sequence, charges), 7, known, 1);
            assert_eq!(found, expected, "{sequence} with {charges}, after {last:?}");
        }
    }

    #[test]
    fn a_gateway_without_charges_is_noted_from_time_to_time() {
        let known = Some(KnownGateway {
            last: 3,
            seen: 10,
            token: 0,
        });
        for (now, expected) in [
            (10 + SEEN_AGAIN - 1, Booking::Nothing),
            (10 + SEEN_AGAIN, Booking::Note),
            // The clock was set back.
            (0, Booking::Nothing),
        ] {
            assert_eq!(booking(&report(3, 0), 7, known, now), expected, "{now}");
        }
    }

    fn account() -> StoredAccount {
        StoredAccount {
            name: "ada".to_owned(),
            key: None,
            certificate: None,
            currency: "EUR".parse().unwrap(),
            budget: 10,
            period: 100,
            max_price: None,
            made: 0,
            closed: None,
            spent_in: 0,
            spent: 0,
        }
    }

    #[test]
    fn a_period_begins_without_charges_and_is_not_reopened() {
        let mut account = account();
        assert_eq!(charge(&mut account, 3, 50), 0);
        assert_eq!(charge(&mut account, 4, 99), 0);
        assert_eq!(spent_at(&account, 99), 7);
        assert_eq!(spent_at(&account, 100), 0);
        assert_eq!(charge(&mut account, 5, 250), 200);
        // The clock was set back.
        assert_eq!(charge(&mut account, 6, 99), 200);
        assert_eq!(spent_at(&account, 99), 11);
        charge(&mut account, u64::MAX, 250);
        assert_eq!(account.spent, i64::MAX);
    }

    #[test]
    fn another_period_keeps_what_is_spent() {
        let mut account = account();
        charge(&mut account, 3, 250);
        let longer = AccountChange {
            period: Some(posthaste_units::Span::from_micros(1_000)),
            ..AccountChange::default()
        };
        change(&mut account, &longer, 260).unwrap();
        assert_eq!((spent_at(&account, 260), account.spent_in), (3, 0));
        assert_eq!(spent_at(&account, 1_000), 0);
    }

    #[test]
    fn a_change_of_the_period_ends_one_of_a_wrong_clock() {
        let mut account = account();
        // The clock was far ahead.
        charge(&mut account, 3, 1_000_000);
        assert_eq!(spent_at(&account, 600), 3);
        let same = AccountChange {
            period: Some(posthaste_units::Span::from_micros(100)),
            ..AccountChange::default()
        };
        change(&mut account, &same, 250).unwrap();
        assert_eq!((spent_at(&account, 299), spent_at(&account, 300)), (3, 0));
    }

    #[test]
    fn a_closed_account_has_no_key_and_changes_no_more() {
        let mut account = account();
        account.key = Some([1; 32]);
        close(&mut account, 5).unwrap();
        assert_eq!((account.key, account.closed), (None, Some(5)));
        assert_eq!(close(&mut account, 6), Err(AccountOutcome::Closed));
        let none = AccountChange::default();
        assert_eq!(change(&mut account, &none, 6), Err(AccountOutcome::Closed));
    }

    #[test]
    fn money_of_another_currency_changes_nothing() {
        let mut account = account();
        let dollars = AccountChange {
            budget: Some(Money::new("1", "USD".parse().unwrap()).unwrap()),
            ..AccountChange::default()
        };
        let before = account.clone();
        let refused = change(&mut account, &dollars, 5);
        let euros = AccountOutcome::OtherCurrency("EUR".parse().unwrap());
        assert_eq!(refused, Err(euros));
        assert_eq!(account, before);
    }
}
