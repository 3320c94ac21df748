//! The reply to a call: its messages as far as they decide, its status, and its outcome.
//!
//! Messages are counted and not kept. A reply is `ok` only if everything about it is in order: status 200, the content
//! type of gRPC, `grpc-status` 0 at its end, whole messages without compression, and exactly one of them unless the
//! method streams replies.

use posthaste_grpc_schema::MethodKind;
use posthaste_http::grpc::{Code, FrameError, FramePart, FrameReader, decode_message};

use super::MESSAGE_LIMIT;
use crate::outcome::Outcome;

/// Longest text of a status that is kept, in bytes.
const TEXT_LIMIT: usize = 1_024;

/// The reply to one call, as far as it has been read.
#[derive(Debug)]
pub(crate) struct GrpcReply {
    frames: FrameReader,
    messages: u64,
    /// The first error in the messages.
    error: Option<FrameError>,
    is_compressed: bool,
    has_content: bool,
    is_grpc: bool,
    /// The status among the fields of the head. It ends a reply without messages.
    head: StatedStatus,
    trailers: Option<StatedStatus>,
    /// The value of `grpc-message`.
    text: Vec<u8>,
}

/// The field `grpc-status` of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum StatedStatus {
    #[default]
    Absent,
    Code(Code),
    /// No number, or two different ones.
    Invalid,
}

/// The end of a call with a complete reply.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CallEnd {
    pub(crate) outcome: Outcome,
    /// The status, if the outcome is that of a status.
    pub(crate) code: Option<Code>,
    pub(crate) reason: Option<String>,
}

impl Default for GrpcReply {
    fn default() -> Self {
        Self {
            frames: FrameReader::new(MESSAGE_LIMIT),
            messages: 0,
            error: None,
            is_compressed: false,
            has_content: false,
            is_grpc: false,
            head: StatedStatus::Absent,
            trailers: None,
            text: Vec::new(),
        }
    }
}

impl StatedStatus {
    fn read(&mut self, value: &[u8]) {
        *self = match (*self, Code::read(value)) {
            (Self::Absent, Some(code)) => Self::Code(code),
            (Self::Code(before), Some(code)) if before == code => Self::Code(code),
            _ => Self::Invalid,
        };
    }
}

impl GrpcReply {
    /// Prepares for another reply. Its memory is used again.
    pub(crate) fn begin(&mut self) {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        *self = Self {
            text,
            ..Self::default()
        };
    }

    /// Takes a field of the head, by its name in lower case.
    pub(crate) fn field(&mut self, name: &[u8], value: &[u8]) {
        match name {
            b"content-type" => self.is_grpc = is_grpc(value),
            b"grpc-status" => self.head.read(value),
            b"grpc-message" => self.keep_text(value),
            _ => {}
        }
    }

    /// Takes a field of the trailers, by its name in lower case.
    pub(crate) fn trailer(&mut self, name: &[u8], value: &[u8]) {
        let trailers = self.trailers.get_or_insert_default();
        match name {
            b"grpc-status" => trailers.read(value),
            b"grpc-message" => self.keep_text(value),
            _ => {}
        }
    }

    /// Takes a piece of the body.
    pub(crate) fn body(&mut self, mut piece: &[u8]) {
        self.has_content = true;
        while self.error.is_none() {
            match self.frames.next(&mut piece) {
                Ok(Some(FramePart::Begin { compressed, .. })) => self.is_compressed |= compressed,
                Ok(Some(FramePart::End)) => self.messages += 1,
                Ok(Some(FramePart::Data(_))) => {}
                Ok(None) => return,
                Err(error) => self.error = Some(error),
            }
        }
    }

    /// Judges a complete reply with this HTTP status to a call of a method with such streams.
    pub(crate) fn judge(&self, http: u16, kind: MethodKind) -> CallEnd {
        let wrong = |reason: &str| CallEnd::with_reason(Outcome::ProtocolError, reason.to_owned());
        match (self.stated(), http) {
            (StatedStatus::Code(code), 200) if self.is_grpc => match code {
                Code::Ok => self.judge_messages(kind),
                code => self.failed(code),
            },
            (_, 200) if !self.is_grpc => wrong("the reply has no content-type application/grpc"),
            (StatedStatus::Absent, 200) => wrong("the reply ends without grpc-status"),
            (StatedStatus::Invalid, 200) => wrong("the reply has no valid grpc-status"),
            // An intermediary that knows gRPC states its error in both ways.
            (StatedStatus::Code(code), _) if code != Code::Ok && self.is_grpc => self.failed(code),
            (_, 400..) => {
                let code = Code::from_http(http);
                let reason = format!("status {http} instead of a gRPC reply, which means {code}");
                CallEnd::with_reason(Outcome::StatusError, reason)
            }
            _ => wrong(&format!("status {http}, which gRPC does not have")),
        }
    }

    /// The status at the end of the reply. One in the head counts only if nothing follows, and has to be the same as one
    /// in trailers.
    fn stated(&self) -> StatedStatus {
        match (self.trailers, self.has_content) {
            (Some(stated @ StatedStatus::Code(_)), _)
                if self.head != StatedStatus::Absent && self.head != stated =>
            {
                StatedStatus::Invalid
            }
            (Some(stated), _) => stated,
            (None, false) => self.head,
            (None, true) => StatedStatus::Absent,
        }
    }

    /// Judges the messages before a status of OK.
    fn judge_messages(&self, kind: MethodKind) -> CallEnd {
        let wrong = |reason: String| CallEnd::with_reason(Outcome::ProtocolError, reason);
        let messages = self.messages;
        match self.error.map_or_else(|| self.frames.end(), Err) {
            Err(error) => wrong(error.to_string()),
            Ok(()) if self.is_compressed => {
                let reason = "a compressed message, and no compression was requested";
                CallEnd::with_reason(Outcome::Undecodable, reason.to_owned())
            }
            Ok(()) if !kind.streams_replies() && messages != 1 => {
                wrong(format!("status OK with {messages} messages instead of one"))
            }
            Ok(()) => CallEnd {
                outcome: Outcome::Ok,
                code: Some(Code::Ok),
                reason: None,
            },
        }
    }

    fn failed(&self, code: Code) -> CallEnd {
        let text = decode_message(&self.text);
        let reason = if text.is_empty() {
            code.to_string()
        } else {
            format!("{code}: {text}")
        };
        CallEnd {
            outcome: Outcome::GrpcError,
            code: Some(code),
            reason: Some(reason),
        }
    }

    fn keep_text(&mut self, value: &[u8]) {
        self.text.clear();
        self.text
            .extend_from_slice(&value[..value.len().min(TEXT_LIMIT)]);
    }
}

impl CallEnd {
    fn with_reason(outcome: Outcome, reason: String) -> Self {
        Self {
            outcome,
            code: None,
            reason: Some(reason),
        }
    }
}

/// True for `application/grpc` with any message format or parameter.
fn is_grpc(content_type: &[u8]) -> bool {
    const TYPE: &[u8] = b"application/grpc";
    let Some((start, rest)) = content_type.split_at_checked(TYPE.len()) else {
        return false;
    };
    start.eq_ignore_ascii_case(TYPE) && matches!(rest.first(), None | Some(b'+' | b';' | b' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNARY: MethodKind = MethodKind::Unary;
    const STREAM: MethodKind = MethodKind::ServerStreaming;

    /// Fields of a head or of trailers.
    type Fields<'f> = &'f [(&'f str, &'f str)];

    /// A reply of these fields, content and trailers.
    fn reply(head: Fields<'_>, body: &[u8], trailers: Fields<'_>) -> GrpcReply {
        let mut reply = GrpcReply::default();
        for (name, value) in head {
            reply.field(name.as_bytes(), value.as_bytes());
        }
        for byte in body {
            reply.body(&[*byte]);
        }
        for (name, value) in trailers {
            reply.trailer(name.as_bytes(), value.as_bytes());
        }
        reply
    }

    const GRPC: (&str, &str) = ("content-type", "application/grpc+proto");
    const OK: (&str, &str) = ("grpc-status", "0");
    const ONE: &[u8] = &[0, 0, 0, 0, 1, 7];

    fn outcome(head: Fields<'_>, body: &[u8], trailers: Fields<'_>) -> Outcome {
        reply(head, body, trailers).judge(200, UNARY).outcome
    }

    #[test]
    fn only_a_whole_reply_with_status_0_is_ok() {
        assert_eq!(outcome(&[GRPC], ONE, &[OK]), Outcome::Ok);
        let two = [ONE, ONE].concat();
        let compressed = [1, 0, 0, 0, 1, 7];
        let cases: [(Fields<'_>, &[u8], Fields<'_>, Outcome); 13] = [
            (&[GRPC], &[], &[OK], Outcome::ProtocolError),
            (&[GRPC], &two, &[OK], Outcome::ProtocolError),
            (&[GRPC], &ONE[..5], &[OK], Outcome::ProtocolError),
            (&[GRPC], &ONE[..3], &[OK], Outcome::ProtocolError),
            (&[GRPC], &[2, 0, 0, 0, 0], &[OK], Outcome::ProtocolError),
            (&[GRPC], &[0, 255, 0, 0, 0], &[OK], Outcome::ProtocolError),
            (&[GRPC], &compressed, &[OK], Outcome::Undecodable),
            (&[GRPC], ONE, &[], Outcome::ProtocolError),
            (&[GRPC], ONE, &[("x", "y")], Outcome::ProtocolError),
            (
                &[GRPC],
                ONE,
                &[OK, ("grpc-status", "5")],
                Outcome::ProtocolError,
            ),
            (
                &[GRPC],
                ONE,
                &[("grpc-status", "zero")],
                Outcome::ProtocolError,
            ),
            (&[GRPC, OK], ONE, &[], Outcome::ProtocolError),
            (
                &[GRPC, ("grpc-status", "5")],
                ONE,
                &[OK],
                Outcome::ProtocolError,
            ),
        ];
        for (number, (head, body, trailers, expected)) in cases.into_iter().enumerate() {
            assert_eq!(outcome(head, body, trailers), expected, "case {number}");
        }
        for content_type in ["text/html", "application/grpc-web", "application/grp"] {
            let head = [("content-type", content_type)];
            assert_eq!(outcome(&head, ONE, &[OK]), Outcome::ProtocolError);
        }
        assert_eq!(outcome(&[], ONE, &[OK]), Outcome::ProtocolError);
    }

    #[test]
    fn equal_statuses_count_as_one() {
        assert_eq!(outcome(&[GRPC], ONE, &[OK, OK]), Outcome::Ok);
        assert_eq!(outcome(&[GRPC, OK], ONE, &[OK]), Outcome::Ok);
    }

    #[test]
    fn streams_may_have_any_number_of_messages() {
        for messages in [0, 1, 3] {
            let reply = reply(&[GRPC], &ONE.repeat(messages), &[OK]);
            assert_eq!(reply.judge(200, STREAM).outcome, Outcome::Ok);
        }
        let empty = reply(&[GRPC, OK], &[], &[]);
        assert_eq!(empty.judge(200, STREAM).outcome, Outcome::Ok);
    }

    #[test]
    fn other_statuses_are_named_with_their_text() {
        let text = ("grpc-message", "no such book: %22%C3%A9%22");
        let missing = ("grpc-status", "5");
        for reply in [
            reply(&[GRPC, missing, text], &[], &[]),
            reply(&[GRPC], &[], &[missing, text]),
            reply(&[GRPC], &ONE[..5], &[missing, text]),
        ] {
            let end = reply.judge(200, UNARY);
            assert_eq!(
                (end.outcome, end.code),
                (Outcome::GrpcError, Some(Code::NotFound))
            );
            assert_eq!(end.reason.unwrap(), "NOT_FOUND: no such book: \"é\"");
        }
        let unknown = reply(&[GRPC, ("grpc-status", "99")], &[], &[]).judge(200, UNARY);
        assert_eq!(unknown.code, Some(Code::Unknown));
    }

    #[test]
    fn a_plain_reply_of_http_is_never_ok() {
        let page = reply(&[("content-type", "text/html")], b"<html>", &[]);
        let end = page.judge(503, UNARY);
        assert_eq!(end.outcome, Outcome::StatusError);
        assert!(end.reason.unwrap().contains("UNAVAILABLE"));
        let ok = reply(&[GRPC], ONE, &[OK]);
        assert_eq!(ok.judge(503, UNARY).outcome, Outcome::StatusError);
        assert_eq!(ok.judge(204, UNARY).outcome, Outcome::ProtocolError);
        let both = reply(&[GRPC, ("grpc-status", "14")], &[], &[]);
        assert_eq!(both.judge(503, UNARY).code, Some(Code::Unavailable));
    }

    #[test]
    fn one_reply_leaves_nothing_to_the_next() {
        let mut used = reply(
            &[GRPC],
            &[2, 1],
            &[("grpc-status", "5"), ("grpc-message", "x")],
        );
        used.begin();
        used.field(GRPC.0.as_bytes(), GRPC.1.as_bytes());
        used.body(ONE);
        used.trailer(b"grpc-status", b"0");
        assert_eq!(used.judge(200, UNARY).outcome, Outcome::Ok);
    }
}
