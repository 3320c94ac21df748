//! The outcome of a complete reply, from its status and from the SOAP fault in it, if any.

use std::io::{self, Write};

use posthaste_compression::Coding;
use posthaste_compression::Decoder;
use posthaste_soap::reply::{Inspection, inspect};

use crate::outcome::Outcome;
use crate::reply::{Content, HttpReply};

/// Maximum decoded bytes of a coded reply to inspect. The first child of Body is near its start.
const LOOK: usize = 16 * 1024;

/// Coded bytes inspected first. They are enough for a reply without a long SOAP header.
const FIRST: usize = 512;

/// Returns the outcome of a complete reply, and the reason for a fault or an error, or the target of a redirect.
pub(crate) fn judge(reply: &HttpReply) -> (Outcome, Option<String>) {
    let fault = reply
        .xml_body()
        .and_then(|body| fault(body, reply.content()));
    if let Some(fault) = fault {
        return (Outcome::SoapFault, Some(fault));
    }
    match reply.status() {
        ..400 => (Outcome::Ok, reply.location().map(redirect_in_words)),
        status => (Outcome::StatusError, Some(format!("status {status}"))),
    }
}

fn redirect_in_words(location: &[u8]) -> String {
    format!("redirect to {}", String::from_utf8_lossy(location))
}

fn fault(body: &[u8], content: &Content) -> Option<String> {
    let inspection = match content {
        Content::Plain => inspect(body),
        Content::Coded(coding) => inspect_coded(body, *coding),
        Content::Unknown(_) => return None,
    };
    match inspection {
        Inspection::Fault { code, reason, .. } => Some(format!("{code}: {reason}")),
        Inspection::Reply(_) | Inspection::NotSoap(_) => None,
    }
}

/// Decodes only as much as the search for a fault needs. All of it would cost a generator more than the request did.
fn inspect_coded(body: &[u8], coding: Coding) -> Inspection {
    let first = &body[..body.len().min(FIRST)];
    match inspect(&beginning(first, coding)) {
        Inspection::Reply(version) => Inspection::Reply(version),
        _ => inspect(&beginning(body, coding)),
    }
}

/// Decodes the beginning of a reply, as far as it has come and is readable.
fn beginning(coded: &[u8], coding: Coding) -> Vec<u8> {
    let mut beginning = Beginning(Vec::new());
    // A cut-off body ends in an error. The decoded bytes suffice.
    if let Ok(mut decoder) = Decoder::new(coding, &mut beginning) {
        let _ = decoder.push(coded).and_then(|()| decoder.finish());
    }
    beginning.0
}

/// Keeps the first [`LOOK`] bytes and refuses more.
struct Beginning(Vec<u8>);

impl Write for Beginning {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = LOOK.saturating_sub(self.0.len());
        self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if bytes.len() > room {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
