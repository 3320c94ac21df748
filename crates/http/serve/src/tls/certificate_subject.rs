//! The subject of a certificate, as the name of a client.

use rustls::{CertificateError, Error};
use x509_cert::Certificate;
use x509_cert::der::Decode as _;

/// Maximum length of a subject, in bytes.
const MAX_SUBJECT: usize = 1024;

/// Returns the subject of a DER certificate as text (RFC 4514): `CN=ada,O=Books`, the most specific part first.
/// `None` if it is empty, longer than 1024 bytes or has control characters.
pub fn certificate_subject(certificate: &[u8]) -> Result<Option<String>, Error> {
    let unreadable = |_| Error::InvalidCertificate(CertificateError::BadEncoding);
    let read = Certificate::from_der(certificate).map_err(unreadable)?;
    let subject = read.tbs_certificate.subject.to_string();
    let is_name = (1..=MAX_SUBJECT).contains(&subject.len()) && !subject.contains(char::is_control);
    Ok(is_name.then_some(subject))
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair};

    use super::*;

    fn subject(parts: &[(DnType, &str)]) -> Option<String> {
        let mut wanted = CertificateParams::new(Vec::new()).unwrap();
        wanted.distinguished_name = rcgen::DistinguishedName::new();
        for (kind, text) in parts {
            wanted.distinguished_name.push(kind.clone(), *text);
        }
        let key = KeyPair::generate().unwrap();
        certificate_subject(wanted.self_signed(&key).unwrap().der()).unwrap()
    }

    #[test]
    fn parts_are_in_the_order_of_openssl_and_escaped() {
        let parts = [
            (DnType::OrganizationName, "Books, Inc."),
            (DnType::CommonName, "ada"),
        ];
        assert_eq!(subject(&parts).unwrap(), "CN=ada,O=Books\\, Inc.");
    }

    #[test]
    fn unusable_subjects_yield_no_name() {
        assert_eq!(subject(&[]), None);
        assert_eq!(subject(&[(DnType::CommonName, &"a".repeat(2_000))]), None);
        assert!(certificate_subject(b"").is_err());
    }
}
