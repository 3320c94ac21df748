//! Client for a broker's lookups and publishing.

use bytes::Bytes;
use hyper::Method;
use posthaste_qos::{Document, Offer, Offers, Ranking, Requirement};
use posthaste_serve::{TlsError, Trust};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use url::Position;
use url::form_urlencoded::byte_serialize;

use crate::error::{Error, UrlError};
use crate::wire::RemoteServer;

pub(crate) const JSON: &str = "application/json";

/// A broker's client.
#[derive(Clone)]
pub struct BrokerClient {
    pub(crate) server: RemoteServer,
    token: Option<String>,
}

/// A query for the best offer.
#[derive(Clone, Debug, Default, Serialize)]
pub struct BestOfferQuery {
    /// Interface type.
    #[serde(rename = "type")]
    pub kind: String,
    /// Requirements that the offer must meet.
    pub requirements: Requirement,
    /// Criterion for the best offer.
    pub ranking: Ranking,
}

/// The best offer, or the reasons why there is none.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BestOfferReply {
    /// Provider of the offer.
    #[serde(default)]
    pub provider: String,
    /// The offer, if one is adequate.
    pub offer: Option<Offer>,
    /// If none is adequate: number of offers for the type.
    #[serde(default)]
    pub considered: usize,
    /// If none is adequate: reasons against the cheapest offers.
    #[serde(default)]
    pub reasons: Vec<Objections>,
}

/// Reasons against an offer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Objections {
    /// Provider of the offer.
    pub provider: String,
    /// Name of the offer.
    pub name: String,
    /// Reasons in words.
    pub objections: Vec<String>,
}

/// An offer in a list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ListedOffer {
    /// Provider of the offer.
    pub provider: String,
    /// The offer.
    #[serde(flatten)]
    pub offer: Offer,
}

impl BrokerClient {
    /// Creates a client for the broker at `url`: scheme, host and optional port.
    pub fn new(url: &str) -> Result<Self, UrlError> {
        let server = RemoteServer::new(url)?;
        let more = &server.url()[Position::BeforePath..];
        if more != "/" {
            let reason = format!("a broker's URL has no path, leave out {more:?}");
            return Err(UrlError::new(url, reason));
        }
        Ok(Self {
            server,
            token: None,
        })
    }

    /// Sets the provider's token.
    pub fn with_token(mut self, token: Option<String>) -> Self {
        self.token = token;
        self
    }

    /// Accepts the server certificates that `trust` accepts.
    pub fn trusting(self, trust: &Trust) -> Result<Self, TlsError> {
        let server = self.server.trusting(trust)?;
        Ok(Self { server, ..self })
    }

    /// Finds the best offer.
    pub async fn best_offer(&self, query: &BestOfferQuery) -> Result<BestOfferReply, Error> {
        let body = serde_json::to_vec(query).expect("a query has texts and finite numbers");
        self.ask(Method::POST, "/v1/best-offer", JSON, body.into())
            .await
    }

    /// Lists the interface types that have offers, by name, at most `most`, after skipping `skip`. Changes between two
    /// pages can cause omissions.
    pub async fn types(&self, skip: usize, most: usize) -> Result<Vec<String>, Error> {
        #[derive(Deserialize)]
        struct Types {
            types: Vec<String>,
        }
        let path = format!("/v1/offers?offset={skip}&limit={most}");
        let types: Types = self.ask(Method::GET, &path, JSON, Bytes::new()).await?;
        Ok(types.types)
    }

    /// Lists offers for a type, cheapest first; paged as [`BrokerClient::types`].
    pub async fn list(
        &self,
        kind: &str,
        skip: usize,
        most: usize,
    ) -> Result<Vec<ListedOffer>, Error> {
        #[derive(Deserialize)]
        struct List {
            offers: Vec<ListedOffer>,
        }
        let path = format!(
            "/v1/offers?type={}&offset={skip}&limit={most}",
            encoded(kind)
        );
        let list: List = self.ask(Method::GET, &path, JSON, Bytes::new()).await?;
        Ok(list.offers)
    }

    /// Creates or replaces an offer.
    pub async fn put(&self, kind: &str, provider: &str, offer: &Offer) -> Result<(), Error> {
        let path = format!("{}/{}", path(kind, provider), encoded(&offer.name));
        let body = serde_json::to_vec(offer).expect("an offer has texts and finite numbers");
        self.tell(Method::PUT, &path, JSON, body.into()).await
    }

    /// Replaces all offers of a provider for a type.
    pub async fn put_all(
        &self,
        kind: &str,
        provider: &str,
        offers: Vec<Offer>,
    ) -> Result<(), Error> {
        let document = Document::Offers(Offers {
            offers,
            ..Offers::default()
        });
        let body = document.write().into();
        self.tell(Method::PUT, &path(kind, provider), "application/xml", body)
            .await
    }

    /// Withdraws an offer.
    pub async fn withdraw(&self, kind: &str, provider: &str, name: &str) -> Result<(), Error> {
        let path = format!("{}/{}", path(kind, provider), encoded(name));
        self.tell(Method::DELETE, &path, JSON, Bytes::new()).await
    }

    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        kind: &'static str,
        body: Bytes,
    ) -> Result<T, Error> {
        let request = self.server.request(&method, path, kind, body)?;
        let answer = self.server.ask(request, self.token.as_deref()).await?;
        let answer = self.server.long(answer).await?;
        serde_json::from_slice(&answer).map_err(|error| Error::Senseless(error.into()))
    }

    pub(crate) async fn tell(
        &self,
        method: Method,
        path: &str,
        kind: &'static str,
        body: Bytes,
    ) -> Result<(), Error> {
        let request = self.server.request(&method, path, kind, body)?;
        self.server
            .ask(request, self.token.as_deref())
            .await
            .map(drop)
    }
}

fn path(kind: &str, provider: &str) -> String {
    format!("/v1/offers/{}/{}", encoded(kind), encoded(provider))
}

/// Encodes a name for a path or query. A space is %20, which both decode.
pub(crate) fn encoded(name: &str) -> String {
    let encoded = byte_serialize(name.as_bytes())
        .collect::<String>()
        .replace('+', "%20");
    debug_assert!(
        !encoded.contains(['/', '?', '&', '#', ' ']),
        "a name is one segment of a path"
    );
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::TcpListener;
    use std::time::Duration;

    fn refused(url: &str) -> String {
        BrokerClient::new(url).err().unwrap().to_string()
    }

    #[test]
    fn a_brokers_url_has_no_more_than_a_host_and_a_port() {
        for good in ["http://broker", "https://broker/", "http://[::1]:8090/"] {
            assert!(BrokerClient::new(good).is_ok(), "{good}");
        }
        for more in ["/registry", "/registry/", "/?type=books", "/#top"] {
            let error = refused(&format!("http://broker:1{more}"));
            assert!(error.contains(&format!("leave out {more:?}")), "{error}");
        }
    }

    #[test]
    fn secrets_are_not_shown() {
        for url in ["http://ada:geheim@broker/", "https://geheim@broker/"] {
            let error = refused(url);
            assert!(error.contains("before the @"), "{error}");
            assert!(!error.contains("geheim"), "{error}");
        }
        // The slash ends the host, so the port is invalid.
        for url in [
            "http://ada:geheim/@broker",
            "geheim@broker",
            "geheim:@broker",
        ] {
            assert!(!refused(url).contains("geheim"), "{}", refused(url));
        }
        // Token from a line of a file with CRLF line ends.
        let client = BrokerClient::new("http://127.0.0.1:1").unwrap();
        let client = client.with_token(Some("pht_geheim\r".to_owned()));
        let error = crate::wait(client.withdraw("books", "ada", "Gold"));
        let error = error.unwrap().unwrap_err().to_string();
        assert!(error.contains("the token"), "{error}");
        assert!(!error.contains("geheim"), "{error}");
    }

    /// Answers one request with `length` announced bytes, and sends one of `pieces` every 800 ms.
    fn slow(length: usize, pieces: &'static [&str]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let lines = BufReader::new(socket.try_clone().unwrap()).lines();
            lines
                .map(Result::unwrap)
                .take_while(|line| !line.is_empty())
                .for_each(drop);
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
            socket.write_all(head.as_bytes()).unwrap();
            for piece in pieces {
                std::thread::sleep(Duration::from_millis(800));
                socket.write_all(piece.as_bytes()).unwrap();
            }
            // Waits for the client to disconnect, with a time limit.
            let patience = Some(Duration::from_secs(60));
            socket.set_read_timeout(patience).unwrap();
            let _ = socket.read_to_end(&mut Vec::new());
        });
        url
    }

    #[test]
    fn a_body_that_stalls_is_given_up() {
        let mut client = BrokerClient::new(&slow(9, &[])).unwrap();
        client.server.client.limits.step = Duration::from_millis(500);
        let types = crate::wait(client.types(0, 1)).unwrap();
        assert!(matches!(types, Err(Error::Late { .. })), "{types:?}");
    }

    #[test]
    fn a_body_that_comes_slowly_is_waited_for() {
        let pieces = &["not ", "what ", "can ", "be ", "meant"];
        let mut client = BrokerClient::new(&slow(21, pieces)).unwrap();
        // Shorter than the whole body takes, and much longer than one piece.
        client.server.client.limits.step = Duration::from_secs(3);
        let types = crate::wait(client.types(0, 1)).unwrap();
        assert!(matches!(types, Err(Error::Senseless(_))), "{types:?}");
    }
}
