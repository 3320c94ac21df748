//! A service's description as read by a client, and requests made from it.

use thiserror::Error;

use crate::{Version, write};

/// The SOAP part of a description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The services, in order; at least one has a port.
    pub services: Vec<Described>,
}

/// A service in a description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Described {
    /// Its name.
    pub name: String,
    /// Its SOAP ports.
    pub ports: Vec<Port>,
}

/// An address of a service for one version of SOAP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// URL for POST requests.
    pub address: String,
    /// The version of its binding.
    pub version: Version,
    /// The operations.
    pub operations: Vec<Operation>,
    /// Elements of its binding from other namespaces.
    pub extensions: Vec<Extension>,
}

/// An operation of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its name.
    pub name: String,
    /// Documentation from the description.
    pub documentation: String,
    /// The version of its port.
    pub version: Version,
    /// The SOAPAction of SOAP 1.1, the action parameter of SOAP 1.2; often empty.
    pub action: String,
    /// Content of a request.
    pub input: Input,
    /// Elements of the operation's binding from other namespaces.
    pub extensions: Vec<Extension>,
}

/// An extension element with only text, unknown to WSDL and its SOAP bindings (WSDL 1.1, section 2.1.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// Its namespace.
    pub namespace: String,
    /// Its local name.
    pub name: String,
    /// Its text, trimmed.
    pub text: String,
}

/// Content of an operation's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// An empty Body.
    Empty,
    /// One element with fields.
    Wrapper(Wrapper),
    /// Content that is not supported, with the reason.
    Unusable(String),
}

/// The element that wraps a request's fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrapper {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its children, in order.
    pub fields: Vec<Field>,
    /// The schema permits further children (a choice, a group, a wildcard). They cannot be set.
    pub open: bool,
}

/// A child of a wrapper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its namespace if it is qualified (elementFormDefault, form, ref).
    pub namespace: Option<String>,
    /// Local name of its simple type; `None` if it has a structure of its own.
    pub kind: Option<String>,
    /// The field may be omitted (minOccurs 0).
    pub optional: bool,
    /// `xsi:nil` represents a missing value.
    pub nillable: bool,
    /// The field may be repeated.
    pub many: bool,
}

/// An operation was not found.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no operation {requested:?}{}: there are {}", version.map(|v| format!(" for {v:?}")).unwrap_or_default(), known.join(", "))]
pub struct FindError {
    /// The requested operation.
    pub requested: String,
    /// The requested version, if any.
    pub version: Option<Version>,
    /// The existing operations.
    pub known: Vec<String>,
}

/// Reason why a request could not be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EnvelopeError {
    /// The operation is not supported.
    #[error("the operation {operation} cannot be called: {reason}")]
    Unusable {
        /// The operation.
        operation: String,
        /// The reason.
        reason: String,
    },
    /// A value for an unknown field.
    #[error("{operation} has no field {field:?}: it takes {}", list(known))]
    Unknown {
        /// The operation.
        operation: String,
        /// The requested field.
        field: String,
        /// The existing fields.
        known: Vec<String>,
    },
    /// A required field without a value.
    #[error("{operation} needs the field {field:?}: it takes {}", list(known))]
    Missing {
        /// The operation.
        operation: String,
        /// The field without a value.
        field: String,
        /// The existing fields.
        known: Vec<String>,
    },
    /// Two values for a field that may occur once.
    #[error("{operation} takes {field:?} once")]
    Twice {
        /// The operation.
        operation: String,
        /// The field.
        field: String,
    },
    /// A field with a structure of its own has a value or needs one.
    #[error(
        "the field {field:?} of {operation} is not a plain value: write the envelope into a file and send that"
    )]
    Structured {
        /// The operation.
        operation: String,
        /// The field.
        field: String,
    },
}

fn list(known: &[String]) -> String {
    if known.is_empty() {
        "none".to_owned()
    } else {
        known.join(", ")
    }
}

impl Description {
    /// The first port with `operation`, in `version` if given, otherwise in SOAP 1.1 first.
    pub fn find(
        &self,
        operation: &str,
        version: Option<Version>,
    ) -> Result<(&Port, &Operation), FindError> {
        let ports = || self.services.iter().flat_map(|service| &service.ports);
        let order = match version {
            Some(version) => vec![version],
            None => vec![Version::Soap11, Version::Soap12],
        };
        for version in &order {
            for port in ports().filter(|port| port.version == *version) {
                if let Some(found) = port.operations.iter().find(|o| o.name == operation) {
                    return Ok((port, found));
                }
            }
        }
        let mut known: Vec<String> = ports()
            .filter(|port| order.contains(&port.version))
            .flat_map(|port| port.operations.iter().map(|o| o.name.clone()))
            .collect();
        known.sort();
        known.dedup();
        Err(FindError {
            requested: operation.to_owned(),
            version,
            known,
        })
    }
}

impl Operation {
    /// The names of its fields, in order.
    pub fn fields(&self) -> Vec<String> {
        match &self.input {
            Input::Wrapper(wrapper) => wrapper
                .fields
                .iter()
                .map(|field| field.name.clone())
                .collect(),
            _ => Vec::new(),
        }
    }

    /// A request in `version` with `values` as (field, text), in any order. A field may be repeated where the schema
    /// allows it.
    pub fn envelope(
        &self,
        version: Version,
        values: &[(&str, &str)],
    ) -> Result<String, EnvelopeError> {
        let mut out = String::with_capacity(512);
        write::open(version, &mut out);
        match &self.input {
            Input::Unusable(reason) => {
                return Err(EnvelopeError::Unusable {
                    operation: self.name.clone(),
                    reason: reason.clone(),
                });
            }
            Input::Empty => self.check(&[], values)?,
            Input::Wrapper(wrapper) => {
                self.check(&wrapper.fields, values)?;
                out.push_str(&format!("<m:{} xmlns:m=\"", wrapper.name));
                write::attribute(&wrapper.namespace, &mut out);
                out.push_str("\">");
                for field in &wrapper.fields {
                    self.write_field(field, wrapper, values, &mut out)?;
                }
                out.push_str(&format!("</m:{}>", wrapper.name));
            }
        }
        write::close(&mut out);
        Ok(out)
    }

    fn check(&self, fields: &[Field], values: &[(&str, &str)]) -> Result<(), EnvelopeError> {
        let unknown = values
            .iter()
            .find(|(name, _)| fields.iter().all(|field| field.name != *name));
        match unknown {
            None => Ok(()),
            Some((field, _)) => Err(EnvelopeError::Unknown {
                operation: self.name.clone(),
                field: (*field).to_owned(),
                known: self.fields(),
            }),
        }
    }

    fn write_field(
        &self,
        field: &Field,
        wrapper: &Wrapper,
        values: &[(&str, &str)],
        out: &mut String,
    ) -> Result<(), EnvelopeError> {
        let given: Vec<&str> = values
            .iter()
            .filter(|(name, _)| *name == field.name)
            .map(|(_, v)| *v)
            .collect();
        let (operation, name) = (self.name.clone(), field.name.clone());
        // A different namespace is declared at the field.
        let (tag, declaration) = match &field.namespace {
            None => (name.clone(), String::new()),
            Some(namespace) if *namespace == wrapper.namespace => {
                (format!("m:{name}"), String::new())
            }
            Some(namespace) => {
                let mut declaration = " xmlns:f=\"".to_owned();
                write::attribute(namespace, &mut declaration);
                (format!("f:{name}"), declaration + "\"")
            }
        };
        match given.len() {
            0 if field.optional => return Ok(()),
            0 if field.nillable => {
                let nil =
                    "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" xsi:nil=\"true\"";
                out.push_str(&format!("<{tag}{declaration} {nil}/>"));
                return Ok(());
            }
            _ if field.kind.is_none() => {
                return Err(EnvelopeError::Structured {
                    operation,
                    field: name,
                });
            }
            0 => {
                return Err(EnvelopeError::Missing {
                    operation,
                    field: name,
                    known: self.fields(),
                });
            }
            1 => {}
            _ if !field.many => {
                return Err(EnvelopeError::Twice {
                    operation,
                    field: name,
                });
            }
            _ => {}
        }
        for value in given {
            out.push_str(&format!("<{tag}{declaration}>"));
            write::text(value, out);
            out.push_str(&format!("</{tag}>"));
        }
        Ok(())
    }
}
