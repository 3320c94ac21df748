//! Payer of a request: the reason to believe its statements about prices, or not to.
//!
//! A market admits requests that cannot pay while the price is 0. Otherwise the caller may give them what is left
//! ([`Why::is_for_lack_of_money`]).

use posthaste_qos::Money;

use super::admit::{Ask, Why};

/// Payer of a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Payer {
    /// Without accounts, every statement is believed.
    #[default]
    Anyone,
    /// No account is identified.
    Nobody,
    /// An account that has no budget in this currency, or has spent it.
    Broke,
    /// An account with money.
    Account {
        /// Money that it can spend now.
        left: Money,
        /// Accepted price of requests that state none.
        max_price: Option<Money>,
    },
}

impl Payer {
    /// Reason against a request that would have to pay, if it cannot.
    pub(super) const fn why_not(self) -> Option<Why> {
        match self {
            Self::Anyone | Self::Account { .. } => None,
            Self::Nobody => Some(Why::NoAccount),
            Self::Broke => Some(Why::NoBudget),
        }
    }

    /// True if the payer has at least `price`.
    pub(super) fn can_pay(self, price: Money) -> bool {
        match self {
            Self::Anyone => true,
            Self::Nobody | Self::Broke => price.micros() == 0,
            Self::Account { left, .. } => {
                price.micros() == 0
                    || left.currency() == price.currency() && left.micros() >= price.micros()
            }
        }
    }

    /// The statements of a request that count.
    pub(super) fn covers<'a>(self, ask: &Ask<'a>) -> Ask<'a> {
        match self {
            Self::Anyone => *ask,
            Self::Nobody | Self::Broke => Ask {
                client: ask.client,
                open: ask.open,
                payer: self,
                unquoted: true,
                ..Ask::default()
            },
            Self::Account { max_price, .. } => Ask {
                most: ask.most.or(match ask.selected {
                    None => max_price,
                    Some(_) => None,
                }),
                ..*ask
            },
        }
    }
}
