//! A server's bytes on its streams, and a model of the transport that checks the client's actions.

use std::collections::HashMap;
use std::sync::Arc;

use posthaste_http::streams::StreamRequest;
use posthaste_http::streams::catalogue::{FieldCatalogue, RequestField};
use posthaste_http::streams::http3::frame::kind;
use posthaste_http::streams::http3::qpack::FieldPlan;
use posthaste_http::streams::http3::{
    ErrorCode, Http3Error, Http3StreamClient, OutputAction, StreamId, varint,
};

use crate::streams::support::Events;

/// The server's control stream.
pub(crate) const CONTROL: u64 = 3;

/// Something that the server does.
#[derive(Clone, Debug)]
pub(crate) enum ServerAct {
    Bytes(u64, Vec<u8>),
    Fin(u64),
    Reset(u64, ErrorCode),
    Stop(u64, ErrorCode),
}

/// Part of a client's stream that the transport has.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct SentStream {
    pub(crate) bytes: Vec<u8>,
    pub(crate) fin: bool,
    pub(crate) reset: Option<ErrorCode>,
    pub(crate) stopped: Option<ErrorCode>,
}

/// A client with its events and its transport.
pub(crate) struct ScriptedExchange {
    pub(crate) client: Http3StreamClient,
    pub(crate) events: Events,
    pub(crate) sent: HashMap<u64, SentStream>,
    fields: Vec<RequestField<'static>>,
}

impl ScriptedExchange {
    /// A new connection whose server has sent empty SETTINGS and permits 1,000 streams.
    pub(crate) fn new() -> Self {
        let mut exchange = Self::before_settings();
        exchange.receive(CONTROL, &settings(&[])).unwrap();
        exchange.flush();
        exchange.events.0.clear();
        exchange
    }

    /// A new connection without SETTINGS of the server.
    pub(crate) fn before_settings() -> Self {
        let mut catalogue = FieldCatalogue::default();
        let fields = [
            (":method", "GET"),
            (":scheme", "https"),
            (":authority", "a"),
            (":path", "/"),
        ];
        let fields = fields.map(|(name, value)| {
            let field = catalogue.constant(name.as_bytes(), value.as_bytes());
            RequestField::Constant(field.unwrap())
        });
        let mut client = Http3StreamClient::new(Arc::new(FieldPlan::new(&catalogue)));
        client.permit_streams(1_000);
        Self {
            client,
            events: Events::default(),
            sent: HashMap::new(),
            fields: fields.to_vec(),
        }
    }

    /// Opens a stream without a body.
    pub(crate) fn open(&mut self, token: u32) -> u64 {
        self.open_as(token, false, false)
    }

    /// Opens a stream, with a body or for HEAD.
    pub(crate) fn open_as(&mut self, token: u32, has_body: bool, is_head: bool) -> u64 {
        let request = StreamRequest {
            fields: &self.fields,
            has_body,
            is_head,
        };
        self.client.open(token, &request).unwrap().number()
    }

    pub(crate) fn receive(&mut self, stream: u64, bytes: &[u8]) -> Result<(), Http3Error> {
        let stream = StreamId::new(stream);
        self.client.receive(stream, bytes, false, &mut self.events)
    }

    /// Receives the last bytes of a stream.
    pub(crate) fn receive_last(&mut self, stream: u64, bytes: &[u8]) -> Result<(), Http3Error> {
        let stream = StreamId::new(stream);
        self.client.receive(stream, bytes, true, &mut self.events)
    }

    /// Performs an act of the server, its bytes in pieces of `length`.
    pub(crate) fn perform(&mut self, act: &ServerAct, length: usize) -> Result<(), Http3Error> {
        match act {
            ServerAct::Bytes(stream, bytes) => bytes
                .chunks(length)
                .try_for_each(|piece| self.receive(*stream, piece)),
            ServerAct::Fin(stream) => self.receive_last(*stream, b""),
            ServerAct::Reset(stream, code) => {
                let stream = StreamId::new(*stream);
                self.client.receive_reset(stream, *code, &mut self.events)
            }
            ServerAct::Stop(stream, code) => {
                let stream = StreamId::new(*stream);
                self.client.receive_stop(stream, *code, &mut self.events)
            }
        }
    }

    /// Passes all output to the transport.
    pub(crate) fn flush(&mut self) {
        while self.pass(usize::MAX) {}
    }

    /// Passes one action to the transport, at most `limit` bytes of it. Returns false if there is none.
    pub(crate) fn pass(&mut self, limit: usize) -> bool {
        let Some(action) = self.client.output() else {
            return false;
        };
        match action {
            OutputAction::Write { stream, bytes, fin } => {
                let known = self.sent.entry(stream.number()).or_default();
                assert!(
                    !known.fin && known.reset.is_none(),
                    "no bytes after the end"
                );
                assert!(fin || !bytes.is_empty(), "a write has bytes or an end");
                let count = bytes.len().min(limit);
                known.bytes.extend_from_slice(&bytes[..count]);
                known.fin = fin && count == bytes.len();
                self.client.sent(stream, count);
            }
            OutputAction::Reset { stream, code } => {
                let known = self.sent.entry(stream.number()).or_default();
                assert!(!known.fin && known.reset.is_none(), "one end of a stream");
                known.reset = Some(code);
            }
            OutputAction::Stop { stream, code } => {
                let known = self.sent.entry(stream.number()).or_default();
                assert!(known.stopped.is_none(), "one STOP_SENDING of a stream");
                known.stopped = Some(code);
            }
        }
        true
    }

    /// Codes of the reset and of the stop of a stream.
    pub(crate) fn ends_of(&self, stream: u64) -> (Option<ErrorCode>, Option<ErrorCode>) {
        let sent = self.sent.get(&stream);
        sent.map_or((None, None), |sent| (sent.reset, sent.stopped))
    }
}

/// An integer of variable length.
pub(crate) fn integer(value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    varint::encode(value, &mut bytes);
    bytes
}

/// A frame.
pub(crate) fn frame(kind: u64, payload: &[u8]) -> Vec<u8> {
    let length = integer(payload.len() as u64);
    [&integer(kind), &length, payload].concat()
}

/// Cuts whole frames.
pub(crate) fn parse(mut bytes: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let kind = varint::decode(&mut bytes).expect("a whole type");
        let length = varint::decode(&mut bytes).expect("a whole length") as usize;
        let (payload, rest) = bytes.split_at(length);
        frames.push((kind, payload.to_vec()));
        bytes = rest;
    }
    frames
}

/// The beginning of a control stream: its type, and SETTINGS.
pub(crate) fn settings(values: &[(u64, u64)]) -> Vec<u8> {
    let bytes = |(id, value): &(u64, u64)| [integer(*id), integer(*value)].concat();
    let payload: Vec<u8> = values.iter().flat_map(bytes).collect();
    [vec![0], frame(kind::SETTINGS, &payload)].concat()
}

/// A field section of literals with names of their own.
pub(crate) fn section(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut section = vec![0, 0];
    for (name, value) in fields {
        assert!(value.len() < 127 && name.len() < 100);
        match name.len() {
            0..7 => section.push(0x20 | name.len() as u8),
            length => section.extend_from_slice(&[0x27, length as u8 - 7]),
        }
        section.extend_from_slice(name.as_bytes());
        section.push(value.len() as u8);
        section.extend_from_slice(value.as_bytes());
    }
    section
}

/// HEADERS.
pub(crate) fn headers(fields: &[(&str, &str)]) -> Vec<u8> {
    frame(kind::HEADERS, &section(fields))
}

/// HEADERS with status 200 only.
pub(crate) fn ok() -> Vec<u8> {
    frame(kind::HEADERS, b"\x00\x00\xd9")
}

/// DATA.
pub(crate) fn data(content: &[u8]) -> Vec<u8> {
    frame(kind::DATA, content)
}

/// GOAWAY.
pub(crate) fn goaway(first: u64) -> Vec<u8> {
    frame(kind::GOAWAY, &integer(first))
}
