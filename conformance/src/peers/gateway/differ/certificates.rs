//! Certificates of clients to us, nginx and HAProxy: accepted or not, and the certificate that the origin is told.
//!
//! curl is the client of all. Its limits on keys and digests are off, so that the servers decide.

use std::net::SocketAddr;
use std::process::Command;
use std::time::Duration;

use super::certificate_files::{CLIENT_CONFIGURATION, base64_of};
use super::comparison::{CaseReading, ComparedCase, FamilyRule, equal};
use super::each;
use super::origin::field;
use super::programs::ComparedPrograms;
use crate::error::{Outcome, check};
use crate::process::Running;
use crate::tools;

/// The reading of the certificate that the client has presented.
const OWN: &str = "its own";

pub(super) const RULE: FamilyRule = FamilyRule {
    controls: &[
        ("RSA", OWN),
        ("EC", OWN),
        ("for clients", OWN),
        ("intermediate", OWN),
        ("two intermediates", OWN),
        ("a permitted name", OWN),
    ],
    exceptions: &[],
    is_same: equal,
    is_permitted: equal,
};

/// Description, certificates as they are sent, and key of the first.
const CASES: &[(&str, &[&str], &str)] = &[
    ("none", &[], ""),
    ("RSA", &["rsa"], "rsa"),
    ("RSA of 1024 bits", &["rsa1024"], "rsa1024"),
    ("EC", &["ec"], "ec"),
    ("EC P-384", &["p384"], "p384"),
    ("EC P-521", &["p521"], "p521"),
    ("Ed25519", &["ed25519"], "ed25519"),
    ("for clients", &["client-auth"], "ec"),
    ("for clients and servers", &["both-auth"], "ec"),
    ("for servers", &["server-auth"], "ec"),
    ("for mail", &["mail"], "ec"),
    ("for any use", &["any-use"], "ec"),
    ("key for encipherment", &["encipherment"], "ec"),
    ("version 1", &["version-1"], "ec"),
    ("self-signed", &["self-signed"], "ec"),
    ("another authority", &["other-issuer"], "ec"),
    ("another authority, sent", &["other-issuer", "other"], "ec"),
    ("impostor", &["impostor"], "ec"),
    ("expired", &["expired"], "ec"),
    ("not yet valid", &["early"], "ec"),
    ("SHA-1", &["sha1"], "ec"),
    ("unknown critical extension", &["unknown-critical"], "ec"),
    ("unknown extension", &["unknown"], "ec"),
    ("an authority as client", &["authority"], "ec"),
    ("the trusted authority as client", &["ca"], "ca"),
    ("with the authority", &["ec", "ca"], "ec"),
    ("with an unrelated certificate", &["ec", "other"], "ec"),
    ("intermediate", &["by-intermediate", "intermediate"], "ec"),
    (
        "intermediate and authority",
        &["by-intermediate", "intermediate", "ca"],
        "ec",
    ),
    ("intermediate missing", &["by-intermediate"], "ec"),
    (
        "another intermediate with its name",
        &["by-intermediate", "no-path"],
        "ec",
    ),
    (
        "two intermediates",
        &["by-deep", "deep", "intermediate"],
        "ec",
    ),
    (
        "two intermediates, other order",
        &["by-deep", "intermediate", "deep"],
        "ec",
    ),
    ("one of two intermediates", &["by-deep", "deep"], "ec"),
    ("path length 0", &["by-no-path", "no-path"], "ec"),
    (
        "path length exceeded",
        &["by-second", "second", "no-path"],
        "ec",
    ),
    (
        "intermediate without CA:TRUE",
        &["by-no-authority", "no-authority"],
        "ec",
    ),
    (
        "intermediate of version 1",
        &["by-no-extensions", "no-extensions"],
        "ec",
    ),
    (
        "intermediate without keyCertSign",
        &["by-no-signing", "no-signing"],
        "ec",
    ),
    ("intermediate expired", &["by-past", "past"], "ec"),
    (
        "intermediate for servers",
        &["by-for-servers", "for-servers"],
        "ec",
    ),
    ("issued by a client", &["by-leaf", "ec"], "p384"),
    ("a permitted name", &["good-name", "constrained"], "ec"),
    (
        "a name that is not permitted",
        &["bad-name", "constrained"],
        "ec",
    ),
    (
        "a name that is not excluded",
        &["good-name-excluding", "excluding"],
        "ec",
    ),
    (
        "an excluded name",
        &["bad-name-excluding", "excluding"],
        "ec",
    ),
];

/// Presents every certificate to every program.
pub(super) fn observe(programs: &ComparedPrograms<'_>) -> Outcome<Vec<ComparedCase>> {
    each(CASES, |number, (about, names, key)| {
        let (chain, own) = match names {
            [] => (None, String::new()),
            names => {
                let (chain, own) = programs.files.chain(names)?;
                (Some(chain), own)
            }
        };
        let read = |name: &str, address: SocketAddr, stated: &str| -> Outcome<CaseReading> {
            let path = format!("/certificates/{name}/{number}");
            let mut command = Command::new(tools::debian(&programs.site.checkout, "curl", "curl")?);
            command.args(["--silent", "--insecure", "--http1.1", "--max-time", "20"]);
            command.env("OPENSSL_CONF", programs.files.path(CLIENT_CONFIGURATION));
            if let Some(chain) = &chain {
                let key = programs.files.path(&format!("{key}.key"));
                command.arg("--cert").arg(chain).arg("--key").arg(key);
            }
            command.arg(format!("https://{address}{path}"));
            let running = Running::start("curl", &mut command, &programs.site.logs)?;
            let code = running.finish(Duration::from_secs(40))?.code;
            // CURLE_SSL_CERTPROBLEM, CURLE_SSL_CIPHER, CURLE_COULDNT_CONNECT and CURLE_OPERATION_TIMEDOUT.
            let is_sent = !matches!(code, None | Some(7 | 28 | 58 | 59));
            check(is_sent, || {
                format!("{about} to {name}: curl ended with {code:?}")
            })?;
            let head = programs.origin.head(&path);
            Ok(head.map(|head| {
                let stated = certificate(field(&head, stated).unwrap_or_default());
                if stated == own {
                    OWN.to_owned()
                } else {
                    stated
                }
            }))
        };
        Ok(ComparedCase {
            about: (*about).to_owned(),
            ours: read("posthaste", programs.gateway.tls, "client-cert")?,
            others: vec![
                ("nginx", read("nginx", programs.nginx.tls, "x-cert")?),
                ("haproxy", read("haproxy", programs.haproxy.tls, "x-cert")?),
            ],
        })
    })
}

/// The base64 of a certificate, out of a byte sequence of structured fields (RFC 9440) or an escaped PEM text.
fn certificate(value: &str) -> String {
    if value.starts_with("-----BEGIN") {
        let text = value.replace("%20", " ").replace("%0A", "\n");
        let text = text
            .replace("%2B", "+")
            .replace("%2F", "/")
            .replace("%3D", "=");
        return base64_of(&text);
    }
    value.trim_matches(':').to_owned()
}
