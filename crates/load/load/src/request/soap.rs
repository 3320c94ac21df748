//! SOAP requests: an envelope around a given body, or a request made from a WSDL.

use std::fs;

use posthaste_soap::{Version, write, wsdl};
use thiserror::Error;

use crate::cause::Cause;
use crate::request::RequestSpec;
use crate::request::data::{Data, placeholder};
use crate::request::fetch::fetch;
use crate::target::Resolve;
use crate::transport::tls::TlsOptions;

/// Reasons why no request can be made from a WSDL, with its URL or file.
#[derive(Debug, Error)]
pub enum WsdlError {
    /// It could not be read.
    #[error("{document}: {reason}")]
    Fetch {
        /// URL or file.
        document: String,
        /// The reason.
        #[source]
        reason: Cause,
    },
    /// It is invalid, or does not contain the requested item.
    #[error("{document}: {reason}")]
    Content {
        /// URL or file.
        document: String,
        /// The error, and the items that exist.
        #[source]
        reason: Cause,
    },
}

/// A call described by a WSDL.
#[derive(Clone, Copy, Debug)]
pub struct WsdlCall<'a> {
    /// URL or file of the WSDL.
    pub source: &'a str,
    /// The operation.
    pub operation: &'a str,
    /// The SOAP version. By default that of the WSDL's first port.
    pub version: Option<Version>,
    /// Replacement for the address in the WSDL.
    pub endpoint: Option<&'a str>,
}

/// A POST of `content` inside a SOAP Body.
pub fn soap_request(url: &str, version: Version, action: &str, content: &str) -> RequestSpec {
    let mut envelope = String::new();
    write::open(version, &mut envelope);
    envelope.push_str(content);
    write::close(&mut envelope);
    post(url, version, action, envelope)
}

fn post(url: &str, version: Version, action: &str, envelope: String) -> RequestSpec {
    let mut request = RequestSpec::post(url, "", envelope);
    request.headers = match version {
        Version::Soap11 => vec![
            (
                "Content-Type".to_owned(),
                "text/xml; charset=utf-8".to_owned(),
            ),
            ("SOAPAction".to_owned(), format!("\"{action}\"")),
        ],
        Version::Soap12 => {
            let parameter = match action {
                "" => String::new(),
                action => format!("; action=\"{action}\""),
            };
            let value = format!("application/soap+xml; charset=utf-8{parameter}");
            vec![("Content-Type".to_owned(), value)]
        }
    };
    request
}

impl WsdlCall<'_> {
    /// Builds the request. Each field of the operation is filled from the column of its name.
    pub fn request(
        &self,
        data: &Data,
        resolve: &[Resolve],
        tls: &TlsOptions,
    ) -> Result<RequestSpec, WsdlError> {
        let document = self.source.to_owned();
        let failed = |reason: Cause| WsdlError::Content {
            document: document.clone(),
            reason,
        };
        let bytes = self.read_document(resolve, tls)?;
        let description = wsdl::read(&bytes).map_err(|error| failed(error.into()))?;
        let (port, operation) = description
            .find(self.operation, self.version)
            .map_err(|error| failed(error.into()))?;
        let fields = operation.fields();
        let values: Vec<(&str, String)> = fields
            .iter()
            .filter(|field| data.columns().contains(field))
            .map(|field| (field.as_str(), format!("{{{{{}}}}}", placeholder(field))))
            .collect();
        let values: Vec<(&str, &str)> = values
            .iter()
            .map(|(field, value)| (*field, value.as_str()))
            .collect();
        let envelope = operation.envelope(port.version, &values).map_err(|error| {
            failed(format!("{error}; fields come from the columns of --data FILE.csv").into())
        })?;
        let url = self.endpoint.unwrap_or(&port.address);
        let mut request = post(url, port.version, &operation.action, envelope);
        self.operation.clone_into(&mut request.name);
        Ok(request)
    }

    fn read_document(&self, resolve: &[Resolve], tls: &TlsOptions) -> Result<Vec<u8>, WsdlError> {
        let failed = |reason: Cause| WsdlError::Fetch {
            document: self.source.to_owned(),
            reason,
        };
        if self.source.contains("://") {
            fetch(self.source, resolve, tls).map_err(|error| failed(error.to_string().into()))
        } else {
            fs::read(self.source).map_err(|error| failed(error.into()))
        }
    }
}
