//! Sink for JSON documents, such as a collector of distributed traces.

use hyper::Method;
use url::Position;

use crate::error::{Error, UrlError};
use crate::wire::RemoteServer;

/// Receiver of documents.
#[derive(Clone)]
pub struct Sink {
    server: RemoteServer,
}

impl Sink {
    /// Refers to the receiver at `url`, over http or https.
    pub fn new(url: &str) -> Result<Self, UrlError> {
        let server = RemoteServer::new(url)?;
        Ok(Self { server })
    }

    /// Sends a document.
    pub async fn put(&self, document: Vec<u8>) -> Result<(), Error> {
        let url = self.server.url();
        let path = &url[Position::BeforePath..Position::AfterQuery];
        let request =
            self.server
                .request(&Method::POST, path, "application/json", document.into())?;
        self.server.ask(request, None).await?;
        Ok(())
    }
}
