//! Events of a connection, in the order of the received frames.

use crate::streams::error_code::StreamErrorCode;

/// The server did not process a request (RFC 9113, section 8.7; RFC 9114, section 4.1.1). It may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamRejection {
    /// A reset with REFUSED_STREAM or H3_REQUEST_REJECTED.
    Refused,
    /// GOAWAY that excludes the stream.
    GoAway,
}

/// The end of a stream, as the server caused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// The reply is complete.
    Complete,
    /// A reset before the end of the reply, with any code except a rejection before any reply.
    Reset(StreamErrorCode),
    /// The server states that it did not process the request.
    Rejected(StreamRejection),
    /// The reply violates the protocol. The stream has been reset with this code.
    Malformed {
        /// Code of the reset.
        code: StreamErrorCode,
        /// The violation.
        reason: &'static str,
    },
}

/// An event that concerns no single stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionEvent<'a> {
    /// SETTINGS of the server took effect.
    SettingsChanged,
    /// The server permits this number of concurrent streams. In HTTP/3 the limit belongs to QUIC.
    Limit(u32),
    /// The server closes the connection. Streams from `first_rejected` on without any reply end as
    /// [`StreamEnd::Rejected`]; the others continue.
    GoAway {
        /// First stream identifier that the server does not process.
        first_rejected: u64,
        /// The reason. H3_NO_ERROR in HTTP/3, whose GOAWAY has none.
        code: StreamErrorCode,
        /// Further text of the server, for people. Empty in HTTP/3.
        debug: &'a [u8],
    },
}

/// Receiver of the events. Each token gets at most one [`end`](EventSink::end), and nothing after it.
///
/// A reply is: any number of `interim`, one `head`, its fields, one `head_end`, any number of `body`, optionally
/// trailers, one `end`. An end with a fault can follow at each point. Names and values are valid during the call.
pub trait EventSink {
    /// An interim reply (status 100 to 199). Its fields are checked and not reported.
    fn interim(&mut self, token: u32, status: u16) {
        let _ = (token, status);
    }

    /// The status of the reply.
    fn head(&mut self, token: u32, status: u16);

    /// A field of the reply. The name is in lower case.
    fn field(&mut self, token: u32, name: &[u8], value: &[u8]) {
        let _ = (token, name, value);
    }

    /// All fields of the reply were reported and are valid.
    fn head_end(&mut self, token: u32) {
        let _ = token;
    }

    /// Bytes of the content, as they arrive.
    fn body(&mut self, token: u32, bytes: &[u8]);

    /// A field of the trailers.
    fn trailer(&mut self, token: u32, name: &[u8], value: &[u8]) {
        let _ = (token, name, value);
    }

    /// The stream ended. The token is free.
    fn end(&mut self, token: u32, end: StreamEnd);

    /// An event of the connection.
    fn connection(&mut self, event: ConnectionEvent<'_>) {
        let _ = event;
    }
}
