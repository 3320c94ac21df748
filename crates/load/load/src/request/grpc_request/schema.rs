//! The schema of a call: `.proto` files, a descriptor set, or the server's reflection.

use std::fs;
use std::path::{Component, Path, PathBuf};

use posthaste_grpc_schema::{MethodError, ProtoFiles, Schema, SchemaError};

use super::{GrpcCallError, reflection};
use crate::grpc::GrpcCall;
use crate::target::Resolve;
use crate::transport::tls::TlsOptions;

/// Maximum size of a `.proto` file or a descriptor set.
const MOST_BYTES: u64 = 64 << 20;

/// The source of a schema.
#[derive(Clone, Copy, Debug)]
pub enum SchemaSource<'a> {
    /// Files in the interface language of Protocol Buffers.
    Proto {
        /// The files.
        files: &'a [PathBuf],
        /// Folders of imports. The folder of each file is one, too.
        folders: &'a [PathBuf],
    },
    /// A descriptor set, as `protoc --descriptor_set_out --include_imports` and `buf build` write it.
    DescriptorSet(&'a Path),
    /// Server reflection.
    Reflection(ReflectedServer<'a>),
}

/// A server that tells its schema.
#[derive(Clone, Copy, Debug)]
pub struct ReflectedServer<'a> {
    /// Its URL.
    pub url: &'a str,
    /// Addresses for names.
    pub resolve: &'a [Resolve],
    /// Trusted certificates, and the client's own.
    pub tls: &'a TlsOptions,
    /// Header fields of the call, such as Authorization.
    pub headers: &'a [(String, String)],
}

impl SchemaSource<'_> {
    /// Finds a method by `package.Service/Method`.
    pub fn find(&self, name: &str) -> Result<GrpcCall, GrpcCallError> {
        let method = self.schema(name)?.find(name)?;
        let name = method.path()[1..].to_owned();
        GrpcCall::new(method).ok_or(GrpcCallError::Bidirectional(name))
    }

    /// Returns a schema with the service of a method.
    fn schema(&self, method: &str) -> Result<Schema, GrpcCallError> {
        match self {
            Self::Proto { files, folders } => compile(files, folders),
            Self::DescriptorSet(path) => {
                let bytes = read(path).map_err(|reason| GrpcCallError::File {
                    path: path.to_path_buf(),
                    reason,
                })?;
                let schema = Schema::from_descriptor_set(&bytes).map_err(|error| SchemaError {
                    file: Some(error.file.unwrap_or_else(|| path.display().to_string())),
                    ..error
                })?;
                Ok(schema)
            }
            Self::Reflection(server) => reflection::schema(server, service_of(method)?),
        }
    }
}

/// The service of `package.Service/Method`.
fn service_of(method: &str) -> Result<&str, MethodError> {
    let name = method.strip_prefix('/').unwrap_or(method);
    match name.split_once('/') {
        Some((service, rest)) if !service.is_empty() && !rest.is_empty() && !rest.contains('/') => {
            Ok(service)
        }
        _ => Err(MethodError::Form(method.to_owned())),
    }
}

fn compile(files: &[PathBuf], folders: &[PathBuf]) -> Result<Schema, GrpcCallError> {
    let mut folders = folders.to_vec();
    let mut roots = Vec::new();
    for file in files {
        // The compiler finds files by name only, and its error for an absent one has no cause.
        fs::metadata(file).map_err(|reason| GrpcCallError::File {
            path: file.clone(),
            reason,
        })?;
        roots.push(name_in(file, &mut folders)?);
    }
    let roots: Vec<&str> = roots.iter().map(String::as_str).collect();
    Ok(Schema::compile(&roots, Folders(folders))?)
}

/// The name of a file within the first folder that has it. Without one, its own folder is added.
fn name_in(file: &Path, folders: &mut Vec<PathBuf>) -> Result<String, GrpcCallError> {
    let whole = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let path = whole(file);
    for folder in &*folders {
        if let Ok(rest) = path.strip_prefix(whole(folder)) {
            let parts = rest.components();
            let parts: Vec<_> = parts
                .map(|part| part.as_os_str().to_string_lossy())
                .collect();
            return Ok(parts.join("/"));
        }
    }
    let own = file.parent().filter(|own| !own.as_os_str().is_empty());
    let name = file.file_name().unwrap_or(file.as_os_str());
    let name = name.to_string_lossy().into_owned();
    if let Some(other) = folders.iter().find(|folder| folder.join(&name).is_file()) {
        let message = format!(
            "{} has another file of this name: give the folder of both with --proto-path",
            other.display()
        );
        return Err(GrpcCallError::File {
            path: file.to_path_buf(),
            reason: std::io::Error::other(message),
        });
    }
    folders.push(own.unwrap_or(Path::new(".")).to_path_buf());
    Ok(name)
}

/// Folders with `.proto` files.
struct Folders(Vec<PathBuf>);

impl ProtoFiles for Folders {
    fn read(&self, name: &str) -> Result<Option<String>, String> {
        let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
        if !Path::new(name).components().all(is_plain) {
            return Err("an import is a path below a folder of --proto-path".to_owned());
        }
        for folder in &self.0 {
            let path = folder.join(name);
            if path.is_file() {
                let bytes = read(&path).map_err(|error| error.to_string())?;
                let text = String::from_utf8(bytes).map_err(|error| error.to_string())?;
                return Ok(Some(text));
            }
        }
        Ok(None)
    }
}

/// Reads a file of bounded size.
fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    if fs::metadata(path)?.len() > MOST_BYTES {
        let message = format!("more than {MOST_BYTES} bytes");
        return Err(std::io::Error::other(message));
    }
    fs::read(path)
}
