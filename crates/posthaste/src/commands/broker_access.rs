//! Access to a broker: its address, its certificate and a token.

use std::path::PathBuf;

use posthaste_broker_client::{BrokerClient, Error};
use posthaste_serve::Trust;

use super::Failure;

/// The environment variable with the token.
const TOKEN: &str = "POSTHASTE_BROKER_TOKEN";
/// Its name before. An unrelated program of the same name sends the value of this one to a public server.
const FORMER_TOKEN: &str = "POSTHASTE_TOKEN";

/// Access to the broker.
#[derive(clap::Args)]
pub(super) struct BrokerAccess {
    /// The broker's address
    #[arg(
        long = "broker",
        value_name = "URL",
        default_value = "http://127.0.0.1:8090"
    )]
    url: String,
    /// A file with the token for the broker; or set POSTHASTE_BROKER_TOKEN
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Trust the certificates in this file (PEM) instead of the machine's
    #[arg(long, value_name = "FILE", conflicts_with = "insecure")]
    ca: Option<PathBuf>,
    /// Accept any certificate of the broker; an impostor can then read the token
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

    /// A client with the token. Without one, the error states `remedy`, or names the variable that replaces a set
    /// [`FORMER_TOKEN`], which is never read.
    pub(super) fn bearer(&self, remedy: &str) -> Result<BrokerClient, Failure> {
        let token = match &self.token_file {
            Some(file) => {
                let text = std::fs::read_to_string(file);
                text.map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?
            }
            None => std::env::var(TOKEN).unwrap_or_default(),
        };
        let token = token.trim();
        if token.is_empty() {
            if self.token_file.is_none() && std::env::var_os(FORMER_TOKEN).is_some() {
                return Err(Failure::usage(format!(
                    "{FORMER_TOKEN} is set but not read, because another program named posthaste sends it to a public \
                     server: set {TOKEN} instead, or give a file with the token by --token-file FILE"
                )));
            }
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
