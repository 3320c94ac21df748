//! The servers of the study. Each answers a request with a reply of a given length.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use posthaste_emulator::{Host, SERVER};
use posthaste_quic_sim::server_certificate;
use posthaste_serve::{
    Certificate, Handler, Http3, HttpServer, Incoming, Peer, RunningServer, ServerTls, read_body,
};
use posthaste_study::Failure;
use posthaste_units::Span;

use super::super::job::PROCESSING;
use super::super::service::PaperService;
use super::transport::Transport;
use crate::testbed::program::find;

/// Port of every server.
pub(super) const PORT: u16 = 4433;
/// Bytes of the server's certificate, as in the simulation.
pub(super) const CERTIFICATE: u32 = 289;
/// Bytes of the head of an HTTP/1.1 reply, which the paper's length of a reply includes.
const HEAD: u32 = 98;
/// Waiting connections of the TCP listener.
const BACKLOG: u32 = 4096;
/// Maximum size of a request.
const MAX_BODY: usize = 64 << 10;

/// The implementation of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) enum ServerStack {
    /// The serving layer of this program: hyper, rustls and quinn.
    Ours,
    /// `gtlsserver` of ngtcp2, with GnuTLS. It has no processing time.
    Ngtcp2,
    /// A program with quic-go.
    QuicGo,
}

impl OfferedService {
    /// Our server with every transport, and with connections that are kept. Those over QUIC have no other end.
    pub(in super::super) fn all_of_ours(service: &'static PaperService) -> [Self; 5] {
        let ours = |transport| Self::ours(transport, service);
        let kept = |transport| Self {
            is_kept: true,
            ..ours(transport)
        };
        let [tcp, tls, quic] = Transport::ALL.map(ours);
        [tcp, kept(Transport::Tcp), tls, kept(Transport::Tls), quic]
    }

    /// Name of its transport in pictures and sentences.
    pub(in super::super) fn transport_name(&self) -> String {
        if self.is_kept {
            format!("{}, kept", self.transport.name())
        } else {
            self.transport.name().to_owned()
        }
    }

    /// Our server, with the processing time of the paper.
    pub(in super::super) const fn ours(
        transport: Transport,
        service: &'static PaperService,
    ) -> Self {
        Self {
            stack: ServerStack::Ours,
            transport,
            service,
            processing: PROCESSING,
            is_kept: false,
        }
    }
}

impl ServerStack {
    pub(in super::super) const ALL: [Self; 3] = [Self::Ours, Self::Ngtcp2, Self::QuicGo];

    /// Name in records and pictures.
    pub(in super::super) const fn name(self) -> &'static str {
        match self {
            Self::Ours => "quinn",
            Self::Ngtcp2 => "ngtcp2",
            Self::QuicGo => "quic-go",
        }
    }

    /// The program of another stack.
    const fn program(self) -> Option<&'static str> {
        match self {
            Self::Ours => None,
            Self::Ngtcp2 => Some("gtlsserver"),
            Self::QuicGo => Some("quic-go"),
        }
    }

    /// True if this machine can run it.
    pub(in super::super) fn is_installed(self) -> bool {
        self.program().is_none_or(|program| find(program).is_some())
    }
}

/// Bytes of the body of a reply whose HTTP/1.1 message has the length of the paper.
pub(super) const fn reply_body(service: &PaperService) -> u32 {
    service.reply - HEAD
}

/// Path of a request for this body. ngtcp2's server reads the length from it.
pub(super) fn path(service: &PaperService) -> String {
    format!("/{}", reply_body(service))
}

/// Files of the certificate and the key.
pub(super) struct ServerFiles {
    certificate: PathBuf,
    key: PathBuf,
}

impl ServerFiles {
    /// Writes both into `folder`.
    pub(super) fn write(folder: &Path) -> Result<Self, Failure> {
        fs::create_dir_all(folder)?;
        let [certificate, key] = server_certificate(CERTIFICATE);
        let files = Self {
            certificate: folder.join("certificate.pem"),
            key: folder.join("key.pem"),
        };
        fs::write(&files.certificate, pem("CERTIFICATE", &certificate))?;
        fs::write(&files.key, pem("PRIVATE KEY", &key))?;
        Ok(files)
    }
}

fn pem(label: &str, der: &[u8]) -> String {
    let content = BASE64_STANDARD.encode(der);
    format!("-----BEGIN {label}-----\n{content}\n-----END {label}-----\n")
}

/// The service of a server of the study.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct OfferedService {
    pub(in super::super) stack: ServerStack,
    pub(in super::super) transport: Transport,
    pub(in super::super) service: &'static PaperService,
    /// Time between a request and its reply, except with ngtcp2.
    pub(in super::super) processing: Span,
    /// The server leaves a TCP connection open after its reply, so that no FIN follows.
    pub(in super::super) is_kept: bool,
}

/// A running server. Dropping it stops it.
pub(super) enum StudyServer {
    Ours(Box<RunningServer>),
    Program(Child),
}

impl StudyServer {
    /// Starts a server on `host`.
    pub(super) fn start(
        host: &Host,
        offered: &OfferedService,
        files: &ServerFiles,
    ) -> Result<Self, Failure> {
        let (certificate, key) = (files.certificate.clone(), files.key.clone());
        let reply = reply_body(offered.service);
        let Some(program) = offered.stack.program() else {
            let transport = offered.transport;
            let handler = ReplyAfter {
                processing: offered.processing.into(),
                reply: reply as usize,
            };
            let start = move || ours(transport, handler, &certificate, &key).map(Box::new);
            return Ok(Self::Ours(host.run(start)?));
        };
        let path = find(program).ok_or_else(|| format!("{program} is not installed"))?;
        let mut command = Command::new(path);
        let address = SERVER.v4.to_string();
        match offered.stack {
            ServerStack::QuicGo => command
                .arg("-listen")
                .arg(format!("{address}:{PORT}"))
                .arg("-cert")
                .arg(&certificate)
                .arg("-key")
                .arg(&key)
                .arg("-processing")
                .arg(offered.processing.to_string())
                .arg("-reply")
                .arg(reply.to_string()),
            _ => command
                .args(["-q", "--no-pmtud", &address, &PORT.to_string()])
                .arg(&key)
                .arg(&certificate),
        };
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = host.run(move || command.spawn())?;
        Ok(Self::Program(child))
    }
}

impl Drop for StudyServer {
    fn drop(&mut self) {
        match self {
            Self::Ours(server) => server.stop(),
            Self::Program(child) => {
                // It may have ended itself; the transactions show it.
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}

fn ours(
    transport: Transport,
    handler: ReplyAfter,
    certificate: &Path,
    key: &Path,
) -> Result<RunningServer, Failure> {
    let address = SocketAddr::from((SERVER.v4, PORT));
    let listener = posthaste_serve::listen(address, BACKLOG)?;
    let tls = match transport {
        Transport::Tcp => None,
        Transport::Tls | Transport::Quic => {
            let certificate = Certificate::read(certificate, key)?;
            Some(Arc::new(ServerTls::new(certificate)?))
        }
    };
    let http3 = match transport {
        Transport::Quic => Some(Http3 {
            // Every connection has the packets of one transaction and no others.
            unproved: usize::MAX,
            probes_size: false,
            segmentation_offload: false,
            ..Http3::new(posthaste_serve::listen_udp(address)?, MAX_BODY)
        }),
        Transport::Tcp | Transport::Tls => None,
    };
    let server = HttpServer {
        threads: 1,
        tls,
        http3,
        ..HttpServer::default()
    };
    Ok(server.start(listener, move |_| handler)?)
}

/// Answers after a time.
#[derive(Clone, Copy)]
struct ReplyAfter {
    processing: Duration,
    /// Bytes of the body of a reply.
    reply: usize,
}

/// The content of all bodies.
static CONTENT: [u8; 1 << 14] = [b'x'; 1 << 14];

impl Handler for ReplyAfter {
    type Body = Full<Bytes>;

    async fn handle(
        self: Rc<Self>,
        request: Request<Incoming>,
        peer: Rc<Peer>,
    ) -> Response<Self::Body> {
        // A request that is cut off needs no reply.
        let _ = read_body(request.into_body(), MAX_BODY, &peer).await;
        tokio::time::sleep(self.processing).await;
        Response::new(Full::new(Bytes::from_static(&CONTENT[..self.reply])))
    }
}
