//! Offers line by line, for people and for programs.

use std::fmt::Write as _;
use std::io::{BufRead, Write as _};
use std::ops::ControlFlow;
use std::path::Path;

use posthaste_broker_client::{BestOfferReply, BrokerClient, Event, ListedOffer, Put};
use posthaste_qos::{Document, Offer};
use serde::{Deserialize, Serialize};

use super::{Failure, failure, print, tell, wait};

/// A line of an export.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExportedOffer {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) provider: String,
    pub(super) offer: Offer,
}

/// A JSON document on one line.
pub(super) fn line(value: &impl Serialize) -> String {
    // Serialising our own types cannot fail.
    serde_json::to_string(value).unwrap_or_default() + "\n"
}

/// An offer on one line: its price, its name, its promises.
pub(super) fn entry(ListedOffer { provider, offer }: &ListedOffer) -> String {
    let price = offer
        .qos
        .price
        .map_or_else(|| "no price".to_owned(), |price| price.to_string());
    let server = &offer.qos.default.server;
    let mut out = format!("{price:>14}  {} by {provider}:", offer.name);
    let mut say = |promise: Option<String>| {
        if let Some(promise) = promise {
            let _ = write!(out, " {promise},");
        }
    };
    say(server.processing_time.map(|time| format!("at most {time}")));
    say(server
        .requests_per_second
        .map(|rate| format!("at least {rate}")));
    say(server.reliability.map(|share| format!("reliable {share}")));
    say(server
        .availability
        .map(|share| format!("available {share}")));
    let _ = write!(out, " until {}", offer.expires);
    if let Some(endpoint) = &offer.endpoint {
        let _ = write!(out, ", at {endpoint}");
    }
    out.push('\n');
    out
}

/// Prints the answer for a person. A missing offer is a failure.
pub(super) fn show(answer: BestOfferReply, json: bool) -> Result<(), Failure> {
    let BestOfferReply {
        provider,
        offer,
        considered,
        reasons,
    } = answer;
    match offer {
        Some(_) if json => Ok(()),
        Some(offer) => print(&entry(&ListedOffer { provider, offer })),
        None => {
            let mut message = match considered {
                0 => "there are no offers for this type".to_owned(),
                count => format!("none of {count} offers is enough"),
            };
            for against in reasons {
                let _ = write!(
                    message,
                    "\n  {} by {}: {}",
                    against.name,
                    against.provider,
                    against.objections.join("; ")
                );
            }
            Err(Failure::Threshold(message))
        }
    }
}

/// Reads the offers in a file.
pub(super) fn offers_in(file: &Path) -> Result<Vec<Offer>, Failure> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Several {
        offers: Vec<Offer>,
    }
    let wrong = |error: String| Failure::usage(format!("{}: {error}", file.display()));
    let bytes = std::fs::read(file).map_err(|error| wrong(error.to_string()))?;
    if bytes.trim_ascii_start().starts_with(b"{") {
        let several = serde_json::from_slice::<Several>(&bytes);
        return several
            .map(|several| several.offers)
            .map_err(|error| wrong(error.to_string()));
    }
    match Document::read(&bytes).map_err(|error| wrong(error.to_string()))? {
        Document::Offers(offers) if offers.includes.is_empty() => Ok(offers.offers),
        Document::Offers(_) => Err(wrong(
            "it includes other documents: put each of them".to_owned(),
        )),
        _ => Err(wrong("there are no offers in it".to_owned())),
    }
}

/// Prints every change until the reader closes. If the stream ends, continues from the last change.
pub(super) fn watch(client: &BrokerClient, json: bool) -> Result<(), Failure> {
    let mut last = None;
    loop {
        let followed = client.follow(last, |event| {
            let (number, put) = match event {
                Event::Ready(number) => (number, None),
                Event::Changed {
                    number: Some(number),
                    put,
                } => (number, Some(put)),
                _ => return ControlFlow::Continue(()),
            };
            last = Some(number);
            put.map_or(ControlFlow::Continue(()), |put| {
                until_unread(tell(&change(number, &put, json)))
            })
        });
        let error = match posthaste_broker_client::wait(followed).map_err(Failure::run)? {
            Ok(ended) => return ended,
            Err(error) if last.is_none() => return Err(failure(error)),
            Err(error) => error,
        };
        let _ = writeln!(std::io::stderr(), "{error}; trying again");
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
}

/// Prints every offer. It reads the beginning of the stream of changes, so that none is missed during changes.
pub(super) fn export(client: &BrokerClient) -> Result<(), Failure> {
    let followed = client.follow(None, |event| match event {
        Event::Ready(_) => ControlFlow::Break(Ok(())),
        Event::Changed { put, .. } => {
            let Put {
                kind,
                provider,
                offer,
                ..
            } = *put;
            offer.map_or(ControlFlow::Continue(()), |offer| {
                until_unread(tell(&line(&ExportedOffer {
                    kind,
                    provider,
                    offer,
                })))
            })
        }
        _ => ControlFlow::Continue(()),
    });
    wait(followed)?
}

/// Continues until the reader closes.
fn until_unread(written: Result<ControlFlow<()>, Failure>) -> ControlFlow<Result<(), Failure>> {
    match written {
        Ok(ControlFlow::Continue(())) => ControlFlow::Continue(()),
        Ok(ControlFlow::Break(())) => ControlFlow::Break(Ok(())),
        Err(failure) => ControlFlow::Break(Err(failure)),
    }
}

fn change(number: u64, put: &Put, json: bool) -> String {
    let Put {
        kind,
        provider,
        name,
        at,
        offer,
    } = put;
    if json {
        let change = serde_json::json!({ "number": number, "at": at, "type": kind, "provider": provider, "name": name, "offer": offer });
        return line(&change);
    }
    let at = at.map(|at| at.to_string()).unwrap_or_default();
    match offer {
        None => format!("{at} {kind}: {name} by {provider} withdrawn\n"),
        Some(offer) => {
            let listed = ListedOffer {
                provider: provider.clone(),
                offer: offer.clone(),
            };
            format!("{at} {kind}: {}", entry(&listed).trim_start())
        }
    }
}

/// Publishes an export, line by line.
pub(super) fn import(file: &Path, client: &BrokerClient) -> Result<(), Failure> {
    let wrong = |line: usize, error: String| {
        Failure::run(format!("{}, line {line}: {error}", file.display()))
    };
    let lines: Box<dyn BufRead> = if file == Path::new("-") {
        Box::new(std::io::stdin().lock())
    } else {
        let open = std::fs::File::open(file);
        Box::new(std::io::BufReader::new(open.map_err(|error| {
            Failure::usage(format!("{}: {error}", file.display()))
        })?))
    };
    let mut count = 0;
    for (index, text) in lines.lines().enumerate() {
        let text = text.map_err(|error| wrong(index + 1, error.to_string()))?;
        let exported: ExportedOffer =
            serde_json::from_str(&text).map_err(|error| wrong(index + 1, error.to_string()))?;
        let put = wait(client.put(&exported.kind, &exported.provider, &exported.offer));
        put.map_err(|failure| {
            wrong(
                index + 1,
                format!("{failure}; {count} offers before it are published"),
            )
        })?;
        count += 1;
    }
    print(&format!("{count} offers\n"))
}
