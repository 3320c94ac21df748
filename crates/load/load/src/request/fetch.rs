//! A blocking HTTP GET of one document, used for a WSDL before the run begins.
//!
//! It uses the run's addresses for names and the run's trusted certificates.

use std::error::Error;
use std::time::Duration;

use posthaste_serve::ClientTls;
use posthaste_serve::client::{ClientError, ClientLimits, HttpClient, block_on, request};

use crate::target::{RequestTarget, Resolve};
use crate::transport::tls::{self, TlsOptions};

const LIMITS: ClientLimits = ClientLimits {
    step: Duration::from_secs(10),
    total: Duration::from_secs(60),
    body: 16 << 20,
};

/// Returns the body of a GET of `url` as received. An error for a status other than 2xx.
pub(crate) fn fetch(
    url: &str,
    resolve: &[Resolve],
    options: &TlsOptions,
) -> Result<Vec<u8>, Box<dyn Error>> {
    let target = RequestTarget::look_up(url, resolve)?;
    let mut client = HttpClient::at(target.origin.reachable(), LIMITS);
    client.authority = target.origin.authority().try_into()?;
    if target.origin.tls {
        let name = tls::server_name(&target.origin.host)?;
        client.tls = Some(ClientTls::with(options.config(b"http/1.1")?, name));
    }
    let fields = [
        (
            "user-agent",
            concat!("posthaste/", env!("CARGO_PKG_VERSION")),
        ),
        ("accept", "*/*"),
        ("connection", "close"),
    ];
    let request = request("GET", &target.path, fields, "")?;
    let reply = block_on(client.fetch(request))?.map_err(with_remedy)?;
    match reply.status().as_u16() {
        200..300 => Ok(reply.into_body().into()),
        status => Err(format!("status {status}").into()),
    }
}

/// The error, with the remedy if the server's certificate was rejected.
fn with_remedy(error: ClientError) -> ClientError {
    match error {
        ClientError::Connect(error) => ClientError::Connect(tls::with_remedy(error)),
        other => other,
    }
}
