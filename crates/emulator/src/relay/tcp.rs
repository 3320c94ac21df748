//! Connections: each one inside gets one outside, and both end alike.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use socket2::SockRef;
use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use super::counters::{Counters, count};

/// Bytes of a connection and direction that lie in the relay, beside those in the kernel's
/// buffers; who sends more waits.
const BUFFER: usize = 16 << 10;
/// How long a host outside is tried.
const CONNECT: Duration = Duration::from_secs(30);
/// Pause where no descriptor is left for a connection.
const PAUSE: Duration = Duration::from_millis(10);

/// Carries what is accepted, for as long as the runtime lives.
pub(super) fn serve(
    listener: std::net::TcpListener,
    targets: Arc<[SocketAddr]>,
    counters: Arc<Counters>,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    tokio::spawn(async move {
        loop {
            match listener.accept().await {
                Ok((inside, _)) => {
                    tokio::spawn(carry(inside, targets.clone(), counters.clone()));
                }
                Err(_) => sleep(PAUSE).await,
            }
        }
    });
    Ok(())
}

async fn carry(mut inside: TcpStream, targets: Arc<[SocketAddr]>, counters: Arc<Counters>) {
    let connected = timeout(CONNECT, TcpStream::connect(&targets[..])).await;
    let mut outside = match connected {
        Ok(Ok(outside)) => outside,
        failed => {
            // A refusal is another error: who is reset had been connected, be it for a moment.
            match failed {
                Ok(Err(error)) if error.kind() == ErrorKind::ConnectionReset => {
                    count(&counters.connections);
                    count(&counters.resets);
                }
                _ => count(&counters.unreachable),
            }
            reset(&inside);
            return;
        }
    };
    count(&counters.connections);
    // What one side sends in small pieces leaves in small pieces on the other. Without it they
    // would only be held up.
    let _ = inside.set_nodelay(true);
    let _ = outside.set_nodelay(true);
    let ended = copy_bidirectional_with_sizes(&mut inside, &mut outside, BUFFER, BUFFER).await;
    if ended.is_err() {
        count(&counters.resets);
        reset(&inside);
        reset(&outside);
    }
}

/// Has the end of this socket be a reset.
fn reset(stream: &TcpStream) {
    // On a connection that is gone already there is nothing to reset.
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
}
