//! Writer for the descriptions of our services.
//!
//! Every operation is document/literal wrapped:
//!
//! - The request is an element with the operation's name, the reply one with `Response` appended.
//! - Each is the only part of its message (R2201, R2204, R2210).
//! - There is one binding for SOAP 1.1 and one for 1.2, over HTTP (R2702), literal (R2706).

use std::fmt::Write as _;

use super::description::Extension;
use super::{SCHEMA, SOAP11, SOAP12, TRANSPORT, WSDL};
use crate::write;

/// A service to be described.
#[derive(Clone, Debug)]
pub struct Service {
    /// An NCName. Port types and bindings are named after it.
    pub name: &'static str,
    /// Target namespace. An action is this, a slash and the operation.
    pub namespace: &'static str,
    /// Documentation.
    pub documentation: &'static str,
    /// Operations with unique names (R2304).
    pub operations: Vec<Offered>,
    /// Named types for [`Kind::Record`].
    pub records: Vec<Record>,
    /// Name of the record that is the only element of a fault's detail.
    pub fault: Option<&'static str>,
}

/// One operation.
#[derive(Clone, Debug)]
pub struct Offered {
    /// An NCName.
    pub name: &'static str,
    /// Documentation.
    pub documentation: &'static str,
    /// Children of the request's wrapper.
    pub input: Vec<Element>,
    /// Children of the reply's wrapper.
    pub output: Vec<Element>,
    /// Extension elements of its bindings from other namespaces. Clients need not understand them.
    pub extensions: Vec<Extension>,
}

/// A named sequence of elements.
#[derive(Clone, Debug)]
pub struct Record {
    /// An NCName.
    pub name: &'static str,
    /// Documentation.
    pub documentation: &'static str,
    /// Its children, in order.
    pub elements: Vec<Element>,
}

/// A child element.
#[derive(Clone, Debug)]
pub struct Element {
    /// An NCName; unused for [`Kind::Any`].
    pub name: &'static str,
    /// Content type.
    pub kind: Kind,
    /// The element may be omitted.
    pub optional: bool,
    /// The element may be repeated.
    pub many: bool,
    /// Documentation.
    pub documentation: &'static str,
}

/// Content type of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A simple type of XML Schema, by its local name: `string`, `decimal`, `int`, `date`.
    Simple(&'static str),
    /// A [`Record`] by name.
    Record(&'static str),
    /// One element of the given namespace, skipped by validation.
    Any(&'static str),
}

impl Element {
    /// A mandatory element with a simple type.
    pub const fn simple(
        name: &'static str,
        kind: &'static str,
        documentation: &'static str,
    ) -> Self {
        Self {
            name,
            kind: Kind::Simple(kind),
            optional: false,
            many: false,
            documentation,
        }
    }
}

impl Service {
    /// The action of `operation`: SOAPAction in 1.1, the action parameter in 1.2.
    pub fn action(&self, operation: &str) -> String {
        format!("{}/{operation}", self.namespace)
    }

    /// The WSDL document. Both ports have `address`.
    pub fn wsdl(&self, address: &str) -> String {
        let mut out = String::with_capacity(16 << 10);
        let _ = write!(
            out,
            "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<wsdl:definitions name=\"{0}\" targetNamespace=\"{1}\" \
             xmlns:tns=\"{1}\" xmlns:wsdl=\"{WSDL}\" xmlns:soap=\"{SOAP11}\" xmlns:soap12=\"{SOAP12}\" xmlns:xs=\"{SCHEMA}\">\n",
            self.name, self.namespace
        );
        document("wsdl", self.documentation, &mut out);
        self.write_types(&mut out);
        self.write_messages(&mut out);
        self.write_port_type(&mut out);
        for (prefix, suffix) in BINDINGS {
            self.write_binding(prefix, suffix, &mut out);
        }
        let _ = writeln!(out, "<wsdl:service name=\"{}\">", self.name);
        for (prefix, suffix) in BINDINGS {
            let _ = write!(
                out,
                "<wsdl:port name=\"{0}{suffix}\" binding=\"tns:{0}{suffix}\"><{prefix}:address location=\"",
                self.name
            );
            write::attribute(address, &mut out);
            out.push_str("\"/></wsdl:port>\n");
        }
        out.push_str("</wsdl:service>\n</wsdl:definitions>\n");
        out
    }

    fn write_types(&self, out: &mut String) {
        let _ = writeln!(
            out,
            "<wsdl:types><xs:schema targetNamespace=\"{}\" elementFormDefault=\"qualified\">",
            self.namespace
        );
        for operation in &self.operations {
            write_wrapper(
                operation.name,
                operation.documentation,
                &operation.input,
                out,
            );
            write_wrapper(
                &format!("{}Response", operation.name),
                "",
                &operation.output,
                out,
            );
        }
        if let Some(fault) = self.fault {
            let _ = writeln!(out, "<xs:element name=\"{fault}\" type=\"tns:{fault}\"/>");
        }
        for record in &self.records {
            let _ = write!(out, "<xs:complexType name=\"{}\">", record.name);
            annotate(record.documentation, out);
            write_sequence(&record.elements, out);
            out.push_str("</xs:complexType>\n");
        }
        out.push_str("</xs:schema></wsdl:types>\n");
    }

    fn write_messages(&self, out: &mut String) {
        let mut message = |name: &str, element: &str| {
            let _ = writeln!(
                out,
                "<wsdl:message name=\"{name}\"><wsdl:part name=\"parameters\" element=\"tns:{element}\"/></wsdl:message>"
            );
        };
        for Offered { name, .. } in &self.operations {
            message(&format!("{name}Request"), name);
            message(&format!("{name}Reply"), &format!("{name}Response"));
        }
        if let Some(fault) = self.fault {
            message(&format!("{fault}Message"), fault);
        }
    }

    fn write_port_type(&self, out: &mut String) {
        let _ = writeln!(out, "<wsdl:portType name=\"{}\">", self.name);
        for Offered {
            name,
            documentation,
            ..
        } in &self.operations
        {
            let _ = write!(out, "<wsdl:operation name=\"{name}\">");
            document("wsdl", documentation, out);
            let _ = write!(
                out,
                "<wsdl:input message=\"tns:{name}Request\"/><wsdl:output message=\"tns:{name}Reply\"/>"
            );
            if let Some(fault) = self.fault {
                let _ = write!(
                    out,
                    "<wsdl:fault name=\"{fault}\" message=\"tns:{fault}Message\"/>"
                );
            }
            out.push_str("</wsdl:operation>\n");
        }
        out.push_str("</wsdl:portType>\n");
    }

    fn write_binding(&self, prefix: &str, suffix: &str, out: &mut String) {
        let _ = writeln!(
            out,
            "<wsdl:binding name=\"{0}{suffix}\" type=\"tns:{0}\"><{prefix}:binding style=\"document\" transport=\"{TRANSPORT}\"/>",
            self.name
        );
        for Offered {
            name, extensions, ..
        } in &self.operations
        {
            let _ = write!(
                out,
                "<wsdl:operation name=\"{name}\"><{prefix}:operation soapAction=\"{}\" style=\"document\"/>",
                self.action(name)
            );
            extensions.iter().for_each(|e| extend(e, out));
            let _ = write!(
                out,
                "<wsdl:input><{prefix}:body use=\"literal\"/></wsdl:input>\
                 <wsdl:output><{prefix}:body use=\"literal\"/></wsdl:output>"
            );
            if let Some(fault) = self.fault {
                let _ = write!(
                    out,
                    "<wsdl:fault name=\"{fault}\"><{prefix}:fault name=\"{fault}\" use=\"literal\"/></wsdl:fault>"
                );
            }
            out.push_str("</wsdl:operation>\n");
        }
        out.push_str("</wsdl:binding>\n");
    }
}

/// Prefix of each binding's extension elements, and suffix of its name.
const BINDINGS: [(&str, &str); 2] = [("soap", "Soap11"), ("soap12", "Soap12")];

fn document(prefix: &str, documentation: &str, out: &mut String) {
    if !documentation.is_empty() {
        write::element(&format!("{prefix}:documentation"), documentation, out);
        out.push('\n');
    }
}

fn extend(extension: &Extension, out: &mut String) {
    let _ = write!(out, "<x:{} xmlns:x=\"", extension.name);
    write::attribute(&extension.namespace, out);
    out.push_str("\">");
    write::text(&extension.text, out);
    let _ = write!(out, "</x:{}>", extension.name);
}

fn annotate(documentation: &str, out: &mut String) {
    if !documentation.is_empty() {
        out.push_str("<xs:annotation>");
        write::element("xs:documentation", documentation, out);
        out.push_str("</xs:annotation>");
    }
}

fn write_wrapper(name: &str, documentation: &str, elements: &[Element], out: &mut String) {
    let _ = write!(out, "<xs:element name=\"{name}\">");
    annotate(documentation, out);
    out.push_str("<xs:complexType>");
    write_sequence(elements, out);
    out.push_str("</xs:complexType></xs:element>\n");
}

fn write_sequence(elements: &[Element], out: &mut String) {
    out.push_str("<xs:sequence>");
    for element in elements {
        let least = if element.optional {
            " minOccurs=\"0\""
        } else {
            ""
        };
        let most = if element.many {
            " maxOccurs=\"unbounded\""
        } else {
            ""
        };
        let kind = match element.kind {
            Kind::Simple(local) => format!("xs:{local}"),
            Kind::Record(local) => format!("tns:{local}"),
            Kind::Any(namespace) => {
                let _ = write!(
                    out,
                    "<xs:any namespace=\"{namespace}\" processContents=\"skip\"{least}{most}/>"
                );
                continue;
            }
        };
        let _ = write!(
            out,
            "<xs:element name=\"{}\" type=\"{kind}\"{least}{most}",
            element.name
        );
        if element.documentation.is_empty() {
            out.push_str("/>");
        } else {
            out.push('>');
            annotate(element.documentation, out);
            out.push_str("</xs:element>");
        }
    }
    out.push_str("</xs:sequence>");
}
