//! Control of a run: changes of its links by other programs, over HTTP.
//!
//! ```text
//!  client      server (threads)           LinkControl                  engine (real time)
//!    | PATCH /      |                          |                             |
//!    |------------->| http: read, limits       |                             |
//!    |              |------------------------->| check against the plans     |
//!    |              |                          |-- queue of one, and wake -->| Network::change
//!    |              |                          |<------- time of it ---------| record, outcome
//!    |<-------------| 200, or 400 with reason  | log, for the trace          |
//! ```
//!
//! Packets never wait for a client: the engine takes one checked change at a time, and neither blocks nor allocates
//! while there is none. `posthaste-link` defines the keys and their effects.

mod address;
mod client;
mod http;
mod server;
mod state;

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use posthaste_link::change::{AppliedChange, Change, ChangeError};
use posthaste_link::{Direction, Plan};
use thiserror::Error;

pub use address::{ControlAddress, ControlAddressError};
pub use client::{ControlClientError, send_change};
pub use http::{BODY_LIMIT, HEAD_LIMIT};
pub(crate) use server::{ControlServer, ControlSockets, PrivateSocket};
pub use state::AppliedChangeDocument;
use state::StateDocument;

use crate::clock::EmulatorClock;
use crate::wait::Stop;

/// Error of a requested change.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ControlError {
    /// The change is not possible.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// The emulator has ended.
    #[error("the run has ended")]
    Stopped,
}

/// Changes the links of an emulation. Any thread may use it.
#[derive(Debug)]
pub struct LinkControl {
    /// Locked during a change, so that changes are checked against the plans that they change.
    plans: Mutex<[Plan; 2]>,
    log: ChangeLog,
    requests: SyncSender<ChangeRequest>,
    stop: Arc<Stop>,
    clock: EmulatorClock,
}

/// Changes of a run so far. Copies share one list.
#[derive(Clone, Debug, Default)]
pub struct ChangeLog(Arc<Mutex<Vec<AppliedChange>>>);

/// A change for the engine to make.
#[derive(Debug)]
pub(crate) struct ChangeRequest {
    pub(crate) change: Change,
    /// For the time of the change. Never blocks.
    pub(crate) reply: SyncSender<AppliedChange>,
}

/// The engine's end.
pub(crate) type ChangeRequests = Receiver<ChangeRequest>;

impl LinkControl {
    /// The control of links with these plans, and the engine's end of it. `stop` wakes the engine.
    pub(crate) fn new(
        plans: [Plan; 2],
        stop: Arc<Stop>,
        clock: EmulatorClock,
    ) -> (Self, ChangeRequests) {
        let (requests, inbox) = sync_channel(1);
        let control = Self {
            plans: Mutex::new(plans),
            log: ChangeLog::default(),
            requests,
            stop,
            clock,
        };
        (control, inbox)
    }

    /// Makes a change. Returns it with its time on the clock of the run.
    pub fn change(&self, change: Change) -> Result<AppliedChange, ControlError> {
        let mut plans = self.plans.lock().expect("no holder panics");
        change.check(plans.each_ref())?;
        let (reply, applied) = sync_channel(1);
        self.requests
            .send(ChangeRequest { change, reply })
            .map_err(|_| ControlError::Stopped)?;
        self.stop.wake();
        // Without a time limit: a change that comes late must be known here, too. Fails when the engine ends.
        let applied = applied.recv().map_err(|_| ControlError::Stopped)?;
        for (direction, plan) in Direction::BOTH.into_iter().zip(&mut *plans) {
            if let Some(next) = applied.change.apply(direction, plan, applied.at) {
                *plan = next;
            }
        }
        self.log.add(applied.clone());
        Ok(applied)
    }

    /// The changes so far.
    pub fn log(&self) -> &ChangeLog {
        &self.log
    }

    /// The present values and the changes so far.
    fn state(&self) -> StateDocument {
        let plans = self.plans.lock().expect("no holder panics");
        StateDocument::new(self.clock.now(), plans.each_ref(), &self.log.all())
    }
}

impl ChangeLog {
    pub(crate) fn add(&self, applied: AppliedChange) {
        self.0.lock().expect("no holder panics").push(applied);
    }

    /// All changes so far, in order of time.
    pub fn all(&self) -> Vec<AppliedChange> {
        self.after(0)
    }

    /// The changes so far without the first `count`.
    pub fn after(&self, count: usize) -> Vec<AppliedChange> {
        let changes = self.0.lock().expect("no holder panics");
        changes.get(count..).unwrap_or_default().to_vec()
    }
}
