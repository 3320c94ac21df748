//! Listening sockets of a gateway, and TLS on them: `listen`, `[http]` and `[tls]`.

use std::io;

use posthaste_gateway_config::{ClientAuth, GatewayConfig, PlainMode};
use posthaste_serve::{Certificate, ClientAuthority, Listener, TlsSettings};

use crate::error::GatewayError;

/// Reads the certificates and the authorities of clients. `None` for a gateway without TLS.
pub(crate) fn tls_settings(config: &GatewayConfig) -> Result<Option<TlsSettings>, GatewayError> {
    let Some(tls) = &config.tls else {
        return Ok(None);
    };
    let first = Certificate::read(&tls.certificate, &tls.key)?;
    let others = tls.certificates.iter();
    let others: Vec<_> = others
        .map(|files| Certificate::read(&files.certificate, &files.key))
        .collect::<Result<_, _>>()?;
    let is_optional = tls.client_auth == ClientAuth::Optional;
    let clients = tls.client_ca.as_ref();
    let clients = clients
        .map(|file| ClientAuthority::read(file, is_optional))
        .transpose()?;
    Ok(Some(TlsSettings::new(first, &others, clients)?))
}

/// True if certificates of clients are verified.
pub(crate) fn verifies_clients(config: &GatewayConfig) -> bool {
    let tls = config.tls.as_ref();
    tls.is_some_and(|tls| tls.client_ca.is_some())
}

/// Listens on `listen`, and on `http.listen` if it is configured, in this order.
pub(crate) fn listeners(config: &GatewayConfig) -> Result<Vec<Listener>, GatewayError> {
    let is_plain = config.tls.is_none();
    let mut listeners = vec![Listener::open(config.listen, config.backlog, is_plain)?];
    if let Some(http) = &config.http {
        listeners.push(Listener::open(http.listen, config.backlog, true)?);
    }
    Ok(listeners)
}

/// The port of HTTPS, if requests over plain HTTP are redirected to it.
pub(crate) fn redirect_port(
    config: &GatewayConfig,
    listeners: &[Listener],
) -> io::Result<Option<u16>> {
    match &config.http {
        Some(http) if http.mode == PlainMode::Redirect => {
            let https = listeners[0].address()?;
            Ok(Some(https.port()))
        }
        _ => Ok(None),
    }
}
