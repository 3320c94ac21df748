//! Documents with offers that the broker fetches: `.wsqos`, also inside a WSDL.
//!
//! A document may include others of the same origin (scheme, host and port) only. Otherwise a provider could make the
//! broker send requests to any host.

use std::collections::BTreeSet;

use posthaste_broker_client::RemoteDocument;
use posthaste_qos::{Document, NAMESPACES, Offer, Offers, bounds};
use posthaste_soap::Limits;
use posthaste_soap::xml::{Scanner, Token, decode};

/// Maximum number of documents per source, includes counted.
const DOCUMENTS: usize = 64;

/// Offers of a document and its includes, each document once; `None` if the first has no `wsqos` element.
pub(crate) async fn fetch_offers(url: &str) -> Result<Option<Vec<Offer>>, String> {
    let first = RemoteDocument::new(url).map_err(|error| error.to_string())?;
    let mut seen = BTreeSet::from([first.url().to_owned()]);
    let mut waiting = vec![first.clone()];
    let mut offers = Vec::new();
    while let Some(document) = waiting.pop() {
        let at = |reason: String| format!("{}: {reason}", document.url());
        let bytes = document
            .fetch(bounds::BYTES)
            .await
            .map_err(|error| at(error.to_string()))?;
        let found = match read(&bytes).map_err(at)? {
            Some(found) => found,
            None if document.url() == first.url() => return Ok(None),
            None => return Err(at("there is no element wsqos in it".to_owned())),
        };
        offers.extend(found.offers);
        if offers.len() > bounds::OFFERS {
            return Err(at(format!("more than {} offers in all", bounds::OFFERS)));
        }
        for url in found.includes {
            let included = document
                .relative(&url)
                .map_err(|error| at(error.to_string()))?;
            if !included.is_beside(&first) {
                return Err(at(format!(
                    "includes {url:?} of another origin: include documents of the same origin only"
                )));
            }
            if seen.len() == DOCUMENTS {
                return Err(at(format!("includes more than {DOCUMENTS} documents")));
            }
            if seen.insert(included.url().to_owned()) {
                waiting.push(included);
            }
        }
    }
    Ok(Some(offers))
}

/// Offers in a `.wsqos` document, or in one embedded in a WSDL; `None` if there is no `wsqos` element.
fn read(bytes: &[u8]) -> Result<Option<Offers>, String> {
    let limits = Limits {
        total: bounds::BYTES,
        instructions: true,
        ..Limits::default()
    };
    let text = decode(bytes, &limits).map_err(|error| error.to_string())?;
    let mut scanner = Scanner::new(&text, &limits);
    loop {
        match scanner.token().map_err(|error| error.to_string())? {
            Token::Start(name)
                if name.local == "wsqos"
                    && (name.namespace.is_empty() || NAMESPACES.contains(&&*name.namespace)) =>
            {
                break;
            }
            Token::Eof => return Ok(None),
            _ => {}
        }
    }
    match Document::read_from(&mut scanner).map_err(|error| error.to_string())? {
        Document::Offers(offers) => Ok(Some(offers)),
        _ => Err("there are no offers in it".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFERS: &str = include_str!("../../../../../examples/offers.wsqos");

    #[test]
    fn offers_are_found_in_a_document_and_inside_a_wsdl() {
        let bare = OFFERS.split_once("?>").unwrap().1;
        let inside = |service: &str| {
            format!(
                "<w:definitions xmlns:w=\"http://schemas.xmlsoap.org/wsdl/\"><w:types/><w:service name=\"B\">{service}</w:service></w:definitions>"
            )
        };
        for text in [
            OFFERS.to_owned(),
            inside(&format!("<w:port name=\"P\"/>{bare}")),
            inside(&format!("<w:port name=\"P\">{bare}</w:port>")),
            inside(&format!(
                "<?keep?><w:port name=\"P\"><?keep?>{bare}</w:port>"
            )),
        ] {
            let names: Vec<String> = read(text.as_bytes())
                .unwrap()
                .unwrap()
                .offers
                .into_iter()
                .map(|offer| offer.name)
                .collect();
            assert_eq!(names, ["Gold", "Silver"]);
        }
        assert_eq!(read(inside("").as_bytes()), Ok(None));
        for (text, reason) in [
            (
                "<wsqos><definition><requirements/></definition></wsqos>".to_owned(),
                "no offers",
            ),
            ("<wsqos".to_owned(), "byte"),
        ] {
            let error = read(text.as_bytes()).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }
}
