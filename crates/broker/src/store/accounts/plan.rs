//! Effect of reports and changes on accounts, the same for every store.
//!
//! Periods are counted from 1970 by the broker's clock. A charge belongs to the period in which it is booked. A clock
//! that is set back, or that of another broker that is behind, does not reopen a period.

use posthaste_broker_client::accounts::{AccountChange, ChargeReport};
use posthaste_qos::Money;

use super::{AccountOutcome, StoredAccount, micros_of};

/// Effect of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Booking {
    /// A new gateway without charges: remember it.
    Begin,
    /// No charges: reply only.
    Nothing,
    /// Book the charges.
    Book,
    /// The charges are booked already.
    Repeat,
    /// It cannot be told if the charges are booked.
    Refuse,
}

/// Decides about a report of a gateway whose last booked batch is `last`, or that is unknown.
///
/// A gateway begins with an empty report, so that a batch of an unknown gateway is one that was forgotten. It might
/// have been booked, and is refused.
pub(crate) fn booking(report: &ChargeReport, last: Option<u64>) -> Booking {
    match (last, report.charges.is_empty()) {
        (None, true) if report.sequence == 0 => Booking::Begin,
        (None, _) => Booking::Refuse,
        (Some(last), true) if report.sequence <= last => Booking::Nothing,
        (Some(_), true) => Booking::Refuse,
        (Some(last), false) if report.sequence == last => Booking::Repeat,
        (Some(last), false) if Some(report.sequence) == last.checked_add(1) => Booking::Book,
        (Some(_), false) => Booking::Refuse,
    }
}

/// Number of the period at a time, both in microseconds.
pub(crate) const fn period_at(now: i64, period: i64) -> i64 {
    let period = if period > 0 { period } else { 1 };
    now.div_euclid(period)
}

/// Money spent in the period at `now`.
pub(crate) fn spent_at(account: &StoredAccount, now: i64) -> i64 {
    match period_at(now, account.period) > account.spent_in {
        true => 0,
        false => account.spent,
    }
}

/// Books a charge. Returns the start of its period in microseconds since 1970.
pub(crate) fn charge(account: &mut StoredAccount, micros: u64, now: i64) -> i64 {
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
    let is_other = |money: &&Money| money.currency().code() != account.currency;
    if amounts.iter().flatten().any(|money| is_other(&money)) {
        return Err(AccountOutcome::OtherCurrency(account.currency.clone()));
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
            let found = booking(&report(sequence, charges), last);
            assert_eq!(found, expected, "{sequence} with {charges}, after {last:?}");
        }
    }

    fn account() -> StoredAccount {
        StoredAccount {
            name: "ada".to_owned(),
            key: None,
            certificate: None,
            currency: "EUR".to_owned(),
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
        assert_eq!(
            refused,
            Err(AccountOutcome::OtherCurrency("EUR".to_owned()))
        );
        assert_eq!(account, before);
    }
}
