//! Client for SOAP 1.1 services, such as UDDI registries.

use bytes::Bytes;
use hyper::header::HeaderValue;
use hyper::{Method, StatusCode};
use url::Position;

use crate::error::{Error, UrlError};
use crate::wire::RemoteServer;

/// Address of a service.
#[derive(Clone)]
pub struct Endpoint {
    server: RemoteServer,
}

impl Endpoint {
    /// Refers to the service at `url`, over http or https.
    pub fn new(url: &str) -> Result<Self, UrlError> {
        let server = RemoteServer::new(url)?;
        Ok(Self { server })
    }

    /// Sends an envelope and returns the reply of at most `limit` bytes, which may be a fault.
    pub async fn call(&self, envelope: String, limit: usize) -> Result<Bytes, Error> {
        let url = self.server.url();
        let path = &url[Position::BeforePath..Position::AfterQuery];
        let mut request = self.server.request(
            &Method::POST,
            path,
            "text/xml; charset=utf-8",
            envelope.into(),
        )?;
        // An empty action is valid, whatever action the description states (WS-I R2745).
        let action = HeaderValue::from_static("\"\"");
        request.headers_mut().insert("soapaction", action);
        let response = self.server.send(request, None).await?;
        match response.status() {
            // Faults have status 500 (WS-I R1126).
            StatusCode::OK | StatusCode::INTERNAL_SERVER_ERROR => {
                self.server.short(response, limit).await
            }
            _ => Err(self.server.refused(response).await?),
        }
    }
}
