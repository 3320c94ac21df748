//! Verification of clients' certificates: chains by webpki, and the key usage that webpki does not read.
//!
//! RFC 5280, section 4.2.1.3: a certificate with the extension issues certificates only with `keyCertSign`, and its
//! key signs a handshake only with `digitalSignature`. Certificates that may not issue are removed before webpki looks
//! for a chain, so those that no chain needs do no harm.

use std::sync::Arc;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, SignatureScheme};
use rustls_pki_types::{CertificateDer, UnixTime};
use x509_cert::Certificate;
use x509_cert::der::Decode as _;
use x509_cert::ext::pkix::KeyUsage;

/// Verifies chains with `chains`, and the key usage of their certificates. That of authorities in the configuration is
/// not read.
#[derive(Debug)]
pub(crate) struct ClientVerifier {
    pub(crate) chains: Arc<dyn ClientCertVerifier>,
}

impl ClientCertVerifier for ClientVerifier {
    fn offer_client_auth(&self) -> bool {
        self.chains.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.chains.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.chains.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let may_issue = |certificate: &&CertificateDer<'_>| {
            key_usage(certificate)
                .is_ok_and(|usage| usage.is_none_or(|usage| usage.key_cert_sign()))
        };
        let issuers: Vec<_> = intermediates.iter().filter(may_issue).cloned().collect();
        let verified = self.chains.verify_client_cert(end_entity, &issuers, now)?;
        match key_usage(end_entity)? {
            Some(usage) if !usage.digital_signature() => {
                Err(CertificateError::InvalidPurpose.into())
            }
            _ => Ok(verified),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chains.supported_verify_schemes()
    }
}

/// The key usage of a certificate, if it has the extension.
fn key_usage(certificate: &CertificateDer<'_>) -> Result<Option<KeyUsage>, Error> {
    let unreadable = |_| Error::InvalidCertificate(CertificateError::BadEncoding);
    let read = Certificate::from_der(certificate).map_err(unreadable)?;
    let usage = read.tbs_certificate.get().map_err(unreadable)?;
    Ok(usage.map(|(_, usage)| usage))
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, KeyUsagePurpose};
    use rustls::RootCertStore;
    use rustls::crypto::ring::default_provider;
    use rustls::server::WebPkiClientVerifier;

    use super::*;

    /// Parameters of a certificate for `name` with this key usage, none if it is empty.
    fn parameters(name: &str, usages: &[KeyUsagePurpose], is_authority: bool) -> CertificateParams {
        let mut parameters = CertificateParams::new(vec![name.to_owned()]).unwrap();
        parameters
            .distinguished_name
            .push(rcgen::DnType::CommonName, name);
        parameters.key_usages = usages.to_vec();
        if is_authority {
            parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        }
        parameters
    }

    /// True if a chain is accepted with these key usages of the client and of an intermediate authority.
    fn is_accepted(client: &[KeyUsagePurpose], intermediate: &[KeyUsagePurpose]) -> bool {
        let [root_key, intermediate_key, key] = [(); 3].map(|()| KeyPair::generate().unwrap());
        let root = parameters("root", &[], true);
        let mut roots = RootCertStore::empty();
        let trusted = root.self_signed(&root_key).unwrap();
        roots.add(trusted.der().clone()).unwrap();
        let root = Issuer::new(root, root_key);
        let middle = parameters("middle", intermediate, true);
        let issued = middle.signed_by(&intermediate_key, &root).unwrap();
        let middle = Issuer::new(middle, intermediate_key);
        let client = parameters("client", client, false);
        let client = client.signed_by(&key, &middle).unwrap();
        // A certificate that no chain needs and that may not issue.
        let other = parameters("other", &[KeyUsagePurpose::DigitalSignature], false);
        let other = other.signed_by(&key, &root).unwrap();
        let provider = Arc::new(default_provider());
        let chains = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
        let verifier = ClientVerifier {
            chains: chains.build().unwrap(),
        };
        let others = [other.der().clone(), issued.der().clone()];
        let verified = verifier.verify_client_cert(client.der(), &others, UnixTime::now());
        verified.is_ok()
    }

    #[test]
    fn an_authority_issues_only_with_the_right_to_sign_certificates() {
        use KeyUsagePurpose::{CrlSign, DigitalSignature, KeyCertSign};
        assert!(is_accepted(&[], &[]));
        assert!(is_accepted(&[], &[KeyCertSign]));
        assert!(is_accepted(&[], &[DigitalSignature, KeyCertSign]));
        assert!(!is_accepted(&[], &[DigitalSignature]));
        assert!(!is_accepted(&[], &[CrlSign]));
    }

    #[test]
    fn a_client_signs_only_with_the_right_to_sign() {
        use KeyUsagePurpose::{DigitalSignature, KeyAgreement, KeyEncipherment};
        assert!(is_accepted(&[DigitalSignature], &[]));
        assert!(is_accepted(&[KeyEncipherment, DigitalSignature], &[]));
        assert!(!is_accepted(&[KeyEncipherment], &[]));
        assert!(!is_accepted(&[KeyAgreement], &[]));
    }
}
