//! The event loop of one core. [`EventLoop::run`] is the list of its stages:
//!
//! | module | stage |
//! |---|---|
//! | `arrivals` | takes requests and retries that are due, and chooses an idle connection or a new one |
//! | `offers` | chooses an offer, if the client buys |
//! | `addresses` | takes the addresses of a server in turn |
//! | `connect` | opens a connection: SYN, handshake, TLS |
//! | `send` | writes a request |
//! | `streams` | assigns requests to streams, and sends and receives them |
//! | `wait` | sleeps until shortly before the next request is due, and polls from there (`spin`) |
//! | `receive` | handles events and reads replies |
//! | `complete` | judges a complete reply, and reuses or ends its connection |
//! | `timeouts` | ends exchanges and connections that are late |
//! | `retries` | plans the next attempt of a request that failed |
//! | `record` | records ends, bytes and seconds |

mod addresses;
mod arrivals;
mod complete;
mod connect;
mod offers;
mod receive;
mod record;
mod retries;
mod send;
mod spin;
mod streams;
mod timeouts;
mod wait;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender};

use posthaste_units::{Instant, Span};
use rand::RngExt as _;
use rustix::event::epoll;
use rustix::io::Errno;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use slab::Slab;

use self::addresses::AddressTurns;
use self::receive::Unread;
use self::spin::SpinTime;
use self::streams::StreamQueues;
use crate::attempt_recorder::AttemptRecorder;
use crate::buying::{Buyer, FollowedCatalogue};
use crate::clock::RunClock;
use crate::connection::HttpConnection;
use crate::exchange::Exchanges;
use crate::fifo::Fifo;
use crate::mix::Mix;
use crate::plan::{MeasuredWindow, Plan};
use crate::quic::QlogDirectory;
use crate::reply::Budget;
use crate::retry::RetryQueue;
use crate::seconds::{LoopSecond, SECOND};
use crate::share::Share;
use crate::slots::{ConnectionSlot, ExchangeSlot};
use crate::source::RequestSource;
use crate::stop::StopOrders;
use crate::stream_client::StreamSetUp;
use crate::tally::LoadTally;
use crate::target::TargetOrigin;

/// Expires timeouts after this many consecutive turns with a full batch of events.
const EXPIRE_EVERY: u32 = 16;
/// Events of one batch.
const BATCH: usize = 256;

/// State shared by all event loops of a run.
pub(crate) struct Shared<'r> {
    pub(crate) plan: &'r Plan,
    /// The loops of this process.
    pub(crate) share: Share,
    pub(crate) mix: Mix,
    pub(crate) origins: Vec<TargetOrigin>,
    /// Duration of the name look-up of each server.
    pub(crate) dns: Vec<Span>,
    pub(crate) names: HashMap<usize, ServerName<'static>>,
    pub(crate) tls: Option<Arc<ClientConfig>>,
    /// The set-up of connections with streams, if the protocol has them.
    pub(crate) streams: Option<StreamSetUp>,
    /// qlog files, if they are wanted.
    pub(crate) qlog: Option<Arc<QlogDirectory>>,
    pub(crate) clock: RunClock,
    /// Offers, if clients choose by price.
    pub(crate) offers: Option<FollowedCatalogue>,
    pub(crate) stop: StopOrders<'r>,
    /// True if a loop of the run could not be started, so that the others do not begin.
    pub(crate) incomplete: AtomicBool,
    /// Memory for coded replies, if the plan decodes.
    pub(crate) budget: Option<Arc<Budget>>,
    /// Maximum number of open connections per loop.
    pub(crate) limit: usize,
    pub(crate) window: MeasuredWindow,
    /// Receives the end of each attempt, in experiments.
    pub(crate) recorder: Option<&'r AttemptRecorder>,
}

impl Shared<'_> {
    /// The local port of the next connection. 0 leaves the choice to the system.
    pub(crate) fn local_port(&self) -> u16 {
        self.recorder.map_or(0, AttemptRecorder::assign_port)
    }
}

/// One event loop with its connections.
pub(crate) struct EventLoop<'r> {
    shared: &'r Shared<'r>,
    source: RequestSource,
    epoll: rustix::fd::OwnedFd,
    connections: Slab<HttpConnection>,
    exchanges: Exchanges,
    idle: Vec<Vec<ConnectionSlot>>,
    /// The addresses of each server.
    turns: Vec<AddressTurns>,
    /// Requests and connections of HTTP/2 and HTTP/3.
    streams: StreamQueues,
    unread: Vec<Unread>,
    /// Deadlines of connections.
    connecting: Fifo<ConnectionSlot>,
    /// Deadlines of exchanges.
    replying: Fifo<ExchangeSlot>,
    /// Deadlines of connections.
    closing: Fifo<ConnectionSlot>,
    retries: RetryQueue,
    /// Requests begun and not ended, those between two attempts included.
    in_flight: usize,
    serial: u32,
    /// Index among the loops of this process.
    index: usize,
    /// Measurements since the last report.
    tally: Box<LoadTally>,
    buyer: Option<Buyer<'r>>,
    /// Takes the tally of each second.
    seconds: Sender<LoopSecond>,
    /// Empty tallies, so that a second costs no allocation.
    empty: Receiver<Box<LoadTally>>,
    next_second: Instant,
    /// Bytes sent and received that are recorded for the measured time, or do not belong to it.
    bytes_recorded: [u64; 2],
    spin: SpinTime,
    buffer: Vec<u8>,
    scratch: Vec<u8>,
}

impl Shared<'_> {
    /// The look-ups of names, which took place before the run.
    pub(crate) fn look_ups(&self) -> LoadTally {
        let mut tally = LoadTally::of(self.plan);
        self.dns
            .iter()
            .for_each(|time| tally.phases.dns.record(*time));
        tally
    }
}

impl<'r> EventLoop<'r> {
    pub(crate) fn new(
        shared: &'r Shared<'r>,
        index: usize,
        seconds: Sender<LoopSecond>,
        empty: Receiver<Box<LoadTally>>,
    ) -> Result<Self, Errno> {
        let position = shared.share.first + index;
        Ok(Self {
            shared,
            source: RequestSource::new(shared.plan, position),
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            connections: Slab::new(),
            exchanges: Exchanges::new(
                shared.budget.clone(),
                shared.plan.events.clone(),
                shared.plan.has_calls(),
            ),
            idle: vec![Vec::new(); shared.origins.len()],
            turns: shared
                .origins
                .iter()
                .map(|origin| AddressTurns::new(&origin.addresses, position))
                .collect(),
            streams: StreamQueues::new(shared.plan, shared.origins.len()),
            unread: Vec::new(),
            connecting: Fifo::new(),
            replying: Fifo::new(),
            closing: Fifo::new(),
            retries: RetryQueue::default(),
            in_flight: 0,
            serial: 0,
            index,
            tally: Box::new(LoadTally::of(shared.plan)),
            buyer: shared.offers.as_ref().map(|offers| {
                let mut phase = shared
                    .plan
                    .seed
                    .numbered("asks", position as u64)
                    .stream("phase");
                Buyer::new(&offers.catalogue, phase.random())
            }),
            seconds,
            empty,
            next_second: Instant::ORIGIN + SECOND,
            bytes_recorded: [0; 2],
            spin: SpinTime::new(),
            buffer: vec![0; 64 * 1024],
            scratch: Vec::new(),
        })
    }

    /// Runs until every due request has ended or the run is stopped. The measurements are in the reports of the
    /// seconds.
    pub(crate) fn run(mut self) -> Result<(), Errno> {
        let mut events = Vec::with_capacity(BATCH);
        let mut full_turns = 0;
        loop {
            let now = self.shared.clock.now();
            self.record_bytes(now);
            if let Some(over) = self.stopped_at(now) {
                self.tally.over = over;
                self.skip_overdue();
                break;
            }
            self.begin_due(now);
            self.flush_streams();
            self.tally.over = self.shared.clock.now();
            if self.is_finished() {
                break;
            }
            let before = self.shared.clock.now();
            self.wait(&mut events)?;
            self.handle_events(&events);
            self.receive_rest();
            self.expire_quic_timers(before);
            self.flush_streams();
            // A deadline may belong to a connection with a pending event, so events come first. Not without end: at
            // saturation every batch of events is full.
            let is_full = events.len() == events.capacity();
            full_turns = if is_full { full_turns + 1 } else { 0 };
            if full_turns % EXPIRE_EVERY == 0 {
                self.expire_timeouts(before);
            }
        }
        self.end_unfinished();
        assert_eq!(
            self.in_flight, 0,
            "a request has not ended with its event loop: a bug"
        );
        self.report_end();
        Ok(())
    }

    /// The time at which the run was stopped, if it was.
    fn stopped_at(&self, now: Instant) -> Option<Instant> {
        if self.shared.incomplete.load(Ordering::Relaxed) {
            Some(now)
        } else {
            self.shared.stop.reached(now)
        }
    }

    fn is_finished(&self) -> bool {
        self.in_flight == 0 && self.source.next_due().is_none()
    }
}
