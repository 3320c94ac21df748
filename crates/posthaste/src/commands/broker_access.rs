//! Access to a broker: its address, its certificate and a token.

use std::path::PathBuf;

use posthaste_broker_client::{BrokerClient, Error};
use posthaste_serve::Trust;

use super::Failure;

/// Where the broker is.
#[derive(clap::Args)]
pub(super) struct BrokerAccess {
    /// The broker's address
    #[arg(
        long = "broker",
        value_name = "URL",
        default_value = "http://127.0.0.1:8090"
    )]
    url: String,
    /// A file with the token that the broker asks for; or set POSTHASTE_TOKEN
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Trust the certificates in this file (PEM) instead of the machine's
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    ca: Option<PathBuf>,
    /// Accept any certificate of the broker; whoever answers can read the token
    #[arg(long)]
    insecure: bool,
}

impl BrokerAccess {
    /// A client that only reads.
    pub(super) fn client(&self) -> Result<BrokerClient, Failure> {
        let trust = match &self.ca {
            _ if self.insecure => Trust::Any,
            Some(file) => Trust::File(file.clone()),
            None => Trust::Machine,
        };
        let client = BrokerClient::new(&self.url).map_err(Failure::usage)?;
        client.trusting(&trust).map_err(Failure::usage)
    }

    /// A client with the token. Without one, the error says `remedy`.
    pub(super) fn bearer(&self, remedy: &str) -> Result<BrokerClient, Failure> {
        let token = match &self.token_file {
            Some(file) => {
                let text = std::fs::read_to_string(file);
                text.map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?
            }
            None => std::env::var("POSTHASTE_TOKEN").unwrap_or_default(),
        };
        let token = token.trim();
        if token.is_empty() {
            return Err(Failure::usage(remedy));
        }
        Ok(self.client()?.with_token(Some(token.to_owned())))
    }
}

/// Waits for the broker's answer.
pub(super) fn wait<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Failure> {
    let done = posthaste_broker_client::wait(work).map_err(Failure::run)?;
    done.map_err(failure)
}

/// Converts an error of a broker, with the remedy if its certificate was rejected.
pub(super) fn failure(error: Error) -> Failure {
    if error.is_certificate_refused() {
        return Failure::run(format!(
            "{error}: trust the broker's certificate, or the authority that issued it, with --ca FILE, \
             or accept any certificate with --insecure"
        ));
    }
    Failure::run(error)
}
