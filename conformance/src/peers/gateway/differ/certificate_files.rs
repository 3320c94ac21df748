//! Certificates of clients, made with openssl: one per case, with the authorities that they need.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Outcome, TaskError};
use crate::site::Site;
use crate::tools;

/// A certificate to make. `ca` is the trusted authority.
pub(super) struct CertificateKind {
    /// Name of the files: NAME.pem, with the key in KEY.key.
    pub(super) name: &'static str,
    /// Name of the key.
    pub(super) key: &'static str,
    /// Name of the issuer.
    issuer: &'static str,
    /// Section of the extensions, none for version 1.
    extensions: &'static str,
    /// Further options of `openssl ca`.
    options: &'static [&'static str],
}

/// The folder of the certificates.
pub(super) struct CertificateFiles {
    folder: PathBuf,
}

/// Keys: the name, and the options of `openssl genpkey`.
const KEYS: &[(&str, &str)] = &[
    ("ca", "EC -pkeyopt ec_paramgen_curve:P-256"),
    ("other", "EC -pkeyopt ec_paramgen_curve:P-256"),
    ("intermediate", "EC -pkeyopt ec_paramgen_curve:P-256"),
    ("second", "EC -pkeyopt ec_paramgen_curve:P-256"),
    ("server", "EC -pkeyopt ec_paramgen_curve:P-256"),
    ("ec", "EC -pkeyopt ec_paramgen_curve:P-256"),
    ("p384", "EC -pkeyopt ec_paramgen_curve:P-384"),
    ("p521", "EC -pkeyopt ec_paramgen_curve:P-521"),
    ("ed25519", "ED25519"),
    ("rsa", "RSA -pkeyopt rsa_keygen_bits:2048"),
    ("rsa1024", "RSA -pkeyopt rsa_keygen_bits:1024"),
];

const CONFIGURATION: &str = "
[ca]
default_ca = all
[all]
database = index.txt
new_certs_dir = .
rand_serial = yes
default_md = sha256
default_days = 30
policy = names
unique_subject = no
[names]
commonName = supplied
[req]
distinguished_name = none
[none]
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
[no_path]
basicConstraints = critical, CA:TRUE, pathlen:0
[no_authority]
basicConstraints = critical, CA:FALSE
[no_signing]
basicConstraints = critical, CA:TRUE
keyUsage = critical, digitalSignature
[constrained]
basicConstraints = critical, CA:TRUE
nameConstraints = critical, permitted;DNS:good.example
[excluding]
basicConstraints = critical, CA:TRUE
nameConstraints = critical, excluded;DNS:bad.example
[for_servers]
basicConstraints = critical, CA:TRUE
extendedKeyUsage = serverAuth
[leaf]
basicConstraints = critical, CA:FALSE
[client]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = clientAuth
[both]
basicConstraints = critical, CA:FALSE
extendedKeyUsage = serverAuth, clientAuth
[server]
basicConstraints = critical, CA:FALSE
extendedKeyUsage = serverAuth
[mail]
basicConstraints = critical, CA:FALSE
extendedKeyUsage = emailProtection
[any]
basicConstraints = critical, CA:FALSE
extendedKeyUsage = anyExtendedKeyUsage
[encipherment]
basicConstraints = critical, CA:FALSE
keyUsage = critical, keyEncipherment
[bad_name]
basicConstraints = critical, CA:FALSE
subjectAltName = DNS:bad.example
[good_name]
basicConstraints = critical, CA:FALSE
subjectAltName = DNS:a.good.example
[unknown_critical]
basicConstraints = critical, CA:FALSE
1.2.3.4 = critical, ASN1:UTF8String:x
[unknown]
basicConstraints = critical, CA:FALSE
1.2.3.4 = ASN1:UTF8String:x
";

/// Name of a configuration of OpenSSL for clients: without limits on keys and digests, so that servers decide.
pub(super) const CLIENT_CONFIGURATION: &str = "client.cnf";

const WITHOUT_LIMITS: &str = "
openssl_conf = all
[all]
ssl_conf = modules
[modules]
system_default = limits
[limits]
CipherString = DEFAULT@SECLEVEL=0
";

const PAST: &[&str] = &[
    "-startdate",
    "20200101000000Z",
    "-enddate",
    "20210101000000Z",
];
const FUTURE: &[&str] = &[
    "-startdate",
    "20900101000000Z",
    "-enddate",
    "20910101000000Z",
];
const SHA1: &[&str] = &["-md", "sha1"];

const fn kind(
    name: &'static str,
    key: &'static str,
    issuer: &'static str,
    extensions: &'static str,
) -> CertificateKind {
    CertificateKind {
        name,
        key,
        issuer,
        extensions,
        options: &[],
    }
}

const fn with(kind: CertificateKind, options: &'static [&'static str]) -> CertificateKind {
    CertificateKind { options, ..kind }
}

/// All certificates, issuers first.
pub(super) const KINDS: &[CertificateKind] = &[
    kind("intermediate", "intermediate", "ca", "authority"),
    kind("no-path", "intermediate", "ca", "no_path"),
    kind("no-authority", "intermediate", "ca", "no_authority"),
    kind("no-extensions", "intermediate", "ca", ""),
    kind("no-signing", "intermediate", "ca", "no_signing"),
    kind("constrained", "intermediate", "ca", "constrained"),
    kind("excluding", "intermediate", "ca", "excluding"),
    kind("for-servers", "intermediate", "ca", "for_servers"),
    with(kind("past", "intermediate", "ca", "authority"), PAST),
    kind("second", "second", "no-path", "authority"),
    kind("deep", "second", "intermediate", "authority"),
    kind("server", "server", "ca", "server"),
    kind("rsa", "rsa", "ca", "leaf"),
    kind("ec", "ec", "ca", "leaf"),
    kind("p384", "p384", "ca", "leaf"),
    kind("p521", "p521", "ca", "leaf"),
    kind("ed25519", "ed25519", "ca", "leaf"),
    kind("rsa1024", "rsa1024", "ca", "leaf"),
    kind("client-auth", "ec", "ca", "client"),
    kind("both-auth", "ec", "ca", "both"),
    kind("server-auth", "ec", "ca", "server"),
    kind("mail", "ec", "ca", "mail"),
    kind("any-use", "ec", "ca", "any"),
    kind("encipherment", "ec", "ca", "encipherment"),
    kind("version-1", "ec", "ca", ""),
    kind("other-issuer", "ec", "other", "leaf"),
    with(kind("expired", "ec", "ca", "leaf"), PAST),
    with(kind("early", "ec", "ca", "leaf"), FUTURE),
    with(kind("sha1", "ec", "ca", "leaf"), SHA1),
    kind("unknown-critical", "ec", "ca", "unknown_critical"),
    kind("unknown", "ec", "ca", "unknown"),
    kind("authority", "ec", "ca", "authority"),
    kind("by-intermediate", "ec", "intermediate", "leaf"),
    kind("by-deep", "ec", "deep", "leaf"),
    kind("by-no-path", "ec", "no-path", "leaf"),
    kind("by-second", "ec", "second", "leaf"),
    kind("by-no-authority", "ec", "no-authority", "leaf"),
    kind("by-no-extensions", "ec", "no-extensions", "leaf"),
    kind("by-no-signing", "ec", "no-signing", "leaf"),
    kind("by-past", "ec", "past", "leaf"),
    kind("by-for-servers", "ec", "for-servers", "leaf"),
    kind("good-name", "ec", "constrained", "good_name"),
    kind("bad-name", "ec", "constrained", "bad_name"),
    kind("good-name-excluding", "ec", "excluding", "good_name"),
    kind("bad-name-excluding", "ec", "excluding", "bad_name"),
    kind("by-leaf", "p384", "ec", "leaf"),
];

impl CertificateFiles {
    /// Makes all files in `folder`.
    pub(super) fn make(site: &Site, folder: &Path) -> Outcome<Self> {
        let program = tools::debian(&site.checkout, "openssl", "openssl")?;
        tools::write(&folder.join("ca.cnf"), CONFIGURATION)?;
        tools::write(&folder.join("index.txt"), "")?;
        tools::write(&folder.join(CLIENT_CONFIGURATION), WITHOUT_LIMITS)?;
        let openssl = |arguments: &[&str]| {
            let mut command = Command::new(&program);
            command.args(arguments).current_dir(folder);
            site.run("openssl", &mut command, 60).map(drop)
        };
        for (name, algorithm) in KEYS {
            let (key, request) = (format!("{name}.key"), format!("{name}.csr"));
            let make = format!("genpkey -out {key} -algorithm {algorithm}");
            openssl(&make.split(' ').collect::<Vec<_>>())?;
            let ask = format!("req -new -config ca.cnf -subj /CN={name} -key {key} -out {request}");
            openssl(&ask.split(' ').collect::<Vec<_>>())?;
        }
        for (name, key, extensions) in [
            ("ca", "ca", "authority"),
            ("other", "other", "authority"),
            ("self-signed", "ec", "leaf"),
            // The subject of the authority, and another key.
            ("impostor", "ec", "authority"),
        ] {
            let subject = if name == "impostor" { "ca" } else { name };
            let make = format!(
                "req -x509 -new -config ca.cnf -extensions {extensions} -days 30 \
                 -subj /CN={subject} -key {key}.key -out {name}.pem"
            );
            openssl(&make.split_whitespace().collect::<Vec<_>>())?;
        }
        for kind in KINDS {
            let make = kind.command();
            let mut arguments: Vec<_> = make.split_whitespace().collect();
            if !kind.extensions.is_empty() {
                arguments.extend(["-extensions", kind.extensions]);
            }
            arguments.extend(kind.options);
            openssl(&arguments)?;
        }
        Ok(Self {
            folder: folder.to_path_buf(),
        })
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Certificates in a row, the client's first, as a file for curl. Returns it, and the first in base64.
    pub(super) fn chain(&self, names: &[&str]) -> Outcome<(PathBuf, String)> {
        let mut chain = String::new();
        for name in names {
            let path = self.path(&format!("{name}.pem"));
            chain +=
                &std::fs::read_to_string(&path).map_err(|error| TaskError::at(&path, error))?;
        }
        let path = self.path(&format!("{}.chain", names.join("+")));
        tools::write(&path, &chain)?;
        Ok((path, base64_of(&chain)))
    }
}

impl CertificateKind {
    fn command(&self) -> String {
        let Self {
            name, key, issuer, ..
        } = self;
        let kinds = KINDS.iter();
        let issuing = kinds.clone().find(|kind| kind.name == *issuer);
        let issuer_key = issuing.map_or(*issuer, |kind| kind.key);
        format!(
            "ca -batch -notext -config ca.cnf -subj /CN={name} -in {key}.csr -out {name}.pem \
             -cert {issuer}.pem -keyfile {issuer_key}.key"
        )
    }
}

/// The base64 of the first certificate in a PEM text, which is that of its DER encoding.
pub(super) fn base64_of(pem: &str) -> String {
    let lines = pem
        .lines()
        .skip_while(|line| !line.starts_with("-----BEGIN"));
    let lines = lines.skip(1).take_while(|line| !line.starts_with('-'));
    lines.collect()
}
