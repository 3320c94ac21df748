//! `route.offers`: upstreams of a route from the offers at a broker.

use std::path::PathBuf;

use posthaste_qos::Currency;
use posthaste_units::Span;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::allowed_hosts::AllowedHosts;

/// Lower bound on the window: its parts are eighths.
const SHORTEST_WINDOW: Span = Span::from_secs(1);

/// Upper bound on the window and on the time without a broker.
const LONGEST: Span = Span::from_secs(24 * 60 * 60);

/// Upper bound on the length of a list.
const LIST: usize = 256;

/// Upstreams of a route from the offers at a broker. Each request goes to the cheapest offer that satisfies its terms.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OfferRouting {
    /// URL of the broker.
    pub broker: String,
    /// Interface type of the offers.
    #[serde(rename = "type")]
    pub kind: String,
    /// Hosts that endpoints of offers may name, each with an optional port: networks (`10.0.0.0/8`), addresses
    /// (`127.0.0.1:9001`), names (`books.example`) and `*.` before a name for all names below it. Offers with other
    /// endpoints are not used. A provider chooses the endpoint, so an entry permits it to make the gateway connect
    /// there. A permitted name is trusted with all addresses that it has.
    #[schemars(length(min = 1, max = 256))]
    pub allow: Vec<String>,
    /// Providers whose offers are used. Empty means all.
    #[serde(default)]
    #[schemars(length(max = 256))]
    pub providers: Vec<String>,
    /// Currency of the offers. Offers in another currency are not used.
    #[serde(default = "euro")]
    pub currency: Currency,
    /// Time for which the last offers are used without contact to the broker. Each offer also ends at its own end.
    #[serde(default = "hold")]
    pub hold: Span,
    /// Time over which response times and failures of each offer are measured. At least 1 s.
    #[serde(default = "window")]
    pub window: Span,
    /// Minimum interval between requests to an offer that is passed over because of its measurement, to measure it
    /// again. 0 sends none: then its measurement ends with `window`.
    #[serde(default = "probe")]
    pub probe: Span,
    /// Publication of the measurements at the broker. Without this table they stay here.
    pub report: Option<OfferReport>,
}

/// Publication of measurements at the broker.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OfferReport {
    /// Name of this gateway at the broker.
    pub gateway: String,
    /// File with the token of that name: `posthaste broker token new --role gateway NAME`.
    pub token: PathBuf,
}

impl OfferRouting {
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.allow.is_empty() {
            return Err(
                "offers.allow needs at least one host, such as \"10.0.0.0/8\" or \"*.books.example\": a published endpoint makes the gateway connect there"
                    .to_owned(),
            );
        }
        if self.allow.len() > LIST || self.providers.len() > LIST {
            return Err(format!(
                "offers.allow and offers.providers have at most {LIST} entries"
            ));
        }
        AllowedHosts::read(&self.allow).map_err(|error| format!("offers.allow: {error}"))?;
        if self.kind.is_empty() {
            return Err("offers.type is empty: write the interface type of the offers".to_owned());
        }
        if self.window < SHORTEST_WINDOW || self.window > LONGEST || self.hold > LONGEST {
            return Err("offers.window is from 1s to 24h, and offers.hold at most 24h".to_owned());
        }
        Ok(())
    }
}

fn euro() -> Currency {
    "EUR".parse().expect("a currency")
}

const fn hold() -> Span {
    Span::from_secs(60)
}

const fn window() -> Span {
    Span::from_secs(120)
}

const fn probe() -> Span {
    Span::from_secs(1)
}
