//! Whoever takes documents of JSON and has nothing to say to them, a collector of traces for instance.

use hyper::Method;
use url::Position;

use crate::error::{Error, UrlError};
use crate::wire::{Place, request};

/// Where documents go.
#[derive(Clone)]
pub struct Sink {
    place: Place,
}

impl Sink {
    /// The one at `url`, over http or https.
    pub fn new(url: &str) -> Result<Self, UrlError> {
        let place = Place::new(url)?;
        Ok(Self { place })
    }

    /// Hands over a document.
    pub async fn put(&self, document: Vec<u8>) -> Result<(), Error> {
        let url = self.place.url();
        let path = &url[Position::BeforePath..Position::AfterQuery];
        let request = request(Method::POST, path, "application/json", document.into());
        self.place.ask(request, None).await?;
        Ok(())
    }
}
