//! Kinds of traffic: a form, with its coding and its use of connections.

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use posthaste_load::{
    Connections, Data, Multiplexing, Pace, Plan, Protocol, RequestSpec, WhenFull,
};
use posthaste_study::{Conditions, Failure, Records};
use posthaste_units::{Seed, Span};

use super::service_form::ServiceForm;
use crate::overload::testbed::{RequestForm, ShopSettings, ShopTestbed};
use crate::testbed::measured::MeasuredRun;

/// Connections of a run, and requests under way at most: one on each connection, or all on one. In a closed loop,
/// clients.
pub(super) const CONNECTIONS: usize = 64;

/// Time limit for a connection: long, because a rejected connection is not the subject.
const CONNECT: Span = Span::from_millis(500);

/// A kind of traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Traffic {
    pub(super) form: ServiceForm,
    /// The client accepts gzip.
    pub(super) gzip: bool,
    /// All requests share one connection. Otherwise a connection has one request at a time.
    pub(super) shared: bool,
}

impl Traffic {
    /// Plain replies, one request at a time on a connection.
    pub(super) const fn plain(form: ServiceForm) -> Self {
        let (gzip, shared) = (false, false);
        Self { form, gzip, shared }
    }

    /// The same with compressed replies. `None` for gRPC: the shop compresses no messages.
    pub(super) fn gzip(form: ServiceForm) -> Option<Self> {
        let traffic = Self {
            gzip: true,
            ..Self::plain(form)
        };
        (form != ServiceForm::Grpc).then_some(traffic)
    }

    /// The same on one connection. `None` for HTTP/1.1, which cannot.
    pub(super) fn shared(form: ServiceForm) -> Option<Self> {
        let traffic = Self {
            shared: true,
            ..Self::plain(form)
        };
        form.is_http2().then_some(traffic)
    }

    /// Kinds whose bytes are counted.
    pub(super) fn on_the_wire() -> Vec<Self> {
        let both = |form| [Some(Self::plain(form)), Self::gzip(form)];
        let all = ServiceForm::ALL.into_iter().flat_map(both);
        all.flatten().collect()
    }

    /// Kinds whose capacity is measured.
    pub(super) fn overloaded() -> Vec<Self> {
        let both = |form| [Some(Self::plain(form)), Self::shared(form)];
        let all = ServiceForm::ALL.into_iter().flat_map(both);
        all.flatten().collect()
    }

    /// All kinds. Their CPU time is measured.
    pub(super) fn all() -> Vec<Self> {
        let every = |form| {
            [
                Some(Self::plain(form)),
                Self::gzip(form),
                Self::shared(form),
            ]
        };
        let all = ServiceForm::ALL.into_iter().flat_map(every);
        all.flatten().collect()
    }

    /// Name in records.
    pub(super) fn key(self) -> String {
        let gzip = if self.gzip { " gzip" } else { "" };
        let shared = if self.shared { " shared" } else { "" };
        format!("{}{gzip}{shared}", self.form.key())
    }

    /// The request to `address`.
    pub(super) fn request(self, address: SocketAddr, isbn: &str) -> Result<RequestSpec, Failure> {
        let mut request = self.form.request(address, isbn)?;
        if self.gzip {
            let field = ("Accept-Encoding".to_owned(), "gzip".to_owned());
            request.headers.push(field);
        }
        Ok(request)
    }

    /// The protocol. All forms have the same number of connections with one request at a time on each, so that they
    /// differ in nothing else. Shared, the same number of requests are streams of one connection. A request that finds
    /// no place is dropped, with either version.
    fn protocol(self) -> Protocol {
        let (connections, streams) = if self.shared {
            (1, CONNECTIONS)
        } else {
            (CONNECTIONS, 1)
        };
        if self.form.is_http2() {
            Protocol::Http2(Multiplexing {
                connections,
                streams: Some(streams),
                when_full: WhenFull::Drop,
                ..Multiplexing::default()
            })
        } else {
            Protocol::Http1
        }
    }
}

/// A running shop, and plans for it.
pub(super) struct FormsTestbed {
    pub(super) shop: ShopTestbed,
    settings: ShopSettings,
}

impl FormsTestbed {
    /// Starts a shop that is slower than this machine by `slowdown`.
    pub(super) fn open(seed: Seed, slowdown: u32) -> Result<Self, Failure> {
        let settings = ShopSettings {
            slowdown,
            backlog: 4096,
            concurrency: None,
        };
        let shop = ShopTestbed::open(seed, settings)?;
        Ok(Self { shop, settings })
    }

    /// A plan for `address`, over persistent connections.
    pub(super) fn plan(
        &self,
        traffic: Traffic,
        address: SocketAddr,
        pace: Pace,
    ) -> Result<Plan, Failure> {
        let isbn = self.shop.isbn();
        let rows = format!("isbn\n{isbn}\n");
        Ok(Plan {
            requests: vec![traffic.request(address, isbn)?],
            data: Data::read(rows.as_bytes())?,
            protocol: traffic.protocol(),
            connections: Connections::KeepAlive,
            connection_limit: CONNECTIONS,
            connect_timeout: CONNECT,
            ..self.shop.plan(RequestForm::Page, pace)
        })
    }

    /// Runs `plan`. `None` if it was stopped early.
    pub(super) fn measure(
        &self,
        plan: &Plan,
        stop: &AtomicBool,
    ) -> Result<Option<MeasuredRun>, Failure> {
        self.shop.measure(plan, stop)
    }

    /// Records the parameters of the testbed.
    pub(super) fn describe(&self, records: &mut Records, conditions: &Conditions<'_>) {
        self.shop.describe(records, conditions, self.settings);
        records.set_parameter("connect timeout", CONNECT);
        let description = format!("{CONNECTIONS} persistent ones, one request at a time on each");
        records.set_parameter("connection", description);
    }
}
