//! A request in the form of HTTP/1: its bytes.

use super::template::Template;
use super::{RequestError, RequestSpec, carries_body, default_fields, has_placeholders};
use crate::request::data::Data;
use crate::target::RequestTarget;

/// A request ready to be written.
pub(crate) struct Http1Request {
    pub(crate) is_head: bool,
    bytes: RequestBytes,
}

enum RequestBytes {
    Fixed(Vec<u8>),
    Rendered(Box<RenderedRequest>),
}

struct RenderedRequest {
    template: Template,
    method: String,
    fixed_fields: String,
    names: Vec<String>,
    has_body: bool,
}

impl Http1Request {
    pub(super) fn prepare(
        spec: &RequestSpec,
        target: &RequestTarget,
        keep_alive: bool,
        data: &Data,
    ) -> Result<Self, RequestError> {
        let fields = fixed_fields(spec, target, keep_alive);
        let bytes = if has_placeholders(spec, &target.path) {
            RequestBytes::Rendered(Box::new(RenderedRequest {
                template: Template::compile(spec, &target.path, data)?,
                method: spec.method.clone(),
                fixed_fields: fields,
                names: spec.headers.iter().map(|(name, _)| name.clone()).collect(),
                has_body: carries_body(spec),
            }))
        } else {
            RequestBytes::Fixed(assemble(spec, &target.path, &fields))
        };
        Ok(Self {
            is_head: spec.method == "HEAD",
            bytes,
        })
    }

    /// Appends the bytes of the request for row `row` of the data.
    ///
    /// If rendering fails, nothing is appended and the reason is returned. After the check of the names it can fail
    /// only for lack of memory.
    pub(crate) fn write(&self, data: &Data, row: u64, out: &mut Vec<u8>) -> Result<(), String> {
        match &self.bytes {
            RequestBytes::Fixed(bytes) => out.extend_from_slice(bytes),
            RequestBytes::Rendered(request) => request.write(data, row, out)?,
        }
        Ok(())
    }

    /// Returns the bytes, if they are the same for every request.
    pub(crate) fn fixed(&self) -> Option<&[u8]> {
        match &self.bytes {
            RequestBytes::Fixed(bytes) => Some(bytes),
            RequestBytes::Rendered(_) => None,
        }
    }
}

impl RenderedRequest {
    fn write(&self, data: &Data, row: u64, out: &mut Vec<u8>) -> Result<(), String> {
        let parts = self.template.render(&data.row(row))?;
        let (method, path) = (&self.method, &parts.path);
        let mut head = format!("{method} {path} HTTP/1.1\r\n{}", self.fixed_fields);
        for (name, value) in self.names.iter().zip(&parts.values) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if self.has_body {
            head.push_str(&format!("Content-Length: {}\r\n", parts.body.len()));
        }
        head.push_str("\r\n");
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(parts.body.as_bytes());
        Ok(())
    }
}

/// Header fields that are the same for each request: Host, and defaults that the user did not set.
fn fixed_fields(spec: &RequestSpec, target: &RequestTarget, keep_alive: bool) -> String {
    let host = Some(target.origin.authority()).filter(|_| spec.header("Host").is_none());
    let mut fields: String = host
        .map(|host| format!("Host: {host}\r\n"))
        .unwrap_or_default();
    for (name, value) in default_fields(spec) {
        fields.push_str(&format!("{name}: {value}\r\n"));
    }
    if !keep_alive && spec.header("Connection").is_none() {
        fields.push_str("Connection: close\r\n");
    }
    fields
}

fn assemble(spec: &RequestSpec, path: &str, fields: &str) -> Vec<u8> {
    let mut bytes = format!("{} {path} HTTP/1.1\r\n{fields}", spec.method);
    for (name, value) in &spec.headers {
        bytes.push_str(&format!("{name}: {value}\r\n"));
    }
    if carries_body(spec) {
        bytes.push_str(&format!("Content-Length: {}\r\n", spec.body.len()));
    }
    bytes.push_str("\r\n");
    bytes.push_str(&spec.body);
    bytes.into_bytes()
}
