//! `posthaste broker register`: a service, its business and its type in a registry.

use std::path::PathBuf;

use posthaste_broker::{Enrolled, Enrolment, UddiVersion, enrol};

use super::{Failure, table};

/// Register a service in a UDDI registry, so that brokers find its offers
///
/// Existing entries stay: a second call changes nothing. An entry is found by its key, or in version 2, in which registries
/// give keys, also by its name among the entries of the user. Prints the entries and a column for those saved now (CSV).
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
      --endpoint http://broker.example:8090/soap --wsdl 'http://broker.example:8090/soap?wsdl'
  In a registry of version 2:
    posthaste broker register --registry http://127.0.0.1:8080/juddiv3/services --uddi 2 --user ada --password-file ada.password \\
      --business Ada --service 'Books by ISBN' --type Inventory --wsdl 'http://books.example/soap?wsdl' \\
      --endpoint http://books.example/soap --offers http://books.example/offers.wsqos")]
pub(super) struct Args {
    /// URL of the registry. The paths inquiry, publish and security, in version 2 inquiryv2 and publishv2, are below it
    /// unless they are given
    #[arg(long, value_name = "URL")]
    registry: String,
    /// Version of UDDI
    #[arg(long, value_name = "2|3", default_value = "3", value_parser = version)]
    uddi: UddiVersion,
    /// URL for inquiries
    #[arg(long, value_name = "URL")]
    inquiry: Option<String>,
    /// URL for publishing
    #[arg(long, value_name = "URL")]
    publish: Option<String>,
    /// URL for tokens [default in version 2: that for publishing]
    #[arg(long, value_name = "URL")]
    security: Option<String>,
    /// Name of the user at the registry
    #[arg(long)]
    user: String,
    /// A file with the user's password
    #[arg(long, value_name = "FILE")]
    password_file: PathBuf,
    /// Key and name of the provider; in version 2 the name suffices. An existing one is not changed
    #[arg(long, value_name = "KEY=NAME")]
    business: String,
    /// The service; in version 2 its name alone
    #[arg(long, value_name = "KEY=NAME")]
    service: String,
    /// The type of interface; in version 2 its name, too, if it is the user's own
    #[arg(long = "type", value_name = "KEY")]
    kind: String,
    /// URL of the WSDL of the type; the type is registered if it is absent
    #[arg(long, value_name = "URL")]
    wsdl: Option<String>,
    /// URL of the service
    #[arg(long, value_name = "URL")]
    endpoint: String,
    /// URL of its offers [default: its description at ?wsdl]
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
        let [inquiry, publish, security] = match self.uddi {
            UddiVersion::V2 => ["inquiryv2", "publishv2", "publishv2"],
            UddiVersion::V3 => ["inquiry", "publish", "security"],
        };
        let below = |own: Option<String>, name| own.unwrap_or_else(|| format!("{registry}/{name}"));
        let named = |text: &str| named(text, self.uddi).map_err(Failure::usage);
        let enrolment = Enrolment {
            version: self.uddi,
            inquiry: below(self.inquiry, inquiry),
            publish: below(self.publish, publish),
            security: below(self.security, security),
            user: self.user,
            password: password.trim().to_owned(),
            business: named(&self.business)?,
            service: named(&self.service)?,
            kind: self.kind,
            wsdl: self.wsdl,
            endpoint: self.endpoint,
            offers: self.offers,
        };
        let done = enrol(&enrolment).map_err(Failure::run)?;
        let rows = done.into_iter().map(|Enrolled { entity, key, saved }| {
            let outcome = if saved { "saved" } else { "there" };
            [entity.to_owned(), key, outcome.to_owned()]
        });
        table(["what", "key", "outcome"], rows)
    }
}

fn version(text: &str) -> Result<UddiVersion, String> {
    let known = text.parse().ok().and_then(UddiVersion::from_number);
    known.ok_or_else(|| "there are versions 2 and 3 here".to_owned())
}

/// Returns key and name. In version 2, with UUIDs as keys, a name is sufficient.
fn named(text: &str, version: UddiVersion) -> Result<(String, String), String> {
    let is_uuid =
        |key: &str| key.len() == 36 && key.chars().all(|one| one == '-' || one.is_ascii_hexdigit());
    let is_key =
        |key: &str| key.starts_with("uddi:") || (version == UddiVersion::V2 && is_uuid(key));
    match (version, text.split_once('=')) {
        (_, Some((key, name))) if is_key(key) && !name.is_empty() => {
            Ok((key.to_owned(), name.to_owned()))
        }
        (UddiVersion::V3, _) => Err(format!(
            "{text:?}: write a key of version 3 and a name, as uddi:example.org:ada=Ada"
        )),
        (UddiVersion::V2, _) => Ok((String::new(), text.to_owned())),
    }
}
