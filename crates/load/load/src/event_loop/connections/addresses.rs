//! The addresses of servers: connections take them in turn, and pass over one that has failed.
//!
//! Each event loop has turns of its own. A connection that an address refuses is tried at the next one, within the timeout
//! of its request, as clients of name services do (RFC 6724, section 2). The address is passed over for [`REST`]. Then one
//! connection of each event loop tries it every [`REST`], until it answers. Each failure is counted.

use std::net::SocketAddr;

use posthaste_units::{Instant, Span};

/// Time for which connections pass over an address that has failed, if there is another.
const REST: Span = Span::from_secs(10);

/// The turns of a server's addresses.
pub(super) struct AddressTurns {
    addresses: Vec<SocketAddr>,
    /// End of the rest of each address; the origin of time for one that has not failed since its last answer.
    rests_until: Vec<Instant>,
    next: usize,
}

impl AddressTurns {
    /// Creates the turns of a server for the loop of this index. Loops begin with different addresses.
    pub(super) fn new(addresses: &[SocketAddr], index: usize) -> Self {
        assert!(!addresses.is_empty(), "a server has an address");
        Self {
            addresses: addresses.to_vec(),
            rests_until: vec![Instant::ORIGIN; addresses.len()],
            next: index % addresses.len(),
        }
    }

    /// Number of addresses.
    pub(super) const fn len(&self) -> usize {
        self.addresses.len()
    }

    /// Takes the next address that does not rest, or the one whose rest ends first if all do.
    pub(super) fn take(&mut self, now: Instant) -> SocketAddr {
        let count = self.addresses.len();
        let from_next = || (0..count).map(|step| (self.next + step) % count);
        let awake = from_next().find(|at| self.rests_until[*at] <= now);
        let earliest = || from_next().min_by_key(|at| self.rests_until[*at]);
        let taken = awake.or_else(earliest);
        let taken = taken.expect("a server has an address");
        if self.rests_until[taken] > Instant::ORIGIN {
            // Until it answers, one connection for each rest tries it.
            self.rests_until[taken] = now + REST;
        }
        self.next = (taken + 1) % count;
        self.addresses[taken]
    }

    /// Begins the rest of an address.
    pub(super) fn fail(&mut self, address: SocketAddr, now: Instant) {
        let at = self.index(address);
        self.rests_until[at] = now + REST;
    }

    /// Ends the rest of an address.
    pub(super) fn answer(&mut self, address: SocketAddr) {
        let at = self.index(address);
        self.rests_until[at] = Instant::ORIGIN;
    }

    fn index(&self, address: SocketAddr) -> usize {
        let at = self.addresses.iter().position(|known| *known == address);
        at.expect("a connection has an address of its server")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_take_turns_and_pass_over_a_failed_address() {
        let addresses: Vec<SocketAddr> = (1..=3)
            .map(|last| SocketAddr::from(([127, 0, 0, last], 80)))
            .collect();
        let mut turns = AddressTurns::new(&addresses, 1);
        let mut now = Instant::ORIGIN;
        let position = |taken: SocketAddr| addresses.iter().position(|address| *address == taken);
        let take = |turns: &mut AddressTurns, now: Instant, count: usize| -> Vec<usize> {
            let taken = (0..count).map(|_| turns.take(now));
            taken.map(|address| position(address).unwrap()).collect()
        };
        assert_eq!(take(&mut turns, now, 4), [1, 2, 0, 1]);
        turns.fail(addresses[2], now);
        assert_eq!(take(&mut turns, now, 4), [0, 1, 0, 1]);
        now += REST;
        assert_eq!(
            take(&mut turns, now, 4),
            [2, 0, 1, 0],
            "one connection tries it after its rest"
        );
        turns.answer(addresses[2]);
        assert_eq!(take(&mut turns, now, 3), [1, 2, 0], "it is used again");
        turns.next = 0;
        for address in &addresses {
            turns.fail(*address, now);
        }
        assert_eq!(take(&mut turns, now, 3), [0, 1, 2], "all rest");
    }
}
