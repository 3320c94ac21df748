//! A name server with one name, whose addresses change: UDP, A records only (RFC 1035, section 4).

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::error::{Outcome, TaskError};

/// Length of a message's header, and the longest query that is answered.
const HEADER: usize = 12;
const LONGEST: usize = 512;

/// Flags of the reply: response, authoritative, recursion desired and available.
const FLAGS: [u8; 2] = [0x85, 0x80];

/// Query type of addresses, and of the class Internet.
const A: [u8; 2] = [0, 1];
const IN: [u8; 2] = [0, 1];

/// A running name server. It answers every name alike.
pub(super) struct NameServer {
    pub(super) address: SocketAddr,
    answers: Arc<Mutex<Vec<Ipv4Addr>>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl NameServer {
    /// Starts it on a free port. Its answers live for `ttl`.
    pub(super) fn start(ttl: Duration) -> Outcome<Self> {
        let failed = |error| TaskError::Failed(format!("no name server: {error}"));
        let socket = UdpSocket::bind("127.0.0.1:0").map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        let wake = Duration::from_millis(100);
        socket.set_read_timeout(Some(wake)).map_err(failed)?;
        let answers = Arc::<Mutex<Vec<Ipv4Addr>>>::default();
        let over = Arc::<AtomicBool>::default();
        let (given, stop) = (answers.clone(), over.clone());
        let seconds = u32::try_from(ttl.as_secs()).unwrap_or(u32::MAX);
        let thread = std::thread::spawn(move || {
            let mut query = [0; LONGEST];
            while !stop.load(Relaxed) {
                let Ok((length, from)) = socket.recv_from(&mut query) else {
                    continue;
                };
                let given = given.lock().unwrap_or_else(PoisonError::into_inner);
                if let Some(reply) = reply(&query[..length], &given, seconds) {
                    // A reply that is lost is requested again.
                    let _ = socket.send_to(&reply, from);
                }
            }
        });
        Ok(Self {
            address,
            answers,
            over,
            thread: Some(thread),
        })
    }

    /// Replaces the addresses of every name.
    pub(super) fn answer(&self, addresses: &[Ipv4Addr]) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        *answers = addresses.to_vec();
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        // A panic has already been reported.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The reply to a query. Names without such records have an empty answer. `None` for a message that is no query.
fn reply(query: &[u8], addresses: &[Ipv4Addr], ttl: u32) -> Option<Vec<u8>> {
    let mut end = HEADER;
    while *query.get(end)? != 0 {
        end += 1 + usize::from(query[end]);
    }
    let question = query.get(HEADER..end + 5)?;
    let wants_addresses = question.ends_with(&[A, IN].concat());
    let count = if wants_addresses { addresses.len() } else { 0 };
    let mut reply = query[..2].to_vec();
    reply.extend(FLAGS);
    reply.extend([0, 1, 0, u8::try_from(count).ok()?, 0, 0, 0, 0]);
    reply.extend(question);
    for address in &addresses[..count] {
        // A pointer to the name in the question.
        reply.extend([0xc0, HEADER as u8]);
        reply.extend([A, IN].concat());
        reply.extend(ttl.to_be_bytes());
        reply.extend([0, 4]);
        reply.extend(address.octets());
    }
    Some(reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A query for `a.b` of this type.
    fn query(kind: u8) -> Vec<u8> {
        let mut query = vec![7, 9, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        query.extend([1, b'a', 1, b'b', 0, 0, kind, 0, 1]);
        query
    }

    #[test]
    fn addresses_are_answered_and_other_records_are_absent() {
        let addresses = [Ipv4Addr::new(127, 0, 0, 2), Ipv4Addr::new(127, 0, 0, 3)];
        let answer = reply(&query(1), &addresses, 1).unwrap();
        assert_eq!(answer[..8], [7, 9, 0x85, 0x80, 0, 1, 0, 2]);
        assert!(answer.ends_with(&[0, 0, 0, 1, 0, 4, 127, 0, 0, 3]));
        let none = reply(&query(28), &addresses, 1).unwrap();
        assert_eq!(none[6..8], [0, 0]);
    }

    #[test]
    fn truncated_queries_get_no_reply() {
        let whole = query(1);
        for length in 0..whole.len() {
            assert_eq!(reply(&whole[..length], &[], 1), None);
        }
    }
}
