//! `[tls]` and `[http]`: certificates of the gateway, and plain HTTP next to HTTPS.

use std::net::SocketAddr;
use std::path::PathBuf;

use posthaste_serve::ConfigError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Certificates of the gateway, and verification of clients.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// PEM file with the certificate chain, the certificate of the gateway first. Presented to clients that name no
    /// server, or one that no certificate is for.
    pub certificate: PathBuf,
    /// PEM file with the private key.
    pub key: PathBuf,
    /// Further certificates. A client gets the one for the server name that it asks for (SNI, RFC 6066, section 3).
    #[serde(default)]
    pub certificates: Vec<CertificateFiles>,
    /// PEM file with the authorities that issue certificates of clients. With it, upstreams get the verified
    /// certificate as `Client-Cert` (RFC 9440), and the fields `Client-Cert` and `Client-Cert-Chain` of clients are
    /// removed. Without it, no client certificate is requested, and these fields are forwarded from the networks in
    /// `trust.forwarded` only.
    pub client_ca: Option<PathBuf>,
    /// Clients that may connect if `client_ca` is set.
    #[serde(default)]
    pub client_auth: ClientAuth,
}

/// A certificate with its key.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct CertificateFiles {
    /// PEM file with the certificate chain, the certificate of the gateway first.
    pub certificate: PathBuf,
    /// PEM file with the private key.
    pub key: PathBuf,
}

/// Clients that may connect over TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ClientAuth {
    /// Clients with a valid certificate.
    #[default]
    Required,
    /// Clients with a valid certificate, and clients without one.
    Optional,
}

/// Plain HTTP next to HTTPS.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlainHttp {
    /// Address for plain HTTP, written like `listen`.
    #[serde(deserialize_with = "super::address")]
    #[schemars(with = "String")]
    pub listen: SocketAddr,
    /// Treatment of requests over plain HTTP.
    #[serde(default)]
    pub mode: PlainMode,
}

/// Treatment of requests over plain HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum PlainMode {
    /// 308 to the same URL with `https`.
    #[default]
    Redirect,
    /// Served like requests over HTTPS.
    Serve,
}

impl PlainHttp {
    pub(crate) fn check(&self, listen: SocketAddr, has_tls: bool) -> Result<(), ConfigError> {
        let wrong = |reason: &str| Err(ConfigError::new(reason));
        if !has_tls {
            return wrong("[http] does nothing without [tls]: listen is plain HTTP already");
        }
        if self.listen == listen && listen.port() != 0 {
            return wrong(
                "http.listen and listen are the same address: give one of them another port",
            );
        }
        Ok(())
    }
}
