//! Many connections at once: accepted connections are served before others are accepted.

use std::io::{Read, Write};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use bytes::Bytes;
use hyper::{Request, Response};
use posthaste_serve::{ConnectionCounters, Handler, HttpServer, Incoming, Peer, listen};

use crate::connect;
use crate::echo::Whole;

/// Records the number of accepted connections at the first request.
struct First {
    counters: Arc<ConnectionCounters>,
    accepted: Arc<AtomicU64>,
}

impl Handler for First {
    type Body = Whole;

    async fn handle(self: Rc<Self>, _: Request<Incoming>, _: Rc<Peer>) -> Response<Whole> {
        let accepted = self.counters.snapshot().accepted;
        let _ = self.accepted.compare_exchange(0, accepted, SeqCst, SeqCst);
        Response::new(Whole(Some(Bytes::new())))
    }
}

#[test]
fn a_crowd_that_waits_does_not_hold_up_who_has_been_accepted() {
    let listener = listen(([127, 0, 0, 1], 0).into(), 128).unwrap();
    let address = listener.local_addr().unwrap();
    let mut crowd: Vec<_> = (0..100).map(|_| connect(address)).collect();
    for client in &mut crowd {
        let request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        client.write_all(request).unwrap();
    }
    let server = HttpServer::default();
    let (counters, accepted) = (server.counters.clone(), Arc::<AtomicU64>::default());
    let noted = accepted.clone();
    let make = move |_| First {
        counters: counters.clone(),
        accepted: noted.clone(),
    };
    let _running = server.start(listener, make).unwrap();
    for client in &mut crowd {
        assert!(client.read(&mut [0; 256]).unwrap() > 0);
    }
    // The connections of one round, and of the round that finds their requests.
    assert!((1..=8).contains(&accepted.load(SeqCst)), "{accepted:?}");
}
