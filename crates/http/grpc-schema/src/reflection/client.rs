//! Questions of a client: the file that declares a service, then every file that it imports.

use std::collections::BTreeMap;

use prost::Message as _;
use prost_types::FileDescriptorProto;
use thiserror::Error;

use super::messages::{
    ReflectionAnswer, ReflectionQuestion, ServerReflectionRequest, ServerReflectionResponse,
};
use crate::nearest::suggest;
use crate::schema::{Schema, SchemaError};

/// Maximum number of files of a schema.
const MOST_FILES: usize = 2000;

/// Maximum size of all files.
const MOST_BYTES: usize = 16 << 20;

/// Prefix of the files that every implementation has.
const WELL_KNOWN: &str = "google/protobuf/";

/// Fetches the schema of one service. Each message to the server is the answer to its last one.
#[derive(Clone, Debug)]
pub struct ReflectionClient {
    service: String,
    files: BTreeMap<String, FileDescriptorProto>,
    bytes: usize,
    question: ReflectionQuestion,
}

/// Next step of a client.
#[derive(Clone, Debug)]
pub enum ReflectionStep {
    /// Send this message, without its prefix, and wait for the answer.
    Ask(Vec<u8>),
    /// All files have arrived.
    Complete(Schema),
}

/// Reasons why a schema cannot be fetched.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReflectionError {
    /// The server has no such service.
    #[error("the server has no service {service}: {suggestion}")]
    Service {
        /// The name.
        service: String,
        /// The nearest name, or all.
        suggestion: String,
    },
    /// The server reports an error.
    #[error("the server's reflection reports: {0}")]
    Reported(String),
    /// The server's message is not an answer to the question.
    #[error("the server's reflection answers {0}")]
    Answer(String),
    /// The files are not a schema.
    #[error("the server's reflection: {0}")]
    Schema(#[from] SchemaError),
    /// More files or bytes than any real schema.
    #[error("the server's reflection sends more than {MOST_FILES} files or {MOST_BYTES} bytes")]
    TooLong,
}

impl ReflectionClient {
    /// Creates a client for a service, by its full name. Returns it with its first message, without the prefix.
    pub fn begin(service: &str) -> (Self, Vec<u8>) {
        let question = ReflectionQuestion::FileContainingSymbol(service.to_owned());
        let client = Self {
            service: service.to_owned(),
            files: BTreeMap::new(),
            bytes: 0,
            question,
        };
        let message = client.message();
        (client, message)
    }

    /// Processes an answer, without its prefix.
    pub fn answer(&mut self, message: &[u8]) -> Result<ReflectionStep, ReflectionError> {
        let response = ServerReflectionResponse::decode(message)
            .map_err(|error| ReflectionError::Answer(format!("no message of its own: {error}")))?;
        let Some(answer) = response.message_response else {
            return Err(ReflectionError::Answer("nothing".to_owned()));
        };
        match (&self.question, answer) {
            (ReflectionQuestion::ListServices(_), ReflectionAnswer::Services(list)) => {
                let names = list.service.iter().map(|service| service.name.as_str());
                Err(ReflectionError::Service {
                    service: self.service.clone(),
                    suggestion: suggest(&self.service, names),
                })
            }
            (ReflectionQuestion::FileContainingSymbol(_), ReflectionAnswer::Error(_)) => {
                // The names that there are help more than the error.
                self.ask(ReflectionQuestion::ListServices(String::new()))
            }
            (_, ReflectionAnswer::Error(error)) => {
                let text = format!("{} (status {})", error.error_message, error.error_code);
                Err(ReflectionError::Reported(text))
            }
            (ReflectionQuestion::ListServices(_), _) => {
                let text = "no list of services to a question for one".to_owned();
                Err(ReflectionError::Answer(text))
            }
            (_, ReflectionAnswer::Files(files)) => self.keep(&files.file_descriptor_proto),
            _ => {
                let text = "no file to a question for one".to_owned();
                Err(ReflectionError::Answer(text))
            }
        }
    }

    /// Keeps files. Asks for the next import that is missing.
    fn keep(&mut self, files: &[Vec<u8>]) -> Result<ReflectionStep, ReflectionError> {
        let before = self.files.len();
        for bytes in files {
            self.bytes += bytes.len();
            let file = FileDescriptorProto::decode(&**bytes)
                .map_err(|error| ReflectionError::Answer(format!("no descriptor: {error}")))?;
            self.files.insert(file.name().to_owned(), file);
            if self.bytes > MOST_BYTES || self.files.len() > MOST_FILES {
                return Err(ReflectionError::TooLong);
            }
        }
        // Each answer must bring a file, so that the questions end.
        if self.files.len() == before {
            let text = "the same file again".to_owned();
            return Err(ReflectionError::Answer(text));
        }
        let mut imports = self.files.values().flat_map(|file| &file.dependency);
        let missing = imports
            .find(|import| !self.files.contains_key(*import) && !import.starts_with(WELL_KNOWN));
        match missing.cloned() {
            Some(import) => self.ask(ReflectionQuestion::FileByFilename(import)),
            None => {
                let schema = Schema::from_files(std::mem::take(&mut self.files).into_values())?;
                Ok(ReflectionStep::Complete(schema))
            }
        }
    }

    fn ask(&mut self, question: ReflectionQuestion) -> Result<ReflectionStep, ReflectionError> {
        self.question = question;
        Ok(ReflectionStep::Ask(self.message()))
    }

    fn message(&self) -> Vec<u8> {
        ServerReflectionRequest {
            host: String::new(),
            message_request: Some(self.question.clone()),
        }
        .encode_to_vec()
    }
}
