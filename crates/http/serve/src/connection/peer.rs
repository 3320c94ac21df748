//! The sender of a request, as a client and as the other end of the connection.

use std::cell::{Cell, OnceCell};
use std::net::SocketAddr;
use std::rc::Rc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::{HeaderMap, HeaderValue};
use rustls_pki_types::CertificateDer;

use crate::connection::state::ConnectionState;
use crate::connection::switch::SwitchState;
use crate::connection::thread::ServerThread;
use crate::connection::timer::{ConnectionPhase, PhaseTimer};
use crate::socket::tcp_info::NetworkPath;
use crate::tls::certificate_subject::certificate_subject;

/// The sender of a request, and its connection.
pub struct Peer {
    /// Address of the client: as a trusted load balancer states it (PROXY protocol), or else the other end of the
    /// connection.
    pub address: SocketAddr,
    /// Number of the connection on this thread, from 0.
    pub number: u64,
    /// Storage for the handler, kept with the connection; initially 0.
    pub note: Rc<Cell<u64>>,
    sender: SocketAddr,
    is_encrypted: bool,
    ip: OnceCell<HeaderValue>,
    certificate: OnceCell<Rc<HeaderValue>>,
    subject: OnceCell<Rc<str>>,
    pub(crate) connection: Rc<ConnectionState>,
    pub(crate) thread: Rc<ServerThread>,
    /// The timer of the connection or of one of its streams.
    pub(crate) timer: Rc<PhaseTimer>,
    pub(crate) switch: Cell<SwitchState>,
}

impl Peer {
    pub(crate) fn new(
        address: SocketAddr,
        is_encrypted: bool,
        number: u64,
        connection: Rc<ConnectionState>,
        thread: Rc<ServerThread>,
    ) -> Self {
        Self {
            address,
            sender: address,
            is_encrypted,
            number,
            note: Rc::default(),
            ip: OnceCell::new(),
            certificate: OnceCell::new(),
            subject: OnceCell::new(),
            timer: connection.timer.clone(),
            switch: Cell::default(),
            connection,
            thread,
        }
    }

    /// The IP address as a field value, formatted once per connection.
    pub fn ip(&self) -> &HeaderValue {
        self.ip.get_or_init(|| {
            let text = self.address.ip().to_string();
            HeaderValue::try_from(text).expect("addresses have no control characters")
        })
    }

    /// Starts or ends the time limit for a request's body, for handlers that read it themselves.
    pub fn reading(&self, reading: bool) {
        self.enter(ConnectionPhase::Service { reading });
    }

    /// Address of the other end of the connection, such as a load balancer's.
    pub fn sender(&self) -> SocketAddr {
        self.sender
    }

    /// True if the connection uses TLS. A load balancer's own TLS does not count.
    pub fn is_encrypted(&self) -> bool {
        self.is_encrypted
    }

    /// The client's verified certificate as the value of `Client-Cert` (RFC 9440, section 2.1), if it presented one.
    /// Formatted once per connection.
    pub fn certificate(&self) -> Option<&HeaderValue> {
        self.certificate.get().map(Rc::as_ref)
    }

    /// Subject of the client's verified certificate ([`certificate_subject`]), if it presented one.
    pub fn subject(&self) -> Option<&str> {
        self.subject.get().map(Rc::as_ref)
    }

    /// Stores the client's verified certificate, at the end of the TLS handshake.
    pub(crate) fn set_certificate(&self, certificate: &CertificateDer<'_>) {
        let text = format!(":{}:", STANDARD.encode(certificate));
        let value = HeaderValue::try_from(text).expect("Base64 has no control characters");
        let set = self.certificate.set(Rc::new(value));
        debug_assert!(set.is_ok(), "a connection has one handshake");
        // Verified certificates are readable.
        if let Ok(Some(subject)) = certificate_subject(certificate) {
            let _ = self.subject.set(subject.into());
        }
    }

    /// Returns this peer with the client's address as stated by its load balancer, for a connection without requests.
    pub(crate) fn with_address(&self, address: SocketAddr) -> Self {
        Self {
            address,
            ip: OnceCell::new(),
            timer: self.timer.clone(),
            ..self.of_stream()
        }
    }

    /// Returns this peer for one stream of its HTTP/2 or HTTP/3 connection.
    pub(crate) fn of_stream(&self) -> Self {
        Self {
            address: self.address,
            number: self.number,
            note: self.note.clone(),
            sender: self.sender,
            is_encrypted: self.is_encrypted,
            ip: self.ip.clone(),
            certificate: self.certificate.clone(),
            subject: self.subject.clone(),
            connection: self.connection.clone(),
            thread: self.thread.clone(),
            timer: Rc::default(),
            switch: Cell::default(),
        }
    }

    /// True for the first request of a connection. A client may send a later one again if the connection closes before
    /// any part of its reply: it was kept open, and the close may have crossed the request (RFC 9112, section 9.3.1).
    pub fn is_first_request(&self) -> bool {
        self.connection.requests.is_first_request()
    }

    /// Closes the connection without a reply, in order. False over HTTP/2 and HTTP/3, and for the first request; those
    /// need a reply. The handler does not return afterwards.
    pub fn close_unanswered(&self) -> bool {
        let may = !self.connection.is_multiplexed() && !self.is_first_request();
        if may {
            self.connection.ending.close_unanswered();
        }
        may
    }

    /// Sends an interim reply 103 with these fields (RFC 8297), before the reply to the current request. False, without
    /// an effect, if the client has not taken the last one, has HTTP/1.0, or shares its connection among streams.
    pub fn send_early_hints(&self, fields: &HeaderMap) -> bool {
        let connection = &self.connection;
        // While earlier bytes wait, they may be of an earlier reply.
        let may = !connection.is_multiplexed() && !connection.is_blocked();
        may && connection.interim.add(fields)
    }

    /// Closes an unused connection of this thread, to free a descriptor for a reply. False if every connection is in
    /// use.
    pub async fn evict_unused(&self) -> bool {
        self.thread.evict(false).await
    }

    pub(crate) fn enter(&self, phase: ConnectionPhase) {
        self.timer.enter(phase, self.thread.ticks.get());
    }

    /// The kernel's data about the network path. `None` after the connection has closed.
    pub fn path(&self) -> Option<NetworkPath> {
        self.connection.socket()?.path()
    }
}
