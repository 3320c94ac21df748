//! Controller: applies the visitors' changes one after the other, on its own thread, because some take a second.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use posthaste_units::Seed;

use crate::Error;
use crate::chronicle::changes;
use crate::controls::{Controls, KINDS};
use crate::crowd::{Crowd, Seen};
use crate::lines::Lines;
use crate::products::{Products, isbns};
use crate::story::Story;

/// Maximum number of queued changes.
const WAITING: usize = 16;

/// The running system. Field order is drop order: clients stop before servers.
pub(crate) struct System {
    crowd: Crowd,
    lines: Lines,
    products: Products,
    board: Arc<Board>,
    story: Arc<Story>,
}

/// State of the system for other threads.
pub(crate) struct Board {
    now: Mutex<(Controls, SocketAddr)>,
    /// URL of the broker.
    pub(crate) broker: String,
    /// Outcomes of the clients' requests.
    pub(crate) seen: [Arc<Seen>; KINDS.len()],
}

/// Queue of changes. Only the last of several queued changes is applied.
struct Wishes {
    from: Receiver<Controls>,
    waiting: Option<Controls>,
}

/// Handle of the controller's thread, which ends when all senders of changes are gone.
pub(crate) struct Director {
    thread: Option<JoinHandle<()>>,
}

impl System {
    /// Starts everything.
    pub(crate) fn start(seed: Seed, story: &Arc<Story>) -> Result<Self, Error> {
        let controls = Controls::default();
        let products = Products::start(seed, &controls)?;
        let lines = Lines::open(products.gateway())?;
        let broker = products.broker_url();
        let mut crowd = Crowd::new(&isbns(seed), broker.clone(), seed, story)?;
        crowd.obey(&controls, &lines)?;
        let board = Board {
            now: Mutex::new((controls, products.admin())),
            broker,
            seen: crowd.seen(),
        };
        story.tell("controls", &controls);
        Ok(Self {
            crowd,
            lines,
            products,
            board: Arc::new(board),
            story: story.clone(),
        })
    }

    pub(crate) fn board(&self) -> Arc<Board> {
        self.board.clone()
    }

    /// Applies incoming changes until all senders are gone.
    pub(crate) fn direct(mut self) -> Result<(Director, SyncSender<Controls>), Error> {
        let (wanted, wishes) = sync_channel(WAITING);
        let thread = std::thread::Builder::new()
            .name("director".to_owned())
            .spawn(move || self.follow(Wishes::of(wishes)))
            .map_err(Error::Thread)?;
        let thread = Some(thread);
        Ok((Director { thread }, wanted))
    }

    fn follow(&mut self, mut wishes: Wishes) {
        while let Some(wanted) = wishes.newest() {
            let before = self.board.controls();
            match self.obey(&wanted) {
                Ok(()) => {
                    for news in changes(&before, &wanted) {
                        self.story.news(news);
                    }
                }
                Err(error) => self.story.news(format!("That cannot be done: {error}")),
            }
            // Shows all pages the controls in force. While a change is queued this would undo it on the page.
            if !wishes.has_more() {
                self.story.tell("controls", &self.board.controls());
            }
        }
    }

    fn obey(&mut self, wanted: &Controls) -> Result<(), Error> {
        let lines = &self.lines;
        let board = &self.board;
        self.products.obey(wanted, |gateway| {
            lines.aim(gateway.addr);
            board.now().1 = gateway.admin;
        })?;
        self.crowd.obey(wanted, &self.lines)?;
        self.board.now().0 = *wanted;
        Ok(())
    }
}

impl Wishes {
    const fn of(from: Receiver<Controls>) -> Self {
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

impl Board {
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

impl Drop for Director {
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
        let (wanted, wishes) = sync_channel(WAITING);
        let mut wishes = Wishes::of(wishes);
        let controls = |demand| Controls {
            demand,
            ..Controls::default()
        };
        for demand in [10, 20] {
            wanted.send(controls(demand)).unwrap();
        }
        assert_eq!(wishes.newest(), Some(controls(20)));
        assert!(!wishes.has_more());
        wanted.send(controls(30)).unwrap();
        assert!(wishes.has_more(), "while the last was obeyed another came");
        wanted.send(controls(40)).unwrap();
        assert!(wishes.has_more());
        assert_eq!(wishes.newest(), Some(controls(40)));
        assert!(!wishes.has_more());
        drop(wanted);
        assert_eq!(wishes.newest(), None);
    }
}
