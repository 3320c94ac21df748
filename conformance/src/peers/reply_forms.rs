//! `posthaste load` next to curl and grpcio against odd forms of replies: it accepts the same ones, or the documentation
//! has the reason.
//!
//! A server sends each form over its protocol. The other clients say first whether they accept it. Then the outcome of
//! `load` is compared with theirs and with the tables of `docs/reference/replies.md`, in both directions: a difference
//! needs a reason, a reason needs a difference, and each form has a row. An absent client fails the test, because the
//! comparison would pass without it.

mod documented;

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Deserialize;

use self::documented::DocumentedForms;
use crate::error::{Outcome, TaskError, check};
use crate::load::LoadReport;
use crate::nginx::certificate;
use crate::site::{Server, Site, free_address, free_udp_address};
use crate::tools;

const PROGRAMS: &str = "conformance/programs/reply-forms";

/// Minimum number of forms of each protocol.
const FORMS: usize = 20;

/// Runs of `load` at a time. They mostly wait.
const AT_ONCE: usize = 4;

/// Two requests, so that a form also meets its own successor on the connection.
const PACE: [&str; 6] = ["--rate", "5/s", "--duration", "400ms", "--timeout", "3s"];

/// A form, and the verdict of the other client about it.
#[derive(Debug, Deserialize)]
struct JudgedForm {
    protocol: FormProtocol,
    form: String,
    description: String,
    method: String,
    decode: bool,
    accepts: bool,
    /// The status of an accepted reply, the status of a gRPC call, or an error.
    word: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FormProtocol {
    Http1,
    Http2,
    Http3,
    Grpc,
}

impl FormProtocol {
    const ALL: [Self; 4] = [Self::Http1, Self::Http2, Self::Http3, Self::Grpc];

    /// The heading of its table.
    const fn heading(self) -> &'static str {
        match self {
            Self::Http1 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
            Self::Http3 => "HTTP/3",
            Self::Grpc => "gRPC",
        }
    }
}

/// The result of `load` for a form.
#[derive(Debug, PartialEq, Eq)]
struct LoadVerdict {
    outcome: String,
    /// The status of the reply, or of the call.
    status: Option<String>,
}

/// Compares all forms.
pub(crate) fn reply_forms(site: &Site) -> Outcome<()> {
    let servers = required(FormServers::start(site))?;
    let judged = required(servers.judge(site))?;
    for protocol in FormProtocol::ALL {
        let count = judged.iter().filter(|form| form.protocol == protocol);
        let count = count.count();
        check(count >= FORMS, || {
            format!("{count} forms of {}, at least {FORMS}", protocol.heading())
        })?;
    }
    let verdicts = servers.load_all(site, &judged)?;
    let documented = DocumentedForms::read(&site.checkout.path(documented::PAGE))?;
    let wrong = documented.compare(&judged, &verdicts);
    for protocol in FormProtocol::ALL {
        let pairs = || judged.iter().zip(&verdicts);
        let of_protocol = pairs().filter(|(form, _)| form.protocol == protocol);
        let agree = of_protocol.clone().filter(|(form, own)| own.agrees(form));
        println!(
            "  {}: {} forms, {} judged alike",
            protocol.heading(),
            of_protocol.clone().count(),
            agree.count()
        );
    }
    check(wrong.is_empty(), || wrong.join("\n"))
}

/// An absent part of the comparison is a failure.
fn required<T>(outcome: Outcome<T>) -> Outcome<T> {
    outcome.map_err(|error| match error {
        TaskError::Missing(why) => TaskError::Failed(format!("nothing to compare with: {why}")),
        failed @ TaskError::Failed(_) => failed,
    })
}

impl LoadVerdict {
    fn read(report: &LoadReport, protocol: FormProtocol) -> Outcome<Self> {
        let counts = report.part("outcomes")?.as_object().into_iter().flatten();
        // On a busy machine the generator may drop a request, which says nothing about the reply.
        let occurred = counts.filter(|(name, count)| **count != 0 && *name != "dropped");
        let outcomes: Vec<&str> = occurred.map(|(name, _)| name.as_str()).collect();
        let statuses: Vec<String> = match protocol {
            FormProtocol::Grpc => report.grpc_statuses().into_keys().collect(),
            _ => {
                let statuses = report.part("statuses")?.as_object();
                statuses
                    .into_iter()
                    .flatten()
                    .map(|(status, _)| status.clone())
                    .collect()
            }
        };
        let outcome = outcomes.join(" and ");
        let has_status = matches!(outcome.as_str(), "ok" | "status-error" | "grpc-error");
        Ok(Self {
            status: has_status
                .then(|| statuses.join(" and "))
                .filter(|status| !status.is_empty()),
            outcome,
        })
    }

    /// True if `load` accepts the reply. A call is accepted with OK only.
    fn accepts(&self, protocol: FormProtocol) -> bool {
        match protocol {
            FormProtocol::Grpc => self.outcome == "ok",
            _ => matches!(self.outcome.as_str(), "ok" | "status-error"),
        }
    }

    /// True if the other client decides the same, and about the same status.
    fn agrees(&self, form: &JudgedForm) -> bool {
        let has_same_status = self.status.as_ref().is_none_or(|own| *own == form.word);
        // A status of a call is its own also where it is an error.
        let counts = form.accepts || form.protocol == FormProtocol::Grpc;
        self.accepts(form.protocol) == form.accepts && (has_same_status || !counts)
    }
}

impl std::fmt::Display for LoadVerdict {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.outcome)?;
        match &self.status {
            Some(status) => write!(formatter, " {status}"),
            None => Ok(()),
        }
    }
}

/// The server of all protocols, with its addresses in the order of [`FormProtocol::ALL`].
struct FormServers {
    _server: Server,
    addresses: [String; 4],
    python: PathBuf,
}

impl FormServers {
    fn start(site: &Site) -> Outcome<Self> {
        let requirements = format!("{PROGRAMS}/requirements.txt");
        let python = tools::python(&site.checkout, "reply-forms", &requirements)?;
        let folder = site.checkout.peer_folder("reply-forms")?;
        let certificate = certificate(site, &folder)?;
        let first = free_address()?;
        let addresses = [first, free_address()?, free_udp_address()?, free_address()?];
        let addresses = addresses.map(|address| address.to_string());
        let mut command = Command::new(&python);
        command
            .arg(site.checkout.path(PROGRAMS).join("server.py"))
            .args(&addresses)
            .arg(&certificate)
            .arg(certificate.with_file_name("key.pem"));
        let server = site.serve("reply-forms", &mut command, first)?;
        Ok(Self {
            _server: server,
            addresses,
            python,
        })
    }

    /// Asks the other clients.
    fn judge(&self, site: &Site) -> Outcome<Vec<JudgedForm>> {
        let curl = tools::debian(&site.checkout, "curl", "curl")?;
        let mut command = Command::new(&self.python);
        command
            .arg(site.checkout.path(PROGRAMS).join("oracle.py"))
            .arg(curl)
            .args(&self.addresses);
        let finished = site.run("reply-forms-oracle", &mut command, 300)?;
        let read = |line: &str| {
            serde_json::from_str(line)
                .map_err(|error| TaskError::Failed(format!("{error} in {line}")))
        };
        finished.stdout.lines().map(read).collect()
    }

    /// Runs `load` for each form, some at a time. The verdicts have the order of the forms.
    fn load_all(&self, site: &Site, forms: &[JudgedForm]) -> Outcome<Vec<LoadVerdict>> {
        let next = AtomicUsize::new(0);
        let work = || {
            let mut verdicts = Vec::new();
            while let Some((number, form)) = next_of(&next, forms) {
                verdicts.push((number, self.load(site, form)?));
            }
            Ok(verdicts)
        };
        let parts: Outcome<Vec<Vec<_>>> = std::thread::scope(|scope| {
            let threads = [(); AT_ONCE].map(|()| scope.spawn(work));
            let joined = threads.map(|thread| thread.join().expect("a thread does not panic"));
            joined.into_iter().collect()
        });
        let mut verdicts: Vec<_> = parts?.into_iter().flatten().collect();
        verdicts.sort_by_key(|(number, _)| *number);
        Ok(verdicts.into_iter().map(|(_, verdict)| verdict).collect())
    }

    fn load(&self, site: &Site, form: &JudgedForm) -> Outcome<LoadVerdict> {
        let [http1, http2, http3, grpc] = &self.addresses;
        let name = &form.form;
        let metadata = format!("form: {name}");
        let schema = site.checkout.path(PROGRAMS).join("forms.proto");
        let schema = schema.display().to_string();
        let (url, own) = match form.protocol {
            FormProtocol::Http1 => (format!("http://{http1}/{name}"), vec!["--http", "1.1"]),
            FormProtocol::Http2 => (format!("http://{http2}/{name}"), vec!["--http", "2"]),
            FormProtocol::Http3 => {
                let own = vec!["--http", "3", "--insecure"];
                (format!("https://{http3}/{name}"), own)
            }
            FormProtocol::Grpc => {
                let own = vec![
                    "--grpc",
                    "forms.Forms/Get",
                    "--proto",
                    &schema,
                    "-H",
                    &metadata,
                ];
                (format!("http://{grpc}"), own)
            }
        };
        let mut arguments = [&[url.as_str()], own.as_slice(), &PACE].concat();
        if form.protocol != FormProtocol::Grpc {
            arguments.extend(["--method", &form.method]);
        }
        arguments.extend(form.decode.then_some("--decode"));
        let report = site.load(&arguments, 60)?;
        LoadVerdict::read(&report, form.protocol)
    }
}

fn next_of<'f>(next: &AtomicUsize, forms: &'f [JudgedForm]) -> Option<(usize, &'f JudgedForm)> {
    let number = next.fetch_add(1, Ordering::Relaxed);
    Some((number, forms.get(number)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_absent_client_is_a_failure() {
        let absent: Outcome<()> = Err(TaskError::Missing("no curl".into()));
        assert!(matches!(required(absent), Err(TaskError::Failed(_))));
    }

    #[test]
    fn clients_agree_about_acceptance_and_status() {
        let form = |protocol, accepts, word: &str| JudgedForm {
            protocol,
            form: String::new(),
            description: String::new(),
            method: "GET".into(),
            decode: false,
            accepts,
            word: word.into(),
        };
        let own = |outcome: &str, status: Option<&str>| LoadVerdict {
            outcome: outcome.into(),
            status: status.map(Into::into),
        };
        let (http, grpc) = (FormProtocol::Http2, FormProtocol::Grpc);
        for (outcome, status, of_other, agree) in [
            ("ok", Some("200"), form(http, true, "200"), true),
            ("ok", Some("200"), form(http, true, "201"), false),
            ("ok", Some("200"), form(http, false, "exit 92"), false),
            ("status-error", Some("999"), form(http, true, "999"), true),
            ("reset", None, form(http, false, "exit 92"), true),
            ("undecodable", None, form(http, true, "200"), false),
            ("ok and reset", None, form(http, true, "200"), false),
            (
                "grpc-error",
                Some("INTERNAL"),
                form(grpc, false, "INTERNAL"),
                true,
            ),
            (
                "grpc-error",
                Some("INTERNAL"),
                form(grpc, false, "UNKNOWN"),
                false,
            ),
            ("protocol-error", None, form(grpc, false, "UNKNOWN"), true),
        ] {
            assert_eq!(own(outcome, status).agrees(&of_other), agree, "{outcome}");
        }
    }
}
