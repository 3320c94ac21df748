//! The client: begins transactions, a limited number at a time, and notes the end of each.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use posthaste_units::{Instant, Span};
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags, sockopt};
use slab::Slab;

use super::message::{SHORTEST, request};
use super::poll::Poll;
use super::server::tcp_socket;
use super::timers::Timers;
use super::{Course, Transaction, TransactionEnd};
use crate::clock::EmulatorClock;
use crate::{Addresses, Host};

/// Maximum time until a stop is noticed.
const STOP_CHECK: Span = Span::from_millis(50);

/// A client that runs transactions in a thread of its own. Dropping it stops them.
pub struct TransactionClient {
    progress: Arc<ClientProgress>,
    thread: Option<JoinHandle<Result<Vec<TransactionEnd>, Errno>>>,
}

/// State shared by client and caller.
#[derive(Default)]
struct ClientProgress {
    stop: AtomicBool,
    over: AtomicUsize,
}

impl TransactionClient {
    /// Begins `transactions`, in their order, from `host` with the server at `server`.
    pub fn start(
        host: &Host,
        server: Addresses,
        transactions: Vec<Transaction>,
        course: Course,
    ) -> Self {
        assert!(course.at_once > 0, "no transaction may begin");
        assert!(
            transactions.iter().all(|each| each.request >= SHORTEST),
            "a request is shorter than its instructions"
        );
        let (progress, from) = (Arc::<ClientProgress>::default(), host.addresses());
        let work = {
            let progress = progress.clone();
            move || {
                crate::processes::priority::wake_exactly();
                let mut running = ClientLoop::new(from, server, transactions, course)?;
                while !running.is_over() && !progress.stop.load(Ordering::Relaxed) {
                    running.advance()?;
                    progress.over.store(running.over, Ordering::Relaxed);
                }
                Ok(running.ended)
            }
        };
        Self {
            progress,
            thread: Some(host.spawn(work)),
        }
    }

    /// Transactions that have ended, successfully or not.
    pub fn over(&self) -> usize {
        self.progress.over.load(Ordering::Relaxed)
    }

    /// True once the thread has ended.
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Begins no more transactions, and stops those under way.
    pub fn stop(&self) {
        self.progress.stop.store(true, Ordering::Relaxed);
    }

    /// Waits for all transactions. Returns the end of each, in the given order.
    pub fn finish(mut self) -> Result<Vec<TransactionEnd>, Errno> {
        let thread = self.thread.take().expect("finished only once");
        match thread.join() {
            Ok(ended) => ended,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

impl Drop for TransactionClient {
    fn drop(&mut self) {
        self.stop();
    }
}

struct ClientLoop {
    clock: EmulatorClock,
    from: Addresses,
    to: SocketAddr,
    transactions: Vec<Transaction>,
    course: Course,
    /// Next transaction to begin, and its start time.
    next: usize,
    next_start: Instant,
    over: usize,
    ended: Vec<TransactionEnd>,
    poll: Poll,
    connections: Slab<ClientConnection>,
    /// Timeouts of transactions, by their index.
    timeouts: Timers,
}

struct ClientConnection {
    socket: OwnedFd,
    transaction: usize,
    /// Bytes of the reply received so far; `None` before the request was sent.
    got: Option<u32>,
}

impl ClientLoop {
    fn new(
        from: Addresses,
        server: Addresses,
        transactions: Vec<Transaction>,
        course: Course,
    ) -> Result<Self, Errno> {
        Ok(Self {
            clock: EmulatorClock::start(),
            from,
            to: super::address(server),
            ended: vec![TransactionEnd::Stopped; transactions.len()],
            transactions,
            course,
            next: 0,
            next_start: Instant::ORIGIN,
            over: 0,
            poll: Poll::new()?,
            connections: Slab::new(),
            timeouts: Timers::default(),
        })
    }

    fn is_over(&self) -> bool {
        self.over == self.transactions.len()
    }

    fn advance(&mut self) -> Result<(), Errno> {
        let mut now = self.clock.now();
        while self.may_begin() && now >= self.next_start {
            self.begin(now)?;
            self.next_start = now + self.course.spacing;
            now = self.clock.now();
        }
        let start = self.may_begin().then_some(self.next_start);
        let due = start.into_iter().chain(self.timeouts.next_due()).min();
        for token in self.poll.wait(now, due, STOP_CHECK)? {
            self.go_on(token as usize);
        }
        while let Some(token) = self.timeouts.take(self.clock.now()) {
            self.time_out(token as usize);
        }
        debug_assert_eq!(
            self.next,
            self.over + self.connections.len(),
            "a transaction is neither under way nor over"
        );
        Ok(())
    }

    fn may_begin(&self) -> bool {
        self.next < self.transactions.len() && self.connections.len() < self.course.at_once
    }

    fn begin(&mut self, now: Instant) -> Result<(), Errno> {
        let transaction = self.next;
        self.next += 1;
        let port = self.transactions[transaction].port;
        let socket = tcp_socket()?;
        let connect = || {
            sockopt::set_socket_reuseaddr(&socket, true)?;
            net::bind(&socket, &SocketAddr::from((self.from.v4, port)))?;
            sockopt::set_tcp_nodelay(&socket, true)?;
            match net::connect(&socket, &self.to) {
                Ok(()) | Err(Errno::INPROGRESS) => Ok(()),
                Err(errno) => Err(errno),
            }
        };
        if let Err(errno) = connect() {
            self.settle(transaction, TransactionEnd::Failed(errno));
            return Ok(());
        }
        let entry = self.connections.vacant_entry();
        self.poll
            .add(&socket, entry.key() as u64, EventFlags::OUT)?;
        self.timeouts
            .set(now + self.course.timeout, transaction as u64);
        entry.insert(ClientConnection {
            socket,
            transaction,
            got: None,
        });
        Ok(())
    }

    fn go_on(&mut self, slot: usize) {
        let Some(connection) = self.connections.get_mut(slot) else {
            return;
        };
        let transaction = &self.transactions[connection.transaction];
        let went = match &mut connection.got {
            None => send(&connection.socket, &request(transaction)).and_then(|()| {
                connection.got = Some(0);
                self.poll
                    .change(&connection.socket, slot as u64, EventFlags::IN)
                    .map(|()| false)
            }),
            Some(got) => receive(&connection.socket, got),
        };
        let ended = match went {
            Ok(false) | Err(Errno::AGAIN) => return,
            Ok(true) => match connection.got {
                Some(got) if got == transaction.reply => TransactionEnd::Well,
                got => TransactionEnd::Short(got.unwrap_or(0)),
            },
            Err(errno) => TransactionEnd::Failed(errno),
        };
        let connection = self.connections.remove(slot);
        self.settle(connection.transaction, ended);
    }

    /// Stops a transaction that is still under way.
    fn time_out(&mut self, transaction: usize) {
        let slot = self
            .connections
            .iter()
            .find(|(_, connection)| connection.transaction == transaction)
            .map(|(slot, _)| slot);
        if let Some(slot) = slot {
            drop(self.connections.remove(slot));
            self.settle(transaction, TransactionEnd::TimedOut);
        }
    }

    fn settle(&mut self, transaction: usize, ended: TransactionEnd) {
        debug_assert_eq!(
            self.ended[transaction],
            TransactionEnd::Stopped,
            "a transaction ended twice"
        );
        self.ended[transaction] = ended;
        self.over += 1;
    }
}

/// Sends a request. The kernel takes a request of this size at once.
fn send(socket: &OwnedFd, request: &[u8]) -> Result<(), Errno> {
    sockopt::socket_error(socket)??;
    match net::send(socket, request, SendFlags::NOSIGNAL)? {
        sent if sent == request.len() => Ok(()),
        _ => Err(Errno::NOBUFS),
    }
}

/// Reads all available data. Returns true at the end of the stream.
fn receive(socket: &OwnedFd, got: &mut u32) -> Result<bool, Errno> {
    let mut buffer = [0; 16 << 10];
    loop {
        match net::recv(socket, &mut buffer[..], RecvFlags::empty()) {
            Ok((_, 0)) => return Ok(true),
            Ok((_, length)) => *got += length as u32,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}
