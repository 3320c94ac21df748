//! `POST /v1/chat/completions`: the interface of OpenAI, with words of the shop as tokens.
//!
//! A reply has exactly `max_tokens` tokens. With `"stream": true`, each is a chunk, and the last one has the reason of
//! the end. The law of the gaps is in the query.

use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use hyper::header::{self, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Response, StatusCode};
use posthaste_serve::{BodyError, Incoming, Peer, read_body};
use posthaste_units::{Seed, Stream};
use rand::RngExt as _;
use serde::Deserialize;
use serde_json::{Value, json};

use super::law::EventLaw;
use super::{DONE, EventMoment, StreamCount, read_law, stream, whole};
use crate::body::ShopBody;
use crate::clock::now;
use crate::metrics::ReplyForm;
use crate::service::{JSON, MAX_BODY, ShopService};
use crate::vocabulary::NOUNS;

/// Number of tokens without `max_tokens`.
const TOKENS: u32 = 16;

/// The fields that are read. Others are ignored, as clients send many.
#[derive(Deserialize)]
struct ChatRequest {
    model: Option<String>,
    messages: Vec<Value>,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    n: Option<u64>,
    #[serde(default)]
    stream: bool,
    stream_options: Option<StreamOptions>,
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

/// A chat that was accepted.
struct Chat {
    id: String,
    created: u64,
    model: String,
    prompt: usize,
    law: EventLaw,
    streams: bool,
    reports_usage: bool,
}

/// The reason of a rejection, with the field that is wrong.
struct ChatError {
    status: StatusCode,
    field: Option<&'static str>,
    message: String,
}

/// Answers a request for a chat.
pub(crate) async fn chat(
    shop: &Rc<ShopService>,
    parts: &Parts,
    body: Incoming,
    peer: &Peer,
) -> Response<ShopBody> {
    match read(parts, body, peer).await {
        Ok(chat) if chat.streams => chunks(shop.clone(), chat),
        Ok(chat) => {
            let last = chat.law.offsets().last();
            shop.pacer
                .until(now().saturating_add(last.unwrap_or(0)))
                .await;
            whole(StatusCode::OK, JSON, chat.completion())
        }
        Err(error) => error.reply(),
    }
}

async fn read(parts: &Parts, body: Incoming, peer: &Peer) -> Result<Chat, ChatError> {
    let invalid = |field, message: String| ChatError {
        status: StatusCode::BAD_REQUEST,
        field,
        message,
    };
    if parts.method != Method::POST {
        return Err(ChatError {
            status: StatusCode::METHOD_NOT_ALLOWED,
            field: None,
            message: format!("{} is not allowed here: use POST", parts.method),
        });
    }
    let body = match read_body(body, MAX_BODY, peer).await {
        Ok(body) => body,
        Err(error @ BodyError::TooLong(_)) => {
            return Err(ChatError {
                status: StatusCode::PAYLOAD_TOO_LARGE,
                field: None,
                message: error.to_string(),
            });
        }
        Err(error) => return Err(invalid(None, error.to_string())),
    };
    let request: ChatRequest = serde_json::from_slice(&body)
        .map_err(|error| invalid(None, format!("this is no request for a chat: {error}")))?;
    if request.messages.is_empty() {
        let message = "there is no message: send at least one".to_owned();
        return Err(invalid(Some("messages"), message));
    }
    if request.n.is_some_and(|n| n != 1) {
        let message = "there is one choice for each request: leave n out".to_owned();
        return Err(invalid(Some("n"), message));
    }
    let mut law = EventLaw::new(TOKENS);
    for (field, tokens) in [
        ("max_tokens", request.max_tokens),
        ("max_completion_tokens", request.max_completion_tokens),
    ] {
        if let Some(tokens) = tokens {
            law.set("events", &tokens.to_string())
                .map_err(|error| invalid(Some(field), format!("{field}: {error}")))?;
        }
    }
    let tokens = law.events;
    let law = read_law(parts.uri.query(), law, |_, _| false).map_err(|w| invalid(None, w))?;
    if law.events != tokens {
        let message = "the number of tokens is in the body: use max_tokens instead of events";
        return Err(invalid(Some("max_tokens"), message.to_owned()));
    }
    let created = SystemTime::now().duration_since(UNIX_EPOCH);
    Ok(Chat {
        id: format!("chatcmpl-{:x}", now()),
        created: created.map_or(0, |time| time.as_secs()),
        model: request.model.unwrap_or_else(|| "bookshop".to_owned()),
        prompt: request.messages.iter().map(count_words).sum(),
        law,
        streams: request.stream,
        reports_usage: request.stream_options.is_some_and(|o| o.include_usage),
    })
}

/// Number of words in a message, as a count of its tokens.
fn count_words(message: &Value) -> usize {
    match message {
        Value::String(text) => text.split_whitespace().count(),
        Value::Array(parts) => parts.iter().map(count_words).sum(),
        Value::Object(fields) => {
            let text = fields.get("content").or_else(|| fields.get("text"));
            text.map_or(0, count_words)
        }
        _ => 0,
    }
}

/// The tokens of a chat, by its seed.
struct Tokens {
    nouns: Vec<&'static str>,
    random: Stream,
}

impl Tokens {
    fn new(law: EventLaw) -> Self {
        Self {
            nouns: NOUNS.split_whitespace().collect(),
            random: Seed(law.seed).stream("tokens"),
        }
    }

    fn next(&mut self, number: u32) -> String {
        let word = self.nouns[self.random.random_range(0..self.nouns.len())];
        match number {
            1 => word.to_owned(),
            _ => format!(" {word}"),
        }
    }
}

fn chunks(shop: Rc<ShopService>, chat: Chat) -> Response<ShopBody> {
    stream("text/event-stream", |outlet| async move {
        let count = StreamCount::begin(&shop, ReplyForm::Chat);
        let mut tokens = Tokens::new(chat.law);
        let write = |moment: &EventMoment| chat.chunk(moment, &tokens.next(moment.number));
        count.send(chat.law, &outlet, write).await;
        if chat.reports_usage {
            let mut usage = chat.envelope("chat.completion.chunk");
            usage["choices"] = json!([]);
            usage["usage"] = chat.usage();
            outlet.send(event(&usage)).await;
        }
        outlet.send(DONE.to_vec()).await;
        count.complete();
    })
}

impl Chat {
    fn envelope(&self, object: &str) -> Value {
        json!({
            "id": self.id,
            "object": object,
            "created": self.created,
            "model": self.model,
        })
    }

    fn usage(&self) -> Value {
        let tokens = u64::from(self.law.events);
        json!({
            "prompt_tokens": self.prompt,
            "completion_tokens": tokens,
            "total_tokens": self.prompt as u64 + tokens,
        })
    }

    /// A token as an event. Its moment is in a field that other clients ignore.
    fn chunk(&self, moment: &EventMoment, token: &str) -> Vec<u8> {
        let mut delta = json!({ "content": token });
        if moment.number == 1 {
            delta["role"] = json!("assistant");
        }
        let is_last = moment.number == self.law.events;
        let mut chunk = self.envelope("chat.completion.chunk");
        chunk["choices"] = json!([{
            "index": 0,
            "delta": delta,
            "finish_reason": is_last.then_some("length"),
        }]);
        chunk["bookshop"] = json!({
            "number": moment.number,
            "sent_ns": moment.sent_ns,
            "due_ns": moment.due_ns,
        });
        event(&chunk)
    }

    fn completion(&self) -> String {
        let mut tokens = Tokens::new(self.law);
        let content: String = (1..=self.law.events).map(|n| tokens.next(n)).collect();
        let mut reply = self.envelope("chat.completion");
        reply["choices"] = json!([{
            "index": 0,
            "message": { "role": "assistant", "content": content },
            "finish_reason": "length",
        }]);
        reply["usage"] = self.usage();
        reply.to_string()
    }
}

fn event(data: &Value) -> Vec<u8> {
    format!("data: {data}\n\n").into_bytes()
}

impl ChatError {
    /// The error in the form of the interface.
    fn reply(self) -> Response<ShopBody> {
        let error = json!({ "error": {
            "message": self.message,
            "type": "invalid_request_error",
            "param": self.field,
            "code": null,
        }});
        let mut reply = whole(self.status, JSON, error.to_string());
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            let allow = HeaderValue::from_static("POST");
            reply.headers_mut().insert(header::ALLOW, allow);
        }
        reply
    }
}
