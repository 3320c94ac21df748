//! A self-signed Ed25519 certificate of a selectable length, in DER.
//!
//! The length of a certificate decides the number of the server's first datagrams. Ed25519 signatures have a fixed
//! length, so that every handshake of a scenario has packets of the same lengths. A comment extension fills the
//! certificate up to the requested length.

use ring::signature::{Ed25519KeyPair, KeyPair as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// Bytes of the smallest certificate.
pub const SMALLEST_CERTIFICATE: u32 = 260;

/// Name of the server, in the certificate and in the handshake.
pub(crate) const SERVER_NAME: &str = "server";

/// Seed of the server's key. It protects nothing.
const KEY_SEED: [u8; 32] = [0x70; 32];
/// A private key in PKCS #8 before the 32 bytes of its seed (RFC 8410, section 7).
const PKCS8_HEAD: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];
/// AlgorithmIdentifier of Ed25519 (RFC 8410, section 3).
const ED25519: [u8; 7] = [0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70];
/// commonName (RFC 5280, appendix A.1).
const COMMON_NAME: [u8; 5] = [0x06, 0x03, 0x55, 0x04, 0x03];
/// subjectAltName (RFC 5280, section 4.2.1.6).
const ALTERNATIVE_NAME: [u8; 5] = [0x06, 0x03, 0x55, 0x1d, 0x11];
/// The comment extension of Netscape, 2.16.840.1.113730.1.13.
const COMMENT: [u8; 11] = [
    0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x86, 0xf8, 0x42, 0x01, 0x0d,
];
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const UTF8_STRING: u8 = 0x0c;
const IA5_STRING: u8 = 0x16;
const UTC_TIME: u8 = 0x17;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const DNS_NAME: u8 = 0x82;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
/// Maximum length of a serial number that is tried.
const LONGEST_SERIAL: usize = 8;
/// Maximum number of bytes by which the lengths around a comment grow: three levels, of which each grows by at most two
/// bytes, and the lengths of the whole.
const MOST_LENGTHS: usize = 12;

/// A certificate of `bytes` bytes and its key (PKCS #8), both in DER: those of every simulated server, for a real one
/// whose handshake has the same length.
pub fn server_certificate(bytes: u32) -> [Vec<u8>; 2] {
    let ServerCertificate { certificate, key } = ServerCertificate::new(bytes);
    [certificate.to_vec(), key.secret_der().to_vec()]
}

/// The server's key, with its certificate.
pub(crate) struct ServerCertificate {
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) key: PrivateKeyDer<'static>,
}

impl ServerCertificate {
    /// Creates a certificate of `bytes` bytes, [`SMALLEST_CERTIFICATE`] or more. It has one byte less where DER has no
    /// certificate of that length: the length of its signed content needs another byte there.
    pub(crate) fn new(bytes: u32) -> Self {
        let key = Ed25519KeyPair::from_seed_unchecked(&KEY_SEED).expect("every seed is a key");
        let bytes = bytes as usize;
        let exact = certificates_of(&key, bytes).next();
        let made = exact.or_else(|| certificates_of(&key, bytes - 1).next());
        Self {
            certificate: made.expect("the length was checked").into(),
            key: PrivatePkcs8KeyDer::from([&PKCS8_HEAD[..], &KEY_SEED].concat()).into(),
        }
    }
}

/// Certificates of this length. The lengths of lengths jump at some sizes; a longer serial number fills most gaps.
fn certificates_of(key: &Ed25519KeyPair, bytes: usize) -> impl Iterator<Item = Vec<u8>> + '_ {
    let lengths = (1..=LONGEST_SERIAL).flat_map(move |serial| {
        let bare = certificate(key, serial, 0).len();
        let longest = bytes.saturating_sub(bare);
        let shortest = longest.saturating_sub(MOST_LENGTHS);
        (shortest..=longest).map(move |comment| (serial, comment))
    });
    let certificates = lengths.map(move |(serial, comment)| certificate(key, serial, comment));
    certificates.filter(move |certificate| certificate.len() == bytes)
}

/// A certificate with a serial number and a comment of these lengths.
fn certificate(key: &Ed25519KeyPair, serial: usize, comment: usize) -> Vec<u8> {
    let name = der(
        SEQUENCE,
        &[&der(
            SET,
            &[&der(
                SEQUENCE,
                &[&COMMON_NAME, &der(UTF8_STRING, &[SERVER_NAME.as_bytes()])],
            )],
        )],
    );
    let validity = [&b"700101000000Z"[..], b"491231235959Z"].map(|time| der(UTC_TIME, &[time]));
    let public_key = der(
        SEQUENCE,
        &[
            &ED25519,
            &der(BIT_STRING, &[&[0], key.public_key().as_ref()]),
        ],
    );
    let names = der(SEQUENCE, &[&der(DNS_NAME, &[SERVER_NAME.as_bytes()])]);
    let comment = der(IA5_STRING, &[&vec![b' '; comment]]);
    let extensions = [(&ALTERNATIVE_NAME[..], names), (&COMMENT[..], comment)]
        .map(|(id, value)| der(SEQUENCE, &[id, &der(OCTET_STRING, &[&value])]));
    let content = der(
        SEQUENCE,
        &[
            &der(VERSION, &[&der(INTEGER, &[&[2]])]),
            &der(INTEGER, &[&vec![1; serial]]),
            &ED25519,
            &name,
            &der(SEQUENCE, &[&validity[0], &validity[1]]),
            &name,
            &public_key,
            &der(
                EXTENSIONS,
                &[&der(SEQUENCE, &[&extensions[0], &extensions[1]])],
            ),
        ],
    );
    let signature = der(BIT_STRING, &[&[0], key.sign(&content).as_ref()]);
    der(SEQUENCE, &[&content, &ED25519, &signature])
}

/// A value in DER with its tag and length (X.690, section 8.1).
fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let digits = content.len().to_be_bytes();
    let first = digits.iter().position(|digit| *digit > 0);
    let digits = &digits[first.unwrap_or(digits.len() - 1)..];
    let mut bytes = vec![tag];
    if content.len() > 0x7f {
        bytes.push(0x80 | digits.len() as u8);
    }
    bytes.extend_from_slice(digits);
    bytes.extend(content);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The signed content would have 259 bytes: 255 with 3 of tag and length, or 256 with 4.
    const IMPOSSIBLE: u32 = 337;

    #[test]
    fn certificates_have_the_requested_length() {
        let key = Ed25519KeyPair::from_seed_unchecked(&KEY_SEED).unwrap();
        assert!(certificate(&key, 1, 0).len() <= SMALLEST_CERTIFICATE as usize);
        let around = [3480, 16_383, 32_768, 60_000].map(|size| size - 20..size + 20);
        for bytes in (SMALLEST_CERTIFICATE..700).chain(around.into_iter().flatten()) {
            let made = ServerCertificate::new(bytes).certificate.len();
            let expected = bytes as usize - usize::from(bytes == IMPOSSIBLE);
            assert_eq!(made, expected, "{bytes}");
        }
    }
}
