//! Faults that conform to WS-I Basic Profile: four codes, never dotted (R1031), and only unqualified `faultcode`,
//! `faultstring`, `faultactor` and `detail` in SOAP 1.1 (R1000, R1001).

use crate::Version;
use crate::write;

/// Fault code. SOAP 1.2 calls Client Sender and Server Receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// The service does not support the envelope's version.
    VersionMismatch,
    /// A header block with mustUnderstand was not understood.
    MustUnderstand,
    /// The message is invalid. A repetition does not help.
    Client,
    /// The service failed. The same message may succeed later.
    Server,
}

/// Service-specific element in a fault's detail, with simple children.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detail {
    /// The element's namespace.
    pub namespace: &'static str,
    /// The element's name.
    pub name: &'static str,
    /// Names and texts of its children, in the same namespace.
    pub fields: Vec<(&'static str, String)>,
}

/// A fault to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Fault code.
    pub code: Code,
    /// Message for users, in English.
    pub reason: String,
    /// Details for programs.
    pub detail: Option<Detail>,
}

impl Code {
    /// The code's local name in `version`.
    pub const fn name(self, version: Version) -> &'static str {
        match (self, version) {
            (Self::VersionMismatch, _) => "VersionMismatch",
            (Self::MustUnderstand, _) => "MustUnderstand",
            (Self::Client, Version::Soap11) => "Client",
            (Self::Client, Version::Soap12) => "Sender",
            (Self::Server, Version::Soap11) => "Server",
            (Self::Server, Version::Soap12) => "Receiver",
        }
    }
}

impl Fault {
    /// A fault without detail.
    pub fn new(code: Code, reason: impl Into<String>) -> Self {
        Self {
            code,
            reason: reason.into(),
            detail: None,
        }
    }

    /// The HTTP status: 500 (R1126), but 400 for a Sender in SOAP 1.2 (SOAP 1.2 part 2, table 20).
    pub const fn status(&self, version: Version) -> u16 {
        match (version, self.code) {
            (Version::Soap12, Code::Client) => 400,
            _ => 500,
        }
    }

    /// The whole envelope with the fault.
    pub fn envelope(&self, version: Version) -> String {
        let mut out = String::with_capacity(640);
        let code = self.code.name(version);
        match version {
            Version::Soap11 => {
                write::open(version, &mut out);
                out.push_str("<soap:Fault><faultcode>soap:");
                out.push_str(code);
                out.push_str("</faultcode>");
                write::element("faultstring", &self.reason, &mut out);
                self.write_detail("detail", &mut out);
            }
            Version::Soap12 => {
                write::open(version, &mut out);
                out.push_str("<soap:Fault><soap:Code><soap:Value>soap:");
                out.push_str(code);
                out.push_str("</soap:Value></soap:Code><soap:Reason><soap:Text xml:lang=\"en\">");
                write::text(&self.reason, &mut out);
                out.push_str("</soap:Text></soap:Reason>");
                self.write_detail("soap:Detail", &mut out);
            }
        }
        out.push_str("</soap:Fault>");
        write::close(&mut out);
        out
    }

    fn write_detail(&self, wrapper: &str, out: &mut String) {
        let Some(detail) = &self.detail else { return };
        out.push_str(&format!("<{wrapper}><{} xmlns=\"", detail.name));
        write::attribute(detail.namespace, out);
        out.push_str("\">");
        for (name, value) in &detail.fields {
            write::element(name, value, out);
        }
        out.push_str(&format!("</{}></{wrapper}>", detail.name));
    }
}
