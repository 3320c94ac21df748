//! Table of compressible media types.
//!
//! Text formats are compressible. Types with their own compression (images, sound, video, archives, fonts in WOFF) or
//! their own framing (gRPC) are not. Unknown types are not compressed, because most of them are archives or pictures
//! under a name of their own.

use posthaste_http::fields::split;

/// Effect of compression on a media type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Media {
    /// Compressible.
    Text,
    /// Compressible SOAP: `text/xml`, `application/soap+xml`.
    Soap,
    /// Events that must be sent one by one: `text/event-stream`.
    Events,
    /// Not compressible, or unknown.
    #[default]
    Other,
}

/// Types below `application`, `font`, `image` and `model` that are text or as compressible as text.
const TEXT: &[&str] = &[
    "application/atom+xml",
    "application/dns-json",
    "application/ecmascript",
    "application/graphql",
    "application/javascript",
    "application/json",
    "application/jsonl",
    "application/manifest+json",
    "application/msgpack",
    "application/ndjson",
    "application/rtf",
    "application/sql",
    "application/vnd.ms-fontobject",
    "application/wasm",
    "application/x-javascript",
    "application/x-ndjson",
    "application/x-protobuf",
    "application/x-www-form-urlencoded",
    "application/xml",
    "application/xml-dtd",
    "application/yaml",
    "font/otf",
    "font/ttf",
    "image/bmp",
    "image/vnd.microsoft.icon",
    "image/x-icon",
];

/// Suffixes of types that name their syntax (RFC 6839, RFC 8081, RFC 9512).
const SUFFIXES: &[&str] = &["+json", "+json-seq", "+xml", "+yaml", "+cbor", "+wasm"];

impl Media {
    /// Classifies a `Content-Type` field. Returns [`Media::Other`] without one.
    pub fn from_content_type(content_type: Option<&[u8]>) -> Self {
        let Some(essence) = content_type.and_then(|field| split(field, b';').next()) else {
            return Self::Other;
        };
        let is = |name: &str| essence.eq_ignore_ascii_case(name.as_bytes());
        let begins = |start: &str| {
            let head = essence.get(..start.len());
            head.is_some_and(|head| head.eq_ignore_ascii_case(start.as_bytes()))
        };
        let ends = |end: &&str| {
            let from = essence.len().checked_sub(end.len());
            from.is_some_and(|from| essence[from..].eq_ignore_ascii_case(end.as_bytes()))
        };
        if begins("application/grpc") {
            // Messages with their own lengths and compression, whatever their format (`application/grpc+json`).
            Self::Other
        } else if is("text/event-stream") {
            Self::Events
        } else if is("text/xml") || is("application/soap+xml") {
            Self::Soap
        } else if begins("text/") || SUFFIXES.iter().any(ends) || TEXT.iter().any(|name| is(name)) {
            Self::Text
        } else {
            Self::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_tells_text_from_the_rest() {
        for text in [
            "text/plain; charset=utf-8",
            "TEXT/HTML",
            "application/json",
            "image/svg+xml",
            "application/problem+json",
            "application/wasm",
        ] {
            assert_eq!(
                Media::from_content_type(Some(text.as_bytes())),
                Media::Text,
                "{text}"
            );
        }
        for other in [
            "",
            "image/png",
            "application/zip",
            "application/octet-stream",
            "application/grpc+proto",
            "application/grpc",
            "application/grpc+json",
            "application/grpc-web+json; charset=utf-8",
            "multipart/related; type=\"text/xml\"",
            "video/mp4",
            "font/woff2",
            "textual",
            "xml",
        ] {
            assert_eq!(
                Media::from_content_type(Some(other.as_bytes())),
                Media::Other,
                "{other}"
            );
        }
        for soap in [
            "Text/XML ;charset=utf-8",
            "application/soap+xml;action=\"a;b\"",
        ] {
            assert_eq!(
                Media::from_content_type(Some(soap.as_bytes())),
                Media::Soap,
                "{soap}"
            );
        }
        assert_eq!(Media::from_content_type(None), Media::Other);
        assert_eq!(
            Media::from_content_type(Some(b"text/event-stream")),
            Media::Events
        );
    }
}
