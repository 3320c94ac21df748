//! Documents of offers, wherever a provider has them.

use bytes::Bytes;
use hyper::Method;
use url::{Position, Url};

use crate::error::{Error, UrlError};
use crate::wire::{Place, request};

/// A document at some URL.
#[derive(Clone)]
pub struct Document {
    place: Place,
}

impl Document {
    /// The one at `url`, over http or https.
    pub fn new(url: &str) -> Result<Self, UrlError> {
        Ok(Self {
            place: Place::new(url)?,
        })
    }

    /// Where it is.
    pub fn url(&self) -> &str {
        self.url_itself().as_str()
    }

    /// The one at `url` where this document names it, so that it may be relative.
    pub fn relative(&self, url: &str) -> Result<Self, UrlError> {
        let wrong = |error: url::ParseError| UrlError::new(url, error.to_string());
        let joined = self.url_itself().join(url).map_err(wrong)?;
        Self::new(joined.as_str())
    }

    /// Whether both are at one scheme, host and port.
    pub fn is_beside(&self, other: &Self) -> bool {
        self.url_itself().origin() == other.url_itself().origin()
    }

    /// Its content, of at most `limit` bytes. Redirects are not followed.
    pub async fn fetch(&self, limit: usize) -> Result<Bytes, Error> {
        let url = self.url_itself();
        let path = &url[Position::BeforePath..Position::AfterQuery];
        let request = request(Method::GET, path, "text/plain", Bytes::new());
        let answer = self.place.ask(request, None).await?;
        self.place.short(answer, limit).await
    }

    const fn url_itself(&self) -> &Url {
        self.place.url()
    }
}
