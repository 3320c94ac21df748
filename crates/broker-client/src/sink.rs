//! Sink for JSON documents, such as a collector of distributed traces.

use hyper::Method;
use url::Position;

use crate::error::{Error, UrlError};
use crate::wire::{Place, request};

/// Receiver of documents.
#[derive(Clone)]
pub struct Sink {
    place: Place,
}

impl Sink {
    /// Refers to the receiver at `url`, over http or https.
    pub fn new(url: &str) -> Result<Self, UrlError> {
        let place = Place::new(url)?;
        Ok(Self { place })
    }

    /// Sends a document.
    pub async fn put(&self, document: Vec<u8>) -> Result<(), Error> {
        let url = self.place.url();
        let path = &url[Position::BeforePath..Position::AfterQuery];
        let request = request(Method::POST, path, "application/json", document.into());
        self.place.ask(request, None).await?;
        Ok(())
    }
}
