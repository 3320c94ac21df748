//! The end of a connection whose peer may still be sending.

use std::io::ErrorKind;
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::timeout;

use crate::socket::stream::Stream;

/// Maximum time for reading after a rejection, in total and without data.
const TOTAL: Duration = Duration::from_secs(30);
const SILENCE: Duration = Duration::from_secs(2);

/// Maximum bytes read after a rejection. A client that sends more without reading the reply is not interested in it.
const BYTES: usize = 1 << 30;

/// Buffer size for reading and dropping.
const BUFFER: usize = 16 << 10;

/// Reads and drops data from a peer that already has its reply, until it closes its side. An earlier close would reset
/// the connection, and the reply could be lost (RFC 9112, section 9.6).
pub(crate) async fn linger(stream: &mut Stream) {
    let mut dropped = vec![0; BUFFER];
    let drained = async {
        let mut left = BYTES;
        while timeout(SILENCE, stream.readable())
            .await
            .is_ok_and(|is| is.is_ok())
        {
            match stream.try_read(&mut dropped) {
                Ok(length @ 1..) if length < left => {
                    left -= length;
                    // Gives other connections their turn if a client sends without end.
                    yield_now().await;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                _ => return,
            }
        }
    };
    // After this time a lost reply is accepted.
    let _ = timeout(TOTAL, drained).await;
}
