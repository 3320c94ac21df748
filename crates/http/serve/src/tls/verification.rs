//! Verification of servers' certificates against the certificates that a user trusts.
//!
//! rustls verifies chains: a trusted certificate is an authority, and the server presents another one issued by it. A
//! self-signed certificate is often both. webpki rejects it if it declares itself an authority (as `openssl req -x509`
//! does), has no alternative name or is of version 1. Here a server that presents exactly one of the trusted
//! certificates is accepted as well, as by curl, if
//!
//! 1. the certificate is valid now,
//! 2. it is for the server's name, and
//! 3. its extended key usage, if present, allows servers.
//!
//! The handshake proves the possession of its key in any case. Every other certificate needs a chain.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
    verify_tls13_signature_with_raw_key,
};
use rustls::server::{ParsedCertificate, VerifierBuilderError};
use rustls::{
    CertificateError, DigitallySignedStruct, Error, PeerMisbehaved, RootCertStore, SignatureScheme,
};
use rustls_pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use x509_cert::Certificate;
use x509_cert::der::asn1::{AnyRef, PrintableStringRef, Utf8StringRef};
use x509_cert::der::oid::db::rfc4519::COMMON_NAME;
use x509_cert::der::oid::db::rfc5280::{ANY_EXTENDED_KEY_USAGE, ID_KP_SERVER_AUTH};
use x509_cert::der::{Decode, Encode};
use x509_cert::ext::pkix::{ExtendedKeyUsage, SubjectAltName};

/// Returns a verifier that accepts chains to `roots`, and each of `trusted` if a server presents it itself.
///
/// `roots` must not be empty.
pub fn verifier(
    roots: impl Into<Arc<RootCertStore>>,
    trusted: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, VerifierBuilderError> {
    let algorithms = provider.signature_verification_algorithms;
    let chains = WebPkiServerVerifier::builder_with_provider(roots.into(), provider).build()?;
    Ok(Arc::new(ServerVerifier {
        accepted: AcceptedCertificates::Trusted { chains, trusted },
        algorithms,
    }))
}

/// Returns a verifier that accepts every certificate. The handshake still proves the possession of its key.
#[must_use]
pub fn any_certificate(provider: &CryptoProvider) -> Arc<dyn ServerCertVerifier> {
    Arc::new(ServerVerifier {
        accepted: AcceptedCertificates::Any,
        algorithms: provider.signature_verification_algorithms,
    })
}

/// Returns the root certificates that this machine trusts.
#[must_use]
pub fn machine_roots() -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots
}

/// Returns true for the error of a connection whose server's certificate was rejected.
#[must_use]
pub fn is_certificate_refused(error: &std::io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    matches!(inner, Some(Error::InvalidCertificate(_)))
}

/// Verifies a server's certificate, and the signatures of its handshake.
#[derive(Debug)]
struct ServerVerifier {
    accepted: AcceptedCertificates,
    algorithms: WebPkiSupportedAlgorithms,
}

#[derive(Debug)]
enum AcceptedCertificates {
    Any,
    /// Chains, and each of `trusted` if a server presents it itself.
    Trusted {
        chains: Arc<WebPkiServerVerifier>,
        trusted: Vec<CertificateDer<'static>>,
    },
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let AcceptedCertificates::Trusted { chains, trusted } = &self.accepted else {
            return Ok(ServerCertVerified::assertion());
        };
        match chains.verify_server_cert(end_entity, intermediates, name, ocsp, now) {
            Err(_) if trusted.contains(end_entity) => {
                verify_itself(end_entity, name, now)?;
                Ok(ServerCertVerified::assertion())
            }
            by_chain => by_chain,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Verifies a TLS 1.3 signature, also for certificates that webpki cannot read: it reads version 3 only.
fn verify_tls13(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signature: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error> {
    if ParsedCertificate::try_from(certificate).is_ok() {
        return verify_tls13_signature(message, certificate, signature, algorithms);
    }
    let read = read(certificate)?;
    let key = read.tbs_certificate.subject_public_key_info.to_der();
    let key = SubjectPublicKeyInfoDer::from(key.map_err(unreadable)?);
    verify_tls13_signature_with_raw_key(message, &key, signature, algorithms)
}

/// Verifies a TLS 1.2 signature likewise. There a scheme does not name the curve: the key's algorithm decides.
fn verify_tls12(
    message: &[u8],
    certificate: &CertificateDer<'_>,
    signature: &DigitallySignedStruct,
    algorithms: &WebPkiSupportedAlgorithms,
) -> Result<HandshakeSignatureValid, Error> {
    if ParsedCertificate::try_from(certificate).is_ok() {
        return verify_tls12_signature(message, certificate, signature, algorithms);
    }
    let read = read(certificate)?;
    let key = &read.tbs_certificate.subject_public_key_info;
    let kind = key.algorithm.to_der().map_err(unreadable)?;
    let kind = AnyRef::from_der(&kind).map_err(unreadable)?;
    let bits = key.subject_public_key.as_bytes();
    let bits = bits.ok_or(CertificateError::BadEncoding)?;
    let mut schemes = algorithms.mapping.iter();
    let (_, candidates) = schemes
        .find(|(scheme, _)| *scheme == signature.scheme)
        .ok_or(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme)?;
    let mut candidates = candidates.iter();
    candidates
        .find(|algorithm| algorithm.public_key_alg_id().as_ref() == kind.value())
        .and_then(|algorithm| {
            let verified = algorithm.verify_signature(bits, message, signature.signature());
            verified.ok()
        })
        .ok_or(CertificateError::BadSignature)?;
    Ok(HandshakeSignatureValid::assertion())
}

/// Verifies all properties of a trusted certificate that do not depend on its issuer.
fn verify_itself(
    certificate: &CertificateDer<'_>,
    name: &ServerName<'_>,
    now: UnixTime,
) -> Result<(), Error> {
    let read = read(certificate)?;
    let tbs = &read.tbs_certificate;
    let time = |time: x509_cert::time::Time| UnixTime::since_unix_epoch(time.to_unix_duration());
    let (not_before, not_after) = (time(tbs.validity.not_before), time(tbs.validity.not_after));
    if now < not_before {
        let time = now;
        return Err(CertificateError::NotValidYetContext { time, not_before }.into());
    }
    if now > not_after {
        let time = now;
        return Err(CertificateError::ExpiredContext { time, not_after }.into());
    }
    if let Some((_, ExtendedKeyUsage(usages))) = tbs.get().map_err(unreadable)?
        && !usages.contains(&ID_KP_SERVER_AUTH)
        && !usages.contains(&ANY_EXTENDED_KEY_USAGE)
    {
        return Err(CertificateError::InvalidPurpose.into());
    }
    match tbs.get::<SubjectAltName>().map_err(unreadable)? {
        Some(_) => verify_server_name(&ParsedCertificate::try_from(certificate)?, name),
        None if common_names(&read).any(|common| common.eq_ignore_ascii_case(&name.to_str())) => {
            Ok(())
        }
        None => Err(CertificateError::NotValidForName.into()),
    }
}

/// The common names of the subject, used as server names before alternative names existed.
pub(crate) fn common_names(certificate: &Certificate) -> impl Iterator<Item = &str> {
    let names = certificate.tbs_certificate.subject.0.iter();
    let attributes = names.flat_map(|name| name.0.iter());
    attributes
        .filter(|attribute| attribute.oid == COMMON_NAME)
        .filter_map(|attribute| {
            let value = &attribute.value;
            let utf8 = value.decode_as::<Utf8StringRef<'_>>();
            let utf8 = utf8.map(|text| text.as_str());
            utf8.or_else(|_| {
                let printable = value.decode_as::<PrintableStringRef<'_>>();
                printable.map(|text| text.as_str())
            })
            .ok()
        })
}

fn read(certificate: &CertificateDer<'_>) -> Result<Certificate, Error> {
    Certificate::from_der(certificate).map_err(unreadable)
}

fn unreadable(_: x509_cert::der::Error) -> Error {
    CertificateError::BadEncoding.into()
}
