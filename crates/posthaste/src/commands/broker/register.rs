//! `posthaste broker register`: a service, its business and its type in a registry.

use std::path::PathBuf;

use posthaste_broker::{Enrolled, Enrolment, enrol};

use super::{Failure, table};

/// Register a service in a UDDI registry (version 3), so that brokers find its offers
///
/// What is there already stays: a second time nothing changes. Prints what stands in the registry and whether it was saved
/// now (CSV).
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  A service whose offers are in a document:
    posthaste broker register --registry http://127.0.0.1:8080/juddiv3/services --user ada --password-file ada.password \\
      --business uddi:example.org:ada=Ada --service 'uddi:example.org:books=Books by ISBN' --type uddi:example.org:inventory \\
      --endpoint http://books.example/soap --offers http://books.example/offers.wsqos
  The broker itself, with its type where the registry has none:
    posthaste broker register --registry http://127.0.0.1:8080/juddiv3/services --user ada --password-file ada.password \\
      --business uddi:example.org:ada=Ada --service uddi:example.org:broker=Broker --type uddi:example.org:broker-type \\
      --endpoint http://broker.example:8090/soap --wsdl 'http://broker.example:8090/soap?wsdl'")]
pub(super) struct Args {
    /// Where the registry is; below it are inquiry, publish and security, unless they are named
    #[arg(long, value_name = "URL")]
    registry: String,
    /// Where it answers questions
    #[arg(long, value_name = "URL")]
    inquiry: Option<String>,
    /// Where it is published to
    #[arg(long, value_name = "URL")]
    publish: Option<String>,
    /// Where it gives tokens
    #[arg(long, value_name = "URL")]
    security: Option<String>,
    /// Whom the registry knows
    #[arg(long)]
    user: String,
    /// A file with the user's password
    #[arg(long, value_name = "FILE")]
    password_file: PathBuf,
    /// The provider; one that is there stays as it is
    #[arg(long, value_name = "KEY=NAME", value_parser = named)]
    business: (String, String),
    /// The service
    #[arg(long, value_name = "KEY=NAME", value_parser = named)]
    service: (String, String),
    /// The type of interface
    #[arg(long = "type", value_name = "KEY")]
    kind: String,
    /// The WSDL of the type, to be registered where it is not there
    #[arg(long, value_name = "URL")]
    wsdl: Option<String>,
    /// Where the service is called
    #[arg(long, value_name = "URL")]
    endpoint: String,
    /// Where its offers are, if not in its description at ?wsdl
    #[arg(long, value_name = "URL")]
    offers: Option<String>,
}

impl Args {
    pub(super) fn run(self) -> Result<(), Failure> {
        let file = self.password_file;
        let password = std::fs::read_to_string(&file);
        let password =
            password.map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?;
        let registry = self.registry.trim_end_matches('/');
        let below = |own: Option<String>, name| own.unwrap_or_else(|| format!("{registry}/{name}"));
        let enrolment = Enrolment {
            inquiry: below(self.inquiry, "inquiry"),
            publish: below(self.publish, "publish"),
            security: below(self.security, "security"),
            user: self.user,
            password: password.trim().to_owned(),
            business: self.business,
            service: self.service,
            kind: self.kind,
            wsdl: self.wsdl,
            endpoint: self.endpoint,
            offers: self.offers,
        };
        let done = enrol(&enrolment).map_err(Failure::run)?;
        let rows = done.into_iter().map(|Enrolled { what, key, saved }| {
            let outcome = if saved { "saved" } else { "there" };
            [what.to_owned(), key, outcome.to_owned()]
        });
        table(["what", "key", "outcome"], rows)
    }
}

fn named(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, name)) if key.starts_with("uddi:") && !name.is_empty() => {
            Ok((key.to_owned(), name.to_owned()))
        }
        _ => Err("write a key of version 3 and a name, as uddi:example.org:ada=Ada".to_owned()),
    }
}
