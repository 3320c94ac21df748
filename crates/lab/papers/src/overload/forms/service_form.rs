//! The forms of the service: the same book, requested and sent in five ways.

use std::net::SocketAddr;

use posthaste_bookshop::NAMESPACE;
use posthaste_grpc_schema::Method;
use posthaste_http::grpc::write_frame;
use posthaste_load::{GrpcCall, RequestSpec, grpc_request, soap_request};
use posthaste_study::Failure;
use posthaste_units::Span;

/// Deadline of a call, as its server learns it.
const DEADLINE: Span = Span::from_secs(10);

/// A form of the service, with its version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServiceForm {
    /// SOAP 1.1 over HTTP/1.1: the paper's Web service.
    Soap,
    /// HTML over HTTP/1.1: the paper's page.
    Page,
    /// JSON over HTTP/1.1.
    Json,
    /// JSON over HTTP/2.
    JsonHttp2,
    /// gRPC, which needs HTTP/2.
    Grpc,
}

impl ServiceForm {
    /// All forms, in the order of pictures.
    pub(super) const ALL: [Self; 5] = [
        Self::Soap,
        Self::Page,
        Self::Json,
        Self::JsonHttp2,
        Self::Grpc,
    ];

    /// Name in pictures and sentences.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Soap => "SOAP",
            Self::Page => "page",
            Self::Json => "JSON",
            Self::JsonHttp2 => "JSON over HTTP/2",
            Self::Grpc => "gRPC",
        }
    }

    /// Name in records.
    pub(super) const fn key(self) -> &'static str {
        match self {
            Self::Soap => "soap",
            Self::Page => "page",
            Self::Json => "json",
            Self::JsonHttp2 => "json-http2",
            Self::Grpc => "grpc",
        }
    }

    /// Name in the shop's metrics.
    pub(super) const fn metric(self) -> &'static str {
        match self {
            Self::Json | Self::JsonHttp2 => "json",
            _ => self.key(),
        }
    }

    pub(super) const fn is_http2(self) -> bool {
        matches!(self, Self::JsonHttp2 | Self::Grpc)
    }

    /// The request for the book. Over HTTP/2 the path of JSON has the placeholder `{{isbn}}` of the plan's data, which
    /// the generator sends as text each time: as a constant path it would cost one byte from the second request on,
    /// and clients ask for different books. The path of a call is the same for all books.
    pub(super) fn request(self, address: SocketAddr, isbn: &str) -> Result<RequestSpec, Failure> {
        let url = format!("http://{address}");
        Ok(match self {
            Self::Soap => {
                let content =
                    format!("<BookLite xmlns=\"{NAMESPACE}\"><isbn>{isbn}</isbn></BookLite>");
                let action = format!("{NAMESPACE}/BookLite");
                let version = posthaste_soap::Version::Soap11;
                soap_request(&format!("{url}/soap"), version, &action, &content)
            }
            Self::Page => RequestSpec::get(format!("{url}/page/{isbn}")),
            Self::Json => RequestSpec::get(format!("{url}/json/{isbn}")),
            Self::JsonHttp2 => RequestSpec::get(format!("{url}/json/{{{{isbn}}}}")),
            Self::Grpc => call(&url, isbn)?,
        })
    }

    /// The same request for a client that knows no placeholders and no calls.
    pub(super) fn sample(self, address: SocketAddr, isbn: &str) -> Result<RequestSpec, Failure> {
        if self == Self::Grpc {
            return raw_call(&format!("http://{address}"), isbn);
        }
        let mut request = self.request(address, isbn)?;
        request.url = request.url.replace("{{isbn}}", isbn);
        Ok(request)
    }
}

/// The method of the shop that answers the question.
pub(super) fn method() -> Result<Method, Failure> {
    Ok(posthaste_bookshop::schema()?.find("bookshop.v1.Bookshop/GetBook")?)
}

/// The call in timed runs. A reply is good only with status 0 in its trailers and exactly one message.
fn call(url: &str, isbn: &str) -> Result<RequestSpec, Failure> {
    let method = GrpcCall::new(method()?).expect("the method is unary");
    Ok(grpc_request(&method, url, &message(isbn), DEADLINE)?)
}

/// The message of a call, in JSON.
fn message(isbn: &str) -> String {
    format!("{{\"isbn\":\"{isbn}\"}}")
}

/// A call as a request of HTTP/2: its body is the message with its prefix.
fn raw_call(url: &str, isbn: &str) -> Result<RequestSpec, Failure> {
    let method = method()?;
    let message = method.encode_request(&message(isbn))?;
    let mut body = Vec::new();
    write_frame(&mut body, &message);
    // All bytes are ASCII: the lengths are below 128.
    let body = String::from_utf8(body)?;
    let url = format!("{url}{}", method.path());
    let mut request = RequestSpec::post(url, "application/grpc", body);
    let field = ("TE".to_owned(), "trailers".to_owned());
    request.headers.push(field);
    Ok(request)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_the_message_with_its_prefix() {
        let address = ([127, 0, 0, 1], 9).into();
        let request = ServiceForm::Grpc.sample(address, "0306406152").unwrap();
        assert_eq!(request.body, "\0\0\0\0\u{c}\n\n0306406152");
        assert!(request.url.ends_with("/bookshop.v1.Bookshop/GetBook"));
    }
}
