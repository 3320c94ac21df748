//! Schemas: the services and messages of `.proto` files, of a descriptor set, or of server reflection.

use std::collections::BTreeMap;
use std::fmt;

use miette::Diagnostic as _;
use prost::Message as _;
use prost_reflect::{DescriptorPool, ServiceDescriptor};
use prost_types::{FileDescriptorProto, FileDescriptorSet};
use protox::Compiler;
use protox::file::{ChainFileResolver, File, FileResolver, GoogleFileResolver};
use thiserror::Error;

use crate::method::Method;
use crate::nearest::suggest;

/// Maximum number of files, far above that of real schemas.
const MOST_FILES: usize = 2000;

/// The texts of `.proto` files, by the name under which others import them.
pub trait ProtoFiles {
    /// The text of a file. `None` if there is no such file, and an error if it cannot be read.
    fn read(&self, name: &str) -> Result<Option<String>, String>;
}

impl ProtoFiles for BTreeMap<String, String> {
    fn read(&self, name: &str) -> Result<Option<String>, String> {
        Ok(self.get(name).cloned())
    }
}

impl ProtoFiles for &'static [(&'static str, &'static str)] {
    fn read(&self, name: &str) -> Result<Option<String>, String> {
        let found = self.iter().find(|(known, _)| *known == name);
        Ok(found.map(|(_, text)| (*text).to_owned()))
    }
}

/// Services and messages.
#[derive(Clone, Debug)]
pub struct Schema {
    pool: DescriptorPool,
}

/// The reason why files or descriptors are not a schema.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub struct SchemaError {
    /// Name of the file, if the error is in one.
    pub file: Option<String>,
    /// Line and column of the error, both from 1, if it has a position.
    pub position: Option<(usize, usize)>,
    /// The error.
    pub reason: String,
}

/// The reason why a method is not found.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum MethodError {
    /// The text does not name a service and a method.
    #[error("{0:?} is no method: write package.Service/Method")]
    Form(String),
    /// There is no such service.
    #[error("there is no service {service}: {suggestion}")]
    Service {
        /// The name.
        service: String,
        /// The nearest name, or all.
        suggestion: String,
    },
    /// The service has no such method.
    #[error("the service {service} has no method {method}: {suggestion}")]
    Method {
        /// The service.
        service: String,
        /// The name.
        method: String,
        /// The nearest name, or all.
        suggestion: String,
    },
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.position) {
            (Some(file), Some((line, column))) => write!(f, "{file}:{line}:{column}: ")?,
            (Some(file), None) => write!(f, "{file}: ")?,
            (None, _) => {}
        }
        f.write_str(&self.reason)
    }
}

impl Schema {
    /// Compiles `roots` and the files that they import. The files of `google/protobuf` are known.
    pub fn compile(roots: &[&str], files: impl ProtoFiles + 'static) -> Result<Self, SchemaError> {
        let mut resolver = ChainFileResolver::new();
        resolver.add(Resolver(files));
        resolver.add(GoogleFileResolver::new());
        let mut compiler = Compiler::with_file_resolver(resolver);
        compiler.include_imports(true);
        for root in roots {
            compiler
                .open_file(root)
                .map_err(|error| SchemaError::from_protox(&error))?;
        }
        Ok(Self {
            pool: compiler.descriptor_pool(),
        })
    }

    /// Decodes a `FileDescriptorSet`, as `protoc --descriptor_set_out --include_imports` and `buf build` write it.
    pub fn from_descriptor_set(bytes: &[u8]) -> Result<Self, SchemaError> {
        let set = FileDescriptorSet::decode(bytes).map_err(|error| {
            SchemaError::without_position(format!("this is no descriptor set: {error}"))
        })?;
        if set.file.is_empty() {
            let reason = "this descriptor set has no files".to_owned();
            return Err(SchemaError::without_position(reason));
        }
        Self::from_files(set.file)
    }

    /// Combines descriptors of files, in any order. An import that is missing is an error.
    pub fn from_files(
        files: impl IntoIterator<Item = FileDescriptorProto>,
    ) -> Result<Self, SchemaError> {
        let mut by_name = BTreeMap::new();
        for file in files {
            check_syntax(&file)?;
            by_name.insert(file.name().to_owned(), file);
        }
        if by_name.len() > MOST_FILES {
            let reason = format!("more than {MOST_FILES} files");
            return Err(SchemaError::without_position(reason));
        }
        // Well-known files are often omitted.
        let google = GoogleFileResolver::new();
        let imports: Vec<String> = by_name
            .values()
            .flat_map(|file| file.dependency.iter().cloned())
            .collect();
        for import in imports {
            if !by_name.contains_key(&import)
                && let Ok(file) = google.open_file(&import)
            {
                by_name.insert(import, file.file_descriptor_proto().clone());
            }
        }
        let mut pool = DescriptorPool::new();
        pool.add_file_descriptor_protos(by_name.into_values())
            .map_err(|error| SchemaError {
                file: error.file().map(str::to_owned),
                position: error
                    .line()
                    .zip(error.column())
                    .map(|(line, column)| (line + 1, column + 1)),
                reason: error.to_string(),
            })?;
        Ok(Self { pool })
    }

    /// Finds a method by `package.Service/Method`. A slash before it is allowed.
    pub fn find(&self, name: &str) -> Result<Method, MethodError> {
        let parts = name.strip_prefix('/').unwrap_or(name).split_once('/');
        let Some((service, method)) = parts.filter(|(service, method)| {
            !service.is_empty() && !method.is_empty() && !method.contains('/')
        }) else {
            return Err(MethodError::Form(name.to_owned()));
        };
        let Some(found) = self.pool.get_service_by_name(service) else {
            let known: Vec<String> = self.services().collect();
            return Err(MethodError::Service {
                service: service.to_owned(),
                suggestion: suggest(service, known.iter().map(String::as_str)),
            });
        };
        let Some(descriptor) = found.methods().find(|known| known.name() == method) else {
            let known: Vec<_> = found.methods().collect();
            return Err(MethodError::Method {
                service: service.to_owned(),
                method: method.to_owned(),
                suggestion: suggest(method, known.iter().map(|known| known.name())),
            });
        };
        Ok(Method::new(descriptor))
    }

    /// Full names of all services.
    pub fn services(&self) -> impl Iterator<Item = String> {
        self.pool
            .services()
            .map(|service: ServiceDescriptor| service.full_name().to_owned())
    }

    /// The descriptors.
    pub fn pool(&self) -> &DescriptorPool {
        &self.pool
    }
}

/// Refuses a file in another syntax than those that the pool knows: for others it panics.
fn check_syntax(file: &FileDescriptorProto) -> Result<(), SchemaError> {
    match file.syntax.as_deref() {
        None | Some("proto2" | "proto3") => Ok(()),
        Some(other) => Err(SchemaError {
            file: Some(file.name().to_owned()),
            position: None,
            reason: format!("the syntax {other:?} is not supported: use proto2 or proto3"),
        }),
    }
}

impl SchemaError {
    fn from_protox(error: &protox::Error) -> Self {
        let position = error.source_code().and_then(|source| {
            // The first label of two is the place of an earlier declaration.
            let label = error.labels()?.last()?;
            let around = source.read_span(label.inner(), 0, 0).ok()?;
            Some((around.line() + 1, around.column() + 1))
        });
        Self {
            file: error.file().map(str::to_owned),
            position,
            reason: error.to_string(),
        }
    }

    pub(crate) const fn without_position(reason: String) -> Self {
        Self {
            file: None,
            position: None,
            reason,
        }
    }
}

/// The caller's files, for the compiler.
struct Resolver<F>(F);

impl<F: ProtoFiles> FileResolver for Resolver<F> {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        match self.0.read(name) {
            Ok(Some(text)) => File::from_source(name, &text),
            Ok(None) => Err(protox::Error::file_not_found(name)),
            Err(reason) => Err(protox::Error::new(format!("{name}: {reason}"))),
        }
    }
}
