//! Offers in lines, for people and for programs.

use std::fmt::Write as _;
use std::io::{BufRead, Write as _};
use std::path::Path;

use posthaste_offers::{Answer, Client, Event, Listed, Put};
use posthaste_wsqos::qos::{Document, Offer};
use serde::{Deserialize, Serialize};

use super::{Failure, print, wait};

/// A line of what is exported.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Row {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) provider: String,
    pub(super) offer: Offer,
}

/// A JSON document on a line.
pub(super) fn line(value: &impl Serialize) -> String {
    // Our own types can always be written.
    serde_json::to_string(value).unwrap_or_default() + "\n"
}

/// An offer on a line: its price, its name, what it promises.
pub(super) fn entry(Listed { provider, offer }: &Listed) -> String {
    let price = offer
        .qos
        .price
        .map_or_else(|| "no price".to_owned(), |price| price.to_string());
    let server = &offer.qos.default.server;
    let mut out = format!("{price:>14}  {} by {provider}:", offer.name);
    let mut say = |words: Option<String>| {
        if let Some(words) = words {
            let _ = write!(out, " {words},");
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
    let _ = writeln!(out, " until {}", offer.expires);
    out
}

/// The answer for a person; that there is no offer is not well.
pub(super) fn show(answer: Answer, json: bool) -> Result<(), Failure> {
    let Answer {
        provider,
        offer,
        considered,
        reasons,
    } = answer;
    match offer {
        Some(_) if json => Ok(()),
        Some(offer) => print(&entry(&Listed { provider, offer })),
        None => {
            let mut words = match considered {
                0 => "there are no offers for this type".to_owned(),
                count => format!("none of {count} offers is enough"),
            };
            for against in reasons {
                let _ = write!(
                    words,
                    "\n  {} by {}: {}",
                    against.name,
                    against.provider,
                    against.objections.join("; ")
                );
            }
            Err(Failure::Threshold(words))
        }
    }
}

/// The offers in a file.
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

/// Prints every change until the stream ends; from where it was, it begins again.
pub(super) fn watch(client: &Client, json: bool) -> Result<(), Failure> {
    let mut last = None;
    // Only a reader that has gone away ends it before Ctrl-C.
    let mut printed = Ok(());
    loop {
        let error = wait(async {
            let told = client.follow(last, |event| {
                if let Event::Ready(number) = event {
                    last = Some(number);
                }
                if let Event::Changed {
                    number: Some(number),
                    put,
                } = event
                {
                    last = Some(number);
                    printed = print(&change(number, &put, json));
                }
            });
            Ok::<_, posthaste_offers::Error>(told.await)
        })?;
        std::mem::replace(&mut printed, Ok(()))?;
        if last.is_none() {
            return Err(Failure::run(error));
        }
        let _ = writeln!(std::io::stderr(), "{error}; trying again");
        std::thread::sleep(std::time::Duration::from_secs(1));
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
            let listed = Listed {
                provider: provider.clone(),
                offer: offer.clone(),
            };
            format!("{at} {kind}: {}", entry(&listed).trim_start())
        }
    }
}

/// Publishes what was exported, line by line.
pub(super) fn import(file: &Path, client: &Client) -> Result<(), Failure> {
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
    for (place, text) in lines.lines().enumerate() {
        let text = text.map_err(|error| wrong(place + 1, error.to_string()))?;
        let row: Row =
            serde_json::from_str(&text).map_err(|error| wrong(place + 1, error.to_string()))?;
        let put = wait(client.put(&row.kind, &row.provider, &row.offer));
        put.map_err(|failure| {
            wrong(
                place + 1,
                format!("{failure}; {count} offers before it are published"),
            )
        })?;
        count += 1;
    }
    print(&format!("{count} offers\n"))
}
