//! Clients that choose by price.

use clap::ValueEnum;
use posthaste_load::{Buying, WithoutOffers};
use posthaste_qos::{Definition, Money, Requirement};
use posthaste_units::Span;

use crate::commands::price::price;
use crate::commands::requirements::requirements;

/// Whose offers are chosen from, and how.
#[derive(clap::Args)]
#[command(next_help_heading = "Offers")]
pub(super) struct BuyingArgs {
    /// Before every request, choose the cheapest offer that this broker tells, and name it in Selected-Offer;
    /// what has no offer is declined. Each event loop is one client, and uses the quotes it is given
    #[arg(long, value_name = "URL")]
    broker: Option<String>,
    /// What an offer must be enough for besides: a .wsqos document with requirements, or JSON with the same names
    #[arg(long, value_name = "FILE", requires = "broker", value_parser = requirements)]
    requirements: Option<Requirement>,
    /// The most a request may cost, for example 0.40EUR; told in Max-Price
    #[arg(long, value_name = "PRICE", requires = "broker", value_parser = price)]
    max_price: Option<Money>,
    /// The type of interface that is called [default: the only one for which there are offers]
    #[arg(long = "type", value_name = "TYPE", requires = "broker")]
    kind: Option<String>,
    /// Ask so often instead of before every request; in between go on with the offer that was chosen, however old, and with
    /// what refusals tell in Current-Offer
    #[arg(long, value_name = "TIME", requires = "broker")]
    ask_every: Option<Span>,
    /// What to do with requests while the broker is gone and the offers it told have expired
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
