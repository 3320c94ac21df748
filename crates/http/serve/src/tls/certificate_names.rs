//! The DNS names of a certificate, for the choice of a certificate by server name.

use std::net::Ipv4Addr;

use rustls::{CertificateError, Error};
use x509_cert::Certificate;
use x509_cert::der::Decode as _;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;

use crate::tls::verification::common_names;

/// Maximum length of a name, and of one of its labels (RFC 1035, section 2.3.4).
const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;

/// Returns the names of a DER certificate in lower case, without a dot at the end. `*.` at the start stands for one
/// label.
///
/// The names are those of the subject alternative names, or the common names if the certificate has no alternative
/// names. Addresses and other forms of names are omitted.
pub fn certificate_names(certificate: &[u8]) -> Result<Vec<String>, Error> {
    let unreadable = |_| Error::InvalidCertificate(CertificateError::BadEncoding);
    let read = Certificate::from_der(certificate).map_err(unreadable)?;
    let alternative = read.tbs_certificate.get::<SubjectAltName>();
    Ok(match alternative.map_err(unreadable)? {
        Some((_, SubjectAltName(names))) => {
            let names = names.iter().filter_map(|name| match name {
                GeneralName::DnsName(name) => Some(name.as_str()),
                _ => None,
            });
            names.filter_map(normal_form).collect()
        }
        None => common_names(&read).filter_map(normal_form).collect(),
    })
}

/// Returns a DNS name in the form of [`certificate_names`]. `None` for anything else.
fn normal_form(name: &str) -> Option<String> {
    let name = name.strip_suffix('.').unwrap_or(name);
    let host = name.strip_prefix("*.").unwrap_or(name);
    let in_label = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_label =
        |label: &str| (1..=MAX_LABEL).contains(&label.len()) && label.bytes().all(in_label);
    let is_name = name.len() <= MAX_NAME && host.split('.').all(is_label);
    (is_name && host.parse::<Ipv4Addr>().is_err()).then(|| name.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(alternative: &[&str], common: &str) -> Vec<String> {
        let names: Vec<_> = alternative.iter().map(ToString::to_string).collect();
        let mut wanted = rcgen::CertificateParams::new(names).unwrap();
        wanted
            .distinguished_name
            .push(rcgen::DnType::CommonName, common);
        let key = rcgen::KeyPair::generate().unwrap();
        certificate_names(wanted.self_signed(&key).unwrap().der()).unwrap()
    }

    #[test]
    fn alternative_names_count_before_common_ones() {
        let found = names(
            &["Shop.example", "*.shop.example", "192.0.2.1"],
            "other.example",
        );
        assert_eq!(found, ["shop.example", "*.shop.example"]);
        assert_eq!(names(&[], "Shop.Example."), ["shop.example"]);
        assert!(names(&["192.0.2.1"], "other.example").is_empty());
    }

    #[test]
    fn other_texts_are_no_names() {
        for text in [
            "",
            ".",
            "a..b",
            "*",
            "*.",
            "*a.example",
            "a.*.example",
            "*.*.example",
            "a b.example",
            "b\u{fc}cher.example",
            "192.0.2.1",
            "*.192.0.2.1",
            &"a".repeat(64),
            &("a.".repeat(126) + "bc"),
        ] {
            assert_eq!(normal_form(text), None, "{text}");
        }
        let longest = "a.".repeat(126) + "b";
        assert_eq!(normal_form(&longest), Some(longest.clone()));
    }

    #[test]
    fn other_bytes_are_no_certificate() {
        assert!(certificate_names(b"").is_err());
        assert!(certificate_names(&[0x30, 0x82, 0xff, 0xff]).is_err());
    }
}
