//! Requests and replies, held against each other, against what registries say, and against what they should not.

mod hostile;
mod replies;
mod written;

use posthaste_uddi::Version;

/// A reply as a registry of this version would write it.
fn reply(version: Version, message: &str) -> String {
    let message = message.replace("NS", version.namespace());
    format!(
        "<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\"><s:Header/><s:Body>{message}</s:Body></s:Envelope>"
    )
}
