//! Waiting for many sockets and a due time in one thread, with epoll.

use std::os::fd::{AsFd, OwnedFd};

use posthaste_units::{Instant, Span};
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

/// Maximum number of events read at once.
const BATCH: usize = 256;

/// Sockets with the tokens that identify them.
pub(super) struct Poll {
    epoll: OwnedFd,
    reports: Vec<epoll::Event>,
}

impl Poll {
    pub(super) fn new() -> Result<Self, Errno> {
        Ok(Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            reports: Vec::with_capacity(BATCH),
        })
    }

    /// Reports `socket` under `token` while it is in the state of `flags`, until it is closed.
    pub(super) fn add(
        &self,
        socket: impl AsFd,
        token: u64,
        flags: epoll::EventFlags,
    ) -> Result<(), Errno> {
        epoll::add(&self.epoll, socket, epoll::EventData::new_u64(token), flags)
    }

    /// Changes the state in which a socket is reported.
    pub(super) fn change(
        &self,
        socket: impl AsFd,
        token: u64,
        flags: epoll::EventFlags,
    ) -> Result<(), Errno> {
        epoll::modify(&self.epoll, socket, epoll::EventData::new_u64(token), flags)
    }

    /// Tokens of ready sockets. Waits for one until `due`, for at most `longest`.
    pub(super) fn wait(
        &mut self,
        now: Instant,
        due: Option<Instant>,
        longest: Span,
    ) -> Result<Vec<u64>, Errno> {
        let patience = due.map_or(longest, |due| due.saturating_since(now).min(longest));
        let timeout = Timespec {
            tv_sec: (patience.as_nanos() / 1_000_000_000) as i64,
            tv_nsec: (patience.as_nanos() % 1_000_000_000) as _,
        };
        self.reports.clear();
        let spare = rustix::buffer::spare_capacity(&mut self.reports);
        match epoll::wait(&self.epoll, spare, Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(self
                .reports
                .iter()
                .map(|report| report.data.u64())
                .collect()),
            Err(errno) => Err(errno),
        }
    }
}
