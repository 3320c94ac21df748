//! A server's frames, byte by byte, and a record of the client's events.

use std::sync::Arc;

use posthaste_http::streams::catalogue::{FieldCatalogue, RequestField};
use posthaste_http::streams::http2::frame::{FrameHead, HEAD_LENGTH, PREFACE, flag, kind};
use posthaste_http::streams::http2::hpack::FieldPlan;
use posthaste_http::streams::http2::{ConnectionError, Http2StreamClient, StreamId};
use posthaste_http::streams::{ConnectionEvent, EventSink, StreamEnd, StreamRequest};

/// An event with its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Interim(u32, u16),
    Head(u32, u16),
    Field(u32, String, String),
    HeadEnd(u32),
    Body(u32, Vec<u8>),
    Trailer(u32, String, String),
    End(u32, StreamEnd),
    Connection(String),
}

/// All events of a connection. Neighbouring pieces of content are joined.
#[derive(Debug, Default)]
pub(crate) struct Events(pub(crate) Vec<Event>);

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl EventSink for Events {
    fn interim(&mut self, token: u32, status: u16) {
        self.0.push(Event::Interim(token, status));
    }

    fn head(&mut self, token: u32, status: u16) {
        self.0.push(Event::Head(token, status));
    }

    fn field(&mut self, token: u32, name: &[u8], value: &[u8]) {
        self.0.push(Event::Field(token, text(name), text(value)));
    }

    fn head_end(&mut self, token: u32) {
        self.0.push(Event::HeadEnd(token));
    }

    fn body(&mut self, token: u32, bytes: &[u8]) {
        match self.0.last_mut() {
            Some(Event::Body(last, body)) if *last == token => body.extend_from_slice(bytes),
            _ => self.0.push(Event::Body(token, bytes.to_vec())),
        }
    }

    fn trailer(&mut self, token: u32, name: &[u8], value: &[u8]) {
        self.0.push(Event::Trailer(token, text(name), text(value)));
    }

    fn end(&mut self, token: u32, end: StreamEnd) {
        self.0.push(Event::End(token, end));
    }

    fn connection(&mut self, event: ConnectionEvent<'_>) {
        self.0.push(Event::Connection(format!("{event:?}")));
    }
}

impl Events {
    /// The end of a token, if it has one. Panics at a second one.
    pub(crate) fn end_of(&self, token: u32) -> Option<StreamEnd> {
        let mut ends = self.0.iter().filter_map(|event| match event {
            Event::End(other, end) if *other == token => Some(*end),
            _ => None,
        });
        let end = ends.next();
        assert_eq!(ends.next(), None, "token {token} ended twice");
        end
    }

    /// The content of a token's reply.
    pub(crate) fn body_of(&self, token: u32) -> Vec<u8> {
        let parts = self.0.iter().filter_map(|event| match event {
            Event::Body(other, bytes) if *other == token => Some(&bytes[..]),
            _ => None,
        });
        parts.collect::<Vec<_>>().concat()
    }

    /// Events of the connection as text.
    pub(crate) fn of_connection(&self) -> Vec<&str> {
        let events = self.0.iter().filter_map(|event| match event {
            Event::Connection(text) => Some(&text[..]),
            _ => None,
        });
        events.collect()
    }
}

/// A client with its events.
pub(crate) struct Exchange {
    pub(crate) client: Http2StreamClient,
    pub(crate) events: Events,
    fields: Vec<RequestField<'static>>,
}

impl Exchange {
    /// A new connection whose server has sent empty SETTINGS. The output so far is discarded.
    pub(crate) fn new() -> Self {
        let mut exchange = Self::before_settings();
        exchange.receive(&settings(&[])).unwrap();
        exchange.discard_output();
        exchange.events.0.clear();
        exchange
    }

    /// A new connection without SETTINGS of the server.
    pub(crate) fn before_settings() -> Self {
        let mut catalogue = FieldCatalogue::default();
        let fields = [
            (":method", "GET"),
            (":scheme", "http"),
            (":authority", "a"),
            (":path", "/"),
        ];
        let fields = fields.map(|(name, value)| {
            let field = catalogue.constant(name.as_bytes(), value.as_bytes());
            RequestField::Constant(field.unwrap())
        });
        Self {
            client: Http2StreamClient::new(Arc::new(FieldPlan::new(&catalogue))),
            events: Events::default(),
            fields: fields.to_vec(),
        }
    }

    /// Opens a stream without a body.
    pub(crate) fn open(&mut self, token: u32) -> StreamId {
        let request = StreamRequest {
            fields: &self.fields,
            ..StreamRequest::default()
        };
        self.client.open(token, &request).unwrap()
    }

    /// Opens a stream with a body.
    pub(crate) fn open_with_body(&mut self, token: u32) -> StreamId {
        let request = StreamRequest {
            fields: &self.fields,
            has_body: true,
            is_head: false,
        };
        self.client.open(token, &request).unwrap()
    }

    /// Opens a stream for HEAD.
    pub(crate) fn open_head(&mut self, token: u32) -> StreamId {
        let request = StreamRequest {
            fields: &self.fields,
            is_head: true,
            ..StreamRequest::default()
        };
        self.client.open(token, &request).unwrap()
    }

    pub(crate) fn receive(&mut self, bytes: &[u8]) -> Result<(), ConnectionError> {
        self.client.receive(bytes, &mut self.events)
    }

    pub(crate) fn discard_output(&mut self) {
        self.client.sent(self.client.output().len());
    }

    /// The frames of the output, which is then sent.
    pub(crate) fn frames(&mut self) -> Vec<(FrameHead, Vec<u8>)> {
        let output = self.client.output();
        let frames = parse(output.strip_prefix(PREFACE).unwrap_or(output));
        self.discard_output();
        frames
    }

    /// Types of the frames of the output, which is then sent.
    pub(crate) fn kinds(&mut self) -> Vec<u8> {
        self.frames().iter().map(|(head, _)| head.kind).collect()
    }
}

/// Cuts whole frames.
pub(crate) fn parse(mut bytes: &[u8]) -> Vec<(FrameHead, Vec<u8>)> {
    let mut frames = Vec::new();
    while let Some((head, rest)) = bytes.split_first_chunk::<HEAD_LENGTH>() {
        let head = FrameHead::parse(head);
        let (payload, rest) = rest.split_at(head.length as usize);
        frames.push((head, payload.to_vec()));
        bytes = rest;
    }
    assert!(bytes.is_empty(), "the output has whole frames");
    frames
}

/// A frame.
pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let head = FrameHead {
        length: payload.len() as u32,
        kind,
        flags,
        stream,
    };
    [&head.bytes(), payload].concat()
}

/// SETTINGS with identifiers and values.
pub(crate) fn settings(values: &[(u16, u32)]) -> Vec<u8> {
    let bytes = |(id, value): &(u16, u32)| [&id.to_be_bytes()[..], &value.to_be_bytes()].concat();
    let payload: Vec<u8> = values.iter().flat_map(bytes).collect();
    frame(kind::SETTINGS, 0, 0, &payload)
}

/// A field block of literals that enter no table.
pub(crate) fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        assert!(name.len() < 127 && value.len() < 127);
        block.extend_from_slice(&[0, name.len() as u8]);
        block.extend_from_slice(name.as_bytes());
        block.push(value.len() as u8);
        block.extend_from_slice(value.as_bytes());
    }
    block
}

/// HEADERS with a whole block.
pub(crate) fn headers(stream: u32, flags: u8, fields: &[(&str, &str)]) -> Vec<u8> {
    let flags = flags | flag::END_HEADERS;
    frame(kind::HEADERS, flags, stream, &block(fields))
}

/// HEADERS with status 200 only.
pub(crate) fn ok(stream: u32) -> Vec<u8> {
    frame(kind::HEADERS, flag::END_HEADERS, stream, b"\x88")
}

/// A whole reply of status 200 without content.
pub(crate) fn ok_empty(stream: u32) -> Vec<u8> {
    let flags = flag::END_HEADERS | flag::END_STREAM;
    frame(kind::HEADERS, flags, stream, b"\x88")
}

/// DATA.
pub(crate) fn data(stream: u32, flags: u8, content: &[u8]) -> Vec<u8> {
    frame(kind::DATA, flags, stream, content)
}

/// RST_STREAM.
pub(crate) fn reset(stream: u32, code: u32) -> Vec<u8> {
    frame(kind::RST_STREAM, 0, stream, &code.to_be_bytes())
}

/// GOAWAY.
pub(crate) fn goaway(last: u32, code: u32) -> Vec<u8> {
    let payload = [last.to_be_bytes(), code.to_be_bytes()].concat();
    frame(kind::GOAWAY, 0, 0, &payload)
}

/// WINDOW_UPDATE.
pub(crate) fn window_update(stream: u32, increment: u32) -> Vec<u8> {
    frame(kind::WINDOW_UPDATE, 0, stream, &increment.to_be_bytes())
}
