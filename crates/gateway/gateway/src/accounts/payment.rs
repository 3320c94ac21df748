//! Payment for one request: held at admission, charged or given back at the end.
//!
//! | end of the request | payment |
//! |---|---|
//! | reply below 500 | charged |
//! | reply from 500 on, failed call, or no reply of the upstream | given back |
//! | the client leaves, its deadline passes or its body fails, after the request was sent on | charged |
//! | the client leaves while the request waits to be sent | given back |
//!
//! A client that leaves has used the service. Otherwise leaving early would take capacity from others for nothing.

use std::cell::Cell;

use posthaste_admission::accounts::{AccountHandle, Hold};
use posthaste_admission::{Amount, Payer};
use posthaste_qos::{Currency, Money};
use posthaste_units::Instant;

use super::GatewayAccounts;

/// Means of payment of a request.
#[derive(Clone, Copy)]
pub(crate) struct Paying<'a> {
    pub(super) accounts: &'a GatewayAccounts,
    pub(super) is_configured: bool,
    /// The account of the request.
    pub(super) account: Option<&'a AccountHandle>,
}

/// Money held for a request in service.
pub(crate) struct Payment<'a> {
    accounts: &'a GatewayAccounts,
    hold: Cell<Option<Hold>>,
    currency: Currency,
    /// The request was sent on.
    has_begun: Cell<bool>,
    is_given_back: Cell<bool>,
}

impl<'a> Paying<'a> {
    /// Name of the account.
    pub(crate) fn name(&self) -> Option<&'a str> {
        self.account.map(|account| &*account.name)
    }

    /// Asks `decide` about a request of this payer and holds the price that it returns. The account stays locked in
    /// between, so that the price is left.
    pub(crate) fn admit<T, E>(
        &self,
        at: Instant,
        decide: impl FnOnce(Payer) -> Result<T, E>,
        price: impl FnOnce(&T) -> Option<Money>,
    ) -> Result<(T, Option<Payment<'a>>), E> {
        let Some(account) = self.account.filter(|_| self.is_configured) else {
            let payer = if self.is_configured {
                Payer::Nobody
            } else {
                Payer::Anyone
            };
            return Ok((decide(payer)?, None));
        };
        let mut accounts = self.accounts.lock();
        let means = accounts.means(at, account);
        let currency = accounts.currency();
        let payer = match means {
            Some(means) if means.left > Amount::ZERO => Payer::Account {
                left: means.left.to_money(currency),
                max_price: means.max_price,
            },
            _ => Payer::Broke,
        };
        let admitted = decide(payer)?;
        let price = price(&admitted).filter(|price| price.micros() > 0);
        let payment = price.map(|price| {
            let amount = Amount::from_micros(price.micros());
            let hold = accounts.hold(at, account, amount);
            debug_assert!(
                hold.is_some(),
                "a request is admitted at a price that is not left"
            );
            Payment {
                accounts: self.accounts,
                hold: Cell::new(hold),
                currency,
                has_begun: Cell::new(false),
                is_given_back: Cell::new(false),
            }
        });
        Ok((admitted, payment))
    }
}

impl Payment<'_> {
    /// The request is sent on.
    pub(crate) fn begin(&self) {
        self.has_begun.set(true);
    }

    /// Charges the money, unless that or the opposite was done before.
    pub(crate) fn charge(&self) {
        if let Some(hold) = self.hold.take() {
            self.accounts.counters.charged(hold.amount());
            if self.accounts.lock().charge(hold) {
                self.accounts.due.notify_one();
            }
        }
    }

    /// Gives the money back, unless that or the opposite was done before.
    pub(crate) fn give_back(&self) {
        if let Some(hold) = self.hold.take() {
            self.accounts.counters.given_back();
            self.accounts.lock().release(hold);
            self.is_given_back.set(true);
        }
    }

    /// The price to state in place of the one that was given back: 0.
    pub(crate) fn corrected_price(&self) -> Option<Money> {
        let zero = Amount::ZERO.to_money(self.currency);
        self.is_given_back.get().then_some(zero)
    }
}

impl Drop for Payment<'_> {
    fn drop(&mut self) {
        if self.has_begun.get() {
            self.charge();
        } else {
            self.give_back();
        }
    }
}
