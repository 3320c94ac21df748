//! Payer of a request: the reason to believe its statements about prices, or not to.
//!
//! A market admits requests that cannot pay while the price is 0. Otherwise the caller may give them what is left
//! ([`Why::is_for_lack_of_money`](crate::Why::is_for_lack_of_money)).

use posthaste_qos::Money;

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
}
