//! Methods: kind, path, and their messages as JSON and bytes.

use std::collections::BTreeMap;
use std::fmt;

use prost::Message as _;
use prost_reflect::{DynamicMessage, FileDescriptor, MethodDescriptor, SerializeOptions};
use prost_types::{FileDescriptorProto, FileDescriptorSet};
use serde::de::DeserializeSeed as _;
use thiserror::Error;

/// A method of a service.
#[derive(Clone, Debug)]
pub struct Method {
    descriptor: MethodDescriptor,
}

/// Streams of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MethodKind {
    /// One request, one reply.
    Unary,
    /// One request, a stream of replies.
    ServerStreaming,
    /// A stream of requests, one reply.
    ClientStreaming,
    /// Streams in both directions.
    BidirectionalStreaming,
}

/// The reason why a text is not a message of a method.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}, column {column}: this is no {message}: {reason}")]
pub struct JsonError {
    /// Line of the error, from 1.
    pub line: usize,
    /// Column of the error, from 1.
    pub column: usize,
    /// Full name of the message.
    pub message: String,
    /// The error.
    pub reason: String,
}

/// The reason why bytes are not a message of a method.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("this is no {message}: {reason}")]
pub struct DecodeError {
    /// Full name of the message.
    pub message: String,
    /// The error.
    pub reason: String,
}

impl MethodKind {
    /// The requests are a stream.
    pub const fn streams_requests(self) -> bool {
        matches!(self, Self::ClientStreaming | Self::BidirectionalStreaming)
    }

    /// The replies are a stream.
    pub const fn streams_replies(self) -> bool {
        matches!(self, Self::ServerStreaming | Self::BidirectionalStreaming)
    }
}

impl fmt::Display for MethodKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unary => "unary",
            Self::ServerStreaming => "server streaming",
            Self::ClientStreaming => "client streaming",
            Self::BidirectionalStreaming => "bidirectional streaming",
        })
    }
}

impl Method {
    pub(crate) const fn new(descriptor: MethodDescriptor) -> Self {
        Self { descriptor }
    }

    /// The path of its requests.
    pub fn path(&self) -> String {
        let service = self.descriptor.parent_service().full_name();
        format!("/{service}/{}", self.descriptor.name())
    }

    /// The streams of the method.
    pub fn kind(&self) -> MethodKind {
        let method = &self.descriptor;
        match (method.is_client_streaming(), method.is_server_streaming()) {
            (false, false) => MethodKind::Unary,
            (false, true) => MethodKind::ServerStreaming,
            (true, false) => MethodKind::ClientStreaming,
            (true, true) => MethodKind::BidirectionalStreaming,
        }
    }

    /// The file of the method and all that it imports, by name, as a `FileDescriptorSet` without comments. A
    /// [`Schema`](crate::Schema) of it has the method.
    pub fn descriptor_set(&self) -> Vec<u8> {
        let mut found = BTreeMap::<String, FileDescriptor>::new();
        let mut open = vec![self.descriptor.parent_service().parent_file()];
        while let Some(file) = open.pop() {
            if !found.contains_key(file.name()) {
                open.extend(file.dependencies());
                found.insert(file.name().to_owned(), file);
            }
        }
        let without_comments = |file: &FileDescriptor| FileDescriptorProto {
            source_code_info: None,
            ..file.file_descriptor_proto().clone()
        };
        let set = FileDescriptorSet {
            file: found.values().map(without_comments).collect(),
        };
        set.encode_to_vec()
    }

    /// Full name of the request's message.
    pub fn request_name(&self) -> String {
        self.descriptor.input().full_name().to_owned()
    }

    /// Full name of the reply's message.
    pub fn reply_name(&self) -> String {
        self.descriptor.output().full_name().to_owned()
    }

    /// Encodes one request from JSON (ProtoJSON). Unknown fields are errors.
    pub fn encode_request(&self, json: &str) -> Result<Vec<u8>, JsonError> {
        let mut parser = serde_json::Deserializer::from_str(json);
        let message = self
            .descriptor
            .input()
            .deserialize(&mut parser)
            .map_err(|error| self.json_error(&error))?;
        parser.end().map_err(|error| self.json_error(&error))?;
        Ok(message.encode_to_vec())
    }

    /// Encodes the requests of a call from JSON: one object. With a stream of requests also a list of objects, or objects
    /// one after the other.
    pub fn encode_requests(&self, json: &str) -> Result<Vec<Vec<u8>>, JsonError> {
        if !self.kind().streams_requests() {
            return Ok(vec![self.encode_request(json)?]);
        }
        if !json.trim_start().starts_with('[') {
            return self.encode_sequence(json);
        }
        // The raw texts would lose their places in the whole text, so messages are deserialised in the list.
        let list = RequestList(self.descriptor.input());
        let mut parser = serde_json::Deserializer::from_str(json);
        let requests = list
            .deserialize(&mut parser)
            .map_err(|error| self.json_error(&error))?;
        parser.end().map_err(|error| self.json_error(&error))?;
        Ok(requests)
    }

    /// Encodes one request or more, with white space between them or none.
    fn encode_sequence(&self, json: &str) -> Result<Vec<Vec<u8>>, JsonError> {
        let mut parser = serde_json::Deserializer::from_str(json);
        let mut requests = Vec::new();
        loop {
            let message = self.descriptor.input().deserialize(&mut parser);
            let message = message.map_err(|error| self.json_error(&error))?;
            requests.push(message.encode_to_vec());
            // Before another request this is an error, which leaves the parser where it is.
            if parser.end().is_ok() {
                return Ok(requests);
            }
        }
    }

    /// Decodes a reply to JSON (ProtoJSON, with the field names of the `.proto` file).
    pub fn decode_reply(&self, bytes: &[u8]) -> Result<String, DecodeError> {
        let wrong = |reason: String| DecodeError {
            message: self.reply_name(),
            reason,
        };
        let reply = DynamicMessage::decode(self.descriptor.output(), bytes);
        let reply = reply.map_err(|error| wrong(error.to_string()))?;
        let mut json = serde_json::Serializer::new(Vec::new());
        let options = SerializeOptions::new().use_proto_field_name(true);
        reply
            .serialize_with_options(&mut json, &options)
            .map_err(|error| wrong(error.to_string()))?;
        String::from_utf8(json.into_inner()).map_err(|error| wrong(error.to_string()))
    }

    fn json_error(&self, error: &serde_json::Error) -> JsonError {
        // serde_json appends the position to its text.
        let text = error.to_string();
        let position = format!(" at line {} column {}", error.line(), error.column());
        JsonError {
            line: error.line().max(1),
            column: error.column().max(1),
            message: self.request_name(),
            reason: text.strip_suffix(&position).unwrap_or(&text).to_owned(),
        }
    }
}

/// A list of messages, encoded.
struct RequestList(prost_reflect::MessageDescriptor);

impl<'de> serde::de::DeserializeSeed<'de> for RequestList {
    type Value = Vec<Vec<u8>>;

    fn deserialize<D: serde::Deserializer<'de>>(self, parser: D) -> Result<Self::Value, D::Error> {
        parser.deserialize_seq(self)
    }
}

impl<'de> serde::de::Visitor<'de> for RequestList {
    type Value = Vec<Vec<u8>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of {}", self.0.full_name())
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut requests = Vec::new();
        while let Some(request) = list.next_element_seed(self.0.clone())? {
            requests.push(request.encode_to_vec());
        }
        Ok(requests)
    }
}
