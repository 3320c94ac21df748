//! A reply apart from the protocol that brought it: status, fields that count, and the kept part of its body.
//!
//! A reader of a protocol calls [`HttpReply::begin`] with the status, [`HttpReply::field`] for each header field and
//! [`HttpReply::body`] for each piece of the body. The end of the reply is the reader's to know.

pub(crate) mod decoding;
pub(crate) mod events;
pub mod http;
pub(crate) mod inspect;
mod kept_body;

use std::sync::Arc;

use posthaste_compression::Coding;
use thiserror::Error;

use crate::grpc::GrpcReply;
use crate::reply::events::{EventDecoder, EventPlan, EventProgress};

pub(crate) use kept_body::Budget;
use kept_body::{CODED_BUDGET, KeptBody, PIECE};

/// Maximum length of a kept quote, current offer or location, in bytes.
const LIMIT: usize = 1024;

/// The content coding of a reply (RFC 9110, section 8.4).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Content {
    /// No coding.
    #[default]
    Plain,
    /// One known coding.
    Coded(Coding),
    /// Several codings, or an unknown one, as written.
    Unknown(String),
}

/// The memory for coded bodies is used up. The server is not the cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("no memory left for the coded reply: all have {CODED_BUDGET} bytes, one at most half")]
pub struct NoMemory;

/// One reply, as far as it has been read. It is used for one exchange after another.
#[derive(Debug, Default)]
pub struct HttpReply {
    status: u16,
    xml: bool,
    content: Content,
    quote: Option<Vec<u8>>,
    offer: Option<Vec<u8>>,
    location: Option<Vec<u8>>,
    kept: KeptBody,
    /// Its events, if the plan expects some.
    events: Option<EventProgress>,
    /// Decodes a body with events, if the plan decodes.
    event_decoder: Option<EventDecoder>,
    /// The value of Content-Type, if the plan expects events.
    content_type: Option<Vec<u8>>,
    /// Its messages and status, if the request is a gRPC call.
    call: Option<GrpcReply>,
}

impl HttpReply {
    /// Creates a reply that keeps bodies with a content coding in memory of `budget`, and finds the events of a plan, if
    /// there are such. `is_call` states that it is the reply to a gRPC call.
    pub(crate) fn new(
        budget: Option<Arc<Budget>>,
        events: Option<&EventPlan>,
        is_call: bool,
    ) -> Self {
        Self {
            kept: budget.map_or_else(KeptBody::default, KeptBody::within),
            events: events.map(EventProgress::new),
            call: is_call.then(GrpcReply::default),
            ..Self::default()
        }
    }

    /// Forgets the reply and releases its memory. The next one may never begin.
    pub(crate) fn clear(&mut self) {
        self.begin(0);
    }

    /// Begins a reply with its status. Fields and body of the last one are forgotten.
    pub fn begin(&mut self, status: u16) {
        self.status = status;
        self.xml = false;
        self.content = Content::Plain;
        self.quote = None;
        self.offer = None;
        self.location = None;
        self.kept.clear();
        self.event_decoder = None;
        self.content_type = None;
        if let Some(events) = &mut self.events {
            events.begin();
        }
        if let Some(call) = &mut self.call {
            call.begin();
        }
    }

    /// Takes a header field. Names match in any case.
    pub fn field(&mut self, name: &[u8], value: &[u8]) {
        if let Some(call) = &mut self.call {
            return call.field(name, value);
        }
        // Other lengths and first letters cannot match, so that most fields cost one comparison.
        match (name.len(), name.first()) {
            (5, Some(b'q' | b'Q')) if name.eq_ignore_ascii_case(b"quote") => {
                self.quote = Some(within_limit(value));
            }
            (8, Some(b'l' | b'L'))
                if is_redirect(self.status) && name.eq_ignore_ascii_case(b"location") =>
            {
                self.location = Some(within_limit(value));
            }
            (12, Some(b'c' | b'C')) if name.eq_ignore_ascii_case(b"content-type") => {
                self.xml = names_xml(value);
                self.content_type = self.events.is_some().then(|| within_limit(value));
            }
            (13, Some(b'c' | b'C')) if name.eq_ignore_ascii_case(b"current-offer") => {
                self.offer = Some(within_limit(value));
            }
            (16, Some(b'c' | b'C')) if name.eq_ignore_ascii_case(b"content-encoding") => {
                self.content_encoding(value);
            }
            _ => {}
        }
    }

    /// Takes a field of the trailers, by its name in lower case.
    pub(crate) fn trailer(&mut self, name: &[u8], value: &[u8]) {
        if let Some(call) = &mut self.call {
            call.trailer(name, value);
        }
    }

    /// Takes a piece of the body, and keeps as much of it as the evaluation of the reply needs.
    pub fn body(&mut self, piece: &[u8]) -> Result<(), NoMemory> {
        if let (Some(events), ..300) = (&mut self.events, self.status) {
            match self.content {
                Content::Plain => events.feed(piece),
                Content::Coded(coding) => self.feed_coded(coding, piece),
                Content::Unknown(_) => {}
            }
        }
        if let Some(call) = &mut self.call {
            if self.status == 200 {
                call.body(piece);
            }
            return Ok(());
        }
        if self.kept.keeps_coded() && self.content != Content::Plain {
            return self.kept.add_coded(piece);
        }
        if self.xml {
            // Enough for an inspection.
            self.kept.add_up_to(PIECE, piece);
        }
        Ok(())
    }

    /// Messages and status, if the request is a gRPC call.
    pub(crate) const fn call(&self) -> Option<&GrpcReply> {
        self.call.as_ref()
    }

    /// Decodes a piece with events, if the plan decodes. A piece that cannot be decoded has none, and the end of the reply
    /// finds the error.
    fn feed_coded(&mut self, coding: Coding, piece: &[u8]) {
        if !self.kept.keeps_coded() {
            return;
        }
        if self.event_decoder.is_none() {
            self.event_decoder = EventDecoder::new(coding).ok();
        }
        if let Some(decoder) = &mut self.event_decoder {
            let _ = decoder.feed(piece, &mut self.events);
        }
    }

    /// Reads the end of the body, which can complete an event.
    pub(crate) fn end_events(&mut self) {
        if let Some(mut decoder) = self.event_decoder.take() {
            let _ = decoder.finish(&mut self.events);
        }
        if let Some(events) = &mut self.events {
            events.end();
        }
    }

    /// Describes a reply in which no event was found, although the plan expects events.
    pub(crate) fn eventless_in_words(&self) -> Option<String> {
        let summary = self.events.as_ref()?.summary();
        if summary.count > 0 || summary.has_end_mark || self.call.is_some() {
            return None;
        }
        let kind = self
            .content_type
            .as_deref()
            .map_or("no Content-Type".into(), |kind| {
                format!("Content-Type {}", String::from_utf8_lossy(kind))
            });
        Some(match &self.content {
            Content::Plain => format!("no event in the reply, which has {kind}"),
            Content::Coded(coding) if !self.kept.keeps_coded() => format!(
                "no event in the reply, which is coded with {}; add --decode",
                coding.token()
            ),
            Content::Coded(coding) => {
                format!(
                    "no event in the reply, which has {kind} and is coded with {}",
                    coding.token()
                )
            }
            Content::Unknown(coding) => {
                format!("no event in the reply, which is coded with {coding}")
            }
        })
    }

    /// The events of the reply, if the plan expects some.
    pub(crate) const fn events(&mut self) -> Option<&mut EventProgress> {
        self.events.as_mut()
    }

    /// The status of the reply.
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// The beginning of the body as received, if it is XML.
    pub fn xml_body(&self) -> Option<&[u8]> {
        self.xml
            .then(|| self.kept.pieces().next().unwrap_or_default())
    }

    /// The coded body as received, if such bodies are kept.
    pub(crate) fn coded(&self) -> impl Iterator<Item = &[u8]> + Clone {
        self.kept.pieces()
    }

    /// The content coding of the body.
    pub const fn content(&self) -> &Content {
        &self.content
    }

    /// The value of the header field Quote. Empty if longer than 1 kB.
    pub fn quote(&self) -> Option<&[u8]> {
        self.quote.as_deref()
    }

    /// The value of the header field Current-Offer. Empty if longer than 1 kB.
    pub fn offer(&self) -> Option<&[u8]> {
        self.offer.as_deref()
    }

    /// The target of a redirect as the server wrote it. `None` for other replies and for redirects without a target, empty
    /// if longer than 1 kB.
    pub(crate) fn location(&self) -> Option<&[u8]> {
        self.location.as_deref()
    }

    fn content_encoding(&mut self, value: &[u8]) {
        let value = value.trim_ascii();
        if value.is_empty() || value.eq_ignore_ascii_case(b"identity") {
            return;
        }
        self.content = match (&self.content, Coding::from_token(value)) {
            (Content::Plain, Some(coding)) => Content::Coded(coding),
            (Content::Plain, None) => Content::Unknown(String::from_utf8_lossy(value).into_owned()),
            _ => Content::Unknown("several fields".to_owned()),
        };
    }
}

/// True for statuses that send a client to another URL (RFC 9110, section 15.4).
pub const fn is_redirect(status: u16) -> bool {
    matches!(status, 301 | 302 | 303 | 307 | 308)
}

/// True for a media type with `xml` in any case.
fn names_xml(value: &[u8]) -> bool {
    let is_xml = |part: &[u8]| part[0] | 0x20 == b'x' && part.eq_ignore_ascii_case(b"xml");
    value.windows(3).any(is_xml)
}

fn within_limit(value: &[u8]) -> Vec<u8> {
    let value = Some(value).filter(|value| value.len() <= LIMIT);
    value.unwrap_or_default().to_owned()
}
