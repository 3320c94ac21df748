//! Messages of server reflection. `proto/grpc/reflection/v1/reflection.proto` describes them.

/// The file of version 1, by the name under which others import it.
pub const REFLECTION_PROTO: (&str, &str) = (
    "grpc/reflection/v1/reflection.proto",
    include_str!("../../proto/grpc/reflection/v1/reflection.proto"),
);

/// The file of the version before: other names, the same messages.
pub const REFLECTION_ALPHA_PROTO: (&str, &str) = (
    "grpc/reflection/v1alpha/reflection.proto",
    include_str!("../../proto/grpc/reflection/v1alpha/reflection.proto"),
);

/// Name of the service in both versions, the newer first. Its only method is [`REFLECTION_METHOD`].
pub const REFLECTION_SERVICES: [&str; 2] = [
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
];

/// The method of both versions, with streams in both directions.
pub const REFLECTION_METHOD: &str = "ServerReflectionInfo";

/// A question to the server.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct ServerReflectionRequest {
    /// Name of the server; may be empty.
    #[prost(string, tag = "1")]
    pub host: String,
    /// The question.
    #[prost(oneof = "ReflectionQuestion", tags = "3, 4, 5, 6, 7")]
    pub message_request: Option<ReflectionQuestion>,
}

/// Kinds of questions.
#[derive(Clone, PartialEq, Eq, Hash, prost::Oneof)]
pub enum ReflectionQuestion {
    /// A file by its name.
    #[prost(string, tag = "3")]
    FileByFilename(String),
    /// The file that declares a service, method, message or enumeration.
    #[prost(string, tag = "4")]
    FileContainingSymbol(String),
    /// The file that declares an extension.
    #[prost(message, tag = "5")]
    FileContainingExtension(ExtensionRequest),
    /// The numbers of the extensions of a message.
    #[prost(string, tag = "6")]
    AllExtensionNumbersOfType(String),
    /// The names of all services. The value has no meaning.
    #[prost(string, tag = "7")]
    ListServices(String),
}

/// An extension by its number.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct ExtensionRequest {
    /// Full name of the extended message.
    #[prost(string, tag = "1")]
    pub containing_type: String,
    /// Number of the extension.
    #[prost(int32, tag = "2")]
    pub extension_number: i32,
}

/// An answer of the server.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct ServerReflectionResponse {
    /// The host of the question.
    #[prost(string, tag = "1")]
    pub valid_host: String,
    /// The question.
    #[prost(message, optional, tag = "2")]
    pub original_request: Option<ServerReflectionRequest>,
    /// The answer.
    #[prost(oneof = "ReflectionAnswer", tags = "4, 5, 6, 7")]
    pub message_response: Option<ReflectionAnswer>,
}

/// Kinds of answers.
#[derive(Clone, PartialEq, Eq, Hash, prost::Oneof)]
pub enum ReflectionAnswer {
    /// A file, possibly with the files that it imports.
    #[prost(message, tag = "4")]
    Files(FileDescriptorResponse),
    /// Numbers of extensions.
    #[prost(message, tag = "5")]
    ExtensionNumbers(ExtensionNumberResponse),
    /// Names of services.
    #[prost(message, tag = "6")]
    Services(ListServiceResponse),
    /// An error.
    #[prost(message, tag = "7")]
    Error(ErrorResponse),
}

/// Files.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct FileDescriptorResponse {
    /// Serialised `FileDescriptorProto` messages.
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub file_descriptor_proto: Vec<Vec<u8>>,
}

/// Numbers of extensions.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct ExtensionNumberResponse {
    /// Full name of the extended message.
    #[prost(string, tag = "1")]
    pub base_type_name: String,
    /// The numbers.
    #[prost(int32, repeated, tag = "2")]
    pub extension_number: Vec<i32>,
}

/// Names of services.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct ListServiceResponse {
    /// The services.
    #[prost(message, repeated, tag = "1")]
    pub service: Vec<ServiceResponse>,
}

/// A service.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct ServiceResponse {
    /// Full name.
    #[prost(string, tag = "1")]
    pub name: String,
}

/// An error.
#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct ErrorResponse {
    /// Number of a status code.
    #[prost(int32, tag = "1")]
    pub error_code: i32,
    /// Text for a person.
    #[prost(string, tag = "2")]
    pub error_message: String,
}
