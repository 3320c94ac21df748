//! A request in the form of HTTP/2: numbered fields and a body (RFC 9113, section 8.3.1).

use posthaste_grpc_schema::MethodKind;
use posthaste_http::streams::StreamRequest;
use posthaste_http::streams::catalogue::{
    ConstantField, FieldCatalogue, InvalidField, RequestField, VariableField,
};

use super::template::Template;
use super::{
    RequestError, RequestSpec, default_fields, has_placeholders, has_placeholders_in, states_length,
};
use crate::grpc::GrpcCall;
use crate::request::data::Data;
use crate::target::RequestTarget;

/// A request ready to be sent on a stream.
pub(crate) struct NumberedRequest {
    is_head: bool,
    has_body: bool,
    /// Streams of the method, if it is a gRPC call.
    call: Option<MethodKind>,
    content: RequestContent,
}

enum RequestContent {
    Fixed {
        fields: Vec<RequestField<'static>>,
        body: Vec<u8>,
    },
    Rendered {
        template: Box<Template>,
        fields: Vec<PreparedField>,
        messages: Option<MessageSource>,
    },
}

/// The messages of a gRPC call with placeholders.
enum MessageSource {
    /// Only other parts have placeholders.
    Fixed(Vec<u8>),
    /// Encoded for each request.
    Rendered(GrpcCall),
}

/// A field of a rendered request.
enum PreparedField {
    Constant(ConstantField),
    Path(VariableField),
    /// The value with this number.
    Value(VariableField, usize),
    ContentLength(VariableField),
}

impl NumberedRequest {
    /// Enters the fields of the request into the catalogue.
    pub(super) fn prepare(
        spec: &RequestSpec,
        target: &RequestTarget,
        catalogue: &mut FieldCatalogue,
        data: &Data,
    ) -> Result<Self, RequestError> {
        let mut writer = FieldWriter { spec, catalogue };
        let content = if has_placeholders(spec, &target.path) {
            let template = Template::compile(spec, &target.path, data)?;
            let messages = spec.grpc.as_ref();
            RequestContent::Rendered {
                fields: writer.rendered(target)?,
                messages: messages
                    .map(|call| MessageSource::prepare(spec, call, &template, data))
                    .transpose()?,
                template: Box::new(template),
            }
        } else {
            let fields = writer.fixed(target)?;
            RequestContent::Fixed {
                fields: fields.into_iter().map(RequestField::Constant).collect(),
                body: body(spec)?,
            }
        };
        Ok(Self {
            is_head: spec.method == "HEAD",
            has_body: match &content {
                RequestContent::Fixed { body, .. } => !body.is_empty(),
                RequestContent::Rendered { .. } => false,
            },
            call: spec.grpc.as_ref().map(GrpcCall::kind),
            content,
        })
    }

    /// Passes the head of the request for row `row` of the data to `open`. A rendered body is written to `body`.
    ///
    /// If rendering fails, the reason is returned. After the check of the names it can fail only for lack of memory.
    pub(crate) fn with_head<T>(
        &self,
        data: &Data,
        row: u64,
        body: &mut Vec<u8>,
        open: impl FnOnce(&StreamRequest<'_>) -> T,
    ) -> Result<T, String> {
        let request = |fields, has_body| StreamRequest {
            fields,
            is_head: self.is_head,
            has_body,
        };
        let (template, fields, messages) = match &self.content {
            RequestContent::Fixed { fields, .. } => {
                return Ok(open(&request(fields, self.has_body)));
            }
            RequestContent::Rendered {
                template,
                fields,
                messages,
            } => (template, fields, messages),
        };
        let parts = template.render(&data.row(row))?;
        let length = parts.body.len().to_string();
        let fields: Vec<RequestField<'_>> = fields
            .iter()
            .map(|field| match *field {
                PreparedField::Constant(field) => RequestField::Constant(field),
                PreparedField::Path(name) => RequestField::Variable(name, parts.path.as_bytes()),
                PreparedField::Value(name, number) => {
                    RequestField::Variable(name, parts.values[number].trim().as_bytes())
                }
                PreparedField::ContentLength(name) => {
                    RequestField::Variable(name, length.as_bytes())
                }
            })
            .collect();
        body.clear();
        match messages {
            None => body.extend_from_slice(parts.body.as_bytes()),
            Some(MessageSource::Fixed(messages)) => body.extend_from_slice(messages),
            Some(MessageSource::Rendered(call)) => call
                .write_messages(&parts.body, body)
                .map_err(|error| error.to_string())?,
        }
        Ok(open(&request(&fields, !body.is_empty())))
    }

    /// The streams of the method, if it is a gRPC call.
    pub(crate) const fn call(&self) -> Option<MethodKind> {
        self.call
    }

    /// The body, if it is the same for every request.
    pub(crate) fn fixed_body(&self) -> Option<&[u8]> {
        match &self.content {
            RequestContent::Fixed { body, .. } => Some(body),
            RequestContent::Rendered { .. } => None,
        }
    }
}

/// The body of a request without placeholders: as written, or the messages of a gRPC call.
fn body(spec: &RequestSpec) -> Result<Vec<u8>, RequestError> {
    let Some(call) = &spec.grpc else {
        return Ok(spec.body.clone().into_bytes());
    };
    let mut body = Vec::new();
    let written = call.write_messages(&spec.body, &mut body);
    written.map_err(|reason| RequestError::Message {
        request: spec.name.clone(),
        row: None,
        reason,
    })?;
    Ok(body)
}

impl MessageSource {
    /// Checks the messages of every row of the data, so that no request fails during the run.
    fn prepare(
        spec: &RequestSpec,
        call: &GrpcCall,
        template: &Template,
        data: &Data,
    ) -> Result<Self, RequestError> {
        if !has_placeholders_in(&spec.body) {
            return body(spec).map(Self::Fixed);
        }
        let mut messages = Vec::new();
        for row in 0..data.len().max(1) {
            let request = || spec.name.clone();
            let number = row + 1;
            let json = template.render_body(&data.row(row));
            let json = json.map_err(|reason| RequestError::Rendered {
                request: request(),
                row: number,
                reason,
            })?;
            messages.clear();
            let written = call.write_messages(&json, &mut messages);
            written.map_err(|reason| RequestError::Message {
                request: request(),
                row: Some(number),
                reason,
            })?;
        }
        Ok(Self::Rendered(call.clone()))
    }
}

/// Enters the fields of a request into the catalogue.
struct FieldWriter<'w> {
    spec: &'w RequestSpec,
    catalogue: &'w mut FieldCatalogue,
}

impl FieldWriter<'_> {
    /// All fields of a request without placeholders.
    fn fixed(&mut self, target: &RequestTarget) -> Result<Vec<ConstantField>, RequestError> {
        let spec = self.spec;
        let authority = self.authority(target);
        let [method, scheme] = self.method_and_scheme(target)?;
        let path = self.constant(":path", &target.path)?;
        let mut fields = vec![
            method,
            scheme,
            self.constant(":authority", &authority)?,
            path,
        ];
        fields.extend(self.defaults()?);
        for (_, name, value) in own_fields(spec) {
            fields.push(self.constant(&name, value)?);
        }
        if states_length(spec) {
            let length = spec.body.len().to_string();
            fields.push(self.constant("content-length", &length)?);
        }
        Ok(fields)
    }

    /// All fields of a request with placeholders.
    fn rendered(&mut self, target: &RequestTarget) -> Result<Vec<PreparedField>, RequestError> {
        use PreparedField::{Constant, ContentLength, Path, Value};
        let spec = self.spec;
        let [method, scheme] = self.method_and_scheme(target)?;
        let is_host = |field: &(String, String)| field.0.eq_ignore_ascii_case("host");
        let authority = match spec.headers.iter().position(is_host) {
            Some(number) => Value(self.variable(":authority")?, number),
            None => Constant(self.constant(":authority", &target.origin.authority())?),
        };
        let path = Path(self.variable(":path")?);
        let mut fields = vec![Constant(method), Constant(scheme), authority, path];
        fields.extend(self.defaults()?.into_iter().map(Constant));
        for (number, name, _) in own_fields(spec) {
            fields.push(Value(self.variable(&name)?, number));
        }
        if states_length(spec) {
            fields.push(ContentLength(self.variable("content-length")?));
        }
        Ok(fields)
    }

    fn method_and_scheme(
        &mut self,
        target: &RequestTarget,
    ) -> Result<[ConstantField; 2], RequestError> {
        let scheme = if target.origin.tls { "https" } else { "http" };
        let method = self.constant(":method", &self.spec.method)?;
        Ok([method, self.constant(":scheme", scheme)?])
    }

    /// The authority: the user's Host field, or the server.
    fn authority(&self, target: &RequestTarget) -> String {
        let host = self.spec.header("Host").map(str::to_owned);
        host.unwrap_or_else(|| target.origin.authority())
    }

    fn defaults(&mut self) -> Result<Vec<ConstantField>, RequestError> {
        let defaults = default_fields(self.spec);
        defaults
            .map(|(name, value)| self.constant(&name.to_ascii_lowercase(), value))
            .collect()
    }

    fn constant(&mut self, name: &str, value: &str) -> Result<ConstantField, RequestError> {
        let field = self
            .catalogue
            .constant(name.as_bytes(), value.trim().as_bytes());
        field.map_err(|reason| self.refused(name, reason))
    }

    fn variable(&mut self, name: &str) -> Result<VariableField, RequestError> {
        let field = self.catalogue.variable(name.as_bytes());
        field.map_err(|reason| self.refused(name, reason))
    }

    fn refused(&self, name: &str, reason: InvalidField) -> RequestError {
        RequestError::ForbiddenField {
            request: self.spec.name.clone(),
            name: name.to_owned(),
            reason,
        }
    }
}

/// Header fields of the user without Host: number, name in lower case, value.
fn own_fields(spec: &RequestSpec) -> impl Iterator<Item = (usize, String, &str)> {
    let fields = spec.headers.iter().enumerate();
    let fields = fields.map(|(n, (name, value))| (n, name.to_ascii_lowercase(), value.as_str()));
    fields.filter(|(_, name, _)| name != "host")
}
