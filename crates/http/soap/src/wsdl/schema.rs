//! The part of XML Schema that is needed to fill in a wrapper: global elements, named complex types, sequences and
//! `all`, references and extensions. Any other construct makes a field structured.

use std::collections::{HashMap, HashSet};

use super::SCHEMA;
use super::description::{Field, Wrapper};
use super::elements::{QName, attribute, each_child, import, namespace, reference};
use crate::limits::Limits;
use crate::xml::{Scanner, XmlError, is_name, shortened};

/// Maximum length of a chain of extensions and references. A longer one is a loop.
const CHAIN: usize = 32;

/// Every schema of a description.
#[derive(Default)]
pub(super) struct Schemas {
    elements: HashMap<QName, Declared>,
    complex: HashMap<QName, Content>,
    simple: HashSet<QName>,
    /// Imports and includes, not followed.
    pub(super) imports: Vec<String>,
}

#[derive(Clone)]
enum Declared {
    /// `type="..."`; `None` means anyType.
    Typed(Option<QName>),
    /// An inline complex type.
    Inline(Content),
    /// An inline simple type.
    Simple,
}

#[derive(Clone, Default)]
struct Content {
    base: Option<QName>,
    particles: Vec<Particle>,
    /// Contains a choice, a group or a wildcard, so the fields are incomplete.
    open: bool,
}

#[derive(Clone)]
struct Particle {
    name: QName,
    qualified: bool,
    reference: bool,
    declared: Declared,
    optional: bool,
    nillable: bool,
    many: bool,
}

/// Properties of a whole schema.
struct Frame {
    namespace: String,
    qualified: bool,
}

/// Reads the schema element started last.
pub(super) fn read(
    scanner: &mut Scanner<'_>,
    limits: &Limits,
    schemas: &mut Schemas,
) -> Result<(), XmlError> {
    let frame = Frame {
        namespace: namespace(scanner, limits)?,
        qualified: attribute(scanner, "elementFormDefault") == "qualified",
    };
    each_child(scanner, |scanner, namespace, local| {
        if namespace != SCHEMA {
            return scanner.skip();
        }
        let name = (frame.namespace.clone(), attribute(scanner, "name"));
        match local {
            "import" | "include" | "redefine" => {
                // An import without a location names another schema in this document.
                if scanner.attribute("schemaLocation").is_some() {
                    schemas.imports.push(import(scanner));
                }
                scanner.skip()
            }
            "element" => {
                let declared = read_declared(scanner, &frame)?;
                schemas.elements.insert(name, declared);
                Ok(())
            }
            "complexType" => {
                let content = read_content(scanner, &frame)?;
                schemas.complex.insert(name, content);
                Ok(())
            }
            "simpleType" => {
                schemas.simple.insert(name);
                scanner.skip()
            }
            _ => scanner.skip(),
        }
    })
}

fn read_declared(scanner: &mut Scanner<'_>, frame: &Frame) -> Result<Declared, XmlError> {
    let mut declared = Declared::Typed(reference(scanner, "type"));
    each_child(scanner, |scanner, namespace, local| {
        match (namespace, local) {
            (SCHEMA, "complexType") => {
                declared = Declared::Inline(read_content(scanner, frame)?);
                Ok(())
            }
            (SCHEMA, "simpleType") => {
                declared = Declared::Simple;
                scanner.skip()
            }
            _ => scanner.skip(),
        }
    })?;
    Ok(declared)
}

fn read_content(scanner: &mut Scanner<'_>, frame: &Frame) -> Result<Content, XmlError> {
    let mut content = Content::default();
    read_particles(scanner, frame, &mut content)?;
    Ok(content)
}

/// Reads the content of a complex type, at any depth within the scanner's limit.
fn read_particles(
    scanner: &mut Scanner<'_>,
    frame: &Frame,
    content: &mut Content,
) -> Result<(), XmlError> {
    each_child(scanner, |scanner, namespace, local| {
        match (namespace, local) {
            (SCHEMA, "sequence" | "all" | "complexContent") => {
                read_particles(scanner, frame, content)
            }
            (SCHEMA, "extension") => {
                content.base = reference(scanner, "base");
                read_particles(scanner, frame, content)
            }
            (SCHEMA, "element") => {
                let referred = reference(scanner, "ref");
                let form = attribute(scanner, "form");
                let optional = attribute(scanner, "minOccurs") == "0";
                let nillable = matches!(&*attribute(scanner, "nillable"), "true" | "1");
                let many = !matches!(&*attribute(scanner, "maxOccurs"), "" | "0" | "1");
                let own = (frame.namespace.clone(), attribute(scanner, "name"));
                let qualified = form == "qualified" || (form.is_empty() && frame.qualified);
                let declared = read_declared(scanner, frame)?;
                content.particles.push(Particle {
                    qualified: qualified || referred.is_some(),
                    reference: referred.is_some(),
                    name: referred.unwrap_or(own),
                    declared,
                    optional,
                    nillable,
                    many,
                });
                Ok(())
            }
            (SCHEMA, "choice" | "group" | "any" | "restriction" | "simpleContent") => {
                content.open = true;
                scanner.skip()
            }
            _ => scanner.skip(),
        }
    })
}

impl Schemas {
    /// The wrapper that `element` declares, or the reason why no request can be made of it.
    pub(super) fn wrapper(&self, element: &QName) -> Result<Wrapper, String> {
        let show = |(namespace, local): &QName| format!("{{{namespace}}}{local}");
        let gone = |name: &QName| format!("the type {} is not in this document", show(name));
        let declared = self.elements.get(element);
        let declared = declared
            .ok_or_else(|| format!("its element {} is not in this document", show(element)))?;
        let first = match declared {
            Declared::Inline(inline) => inline,
            Declared::Typed(Some(name)) if self.is_simple(name) => {
                return Err(format!(
                    "its element {} is no wrapper but a plain {}",
                    show(element),
                    name.1
                ));
            }
            Declared::Typed(Some(name)) => self.complex.get(name).ok_or_else(|| gone(name))?,
            Declared::Typed(None) | Declared::Simple => {
                return Err(format!("its element {} is no wrapper", show(element)));
            }
        };
        let mut chain = vec![first];
        let mut content = first;
        while let Some(base) = &content.base {
            if chain.len() == CHAIN {
                return Err("its type extends itself".to_owned());
            }
            content = self.complex.get(base).ok_or_else(|| gone(base))?;
            chain.push(content);
        }
        // The base's fields come first.
        let particles = chain.iter().rev().flat_map(|content| &content.particles);
        if element.0.is_empty() {
            return Err(format!(
                "its element {} has no namespace (R1014)",
                element.1
            ));
        }
        let mut names = particles.clone().map(|particle| &particle.name.1);
        if let Some(wrong) = std::iter::once(&element.1)
            .chain(&mut names)
            .find(|n| !is_name(n))
        {
            let wrong = shortened(wrong, 40);
            return Err(format!("{wrong:?} is not a name that an element can have"));
        }
        Ok(Wrapper {
            namespace: element.0.clone(),
            name: element.1.clone(),
            fields: particles.map(|particle| self.field(particle)).collect(),
            open: chain.iter().any(|content| content.open),
        })
    }

    fn field(&self, particle: &Particle) -> Field {
        let mut declared = &particle.declared;
        if particle.reference {
            declared = self.elements.get(&particle.name).unwrap_or(declared);
        }
        let kind = match declared {
            Declared::Simple => Some("string".to_owned()),
            Declared::Typed(Some(name)) if self.is_simple(name) => Some(name.1.clone()),
            _ => None,
        };
        let (namespace, name) = particle.name.clone();
        Field {
            name,
            namespace: Some(namespace).filter(|n| particle.qualified && !n.is_empty()),
            kind,
            optional: particle.optional,
            nillable: particle.nillable,
            many: particle.many,
        }
    }

    fn is_simple(&self, name: &QName) -> bool {
        let built_in = name.0 == SCHEMA && !matches!(&*name.1, "anyType" | "schema");
        built_in || self.simple.contains(name)
    }
}
