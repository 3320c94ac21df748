//! Reader for descriptions: collects the parts of a document, then links them.
//!
//! Any part of WSDL may refer to any other by name, in any order, so two steps are needed. Prefixes are resolved while
//! they are in scope, and the result contains only full names. Imports are not followed, because nothing here opens a
//! file or a socket. Error messages about missing parts list them.

use std::collections::HashMap;

use thiserror::Error;

use super::description::{Described, Description, Extension, Input, Operation, Port};
use super::elements::{QName, attribute, each_child, import, namespace, reference};
use super::schema::{self, Schemas};
use super::{SCHEMA, SOAP11, SOAP12, WSDL};
use crate::Version;
use crate::limits::Limits;
use crate::xml::{Scanner, Token, XmlError, decode};

/// Approximate maximum size of the linked description, in bytes. Each port repeats its operations, and each operation
/// the fields of its element.
const LINKED: usize = 64 << 20;

const WSDL20: &str = "http://www.w3.org/ns/wsdl";

/// Reason why a description could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ReadError {
    /// Not XML, or larger than the limits allow.
    #[error("{0}")]
    Xml(#[from] XmlError),
    /// WSDL 2.0.
    #[error("this is WSDL 2.0, which is not read: ask the service for WSDL 1.1, often under ?wsdl")]
    Wsdl20,
    /// Some other document.
    #[error(
        "the root element is {0:?}, not WSDL's definitions: is the address the one that ends in ?wsdl?"
    )]
    NotWsdl(String),
    /// A reference to a part that is not in the document.
    #[error("{kind} {name} is not in this document{}", imported(imports))]
    Missing {
        /// Kind of the missing part: a message, a binding.
        kind: &'static str,
        /// Its name.
        name: String,
        /// The imports that were not followed and may contain it.
        imports: Vec<String>,
    },
    /// Operations, ports and types that repeat one another need too much memory.
    #[error("more than {LINKED} bytes once its ports, operations and types are put together")]
    TooMuch,
    /// No port with a SOAP binding.
    #[error("no service here has a SOAP port{}", imported(.0))]
    NoPort(Vec<String>),
}

fn imported(imports: &[String]) -> String {
    match imports {
        [] => String::new(),
        some => format!(
            "; imports are not followed ({}): fetch the one-file form, often under ?singleWsdl",
            some.join(", ")
        ),
    }
}

/// Parts of a document before linking.
#[derive(Default)]
struct Parts {
    namespace: String,
    imports: Vec<String>,
    messages: HashMap<QName, Vec<MessagePart>>,
    port_types: HashMap<QName, Vec<Abstract>>,
    bindings: HashMap<QName, Binding>,
    services: Vec<(String, Vec<RawPort>)>,
    schemas: Schemas,
}

struct MessagePart {
    name: String,
    element: Option<QName>,
}

struct Abstract {
    name: String,
    input: Option<QName>,
    documentation: String,
}

struct Binding {
    port_type: QName,
    version: Version,
    rpc: bool,
    operations: Vec<Bound>,
    extensions: Vec<Extension>,
}

#[derive(Clone, Default)]
struct Bound {
    name: String,
    action: String,
    rpc: Option<bool>,
    encoded: bool,
    extensions: Vec<Extension>,
}

struct RawPort {
    name: String,
    binding: QName,
    address: Option<String>,
}

/// Reads a WSDL 1.1 document within [`Limits::description`]. Processing instructions are permitted.
pub fn read(bytes: &[u8]) -> Result<Description, ReadError> {
    let limits = Limits {
        instructions: true,
        ..Limits::description()
    };
    let text = decode(bytes, &limits)?;
    let mut scanner = Scanner::new(&text, &limits);
    let mut parts = Parts::default();
    match scanner.token()? {
        Token::Start(name) if name.is(WSDL, "definitions") => {}
        Token::Start(name) if name.namespace == WSDL20 => return Err(ReadError::Wsdl20),
        Token::Start(name) => return Err(ReadError::NotWsdl(name.local.to_owned())),
        _ => return Err(ReadError::NotWsdl(String::new())),
    }
    parts.namespace = namespace(&scanner, &limits)?;
    each_child(&mut scanner, |scanner, namespace, local| {
        match (namespace, local) {
            (WSDL, "import") => {
                parts.imports.push(import(scanner));
                scanner.skip()
            }
            (WSDL, "types") => each_child(scanner, |scanner, namespace, local| {
                match (namespace, local) {
                    (SCHEMA, "schema") => schema::read(scanner, &limits, &mut parts.schemas),
                    _ => scanner.skip(),
                }
            }),
            (WSDL, "message") => read_message(scanner, &mut parts),
            (WSDL, "portType") => read_port_type(scanner, &mut parts),
            (WSDL, "binding") => read_binding(scanner, &mut parts),
            (WSDL, "service") => read_service(scanner, &mut parts),
            _ => scanner.skip(),
        }
    })?;
    while scanner.token()? != Token::Eof {}
    parts.imports.extend(parts.schemas.imports.iter().cloned());
    parts.link()
}

fn own(parts: &Parts, scanner: &Scanner<'_>) -> QName {
    (parts.namespace.clone(), attribute(scanner, "name"))
}

fn read_message(scanner: &mut Scanner<'_>, parts: &mut Parts) -> Result<(), XmlError> {
    let name = own(parts, scanner);
    let mut found = Vec::new();
    each_child(scanner, |scanner, namespace, local| {
        if (namespace, local) == (WSDL, "part") {
            found.push(MessagePart {
                name: attribute(scanner, "name"),
                element: reference(scanner, "element"),
            });
        }
        scanner.skip()
    })?;
    parts.messages.insert(name, found);
    Ok(())
}

fn read_port_type(scanner: &mut Scanner<'_>, parts: &mut Parts) -> Result<(), XmlError> {
    let name = own(parts, scanner);
    let mut operations = Vec::new();
    each_child(scanner, |scanner, namespace, local| {
        if (namespace, local) != (WSDL, "operation") {
            return scanner.skip();
        }
        let mut operation = Abstract {
            name: attribute(scanner, "name"),
            input: None,
            documentation: String::new(),
        };
        each_child(scanner, |scanner, namespace, local| {
            match (namespace, local) {
                (WSDL, "input") => {
                    operation.input = reference(scanner, "message");
                    scanner.skip()
                }
                (WSDL, "documentation") => {
                    operation.documentation = scanner.text()?.unwrap_or_default().trim().to_owned();
                    Ok(())
                }
                _ => scanner.skip(),
            }
        })?;
        operations.push(operation);
        Ok(())
    })?;
    parts.port_types.insert(name, operations);
    Ok(())
}

fn version(namespace: &str) -> Option<Version> {
    match namespace {
        SOAP11 => Some(Version::Soap11),
        SOAP12 => Some(Version::Soap12),
        _ => None,
    }
}

fn read_binding(scanner: &mut Scanner<'_>, parts: &mut Parts) -> Result<(), XmlError> {
    let name = own(parts, scanner);
    let port_type = reference(scanner, "type").unwrap_or_default();
    let (mut soap, mut rpc) = (None, false);
    let (mut operations, mut extensions) = (Vec::new(), Vec::new());
    each_child(scanner, |scanner, namespace, local| {
        if let (Some(version), "binding") = (version(namespace), local) {
            soap = Some(version);
            rpc = attribute(scanner, "style") == "rpc";
        } else if (namespace, local) == (WSDL, "operation") {
            operations.push(read_bound(scanner)?);
            return Ok(());
        } else if is_extension(namespace) {
            return read_extension(scanner, namespace, local, &mut extensions);
        }
        scanner.skip()
    })?;
    if let Some(version) = soap {
        parts.bindings.insert(
            name,
            Binding {
                port_type,
                version,
                rpc,
                operations,
                extensions,
            },
        );
    }
    Ok(())
}

fn read_bound(scanner: &mut Scanner<'_>) -> Result<Bound, XmlError> {
    let mut bound = Bound {
        name: attribute(scanner, "name"),
        ..Bound::default()
    };
    each_child(scanner, |scanner, namespace, local| {
        match (version(namespace), local) {
            (Some(_), "operation") => {
                bound.action = attribute(scanner, "soapAction");
                let style = attribute(scanner, "style");
                bound.rpc = (!style.is_empty()).then(|| style == "rpc");
                scanner.skip()
            }
            (None, "input") => each_child(scanner, |scanner, namespace, local| {
                if version(namespace).is_some() && local == "body" {
                    bound.encoded = attribute(scanner, "use") == "encoded";
                }
                scanner.skip()
            }),
            (None, _) if is_extension(namespace) => {
                read_extension(scanner, namespace, local, &mut bound.extensions)
            }
            _ => scanner.skip(),
        }
    })?;
    Ok(bound)
}

/// Returns true for the namespace of an extension, which is neither WSDL's nor SOAP's.
fn is_extension(namespace: &str) -> bool {
    !namespace.is_empty() && namespace != WSDL && version(namespace).is_none()
}

/// Keeps the element started last if it contains only text.
fn read_extension(
    scanner: &mut Scanner<'_>,
    namespace: &str,
    local: &str,
    extensions: &mut Vec<Extension>,
) -> Result<(), XmlError> {
    if let Some(text) = scanner.text()? {
        extensions.push(Extension {
            namespace: namespace.to_owned(),
            name: local.to_owned(),
            text: text.trim().to_owned(),
        });
    }
    Ok(())
}

fn read_service(scanner: &mut Scanner<'_>, parts: &mut Parts) -> Result<(), XmlError> {
    let name = attribute(scanner, "name");
    let mut ports = Vec::new();
    each_child(scanner, |scanner, namespace, local| {
        if (namespace, local) != (WSDL, "port") {
            return scanner.skip();
        }
        let mut port = RawPort {
            name: attribute(scanner, "name"),
            binding: reference(scanner, "binding").unwrap_or_default(),
            address: None,
        };
        each_child(scanner, |scanner, namespace, local| {
            if version(namespace).is_some() && local == "address" {
                port.address = Some(attribute(scanner, "location"));
            }
            scanner.skip()
        })?;
        ports.push(port);
        Ok(())
    })?;
    parts.services.push((name, ports));
    Ok(())
}

impl Parts {
    fn link(self) -> Result<Description, ReadError> {
        let mut services = Vec::new();
        let mut room = LINKED;
        for (name, ports) in &self.services {
            let mut linked = Vec::new();
            // A port without a SOAP address uses HTTP GET or another protocol and is ignored.
            for port in ports {
                if let Some(address) = &port.address {
                    linked.push(self.port(port, address, &mut room)?);
                }
            }
            services.push(Described {
                name: name.clone(),
                ports: linked,
            });
        }
        if services.iter().all(|service| service.ports.is_empty()) {
            return Err(ReadError::NoPort(self.imports));
        }
        Ok(Description { services })
    }

    fn port(&self, port: &RawPort, address: &str, room: &mut usize) -> Result<Port, ReadError> {
        let binding = self
            .bindings
            .get(&port.binding)
            .ok_or_else(|| self.missing("the binding", &port.binding))?;
        let declared = self.port_types.get(&binding.port_type);
        let declared = declared.ok_or_else(|| self.missing("the port type", &binding.port_type))?;
        take(room, binding.operations.len() * size_of::<Bound>())?;
        // The first of equal names counts, so it is inserted last.
        let bound: HashMap<&str, &Bound> = binding
            .operations
            .iter()
            .rev()
            .map(|bound| (&*bound.name, bound))
            .collect();
        let mut operations = Vec::new();
        for operation in declared {
            let length = operation.name.len() + operation.documentation.len();
            take(room, size_of::<Operation>() + length)?;
            let Some(bound) = bound.get(&*operation.name) else {
                continue;
            };
            let rpc = bound.rpc.unwrap_or(binding.rpc);
            let input = self.input(operation, rpc, bound.encoded)?;
            let extensions = extensions_size(&bound.extensions);
            take(room, bound.action.len() + size(&input) + extensions)?;
            operations.push(Operation {
                name: operation.name.clone(),
                documentation: operation.documentation.clone(),
                version: binding.version,
                action: bound.action.clone(),
                input,
                extensions: bound.extensions.clone(),
            });
        }
        take(room, extensions_size(&binding.extensions))?;
        Ok(Port {
            name: port.name.clone(),
            address: address.to_owned(),
            version: binding.version,
            operations,
            extensions: binding.extensions.clone(),
        })
    }

    /// Content of an operation's request. Unsupported content is an error only when a request is made.
    fn input(&self, operation: &Abstract, rpc: bool, encoded: bool) -> Result<Input, ReadError> {
        let unusable = |reason: String| Ok(Input::Unusable(reason));
        if rpc {
            return unusable("its style is rpc: only document/literal is made".to_owned());
        }
        if encoded {
            return unusable("its use is encoded: only document/literal is made".to_owned());
        }
        let Some(message) = &operation.input else {
            return unusable("it has no input".to_owned());
        };
        let parts = self
            .messages
            .get(message)
            .ok_or_else(|| self.missing("the message", message))?;
        // Other parts may be SOAP headers. By convention, the body's part is the first, or called "parameters".
        let body = parts
            .iter()
            .find(|part| matches!(&*part.name, "parameters" | "body"));
        let Some(part) = body.or(parts.first()) else {
            return Ok(Input::Empty);
        };
        let Some(element) = &part.element else {
            return unusable(format!(
                "its part {:?} has a type and no element (R2204)",
                part.name
            ));
        };
        match self.schemas.wrapper(element) {
            Ok(wrapper) => Ok(Input::Wrapper(wrapper)),
            Err(reason) => unusable(format!("{reason}{}", imported(&self.imports))),
        }
    }

    fn missing(&self, kind: &'static str, name: &QName) -> ReadError {
        let (namespace, local) = name;
        ReadError::Missing {
            kind,
            name: format!("{{{namespace}}}{local}"),
            imports: self.imports.clone(),
        }
    }
}

/// Subtracts `bytes` from the remaining size for linking.
fn take(room: &mut usize, bytes: usize) -> Result<(), ReadError> {
    *room = room.checked_sub(bytes).ok_or(ReadError::TooMuch)?;
    Ok(())
}

/// Approximate size of extensions in bytes.
fn extensions_size(extensions: &[Extension]) -> usize {
    let length = |e: &Extension| e.namespace.len() + e.name.len() + e.text.len();
    let each = extensions
        .iter()
        .map(|e| size_of::<Extension>() + length(e));
    each.sum()
}

/// Approximate heap size of an input in bytes.
fn size(input: &Input) -> usize {
    match input {
        Input::Empty => 0,
        Input::Unusable(reason) => reason.len(),
        Input::Wrapper(wrapper) => {
            let fields = wrapper.fields.iter();
            let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
            fields
                .map(|f| size_of_val(f) + f.name.len() + length(&f.namespace) + length(&f.kind))
                .sum()
        }
    }
}
