//! What a complete reply means: its status, and whether it is a SOAP fault in any status.

use std::io::Read as _;

use posthaste_soap::reply::{self, Inspection};

use crate::http::ReplyReader;
use crate::outcome::Outcome;

/// As much of a compressed reply is looked into: the first child of Body is near its start.
const LOOK: u64 = 16 * 1024;

/// The outcome of a complete reply, and for a fault or an error its reason.
pub(crate) fn judge(reader: &ReplyReader) -> (Outcome, Option<String>) {
    if let Some(fault) = reader.xml_body().and_then(|(body, gzip)| fault(body, gzip)) {
        return (Outcome::SoapFault, Some(fault));
    }
    match reader.status() {
        ..400 => (Outcome::Ok, None),
        status => (Outcome::StatusError, Some(format!("status {status}"))),
    }
}

fn fault(body: &[u8], gzip: bool) -> Option<String> {
    let mut plain = Vec::new();
    let body = if gzip {
        // A reply cut off at what is kept ends in an error; what was decoded is enough.
        let _ = flate2::read::GzDecoder::new(body)
            .take(LOOK)
            .read_to_end(&mut plain);
        &plain
    } else {
        body
    };
    match reply::inspect(body) {
        Inspection::Fault { code, reason, .. } => Some(format!("{code}: {reason}")),
        Inspection::Reply(_) | Inspection::NotSoap(_) => None,
    }
}
