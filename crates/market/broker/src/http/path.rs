//! Paths of the HTTP interface.

use percent_encoding::percent_decode_str;

use super::problem::ProblemDetails;
use crate::change::{OfferGroup, OfferKey};
use crate::measurements::ReportKey;
use crate::offered::fault_of_name;

/// Resource that a request addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Path {
    /// `/v1/best-offer`
    BestOffer,
    /// `/v1/offers`
    Offers,
    /// `/v1/offers/{type}/{provider}`
    Provider(OfferGroup),
    /// `/v1/offers/{type}/{provider}/{name}`
    Offer(OfferKey),
    /// `/v1/measurements`
    Measurements,
    /// `/v1/measurements/{type}/{gateway}`
    Measured(ReportKey),
    /// `/v1/changes`
    Changes,
    /// `/v1/accounts`
    Accounts,
    /// `/v1/accounts/{name}`
    Account(String),
    /// `/v1/charges`
    Charges,
    /// `/accounts`
    AccountsPage,
    /// `/soap`
    Soap,
    /// `/openapi.json`
    OpenApi,
    /// `/status`, and `/`
    Status,
    /// `/metrics`
    Metrics,
    /// `/healthz`
    Health,
}

impl Path {
    /// Parses the path of a request.
    pub(super) fn read(path: &str) -> Result<Self, ProblemDetails> {
        if let Some(rest) = path.strip_prefix("/v1/offers/") {
            let names: Result<Vec<String>, ProblemDetails> = rest.split('/').map(name).collect();
            return match <[String; 3]>::try_from(names?) {
                Ok([kind, provider, name]) => Ok(Self::Offer(OfferKey {
                    kind,
                    provider,
                    name,
                })),
                Err(names) => match <[String; 2]>::try_from(names) {
                    Ok([kind, provider]) => Ok(Self::Provider(OfferGroup { kind, provider })),
                    Err(_) => Err(ProblemDetails::not_found(
                        "an offer is at /v1/offers/TYPE/PROVIDER/NAME: a slash within one of them is %2F",
                    )),
                },
            };
        }
        if let Some(rest) = path.strip_prefix("/v1/measurements/") {
            let names: Result<Vec<String>, ProblemDetails> = rest.split('/').map(name).collect();
            let names = <[String; 2]>::try_from(names?).map_err(|_| {
                ProblemDetails::not_found(
                    "measurements are put at /v1/measurements/TYPE/GATEWAY: a slash within one of them is %2F",
                )
            })?;
            let [kind, gateway] = names;
            return Ok(Self::Measured(ReportKey { kind, gateway }));
        }
        if let Some(rest) = path.strip_prefix("/v1/accounts/") {
            return name(rest).map(Self::Account);
        }
        Ok(match path {
            "/v1/measurements" => Self::Measurements,
            "/v1/best-offer" => Self::BestOffer,
            "/v1/offers" => Self::Offers,
            "/v1/changes" => Self::Changes,
            "/v1/accounts" => Self::Accounts,
            "/v1/charges" => Self::Charges,
            "/accounts" => Self::AccountsPage,
            "/soap" => Self::Soap,
            "/openapi.json" => Self::OpenApi,
            "/" | "/status" => Self::Status,
            "/metrics" => Self::Metrics,
            "/healthz" => Self::Health,
            _ => {
                return Err(ProblemDetails::not_found(
                    "unknown path: /openapi.json lists all paths",
                ));
            }
        })
    }

    /// Allowed methods.
    pub(super) const fn methods(&self) -> &'static str {
        match self {
            Self::BestOffer => "POST",
            Self::Provider(_) | Self::Measured(_) => "PUT",
            Self::Offer(_) => "GET, HEAD, PUT, DELETE",
            Self::Soap | Self::Accounts | Self::Charges => "GET, HEAD, POST",
            Self::Account(_) => "GET, HEAD, PATCH, DELETE",
            _ => "GET, HEAD",
        }
    }
}

/// Decodes and validates a name within a path.
fn name(written: &str) -> Result<String, ProblemDetails> {
    let name = percent_decode_str(written).decode_utf8();
    let name = name.map_err(|_| ProblemDetails::bad("a name in the path is not UTF-8"))?;
    check_name(&name)?;
    Ok(name.into_owned())
}

/// Rejects an invalid name of a type, provider or offer.
pub(super) fn check_name(name: &str) -> Result<(), ProblemDetails> {
    fault_of_name(name).map_or(Ok(()), |detail| Err(ProblemDetails::bad(detail)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_hold_anything_that_is_written_with_care() {
        let key = OfferKey {
            kind: "http://example.org/books?v=1".to_owned(),
            provider: "Bücher & Söhne".to_owned(),
            name: "100 %".to_owned(),
        };
        let path = "/v1/offers/http:%2F%2Fexample.org%2Fbooks%3Fv=1/B%C3%BCcher%20&%20S%C3%B6hne/100%20%25";
        assert_eq!(Path::read(path).unwrap(), Path::Offer(key));
    }

    #[test]
    fn invalid_paths_are_refused() {
        for (path, status) in [
            ("/v1/offers/", 400),
            ("/v1/offers/a", 404),
            ("/v1/offers/a//c", 400),
            ("/v1/offers/a/b/c/d", 404),
            ("/v1/offers/a/b/%FF", 400),
            ("/v1/offers/a/b/%0A", 400),
            ("/v1/offer", 404),
            ("/v1/measurements/a", 404),
            ("/v1/measurements/a/", 400),
        ] {
            assert_eq!(
                Path::read(path).unwrap_err().status.as_u16(),
                status,
                "{path}"
            );
        }
    }
}
