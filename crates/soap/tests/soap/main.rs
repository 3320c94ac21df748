//! The room's promises, asked for from outside: each rule, each limit, other people's descriptions.

mod attacks;
mod descriptions;
mod oracle;
mod requests;

use posthaste_soap::{Limits, Refusal, Request, Version, xml};

/// An envelope of `version` around what is between Envelope's tags.
fn envelope(version: Version, inside: &str) -> String {
    format!(
        "<e:Envelope xmlns:e=\"{}\">{inside}</e:Envelope>",
        version.namespace()
    )
}

/// What reading `text` as `version` comes to: the operation's local name, or the refusal.
fn read(text: &str, version: Version) -> Result<String, Refusal> {
    let limits = Limits::default();
    let text = xml::decode(text.as_bytes(), &limits)?;
    Request::read(&text, version, &limits, &[("urn:h", "Known")])
        .map(|r| r.operation.local.to_owned())
}
