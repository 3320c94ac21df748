//! What a caller knows of a service after reading its description, and how a request is made of it.

use thiserror::Error;

use crate::{Version, write};

/// A description, as far as it concerns SOAP.
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

/// An address at which a service is called in one version of SOAP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its name.
    pub name: String,
    /// Where to POST.
    pub address: String,
    /// The version of its binding.
    pub version: Version,
    /// What it offers.
    pub operations: Vec<Operation>,
    /// What its binding says in other namespaces.
    pub extensions: Vec<Extension>,
}

/// An operation of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its name.
    pub name: String,
    /// What the description says about it.
    pub documentation: String,
    /// The version of its port.
    pub version: Version,
    /// The SOAPAction of SOAP 1.1, the action parameter of SOAP 1.2; often empty.
    pub action: String,
    /// What it takes.
    pub input: Input,
    /// What the binding says of it in other namespaces.
    pub extensions: Vec<Extension>,
}

/// An element that WSDL and its SOAP bindings do not know and allow (WSDL 1.1, section 2.1.3), as far as
/// it holds words alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// Its namespace.
    pub namespace: String,
    /// Its local name.
    pub name: String,
    /// Its words, without blanks around them.
    pub text: String,
}

/// What an operation takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// An empty Body.
    Empty,
    /// One element with fields.
    Wrapper(Wrapper),
    /// Something that cannot be made here, and why.
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
    /// Whether the schema allows others (a choice, a group, a wildcard), which cannot be set.
    pub open: bool,
}

/// A child of a wrapper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its namespace where it is qualified (elementFormDefault, form, ref).
    pub namespace: Option<String>,
    /// The local name of its simple type; `None` when it has a structure of its own.
    pub kind: Option<String>,
    /// Whether it may be left out (minOccurs 0).
    pub optional: bool,
    /// Whether `xsi:nil` stands for no value.
    pub nillable: bool,
    /// Whether it may stand more than once.
    pub many: bool,
}

/// Why an operation was not found.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no operation {asked:?}{}: there are {}", version.map(|v| format!(" for {v:?}")).unwrap_or_default(), known.join(", "))]
pub struct FindError {
    /// What was asked for.
    pub asked: String,
    /// The version asked for, if any.
    pub version: Option<Version>,
    /// The operations there are.
    pub known: Vec<String>,
}

/// Why a request could not be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum EnvelopeError {
    /// The operation cannot be called from here.
    #[error("the operation {operation} cannot be called: {reason}")]
    Unusable {
        /// Which operation.
        operation: String,
        /// Why.
        reason: String,
    },
    /// A value for a field that is not there.
    #[error("{operation} has no field {field:?}: it takes {}", list(known))]
    Unknown {
        /// Which operation.
        operation: String,
        /// The field asked for.
        field: String,
        /// The fields there are.
        known: Vec<String>,
    },
    /// No value for a field that must have one.
    #[error("{operation} needs the field {field:?}: it takes {}", list(known))]
    Missing {
        /// Which operation.
        operation: String,
        /// The field without a value.
        field: String,
        /// The fields there are.
        known: Vec<String>,
    },
    /// Two values for a field that stands once.
    #[error("{operation} takes {field:?} once")]
    Twice {
        /// Which operation.
        operation: String,
        /// The field.
        field: String,
    },
    /// A value for, or the need of, a field with a structure of its own.
    #[error(
        "the field {field:?} of {operation} is not a plain value: write the envelope into a file and send that"
    )]
    Structured {
        /// Which operation.
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
    /// The first port that has `operation`, in `version` where one is given, else in SOAP 1.1 first.
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
            asked: operation.to_owned(),
            version,
            known,
        })
    }
}

impl Operation {
    /// The names of the fields it takes, in order.
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

    /// A request in `version` with `values` as (field, text), in any order; repeated where allowed.
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
        // A namespace of its own is declared where it is used.
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
