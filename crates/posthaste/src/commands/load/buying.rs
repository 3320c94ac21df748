//! Clients that choose by price.

use clap::ValueEnum;
use posthaste_load::{Buying, WithoutOffers};
use posthaste_qos::{Definition, Money, Requirement};
use posthaste_units::Span;

use crate::commands::price::price;
use crate::commands::requirements::requirements;

/// Clients that choose offers by price.
#[derive(clap::Args)]
#[command(next_help_heading = "Offers")]
pub(super) struct BuyingArgs {
    /// Before every request, get the cheapest adequate offer from this broker, and name it in Selected-Offer. A request
    /// without an offer is declined. Each event loop is one client and uses its own quotes
    #[arg(long, value_name = "URL")]
    broker: Option<String>,
    /// Further requirements of an adequate offer: a .wsqos document, or JSON with the same names
    #[arg(long, value_name = "FILE", requires = "broker", value_parser = requirements)]
    requirements: Option<Requirement>,
    /// Maximum price of a request, for example 0.40EUR; sent as Max-Price
    #[arg(long, value_name = "PRICE", requires = "broker", value_parser = price)]
    max_price: Option<Money>,
    /// Type of the called interface [default: the only one with offers]
    #[arg(long = "type", value_name = "TYPE", requires = "broker")]
    kind: Option<String>,
    /// Interval between lookups. Without it, every request looks up an offer. Between lookups, the chosen offer is used at
    /// any age, or the one in Current-Offer of a rejection
    #[arg(long, value_name = "TIME", requires = "broker")]
    ask_every: Option<Span>,
    /// Treatment of requests while the broker cannot be reached and its offers have expired
    #[arg(
        long,
        value_enum,
        value_name = "decline|send",
        default_value = "decline",
        requires = "broker"
    )]
    without_broker: WithoutArg,
}

#[derive(Clone, Copy, ValueEnum)]
enum WithoutArg {
    Decline,
    Send,
}

impl BuyingArgs {
    /// True if clients choose by price.
    pub(super) const fn is_given(&self) -> bool {
        self.broker.is_some()
    }

    pub(super) fn buying(&self) -> Option<Buying> {
        Some(Buying {
            broker: self.broker.clone()?,
            kind: self.kind.clone(),
            wanted: self.wanted(),
            without: match self.without_broker {
                WithoutArg::Decline => WithoutOffers::Decline,
                WithoutArg::Send => WithoutOffers::Send,
            },
            ask_every: self.ask_every,
        })
    }

    /// The document's requirement. The price on the command line overrides its price.
    fn wanted(&self) -> Definition {
        let mut wanted = self.requirements.clone().unwrap_or_default().qos;
        wanted.price = self.max_price.or(wanted.price);
        wanted
    }
}
