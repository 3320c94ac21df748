//! Requests that call a method of gRPC: the schema with the method, and the request.
//!
//! | module | content |
//! |---|---|
//! | [`schema`](SchemaSource) | `.proto` files, a descriptor set or server reflection, and the method in them |
//! | `reflection` | A blocking call of server reflection before the run begins |

mod reflection;
mod schema;

use std::path::PathBuf;

use posthaste_grpc_schema::{MethodError, SchemaError};
use posthaste_units::Span;
use thiserror::Error;
use url::Url;

pub use self::schema::{ReflectedServer, SchemaSource};
use crate::cause::Cause;
use crate::grpc::GrpcCall;
use crate::request::RequestSpec;
use crate::target::TargetError;
use crate::transport::tls::TlsError;

/// Longest value of `grpc-timeout`: eight digits and a unit.
const MOST_DIGITS: u64 = 99_999_999;

/// Reasons why a method cannot be called.
#[derive(Debug, Error)]
pub enum GrpcCallError {
    /// A file that cannot be read.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error.
        #[source]
        reason: std::io::Error,
    },
    /// Files that are not a schema.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// No such method.
    #[error(transparent)]
    Method(#[from] MethodError),
    /// A method with streams in both directions.
    #[error(
        "{0} has streams in both directions, whose next message may depend on a reply: a load is possible for unary, \
         server-streaming and client-streaming methods"
    )]
    Bidirectional(String),
    /// A URL that names more than a server.
    #[error("{url}: the method is the path of a call; write {server} and the method after --grpc")]
    Path {
        /// The URL as given.
        url: String,
        /// The URL without a path.
        server: String,
    },
    /// A URL that is none.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// TLS that cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The server cannot be reached for its schema.
    #[error("{server}: {reason}; without a server, --proto FILE or --protoset FILE has the schema")]
    Connect {
        /// Its address.
        server: String,
        /// The error.
        #[source]
        reason: Cause,
    },
    /// The server does not tell its schema.
    #[error(
        "{server} does not answer server reflection ({reason}): give its schema with --proto FILE or --protoset FILE"
    )]
    NoReflection {
        /// Its address.
        server: String,
        /// The reason.
        reason: String,
    },
    /// The server's schema is of no use.
    #[error("{server}: {reason}")]
    Reflection {
        /// Its address.
        server: String,
        /// The error, with the nearest name if there is no such service.
        #[source]
        reason: posthaste_grpc_schema::reflection::ReflectionError,
    },
}

/// Makes the request of a call. `message` is JSON; with a stream of requests, a list of messages or one after the other.
/// `timeout` is the deadline that the server learns.
pub fn grpc_request(
    call: &GrpcCall,
    server: &str,
    message: &str,
    timeout: Span,
) -> Result<RequestSpec, GrpcCallError> {
    let url = format!("{}/{}", server_of(server)?, call.name());
    let mut request = RequestSpec::post(url, "application/grpc", message);
    request.name = call.name();
    let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    request.headers.push(field("te", "trailers"));
    request
        .headers
        .push(field("grpc-timeout", &deadline(timeout)));
    request.grpc = Some(call.clone());
    Ok(request)
}

/// The URL of a server without its last slash. A path is an error.
fn server_of(url: &str) -> Result<&str, GrpcCallError> {
    let with_scheme = if url.contains("://") {
        url.to_owned()
    } else {
        format!("http://{url}")
    };
    let server = url.trim_end_matches('/');
    match Url::parse(&with_scheme) {
        Ok(parsed) if parsed.path() != "/" || parsed.query().or(parsed.fragment()).is_some() => {
            Err(GrpcCallError::Path {
                url: url.to_owned(),
                server: parsed.origin().ascii_serialization(),
            })
        }
        // The look-up of the target describes everything else.
        _ => Ok(server),
    }
}

/// The value of `grpc-timeout`: the finest unit that has a number of at most eight digits. Rounded up, so that the
/// server's deadline is not before ours.
fn deadline(timeout: Span) -> String {
    let nanos = timeout.as_nanos();
    for (unit, letter) in [
        (1, 'n'),
        (1_000, 'u'),
        (1_000_000, 'm'),
        (1_000_000_000, 'S'),
        (60_000_000_000, 'M'),
    ] {
        let number = nanos.div_ceil(unit);
        if number <= MOST_DIGITS {
            return format!("{number}{letter}");
        }
    }
    let hours = nanos.div_ceil(3_600_000_000_000).min(MOST_DIGITS);
    format!("{hours}H")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_are_written_in_the_finest_unit_and_never_shortened() {
        for (span, written) in [
            (Span::from_nanos(7), "7n"),
            (Span::from_millis(500), "500000u"),
            (Span::from_secs(30), "30000000u"),
            (Span::from_secs(100), "100000m"),
            (Span::from_nanos(100_000_001), "100001u"),
            (Span::from_secs(100_000), "100000S"),
            (Span::from_secs(100_000_000), "1666667M"),
            (Span::MAX, "5124096H"),
        ] {
            assert_eq!(deadline(span), written, "{span}");
        }
    }

    #[test]
    fn a_url_names_a_server_only() {
        assert_eq!(server_of("http://a:1/").unwrap(), "http://a:1");
        assert_eq!(server_of("127.0.0.1:8080").unwrap(), "127.0.0.1:8080");
        for url in ["http://a:1/shop.Shop/Get", "http://a:1/?q", "http://a:1/#x"] {
            let error = server_of(url).unwrap_err().to_string();
            assert!(error.contains("http://a:1 and"), "{error}");
        }
    }
}
