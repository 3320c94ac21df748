//! Answers of a server about its schema.

use std::collections::BTreeSet;

use posthaste_http::grpc::Code;
use prost_reflect::{DescriptorPool, ExtensionDescriptor, FileDescriptor, MessageDescriptor};

use super::messages::{
    ErrorResponse, ExtensionNumberResponse, FileDescriptorResponse, ListServiceResponse,
    ReflectionAnswer, ReflectionQuestion, ServerReflectionRequest, ServerReflectionResponse,
    ServiceResponse,
};
use crate::schema::Schema;

/// Answers questions about a schema.
#[derive(Clone, Debug)]
pub struct ReflectionServer {
    pool: DescriptorPool,
}

impl ReflectionServer {
    /// Creates a server of this schema.
    pub fn new(schema: &Schema) -> Self {
        let pool = schema.pool().clone();
        Self { pool }
    }

    /// Answers a question. Errors are answers, too.
    pub fn answer(&self, request: ServerReflectionRequest) -> ServerReflectionResponse {
        let answer = match &request.message_request {
            Some(question) => self.answer_question(question),
            None => Err((
                Code::InvalidArgument,
                "the request has no question".to_owned(),
            )),
        };
        let answer = answer.unwrap_or_else(|(code, error_message)| {
            ReflectionAnswer::Error(ErrorResponse {
                error_code: i32::from(code.number()),
                error_message,
            })
        });
        ServerReflectionResponse {
            valid_host: request.host.clone(),
            original_request: Some(request),
            message_response: Some(answer),
        }
    }

    fn answer_question(
        &self,
        question: &ReflectionQuestion,
    ) -> Result<ReflectionAnswer, (Code, String)> {
        let unknown = |kind: &str, name: &str| {
            let reason = format!("there is no {kind} {name:?}");
            (Code::NotFound, reason)
        };
        match question {
            ReflectionQuestion::FileByFilename(name) => {
                let file = self.pool.get_file_by_name(name);
                let file = file.ok_or_else(|| unknown("file", name))?;
                Ok(with_imports(&file))
            }
            ReflectionQuestion::FileContainingSymbol(name) => {
                let file = self.declaring(name);
                let file = file.ok_or_else(|| unknown("symbol", name))?;
                Ok(with_imports(&file))
            }
            ReflectionQuestion::FileContainingExtension(request) => {
                let message = self.message(&request.containing_type);
                let message =
                    message.ok_or_else(|| unknown("message", &request.containing_type))?;
                let is_wanted = |extension: &ExtensionDescriptor| {
                    i64::from(extension.number()) == i64::from(request.extension_number)
                };
                let extension = message.extensions().find(is_wanted);
                let extension = extension
                    .ok_or_else(|| unknown("extension", &request.extension_number.to_string()))?;
                Ok(with_imports(&extension.parent_file()))
            }
            ReflectionQuestion::AllExtensionNumbersOfType(name) => {
                let message = self.message(name);
                let message = message.ok_or_else(|| unknown("message", name))?;
                let numbers = message
                    .extensions()
                    .filter_map(|e| i32::try_from(e.number()).ok());
                Ok(ReflectionAnswer::ExtensionNumbers(
                    ExtensionNumberResponse {
                        base_type_name: name.clone(),
                        extension_number: numbers.collect(),
                    },
                ))
            }
            ReflectionQuestion::ListServices(_) => {
                let mut names: Vec<String> = self
                    .pool
                    .services()
                    .map(|service| service.full_name().to_owned())
                    .collect();
                names.sort();
                let service = names.into_iter().map(|name| ServiceResponse { name });
                Ok(ReflectionAnswer::Services(ListServiceResponse {
                    service: service.collect(),
                }))
            }
        }
    }

    fn message(&self, name: &str) -> Option<MessageDescriptor> {
        self.pool.get_message_by_name(name)
    }

    /// The file that declares a symbol. Methods, fields and values of enumerations belong to their parent.
    fn declaring(&self, symbol: &str) -> Option<FileDescriptor> {
        let whole = |name: &str| {
            let pool = &self.pool;
            let service = pool.get_service_by_name(name).map(|s| s.parent_file());
            let message = || pool.get_message_by_name(name).map(|m| m.parent_file());
            let list = || pool.get_enum_by_name(name).map(|e| e.parent_file());
            let extension = || pool.get_extension_by_name(name).map(|e| e.parent_file());
            service.or_else(message).or_else(list).or_else(extension)
        };
        whole(symbol).or_else(|| {
            let (parent, member) = symbol.rsplit_once('.')?;
            let service = self.pool.get_service_by_name(parent);
            let is_method =
                service.is_some_and(|service| service.methods().any(|m| m.name() == member));
            let is_field = || {
                let message = self.pool.get_message_by_name(parent);
                message.is_some_and(|message| {
                    message.get_field_by_name(member).is_some()
                        || message.oneofs().any(|oneof| oneof.name() == member)
                })
            };
            let is_value = || {
                let list = self.pool.get_enum_by_name(parent);
                list.is_some_and(|list| list.get_value_by_name(member).is_some())
            };
            (is_method || is_field() || is_value())
                .then(|| whole(parent))
                .flatten()
        })
    }
}

/// A file after those that it imports, directly or not.
fn with_imports(file: &FileDescriptor) -> ReflectionAnswer {
    let mut files = Vec::new();
    collect(file, &mut BTreeSet::new(), &mut files);
    ReflectionAnswer::Files(FileDescriptorResponse {
        file_descriptor_proto: files,
    })
}

fn collect(file: &FileDescriptor, seen: &mut BTreeSet<String>, files: &mut Vec<Vec<u8>>) {
    if seen.insert(file.name().to_owned()) {
        for import in file.dependencies() {
            collect(&import, seen, files);
        }
        files.push(file.encode_to_vec());
    }
}
