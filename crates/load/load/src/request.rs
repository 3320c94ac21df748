//! Requests: described by a [`RequestSpec`], prepared once, written many times.
//!
//! A request without placeholders has one form for the whole run: bytes of HTTP/1, or numbered fields of HTTP/2. One
//! with `{{column}}` placeholders is rendered for each row of the data. Placeholders are checked against the columns
//! before the first request is sent.

pub(crate) mod data;
mod fetch;
pub(crate) mod grpc_request;
mod http1;
pub(crate) mod mix_file;
mod numbered;
mod placeholder;
pub(crate) mod soap;
mod template;

use posthaste_grpc_schema::JsonError;
use posthaste_http::streams::catalogue::{FieldCatalogue, InvalidField};
use posthaste_units::Span;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub(crate) use self::http1::Http1Request;
pub(crate) use self::numbered::NumberedRequest;
pub(crate) use self::placeholder::has_placeholders as has_placeholders_in;
use crate::exact;
use crate::grpc::GrpcCall;
use crate::request::data::Data;
use crate::target::{RequestTarget, TargetError};

/// One kind of request as a user describes it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestSpec {
    /// Name in reports.
    pub name: String,
    /// Its share of the mix, against the sum of all weights.
    #[serde(with = "exact::number")]
    pub weight: f64,
    /// Target URL. Path and query may contain placeholders.
    pub url: String,
    /// The method.
    pub method: String,
    /// Further header fields. Values may contain placeholders.
    pub headers: Vec<(String, String)>,
    /// The body. It may contain placeholders. For a gRPC call, its messages as JSON.
    pub body: String,
    /// The method that it calls, if it is a gRPC call.
    pub grpc: Option<GrpcCall>,
    /// Pause before the client's next request, in a closed loop.
    #[serde(with = "exact::nanos")]
    pub think: Span,
}

impl RequestSpec {
    /// Creates a GET of `url`.
    pub fn get(url: impl Into<String>) -> Self {
        let url = url.into();
        Self {
            name: url.clone(),
            weight: 1.0,
            url,
            method: "GET".to_owned(),
            headers: Vec::new(),
            body: String::new(),
            grpc: None,
            think: Span::ZERO,
        }
    }

    /// Creates a POST of `body` to `url`.
    pub fn post(url: impl Into<String>, content_type: &str, body: impl Into<String>) -> Self {
        Self {
            method: "POST".to_owned(),
            headers: vec![("Content-Type".to_owned(), content_type.to_owned())],
            body: body.into(),
            ..Self::get(url)
        }
    }

    /// Value of the first header field of this name, in any case.
    fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.headers.iter();
        let found = fields.find(|(given, _)| given.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// Reasons why a request cannot be made.
#[derive(Debug, Error)]
pub enum RequestError {
    /// The URL.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A template that cannot be parsed.
    #[error("{part} of {request}: {reason}")]
    Template {
        /// Name of the request.
        request: String,
        /// URL, header or body.
        part: &'static str,
        /// The error with its line.
        #[source]
        reason: minijinja::Error,
    },
    /// A placeholder without a column.
    #[error("{part} of {request} names {{{{{column}}}}}, {}", columns_are(columns))]
    UnknownColumn {
        /// Name of the request.
        request: String,
        /// URL, header or body.
        part: &'static str,
        /// The placeholder's name.
        column: String,
        /// The existing columns.
        columns: Vec<String>,
    },
    /// Two braces in a URL that begin no placeholder.
    #[error(
        "url of {request} has {text:?}, which is no placeholder: write {{{{column}}}}, or %7B%7B for two braces"
    )]
    StrayBraces {
        /// Name of the request.
        request: String,
        /// The text from the braces.
        text: String,
    },
    /// A method or header that HTTP does not permit, or a header that frames the body. The generator frames the body
    /// itself.
    #[error("{part} of {request} is not allowed: {text:?}")]
    NotHttp {
        /// Name of the request.
        request: String,
        /// Method, header name or value.
        part: &'static str,
        /// The text as given.
        text: String,
    },
    /// A header that HTTP/2 does not permit.
    #[error("header {name} of {request} is not allowed in HTTP/2: {reason}")]
    ForbiddenField {
        /// Name of the request.
        request: String,
        /// Name of the header.
        name: String,
        /// The rule.
        #[source]
        reason: InvalidField,
    },
    /// Messages that the method of a gRPC call does not have.
    #[error("message of {request}{}: {reason}", of_row(*row))]
    Message {
        /// Name of the request.
        request: String,
        /// Number of the row of the data, from 1, if the message has placeholders.
        row: Option<u64>,
        /// The error with its line.
        #[source]
        reason: JsonError,
    },
    /// Placeholders that cannot be filled.
    #[error("{request}{}: {reason}", of_row(Some(*row)))]
    Rendered {
        /// Name of the request.
        request: String,
        /// Number of the row of the data, from 1.
        row: u64,
        /// The error.
        reason: String,
    },
}

fn of_row(row: Option<u64>) -> String {
    row.map_or_else(String::new, |row| format!(" with row {row} of the data"))
}

fn columns_are(columns: &[String]) -> String {
    if columns.is_empty() {
        "but there is no data: add --data FILE.csv, or write {{\"{{\"}} for two braces".to_owned()
    } else {
        format!("but the data has the columns {}", columns.join(", "))
    }
}

/// A request ready to be sent.
pub(crate) struct Request {
    pub(crate) origin: usize,
    pub(crate) think: Span,
    pub(crate) form: RequestForm,
}

/// A request in the form of the plan's protocol.
pub(crate) enum RequestForm {
    Http1(Http1Request),
    Numbered(NumberedRequest),
}

/// Circumstances of all requests of a plan.
pub(crate) struct RequestContext<'p> {
    pub(crate) data: &'p Data,
    pub(crate) keep_alive: bool,
    /// The fields of all requests, if the protocol numbers them.
    pub(crate) catalogue: Option<FieldCatalogue>,
}

impl Request {
    /// Prepares `spec`. `origin` is its server's index in the run's list.
    pub(crate) fn prepare(
        spec: &RequestSpec,
        target: &RequestTarget,
        origin: usize,
        context: &mut RequestContext<'_>,
    ) -> Result<Self, RequestError> {
        check_http(spec)?;
        if let Some(text) = placeholder::stray_braces(&target.path) {
            return Err(RequestError::StrayBraces {
                request: spec.name.clone(),
                text: text.to_owned(),
            });
        }
        let form = match &mut context.catalogue {
            None => RequestForm::Http1(Http1Request::prepare(
                spec,
                target,
                context.keep_alive,
                context.data,
            )?),
            Some(catalogue) => RequestForm::Numbered(NumberedRequest::prepare(
                spec,
                target,
                catalogue,
                context.data,
            )?),
        };
        Ok(Self {
            origin,
            think: spec.think,
            form,
        })
    }

    /// The request for a connection of HTTP/1.
    pub(crate) fn http1(&self) -> &Http1Request {
        match &self.form {
            RequestForm::Http1(request) => request,
            RequestForm::Numbered(_) => unreachable!("a plan has one protocol"),
        }
    }

    /// The request for a connection of HTTP/2.
    pub(crate) fn numbered(&self) -> &NumberedRequest {
        match &self.form {
            RequestForm::Numbered(request) => request,
            RequestForm::Http1(_) => unreachable!("a plan has one protocol"),
        }
    }
}

fn check_http(spec: &RequestSpec) -> Result<(), RequestError> {
    let token = |text: &str| {
        !text.is_empty()
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
    };
    let refuse = |part, text: &str| {
        Err(RequestError::NotHttp {
            request: spec.name.clone(),
            part,
            text: text.to_owned(),
        })
    };
    if !token(&spec.method) {
        return refuse("method", &spec.method);
    }
    for (name, value) in &spec.headers {
        let framing = ["content-length", "transfer-encoding"];
        if !token(name) || framing.contains(&name.to_ascii_lowercase().as_str()) {
            return refuse("header name", name);
        }
        if value.bytes().any(|b| b == b'\r' || b == b'\n' || b == 0) {
            return refuse("header value", value);
        }
    }
    Ok(())
}

/// Header fields that each request has unless the user sets them.
fn default_fields(spec: &RequestSpec) -> impl Iterator<Item = (&'static str, &'static str)> {
    const DEFAULTS: [(&str, &str); 2] = [
        (
            "User-Agent",
            concat!("posthaste/", env!("CARGO_PKG_VERSION")),
        ),
        ("Accept", "*/*"),
    ];
    let is_absent = |field: &(&str, &str)| {
        // gRPC has no negotiation of the content.
        let is_usual = spec.grpc.is_none() || field.0 != "Accept";
        is_usual && spec.header(field.0).is_none()
    };
    DEFAULTS.into_iter().filter(is_absent)
}

/// True if a part of the request has placeholders.
fn has_placeholders(spec: &RequestSpec, path: &str) -> bool {
    let values = spec.headers.iter().map(|(_, value)| value.as_str());
    let mut parts = [spec.body.as_str(), path].into_iter().chain(values);
    parts.any(placeholder::has_placeholders)
}

fn carries_body(spec: &RequestSpec) -> bool {
    !spec.body.is_empty() || matches!(&*spec.method, "POST" | "PUT" | "PATCH")
}

/// True if the request has Content-Length. A gRPC call has none.
fn states_length(spec: &RequestSpec) -> bool {
    carries_body(spec) && spec.grpc.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepare(spec: &RequestSpec, data: &Data) -> Result<Request, RequestError> {
        let target = RequestTarget::look_up(&spec.url, &[])?;
        let mut context = RequestContext {
            data,
            keep_alive: false,
            catalogue: None,
        };
        Request::prepare(spec, &target, 0, &mut context)
    }

    fn written(spec: &RequestSpec, data: &Data, row: u64) -> String {
        let mut bytes = Vec::new();
        prepare(spec, data)
            .unwrap()
            .http1()
            .write(data, row, &mut bytes)
            .unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn filters_write_json_and_parts_of_queries() {
        let data = Data::read("title\n\"5\"\" disk & C#\"\n".as_bytes()).unwrap();
        let url = "http://127.0.0.1:9/{{title}}?q={{title|urlencode}}";
        let mut spec = RequestSpec::post(url, "application/json", "{\"title\": {{title|tojson}}}");
        spec.name = "json".to_owned();
        let wire = written(&spec, &data, 0);
        assert!(
            wire.starts_with("POST /5%22%20disk%20&%20C%23?q=5%22%20disk%20%26%20C%23 HTTP"),
            "{wire}"
        );
        let (_, body) = wire.split_once("\r\n\r\n").unwrap();
        let read: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(read["title"], "5\" disk & C#");
    }

    #[test]
    fn a_plain_request() {
        let wire = written(
            &RequestSpec::get("http://127.0.0.1:9/a?b"),
            &Data::none(),
            0,
        );
        assert!(
            wire.starts_with("GET /a?b HTTP/1.1\r\nHost: 127.0.0.1:9\r\n"),
            "{wire}"
        );
        assert!(wire.contains("\r\nConnection: close\r\n") && wire.ends_with("\r\n\r\n"));
        assert!(!wire.contains("Content-Length"));
    }

    #[test]
    fn placeholders_are_filled_and_escaped_for_their_place() {
        let data = Data::read("isbn,title\n1,a b\n2,\"x<&>\"\n".as_bytes()).unwrap();
        let mut spec = RequestSpec::post(
            "http://127.0.0.1/{{isbn}}?t={{title}}",
            "text/xml",
            "<t>{{title}}</t>\n",
        );
        spec.headers
            .push(("X-Isbn".to_owned(), "{{isbn}}".to_owned()));
        let first = written(&spec, &data, 0);
        assert!(first.starts_with("POST /1?t=a%20b HTTP/1.1\r\n"), "{first}");
        assert!(first.contains("X-Isbn: 1\r\n") && first.ends_with("\r\n\r\n<t>a b</t>\n"));
        let second = written(&spec, &data, 1);
        assert!(second.ends_with("<t>x&lt;&amp;&gt;</t>\n"), "{second}");
        let length = second.split("\r\n\r\n").nth(1).unwrap().len();
        assert!(second.contains(&format!("Content-Length: {length}\r\n")));
        assert_eq!(written(&spec, &data, 2), first, "rows begin again");
    }

    #[test]
    fn a_missing_column_is_named_before_anything_is_sent() {
        let data = Data::read("isbn\n1\n".as_bytes()).unwrap();
        let error_with = |url: &str, data: &Data| {
            let prepared = prepare(&RequestSpec::get(url), data);
            prepared.err().unwrap().to_string()
        };
        let column = error_with("http://127.0.0.1/{{ibsn}}", &data);
        assert!(
            column.contains("{{ibsn}}") && column.contains("columns isbn"),
            "{column}"
        );
        let no_data = error_with("http://127.0.0.1/{{ibsn}}", &Data::none());
        assert!(no_data.contains("--data"), "{no_data}");
        let filter = error_with("http://127.0.0.1/{{isbn|jsn}}", &data);
        assert!(filter.contains("jsn"), "{filter}");
        let open = error_with("http://127.0.0.1/{{isbn", &data);
        assert!(open.contains("{{isbn") && open.contains("%7B"), "{open}");
    }

    #[test]
    fn a_body_without_placeholders_is_sent_as_it_is() {
        let data = Data::read("isbn\n  both  \n".as_bytes()).unwrap();
        let body = "{\"css\":\"a{#id} b\",\"z\":\"#}\",\"x\":\"{% {{\"}\n";
        let spec = RequestSpec::post("http://127.0.0.1/{{isbn}}", "text/plain", body);
        let wire = written(&spec, &data, 0);
        assert!(wire.starts_with("POST /%20%20both%20%20 HTTP"), "{wire}");
        assert_eq!(wire.split_once("\r\n\r\n").unwrap().1, body);
    }

    #[test]
    fn two_braces_need_no_data() {
        let body = "{{\"{{\"}}isbn}}";
        let spec = RequestSpec::post("http://127.0.0.1/", "text/plain", body);
        let wire = written(&spec, &Data::none(), 0);
        assert!(wire.ends_with("\r\n\r\n{{isbn}}"), "{wire}");
    }

    #[test]
    fn headers_cannot_break_out() {
        let mut spec = RequestSpec::get("http://127.0.0.1/");
        spec.headers.push(("X".to_owned(), "a\r\nY: b".to_owned()));
        assert!(prepare(&spec, &Data::none()).is_err());
        spec.headers[0] = ("X Y".to_owned(), "a".to_owned());
        assert!(prepare(&spec, &Data::none()).is_err());
        spec.headers[0] = ("Content-Length".to_owned(), "7".to_owned());
        assert!(prepare(&spec, &Data::none()).is_err());
        spec.headers.clear();
        spec.method = "GET /".to_owned();
        assert!(prepare(&spec, &Data::none()).is_err());
    }
}
