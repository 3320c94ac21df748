//! Services that speak SOAP 1.1, registries for instance: an envelope there, an envelope back.

use bytes::Bytes;
use hyper::header::HeaderValue;
use hyper::{Method, StatusCode};
use url::Position;

use crate::error::{Error, UrlError};
use crate::wire::{Place, request};

/// Where a service is.
#[derive(Clone)]
pub struct Endpoint {
    place: Place,
}

impl Endpoint {
    /// The one at `url`, over http or https.
    pub fn new(url: &str) -> Result<Self, UrlError> {
        let place = Place::new(url)?;
        Ok(Self { place })
    }

    /// The reply to an envelope, of at most `limit` bytes; it may be a fault.
    pub async fn call(&self, envelope: String, limit: usize) -> Result<Bytes, Error> {
        let url = self.place.url();
        let path = &url[Position::BeforePath..Position::AfterQuery];
        let mut request = request(
            Method::POST,
            path,
            "text/xml; charset=utf-8",
            envelope.into(),
        );
        // Whatever the description says its action is, an empty one goes with it (WS-I R2745).
        let action = HeaderValue::from_static("\"\"");
        request.headers_mut().insert("soapaction", action);
        let response = self.place.send(request, None).await?;
        match response.status() {
            // A fault comes with 500 (WS-I R1126).
            StatusCode::OK | StatusCode::INTERNAL_SERVER_ERROR => {
                self.place.short(response, limit).await
            }
            _ => Err(self.place.refused(response).await?),
        }
    }
}
