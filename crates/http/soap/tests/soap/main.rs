//! Integration tests: each rule, each limit, and descriptions of other toolkits.

mod attacks;
mod descriptions;
mod oracle;
mod requests;

use posthaste_soap::{Limits, Refusal, Request, Version, xml};

/// An envelope of `version` with `inside` between its tags.
fn envelope(version: Version, inside: &str) -> String {
    format!(
        "<e:Envelope xmlns:e=\"{}\">{inside}</e:Envelope>",
        version.namespace()
    )
}

/// Result of reading `text` as `version`: the operation's local name, or the refusal.
fn read(text: &str, version: Version) -> Result<String, Refusal> {
    let limits = Limits::default();
    let text = xml::decode(text.as_bytes(), &limits)?;
    Request::read(&text, version, &limits, &[("urn:h", "Known")])
        .map(|r| r.operation.local.to_owned())
}
