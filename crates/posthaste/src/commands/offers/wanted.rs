//! Requirements: from a document, or from a few flags.

use posthaste_qos::{Definition, Info, Money, Ranking, Requirement, Server};
use posthaste_units::{Rate, Ratio, Span};

use super::Failure;
use crate::commands::price::price;
use crate::commands::requirements::requirements;

/// Requirements of an adequate offer.
#[derive(clap::Args)]
pub(super) struct Wanted {
    /// A .wsqos document with requirements, or JSON with the same names
    #[arg(long, value_name = "FILE", value_parser = requirements)]
    requirements: Option<Requirement>,
    /// Maximum price, for example 0.40EUR
    #[arg(long, value_name = "PRICE", value_parser = price)]
    max_price: Option<Money>,
    /// Maximum processing time of a request
    #[arg(long, value_name = "TIME")]
    processing_time: Option<Span>,
    /// Minimum rate of served requests
    #[arg(long, value_name = "RATE")]
    requests: Option<Rate>,
    /// Minimum share of good replies
    #[arg(long, value_name = "SHARE")]
    reliability: Option<Ratio>,
    /// Minimum share of time in which the service can be reached
    #[arg(long, value_name = "SHARE")]
    availability: Option<Ratio>,
    /// Criterion for the best offer: cheapest, or skyline
    #[arg(long, value_name = "NAME", default_value = "cheapest", value_parser = ranking)]
    pub(super) ranking: Ranking,
}

impl Wanted {
    /// The document's requirement. Flags override its values.
    pub(super) fn requirement(&self) -> Result<Requirement, Failure> {
        let mut requirement = self.requirements.clone().unwrap_or_default();
        let Definition {
            default: Info { server, .. },
            price,
            ..
        } = &mut requirement.qos;
        *price = self.max_price.or(*price);
        *server = Server {
            processing_time: self.processing_time.or(server.processing_time),
            requests_per_second: self.requests.or(server.requests_per_second),
            reliability: self.reliability.or(server.reliability),
            availability: self.availability.or(server.availability),
            custom: std::mem::take(&mut server.custom),
        };
        requirement.check().map_err(Failure::usage)?;
        Ok(requirement)
    }
}

fn ranking(text: &str) -> Result<Ranking, String> {
    match text {
        "cheapest" => Ok(Ranking::Cheapest),
        "skyline" => Ok(Ranking::Skyline),
        _ => Err("there are cheapest and skyline; by weights with POST /v1/best-offer".to_owned()),
    }
}
