//! Requests, replies and orders as messages of NATS.

use std::time::Duration;

use async_nats::{HeaderMap, Message, Request, RequestErrorKind};
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::nats::connection::Connection;
use crate::protocol::envelope::{
    BodyCoding, CONTENT_ENCODING, EncodedMessage, MessageError, decode, encode,
};

/// A failed exchange of messages.
#[derive(Debug, Error)]
pub enum TrafficError {
    /// Nobody there.
    #[error("it does not listen: is it running?")]
    NoResponder,
    /// No reply.
    #[error("no reply within {0:?}")]
    Late(Duration),
    /// Too long for the server.
    #[error("the message has {bytes} bytes, and this server's limit is {most}: raise max_payload")]
    TooLong {
        /// Its length.
        bytes: usize,
        /// Half of the server's limit.
        most: usize,
    },
    /// Not understood.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// A failure of the client.
    #[error("the message could not be sent: {0}")]
    Client(String),
}

/// Sends a request and reads its reply.
pub(crate) async fn request<T: Serialize, R: DeserializeOwned>(
    connection: &Connection,
    subject: String,
    message: &T,
    limit: Duration,
) -> Result<R, TrafficError> {
    let (headers, body) = encoded(connection, message)?;
    let mut request = Request::new().payload(body.into()).timeout(Some(limit));
    if let Some(headers) = headers {
        request = request.headers(headers);
    }
    let reply = exchange(connection, subject, request, limit).await?;
    read(&reply)
}

/// Sends a request without a format, and returns the reply.
pub(crate) async fn exchange(
    connection: &Connection,
    subject: String,
    request: Request,
    limit: Duration,
) -> Result<Message, TrafficError> {
    let sent = connection.client().send_request(subject, request);
    // The outer limit holds for the queue of the client, too.
    let reply = tokio::time::timeout(limit, sent).await;
    let reply = reply.map_err(|_| TrafficError::Late(limit))?;
    reply.map_err(|error| match error.kind() {
        RequestErrorKind::NoResponders => TrafficError::NoResponder,
        RequestErrorKind::TimedOut => TrafficError::Late(limit),
        _ => TrafficError::Client(error.to_string()),
    })
}

/// Publishes a message, and waits until the client has sent it.
pub(crate) async fn publish<T: Serialize>(
    connection: &Connection,
    subject: String,
    message: &T,
    limit: Duration,
) -> Result<(), TrafficError> {
    let (headers, body) = encoded(connection, message)?;
    let failed = |error: &dyn std::fmt::Display| TrafficError::Client(error.to_string());
    let client = connection.client();
    let sent = async {
        let published = match headers {
            Some(headers) => {
                client
                    .publish_with_headers(subject, headers, body.into())
                    .await
            }
            None => client.publish(subject, body.into()).await,
        };
        published.map_err(|error| failed(&error))?;
        client.flush().await.map_err(|error| failed(&error))
    };
    let sent = tokio::time::timeout(limit, sent).await;
    sent.map_err(|_| TrafficError::Late(limit))?
}

/// Reads a message.
pub(crate) fn read<T: DeserializeOwned>(message: &Message) -> Result<T, TrafficError> {
    let headers = message.headers.as_ref();
    let coding = headers.and_then(|headers| headers.get(CONTENT_ENCODING));
    let coding = BodyCoding::from_header(coding.map(|value| value.as_str()))?;
    Ok(decode(&message.payload, coding)?)
}

/// Encodes a message, and checks that the server accepts its length.
pub(crate) fn encoded<T: Serialize>(
    connection: &Connection,
    message: &T,
) -> Result<(Option<HeaderMap>, Vec<u8>), TrafficError> {
    let EncodedMessage { body, coding } = encode(message)?;
    let (bytes, most) = (body.len(), connection.max_message());
    if bytes > most {
        return Err(TrafficError::TooLong { bytes, most });
    }
    let headers = coding.header().map(|coding| {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_ENCODING, coding);
        headers
    });
    Ok((headers, body))
}
