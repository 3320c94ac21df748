//! Controller: applies the visitors' changes one after the other, on its own thread, because some take a second.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use posthaste_units::Seed;

use crate::DemoError;
use crate::alerts::changes;
use crate::clients::{ClientOutcomes, DemoClients};
use crate::controls::{Controls, KINDS};
use crate::event_log::EventLog;
use crate::networks::NetworkRelays;
use crate::products::{Products, isbns};

/// Maximum number of queued changes.
const WAITING: usize = 16;

/// The running system. Field order is drop order: clients stop before servers.
pub(crate) struct System {
    clients: DemoClients,
    networks: NetworkRelays,
    products: Products,
    state: Arc<SystemState>,
    log: Arc<EventLog>,
}

/// State of the system for other threads.
pub(crate) struct SystemState {
    now: Mutex<(Controls, SocketAddr)>,
    /// URL of the broker.
    pub(crate) broker: String,
    /// Outcomes of the clients' requests.
    pub(crate) seen: [Arc<ClientOutcomes>; KINDS.len()],
}

/// Queue of changes. Only the last of several queued changes is applied.
struct ChangeQueue {
    from: Receiver<Controls>,
    waiting: Option<Controls>,
}

/// Handle of the controller's thread, which ends when all senders of changes are gone.
pub(crate) struct DemoController {
    thread: Option<JoinHandle<()>>,
}

impl System {
    /// Starts everything.
    pub(crate) fn start(seed: Seed, log: &Arc<EventLog>) -> Result<Self, DemoError> {
        let controls = Controls::default();
        let products = Products::start(seed, &controls)?;
        let networks = NetworkRelays::open(products.gateway())?;
        let broker = products.broker_url();
        let mut clients = DemoClients::new(&isbns(seed), broker.clone(), seed, log)?;
        clients.apply(&controls, &networks)?;
        let state = SystemState {
            now: Mutex::new((controls, products.admin())),
            broker,
            seen: clients.seen(),
        };
        log.tell("controls", &controls);
        Ok(Self {
            clients,
            networks,
            products,
            state: Arc::new(state),
            log: log.clone(),
        })
    }

    pub(crate) fn state(&self) -> Arc<SystemState> {
        self.state.clone()
    }

    /// Applies incoming changes until all senders are gone.
    pub(crate) fn run(mut self) -> Result<(DemoController, SyncSender<Controls>), DemoError> {
        let (wanted, queue) = sync_channel(WAITING);
        let thread = std::thread::Builder::new()
            .name("controller".to_owned())
            .spawn(move || self.follow(ChangeQueue::from_receiver(queue)))
            .map_err(DemoError::Thread)?;
        let thread = Some(thread);
        Ok((DemoController { thread }, wanted))
    }

    fn follow(&mut self, mut queue: ChangeQueue) {
        while let Some(wanted) = queue.newest() {
            let before = self.state.controls();
            match self.apply(&wanted) {
                Ok(()) => {
                    for news in changes(&before, &wanted) {
                        self.log.news(news);
                    }
                }
                Err(error) => self.log.news(format!("That cannot be done: {error}")),
            }
            // Shows all pages the controls in force. While a change is queued this would undo it on the page.
            if !queue.has_more() {
                self.log.tell("controls", &self.state.controls());
            }
        }
    }

    fn apply(&mut self, wanted: &Controls) -> Result<(), DemoError> {
        let networks = &self.networks;
        let state = &self.state;
        self.products.apply(wanted, |gateway| {
            networks.aim(gateway.addr);
            state.now().1 = gateway.admin;
        })?;
        self.clients.apply(wanted, &self.networks)?;
        self.state.now().0 = *wanted;
        Ok(())
    }
}

impl ChangeQueue {
    const fn from_receiver(from: Receiver<Controls>) -> Self {
        let waiting = None;
        Self { from, waiting }
    }

    /// Returns the last queued change, or waits for the next; `None` when all senders are gone.
    fn newest(&mut self) -> Option<Controls> {
        if !self.has_more() {
            self.waiting = self.from.recv().ok();
        }
        self.waiting.take()
    }

    /// Returns true if a change is queued.
    fn has_more(&mut self) -> bool {
        self.waiting = self.from.try_iter().last().or(self.waiting);
        self.waiting.is_some()
    }
}

impl SystemState {
    /// Controls in force.
    pub(crate) fn controls(&self) -> Controls {
        self.now().0
    }

    /// Admin address of the gateway.
    pub(crate) fn admin(&self) -> SocketAddr {
        self.now().1
    }

    fn now(&self) -> MutexGuard<'_, (Controls, SocketAddr)> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for DemoController {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic has been reported already.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_wishes_the_last_counts_and_none_waits_unseen() {
        let (wanted, queue) = sync_channel(WAITING);
        let mut queue = ChangeQueue::from_receiver(queue);
        let controls = |demand| Controls {
            demand,
            ..Controls::default()
        };
        for demand in [10, 20] {
            wanted.send(controls(demand)).unwrap();
        }
        assert_eq!(queue.newest(), Some(controls(20)));
        assert!(!queue.has_more());
        wanted.send(controls(30)).unwrap();
        assert!(queue.has_more(), "while the last was applied another came");
        wanted.send(controls(40)).unwrap();
        assert!(queue.has_more());
        assert_eq!(queue.newest(), Some(controls(40)));
        assert!(!queue.has_more());
        drop(wanted);
        assert_eq!(queue.newest(), None);
    }
}
