//! Requests: described by a [`RequestSpec`], prepared once, written many times.
//!
//! A request without placeholders is one slice of bytes for the whole run. One with `{{column}}` placeholders is
//! rendered for each row of the data. Placeholders are checked against the columns before the first request is sent.

use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, Value};
use posthaste_units::Span;
use thiserror::Error;

use crate::data::Data;
use crate::target::{RequestTarget, TargetError};

/// One kind of request as a user describes it.
#[derive(Clone, Debug)]
pub struct RequestSpec {
    /// Name in reports.
    pub name: String,
    /// Its share of the mix, against the sum of all weights.
    pub weight: f64,
    /// Target URL. Path and query may contain placeholders.
    pub url: String,
    /// The method.
    pub method: String,
    /// Further header fields. Values may contain placeholders.
    pub headers: Vec<(String, String)>,
    /// The body. It may contain placeholders.
    pub body: String,
    /// Pause before the client's next request, in a closed loop.
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
    /// A method or header that HTTP does not permit, or a header that frames the body. The generator frames the body
    /// itself.
    #[error("{what} of {request} is not allowed: {text:?}")]
    NotHttp {
        /// Name of the request.
        request: String,
        /// Method, header name or value.
        what: &'static str,
        /// The text as given.
        text: String,
    },
}

fn columns_are(columns: &[String]) -> String {
    if columns.is_empty() {
        "but there is no data: add --data FILE.csv".to_owned()
    } else {
        format!("but the data has the columns {}", columns.join(", "))
    }
}

/// A request ready to be written.
pub(crate) struct Request {
    pub(crate) weight: f64,
    pub(crate) origin: usize,
    pub(crate) head: bool,
    pub(crate) think: Span,
    wire: RequestBytes,
}

enum RequestBytes {
    Fixed(Vec<u8>),
    Rendered(Box<Template>),
}

struct Template {
    environment: Environment<'static>,
    method: String,
    fixed_fields: String,
    headers: Vec<String>,
    has_body: bool,
}

impl Request {
    /// Appends the bytes of the request for row `row` of the data.
    ///
    /// If rendering fails, nothing is appended and the reason is returned. After the check of the names it can fail
    /// only for lack of memory.
    pub(crate) fn write(&self, data: &Data, row: u64, out: &mut Vec<u8>) -> Result<(), String> {
        match &self.wire {
            RequestBytes::Fixed(bytes) => out.extend_from_slice(bytes),
            RequestBytes::Rendered(template) => template.render(&data.row(row), out)?,
        }
        Ok(())
    }

    /// Returns the bytes, if they are the same for every request.
    pub(crate) fn fixed(&self) -> Option<&[u8]> {
        match &self.wire {
            RequestBytes::Fixed(bytes) => Some(bytes),
            RequestBytes::Rendered(_) => None,
        }
    }

    /// Prepares `spec`. `origin` is its server's index in the run's list.
    pub(crate) fn prepare(
        spec: &RequestSpec,
        target: &RequestTarget,
        origin: usize,
        keep_alive: bool,
        data: &Data,
    ) -> Result<Self, RequestError> {
        check_http(spec)?;
        let fields = fixed_fields(spec, target, keep_alive);
        let placeholders = [&spec.body, &target.path]
            .into_iter()
            .chain(spec.headers.iter().map(|(_, value)| value))
            .any(|text| text.contains("{{") || text.contains("{%"));
        let wire = if placeholders {
            RequestBytes::Rendered(Box::new(Template::compile(
                spec,
                &target.path,
                fields,
                data,
            )?))
        } else {
            RequestBytes::Fixed(assemble(spec, &target.path, &fields))
        };
        Ok(Self {
            weight: spec.weight,
            origin,
            head: spec.method == "HEAD",
            think: spec.think,
            wire,
        })
    }
}

fn check_http(spec: &RequestSpec) -> Result<(), RequestError> {
    let token = |text: &str| {
        !text.is_empty()
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
    };
    let refuse = |what, text: &str| {
        Err(RequestError::NotHttp {
            request: spec.name.clone(),
            what,
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

/// Header fields that are the same for each request: Host, and defaults that the user did not set.
fn fixed_fields(spec: &RequestSpec, target: &RequestTarget, keep_alive: bool) -> String {
    let given = |name: &str| {
        spec.headers
            .iter()
            .any(|(n, _)| n.eq_ignore_ascii_case(name))
    };
    let mut fields = String::new();
    let mut add = |name: &str, value: &str| {
        if !given(name) {
            fields.push_str(name);
            fields.push_str(": ");
            fields.push_str(value);
            fields.push_str("\r\n");
        }
    };
    add("Host", &target.origin.authority());
    add(
        "User-Agent",
        concat!("posthaste/", env!("CARGO_PKG_VERSION")),
    );
    add("Accept", "*/*");
    if !keep_alive {
        add("Connection", "close");
    }
    fields
}

fn carries_body(method: &str, body: &str) -> bool {
    !body.is_empty() || matches!(method, "POST" | "PUT" | "PATCH")
}

fn assemble(spec: &RequestSpec, path: &str, fields: &str) -> Vec<u8> {
    let mut bytes = format!("{} {path} HTTP/1.1\r\n{fields}", spec.method);
    for (name, value) in &spec.headers {
        bytes.push_str(&format!("{name}: {value}\r\n"));
    }
    if carries_body(&spec.method, &spec.body) {
        bytes.push_str(&format!("Content-Length: {}\r\n", spec.body.len()));
    }
    bytes.push_str("\r\n");
    bytes.push_str(&spec.body);
    bytes.into_bytes()
}

const BODY: &str = "body";
const PATH: &str = "url";

impl Template {
    fn compile(
        spec: &RequestSpec,
        path: &str,
        fixed_fields: String,
        data: &Data,
    ) -> Result<Self, RequestError> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        let mut syntax = SyntaxConfig::builder();
        syntax.keep_trailing_newline(true);
        if let Ok(syntax) = syntax.build() {
            environment.set_syntax(syntax);
        }
        let xml = spec.body.trim_start_matches('\u{feff}').trim_start();
        let xml = xml.starts_with('<');
        environment.set_auto_escape_callback(move |name| match name {
            BODY if xml => AutoEscape::Html,
            _ => AutoEscape::None,
        });
        let placeholders = data.placeholders();
        let mut add = |name: String, part: &'static str, text: &str| {
            let template = |reason| RequestError::Template {
                request: spec.name.clone(),
                part,
                reason,
            };
            environment
                .add_template_owned(name.clone(), text.to_owned())
                .map_err(template)?;
            let compiled = environment.get_template(&name).map_err(template)?;
            let unknown = compiled
                .undeclared_variables(false)
                .into_iter()
                .find(|name| !placeholders.contains(name));
            match unknown {
                None => Ok(()),
                Some(column) => Err(RequestError::UnknownColumn {
                    request: spec.name.clone(),
                    part,
                    column,
                    columns: placeholders.clone(),
                }),
            }
        };
        add(PATH.to_owned(), PATH, path)?;
        add(BODY.to_owned(), BODY, &spec.body)?;
        for (number, (_, value)) in spec.headers.iter().enumerate() {
            add(header_name(number), "header", value)?;
        }
        Ok(Self {
            environment,
            method: spec.method.clone(),
            fixed_fields,
            headers: spec.headers.iter().map(|(name, _)| name.clone()).collect(),
            has_body: carries_body(&spec.method, &spec.body),
        })
    }

    fn render(&self, row: &Value, out: &mut Vec<u8>) -> Result<(), String> {
        let part = |name: &str| {
            self.environment
                .get_template(name)
                .and_then(|template| template.render(row.clone()))
                .map_err(|error| error.to_string())
        };
        let path: String = part(PATH)?.chars().flat_map(escape_in_path).collect();
        let body = part(BODY)?;
        let mut head = format!("{} {path} HTTP/1.1\r\n{}", self.method, self.fixed_fields);
        for (number, name) in self.headers.iter().enumerate() {
            let value = part(&header_name(number))?.replace(['\r', '\n', '\0'], " ");
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if self.has_body {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        head.push_str("\r\n");
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(body.as_bytes());
        Ok(())
    }
}

fn header_name(number: usize) -> String {
    format!("header-{number}")
}

/// Percent-encodes characters that would end the request line or are not ASCII. Leaves `/?&=%` unchanged.
fn escape_in_path(c: char) -> Vec<char> {
    if c.is_ascii_graphic() && !matches!(c, '"' | '<' | '>' | '#') {
        return vec![c];
    }
    let mut bytes = [0; 4];
    let encoded = c.encode_utf8(&mut bytes);
    encoded
        .bytes()
        .flat_map(|byte| format!("%{byte:02X}").chars().collect::<Vec<_>>())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepare(spec: &RequestSpec, data: &Data) -> Result<Request, RequestError> {
        let target = RequestTarget::look_up(&spec.url, &[])?;
        Request::prepare(spec, &target, 0, false, data)
    }

    fn written(spec: &RequestSpec, data: &Data, row: u64) -> String {
        let mut bytes = Vec::new();
        prepare(spec, data)
            .unwrap()
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
        let spec = RequestSpec::get("http://127.0.0.1/{{ibsn}}");
        let error = prepare(&spec, &data).err().unwrap().to_string();
        assert!(
            error.contains("{{ibsn}}") && error.contains("columns isbn"),
            "{error}"
        );
        let error = prepare(&spec, &Data::none()).err().unwrap().to_string();
        assert!(error.contains("--data"), "{error}");
        let broken = RequestSpec::get("http://127.0.0.1/{{isbn");
        assert!(prepare(&broken, &data).is_err());
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
