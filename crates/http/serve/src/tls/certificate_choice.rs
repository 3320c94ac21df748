//! The choice of a certificate by the server name that a client asks for (SNI, RFC 6066, section 3).

use std::collections::HashMap;
use std::slice;
use std::sync::Arc;

use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

/// Certificates by name.
#[derive(Debug)]
pub(crate) struct CertificateChoice {
    /// For clients that ask for no name, or for one without a certificate.
    first: Arc<CertifiedKey>,
    /// In the order of the configuration, by the names of [`crate::certificate_names()`].
    by_name: HashMap<String, Vec<Arc<CertifiedKey>>>,
}

impl CertificateChoice {
    pub(crate) fn new(first: Arc<CertifiedKey>) -> Self {
        Self {
            first,
            by_name: HashMap::new(),
        }
    }

    /// Adds a certificate for `names`. Earlier certificates take precedence.
    pub(crate) fn add(&mut self, names: &[String], certificate: &Arc<CertifiedKey>) {
        for name in names {
            let certificates = self.by_name.entry(name.clone()).or_default();
            certificates.push(certificate.clone());
        }
    }

    /// The certificates for a server name. A name counts before a wildcard.
    fn of_name(&self, name: &str) -> Option<&[Arc<CertifiedKey>]> {
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        let by_wildcard = || {
            let (_, parent) = name.split_once('.')?;
            self.by_name.get(&format!("*.{parent}"))
        };
        let found = self.by_name.get(&name).or_else(by_wildcard);
        found.map(Vec::as_slice)
    }
}

impl ResolvesServerCert for CertificateChoice {
    /// Returns the first certificate for the name with a key that the client can verify.
    fn resolve(&self, client: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let of_name = if self.by_name.is_empty() {
            None
        } else {
            client.server_name().and_then(|name| self.of_name(name))
        };
        let certificates = of_name.unwrap_or(slice::from_ref(&self.first));
        let is_usable = |certificate: &&Arc<CertifiedKey>| {
            let scheme = certificate.key.choose_scheme(client.signature_schemes());
            scheme.is_some()
        };
        let usable = certificates.iter().find(is_usable);
        usable.or(certificates.first()).cloned()
    }
}

#[cfg(test)]
mod tests {
    use rustls::crypto::ring::default_provider;
    use rustls_pki_types::PrivateKeyDer;

    use super::*;

    fn certificate() -> Arc<CertifiedKey> {
        let made = rcgen::generate_simple_self_signed(Vec::new()).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let chain = vec![made.cert.der().clone()];
        Arc::new(CertifiedKey::from_der(chain, key, &default_provider()).unwrap())
    }

    /// Clients such as openssl send a name as it was typed.
    #[test]
    fn a_name_has_any_case() {
        let [exact, wild] = [certificate(), certificate()];
        let mut choice = CertificateChoice::new(certificate());
        choice.add(&["*.shop.example".to_owned()], &wild);
        choice.add(&["www.shop.example".to_owned()], &exact);
        for (name, expected) in [
            ("WWW.Shop.example", Some(&exact)),
            ("www.shop.example.", Some(&exact)),
            ("API.shop.EXAMPLE", Some(&wild)),
            ("shop.example", None),
            ("a.b.shop.example", None),
            ("", None),
        ] {
            let found = choice.of_name(name).map(|certificates| &certificates[0]);
            let is_expected = match (found, expected) {
                (Some(found), Some(expected)) => Arc::ptr_eq(found, expected),
                (None, None) => true,
                _ => false,
            };
            assert!(is_expected, "{name}");
        }
    }
}
