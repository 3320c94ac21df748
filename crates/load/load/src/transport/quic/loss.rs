//! The outcome of requests whose connection ended, by the reason of its end.

use quinn_proto::{ConnectionError, TransportErrorCode};

use crate::outcome::Outcome;

/// First and last code of a TLS alert (RFC 9001, section 4.8).
const ALERTS: std::ops::RangeInclusive<u64> = 0x100..=0x1ff;
/// Alerts about a certificate, from bad_certificate to unknown_ca (RFC 8446, section 6.2).
const CERTIFICATE_ALERTS: std::ops::RangeInclusive<u64> = 0x12a..=0x130;

/// Returns the outcome of a connection that ended, and the reason.
pub(super) fn outcome(reason: &ConnectionError) -> (Outcome, String) {
    use ConnectionError as End;
    let outcome = match reason {
        End::VersionMismatch => Outcome::ProtocolError,
        End::TransportError(error) if ALERTS.contains(&error.code.into()) => Outcome::TlsFailed,
        End::TransportError(_) => Outcome::ProtocolError,
        End::ConnectionClosed(close) => match close.error_code {
            TransportErrorCode::CONNECTION_REFUSED => Outcome::Refused,
            code if ALERTS.contains(&code.into()) => Outcome::TlsFailed,
            _ => Outcome::Reset,
        },
        End::ApplicationClosed(_) | End::Reset | End::LocallyClosed => Outcome::Reset,
        End::TimedOut => Outcome::TimedOut,
        End::CidsExhausted => Outcome::ClientFailed,
    };
    (outcome, in_words(reason))
}

fn in_words(reason: &ConnectionError) -> String {
    use ConnectionError as End;
    match reason {
        End::VersionMismatch => {
            "the server has no version of QUIC that the generator has".to_owned()
        }
        End::TransportError(error) if CERTIFICATE_ALERTS.contains(&error.code.into()) => format!(
            "the server's certificate is refused: {}; trust it, or the authority that issued it, with --ca FILE, \
             or accept any certificate with --insecure",
            error.reason
        ),
        End::TransportError(error) => format!("the server violated QUIC: {error}"),
        End::ConnectionClosed(close) => format!("the server closed the connection: {close}"),
        End::ApplicationClosed(close) => format!(
            "the server closed the connection with code {:#x}{}",
            u64::from(close.error_code),
            quoted(&close.reason)
        ),
        End::Reset => "the server has no such connection (stateless reset)".to_owned(),
        End::TimedOut => "the connection was idle for longer than the server permits".to_owned(),
        End::LocallyClosed => "the generator closed the connection".to_owned(),
        End::CidsExhausted => "no connection identifier is free".to_owned(),
    }
}

/// The server's text for people, if it sent one.
fn quoted(text: &[u8]) -> String {
    match text {
        [] => String::new(),
        text => format!(": {:?}", String::from_utf8_lossy(text)),
    }
}
