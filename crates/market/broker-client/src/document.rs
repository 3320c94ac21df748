//! Providers' documents with offers.

use bytes::Bytes;
use hyper::Method;
use url::{Position, Url};

use crate::error::{Error, UrlError};
use crate::wire::RemoteServer;

/// A document at a URL.
#[derive(Clone)]
pub struct RemoteDocument {
    server: RemoteServer,
}

impl RemoteDocument {
    /// Refers to the document at `url`, over http or https.
    pub fn new(url: &str) -> Result<Self, UrlError> {
        Ok(Self {
            server: RemoteServer::new(url)?,
        })
    }

    /// URL of the document.
    pub fn url(&self) -> &str {
        self.url_itself().as_str()
    }

    /// Refers to the document at `url`, resolved against this one.
    pub fn relative(&self, url: &str) -> Result<Self, UrlError> {
        let wrong = |error: url::ParseError| UrlError::new(url, error.to_string());
        let joined = self.url_itself().join(url).map_err(wrong)?;
        Self::new(joined.as_str())
    }

    /// Returns true if both have the same origin (scheme, host and port).
    pub fn is_beside(&self, other: &Self) -> bool {
        self.url_itself().origin() == other.url_itself().origin()
    }

    /// Fetches the content, at most `limit` bytes. Does not follow redirects.
    pub async fn fetch(&self, limit: usize) -> Result<Bytes, Error> {
        let url = self.url_itself();
        let path = &url[Position::BeforePath..Position::AfterQuery];
        let request = self
            .server
            .request(&Method::GET, path, "text/plain", Bytes::new())?;
        let answer = self.server.ask(request, None).await?;
        self.server.short(answer, limit).await
    }

    const fn url_itself(&self) -> &Url {
        self.server.url()
    }
}
