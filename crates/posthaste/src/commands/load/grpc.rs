//! gRPC calls: the method, its schema and its messages.

use std::path::{Path, PathBuf};

use posthaste_evaluation::Assertion;
use posthaste_load::{
    EventPlan, GrpcCall, GrpcCallError, ReflectedServer, RequestSpec, SchemaSource, TlsOptions,
    grpc_request,
};

use super::{Args, read};
use crate::commands::Failure;

/// Calls of gRPC.
#[derive(clap::Args)]
#[command(next_help_heading = "gRPC")]
pub(super) struct GrpcArgs {
    /// Call this method over HTTP/2: unary, server streaming or client streaming. The URL names the server only. A
    /// call is ok with the status OK and its whole reply; another status is a grpc-error. --timeout is the deadline of
    /// each call, and -H adds metadata
    #[arg(long, value_name = "package.Service/Method")]
    grpc: Option<String>,
    /// The messages of a call as JSON, or @FILE; placeholders {{column}} are filled from --data. With a stream of
    /// requests: a list, or one message after the other [default: one message without fields]
    #[arg(long, value_name = "JSON|@FILE", requires = "grpc")]
    message: Option<String>,
    /// A file with the schema; may be repeated [default: ask the server by reflection]
    #[arg(long, value_name = "FILE.proto", requires = "grpc")]
    proto: Vec<PathBuf>,
    /// A folder with files of --proto or their imports; may be repeated [default: the folder of each file]
    #[arg(long, value_name = "DIR", requires = "proto")]
    proto_path: Vec<PathBuf>,
    /// A descriptor set with the schema, as `protoc --descriptor_set_out --include_imports` and `buf build` write it
    #[arg(long, value_name = "FILE", requires = "grpc", conflicts_with = "proto")]
    protoset: Option<PathBuf>,
}

impl GrpcArgs {
    /// True if requests are calls of gRPC.
    pub(super) const fn is_given(&self) -> bool {
        self.grpc.is_some()
    }
}

impl Args {
    /// The method to call, if requests are calls of gRPC.
    pub(super) fn call(&self, tls: &TlsOptions) -> Result<Option<GrpcCall>, Failure> {
        let Some(name) = &self.grpc.grpc else {
            return Ok(None);
        };
        self.check_calls()?;
        let headers = self.own_headers();
        let (proto, folders) = (&self.grpc.proto, &self.grpc.proto_path);
        let source = match &self.grpc.protoset {
            Some(path) => SchemaSource::DescriptorSet(path),
            None if proto.is_empty() => SchemaSource::Reflection(ReflectedServer {
                url: self.url.as_deref().unwrap_or_default(),
                resolve: &self.resolve,
                tls,
                headers: &headers,
            }),
            None => SchemaSource::Proto {
                files: proto,
                folders,
            },
        };
        source.find(name).map(Some).map_err(from_call)
    }

    /// The request of a call.
    pub(super) fn request_of(&self, call: &GrpcCall) -> Result<RequestSpec, Failure> {
        let message = match self.grpc.message.as_deref() {
            None => "{}".to_owned(),
            Some(text) => match text.strip_prefix('@') {
                Some(path) => read(Path::new(path))?,
                None => text.to_owned(),
            },
        };
        let server = self.url.as_deref().unwrap_or_default();
        grpc_request(call, server, &message, self.timeout).map_err(from_call)
    }

    /// Rejects options that calls do not have.
    fn check_calls(&self) -> Result<(), Failure> {
        let given = |option: Option<&'static str>, remedy: &str| match option {
            None => Ok(()),
            Some(option) => Err(Failure::Usage(format!(
                "{option} does not go with --grpc: {remedy}"
            ))),
        };
        let named = |is_given: bool, name| is_given.then_some(name);
        given(
            named(self.protocol.is_http1(), "--http 1.1"),
            "gRPC is HTTP/2; leave it out",
        )?;
        for (is_given, option, remedy) in [
            (
                self.body.is_some(),
                "--body",
                "give --message JSON or --message @FILE",
            ),
            (
                self.method.is_some(),
                "--method",
                "calls are POST requests; leave it out",
            ),
            (
                self.mix.is_some(),
                "--mix",
                "a run calls one method; leave one out",
            ),
            (self.wsdl.is_some(), "--wsdl", "leave one out"),
            (self.soap.is_some(), "--soap", "leave one out"),
            (
                self.events.is_given(),
                "--stream",
                "messages of a stream are events; leave it out",
            ),
            (
                self.decoding().is_some(),
                "--decode",
                "calls request no compression; leave it out",
            ),
            (
                self.buying.is_given(),
                "--broker",
                "clients that choose by price use HTTP/1.1",
            ),
        ] {
            given(named(is_given, option), remedy)?;
        }
        let reserved = self.header.iter().find(|h| GrpcCall::is_reserved(&h.name));
        if let Some(header) = reserved {
            let remedy = match &*header.name.to_ascii_lowercase() {
                "grpc-timeout" => "give the deadline of a call with --timeout",
                _ => "gRPC sets it",
            };
            return Err(Failure::Usage(format!(
                "-H {} does not go with --grpc: {remedy}",
                header.name
            )));
        }
        Ok(())
    }

    /// Rejects assertions on figures that calls do not have.
    pub(super) fn check_assertions(&self, call: Option<&GrpcCall>) -> Result<(), Failure> {
        let Some(call) = call else { return Ok(()) };
        let wrong = |assertion: &&Assertion| {
            assertion.is_of_end_mark()
                || assertion.is_of_events() && EventPlan::of_call(call).is_none()
        };
        match self.assert.iter().find(wrong) {
            None => Ok(()),
            Some(assertion) if assertion.is_of_end_mark() => Err(Failure::Usage(format!(
                "{assertion}: a stream of gRPC ends with a status and has no end mark: assert 'grpc-error<1%'"
            ))),
            Some(assertion) => Err(Failure::Usage(format!(
                "{assertion}: {call} has one reply and no events: assert 'p99<200ms'"
            ))),
        }
    }
}

fn from_call(error: GrpcCallError) -> Failure {
    match error {
        GrpcCallError::Connect { .. } | GrpcCallError::NoReflection { .. } => Failure::run(error),
        _ => Failure::usage(error),
    }
}
