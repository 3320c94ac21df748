//! Rate limit of wrong keys, by client.
//!
//! A client with a key that was replaced would otherwise repeat it as fast as it can. Valid keys of the same address pass,
//! because behind a proxy many clients have one address.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use posthaste_admission::Bucket;
use posthaste_units::{Instant, Span};

/// Wrong keys of a client per second, and at once.
const RATE: f64 = 1.0;
const BURST: u32 = 20;

/// Maximum number of clients. Further ones are not limited until others have been quiet for [`BURST`] / [`RATE`].
const CLIENTS: usize = 10_000;

/// Clients with wrong keys.
#[derive(Debug, Default)]
pub(crate) struct WrongKeys(Mutex<HashMap<String, Bucket>>);

impl WrongKeys {
    /// Counts a wrong key of `client`. Fails with the time to wait if the client has sent too many.
    pub(crate) fn count(&self, client: String, now: Instant) -> Result<(), Span> {
        // A panic with the lock held cannot leave the buckets inconsistent.
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if clients.len() >= CLIENTS && !clients.contains_key(&client) {
            clients.retain(|_, bucket| !bucket.is_full(now));
            if clients.len() >= CLIENTS {
                return Ok(());
            }
        }
        let bucket = clients.entry(client);
        bucket.or_insert_with(|| Bucket::new(RATE, BURST)).take(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_a_limit_and_room_is_made() {
        let keys = WrongKeys::default();
        let at = |seconds| Instant::ORIGIN + Span::from_secs(seconds);
        for _ in 0..BURST {
            assert_eq!(keys.count("a".to_owned(), at(100)), Ok(()));
        }
        let wait = keys.count("a".to_owned(), at(100)).unwrap_err();
        assert!(wait > Span::ZERO && wait <= Span::from_secs(1), "{wait}");
        assert_eq!(keys.count("b".to_owned(), at(100)), Ok(()));
        assert_eq!(keys.count("a".to_owned(), at(101)), Ok(()));
        for client in 0..CLIENTS {
            assert_eq!(keys.count(client.to_string(), at(102)), Ok(()));
        }
        assert_eq!(keys.0.lock().unwrap().len(), CLIENTS);
        assert_eq!(keys.count("c".to_owned(), at(200)), Ok(()));
        assert_eq!(keys.0.lock().unwrap().len(), 1);
    }
}
