//! Tests of UDDI requests and replies against each other, against real replies and against invalid ones.

mod hostile;
mod replies;
mod written;

use posthaste_broker::uddi::messages::Version;

/// A reply in the form of a registry of this version.
fn envelope(version: Version, message: &str) -> String {
    let message = message.replace("NS", version.namespace());
    format!(
        "<s:Envelope xmlns:s=\"http://schemas.xmlsoap.org/soap/envelope/\"><s:Header/><s:Body>{message}</s:Body></s:Envelope>"
    )
}
