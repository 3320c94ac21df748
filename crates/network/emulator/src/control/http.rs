//! Requests and replies of a control as bytes: HTTP/1.1 (RFC 9112), one request per connection.
//!
//! No sockets: the caller reads more bytes until there is a request or a reply.

use httparse::Status;

/// Maximum number of bytes of a request's head.
pub const HEAD_LIMIT: usize = 8 << 10;
/// Maximum number of bytes of a request's body.
pub const BODY_LIMIT: usize = 4 << 10;
/// Maximum number of fields of a head.
const FIELDS: usize = 64;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ControlRequest {
    /// `GET /`: the present values and the changes so far.
    State,
    /// `PATCH /` or `POST /`: a change as text.
    Change(String),
}

/// A reply. It ends its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ControlReply {
    status: (u16, &'static str),
    content_type: &'static str,
    body: String,
}

impl ControlReply {
    /// A JSON document.
    pub(super) fn json(document: &impl serde::Serialize) -> Self {
        let json = serde_json::to_string_pretty(document);
        Self {
            status: (200, "OK"),
            content_type: "application/json",
            body: json.expect("a document has no maps with odd keys") + "\n",
        }
    }

    /// The reason why a request was not carried out.
    pub(super) fn refusal(status: (u16, &'static str), why: &str) -> Self {
        Self {
            status,
            content_type: "text/plain; charset=utf-8",
            body: format!("{why}\n"),
        }
    }

    /// The reply as it is sent.
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let Self {
            status: (code, reason),
            content_type,
            body,
        } = self;
        let length = body.len();
        let allow = if *code == 405 {
            "Allow: GET, PATCH, POST\r\n"
        } else {
            ""
        };
        let head = format!(
            "HTTP/1.1 {code} {reason}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\
             {allow}Connection: close\r\n\r\n"
        );
        (head + body).into_bytes()
    }
}

/// Reads a request from the beginning of a connection. `None` if more bytes must come.
pub(super) fn read(bytes: &[u8]) -> Result<Option<ControlRequest>, ControlReply> {
    let bad = |why: &str| ControlReply::refusal((400, "Bad Request"), why);
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    let head = match request.parse(&bytes[..bytes.len().min(HEAD_LIMIT)]) {
        Ok(Status::Complete(head)) => head,
        Ok(Status::Partial) if bytes.len() < HEAD_LIMIT => return Ok(None),
        Ok(Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            let status = (431, "Request Header Fields Too Large");
            return Err(ControlReply::refusal(
                status,
                "a head of 8 KiB and 64 fields at most",
            ));
        }
        Err(error) => return Err(bad(&format!("not HTTP/1.1: {error}"))),
    };
    let field = |name: &str| {
        let found = request
            .headers
            .iter()
            .find(|field| field.name.eq_ignore_ascii_case(name));
        found.map(|field| field.value)
    };
    // Pages of other sites can send requests to this machine, and browsers add this field to them.
    if field("origin").is_some() {
        let why = "not for pages in a browser: send the request without Origin";
        return Err(ControlReply::refusal((403, "Forbidden"), why));
    }
    if request.path != Some("/") {
        return Err(ControlReply::refusal(
            (404, "Not Found"),
            "the only path is /",
        ));
    }
    match request.method {
        Some("GET") => Ok(Some(ControlRequest::State)),
        Some("PATCH" | "POST") => {
            let length = length(field("content-length"), field("transfer-encoding"))?;
            let Some(body) = bytes.get(head..head + length) else {
                return Ok(None);
            };
            let text = std::str::from_utf8(body).map_err(|_| bad("the body is not UTF-8 text"))?;
            Ok(Some(ControlRequest::Change(text.to_owned())))
        }
        _ => {
            let why = "GET reads the values, PATCH or POST changes them";
            Err(ControlReply::refusal((405, "Method Not Allowed"), why))
        }
    }
}

/// Length of a body with these fields.
fn length(length: Option<&[u8]>, encoding: Option<&[u8]>) -> Result<usize, ControlReply> {
    let Some(text) = length.filter(|_| encoding.is_none()) else {
        let why = "a change has a body with Content-Length: bandwidth=1Mbit loss=2%";
        return Err(ControlReply::refusal((411, "Length Required"), why));
    };
    let digits = std::str::from_utf8(text)
        .ok()
        .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    let length = digits
        .and_then(|text| text.parse::<usize>().ok())
        .filter(|length| *length <= BODY_LIMIT);
    length.ok_or_else(|| {
        ControlReply::refusal((413, "Content Too Large"), "a change of 4 KiB at most")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CHANGE: &str =
        "PATCH / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 8\r\n\r\nloss=2%\n";

    #[test]
    fn a_request_is_read_once_all_of_it_has_come() {
        for length in 0..CHANGE.len() {
            assert_eq!(read(&CHANGE.as_bytes()[..length]), Ok(None), "{length}");
        }
        let change = Ok(Some(ControlRequest::Change("loss=2%\n".to_owned())));
        assert_eq!(read(CHANGE.as_bytes()), change);
        assert_eq!(read(CHANGE.replace("PATCH", "POST").as_bytes()), change);
        assert_eq!(
            read(b"GET / HTTP/1.1\r\n\r\n"),
            Ok(Some(ControlRequest::State))
        );
    }

    #[test]
    fn a_refusal_has_a_status_and_a_reason() {
        let long = format!("GET / HTTP/1.1\r\nX: {}", "x".repeat(HEAD_LIMIT));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(FIELDS + 1));
        for (request, status, word) in [
            ("\u{1}\r\n\r\n", 400, "HTTP/1.1"),
            ("GET /x HTTP/1.1\r\n\r\n", 404, "path"),
            ("DELETE / HTTP/1.1\r\n\r\n", 405, "PATCH"),
            ("PATCH / HTTP/1.1\r\n\r\n", 411, "Content-Length"),
            (
                "PATCH / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
                411,
                "Content-Length",
            ),
            (
                "PATCH / HTTP/1.1\r\nContent-Length: 4097\r\n\r\n",
                413,
                "4 KiB",
            ),
            (
                "PATCH / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
                413,
                "4 KiB",
            ),
            (
                "POST / HTTP/1.1\r\nOrigin: http://a.example\r\nContent-Length: 0\r\n\r\n",
                403,
                "Origin",
            ),
            (&long, 431, "8 KiB"),
            (&many, 431, "64 fields"),
        ] {
            let reply = read(request.as_bytes()).unwrap_err();
            let text = String::from_utf8(reply.to_bytes()).unwrap();
            assert!(
                text.starts_with(&format!("HTTP/1.1 {status} ")) && text.contains(word),
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..300), at in 0..60usize) {
            let _ = read(&bytes);
            let mut near = CHANGE.as_bytes().to_vec();
            near.splice(at..at + 1, bytes);
            if let Ok(Some(ControlRequest::Change(text))) = read(&near) {
                prop_assert!(text.len() <= BODY_LIMIT);
            }
        }
    }
}
