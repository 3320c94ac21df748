//! TCP connections: each one inside gets one outside, and both end in the same way.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use socket2::SockRef;
use tokio::io::copy_bidirectional_with_sizes;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use super::counters::{RelayCounters, count};

/// Bytes of each connection and direction kept in the relay, in addition to the kernel's buffers. A faster sender
/// waits.
const BUFFER: usize = 16 << 10;
/// Time limit for a connection to a host outside.
const CONNECT: Duration = Duration::from_secs(30);
/// Pause after a failure to accept, as when no descriptor is left.
const PAUSE: Duration = Duration::from_millis(10);

/// Relays accepted connections for as long as the runtime lives.
pub(super) fn serve(
    listener: std::net::TcpListener,
    targets: Arc<[SocketAddr]>,
    counters: Arc<RelayCounters>,
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

async fn carry(mut inside: TcpStream, targets: Arc<[SocketAddr]>, counters: Arc<RelayCounters>) {
    let mut outside = match connect(&targets, CONNECT).await {
        Ok(outside) => outside,
        Err(error) => {
            // A refusal is another error. A reset means that the connection was established, if only for a moment.
            match error.kind() {
                ErrorKind::ConnectionReset => {
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
    // Small pieces are forwarded as small pieces. Without this option they would be delayed.
    let _ = inside.set_nodelay(true);
    let _ = outside.set_nodelay(true);
    let ended = copy_bidirectional_with_sizes(&mut inside, &mut outside, BUFFER, BUFFER).await;
    if ended.is_err() {
        count(&counters.resets);
        reset(&inside);
        reset(&outside);
    }
}

/// Connects to the first of `targets` that answers. A silent target leaves the others their share of the time.
async fn connect(targets: &[SocketAddr], within: Duration) -> io::Result<TcpStream> {
    let end = Instant::now() + within;
    let mut failure = ErrorKind::TimedOut;
    for (index, target) in targets.iter().enumerate() {
        let left = end.saturating_duration_since(Instant::now());
        let share = left / (targets.len() - index) as u32;
        match timeout(share, TcpStream::connect(target)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => failure = error.kind(),
            Err(_) => failure = ErrorKind::TimedOut,
        }
    }
    Err(failure.into())
}

/// Makes this socket end with a reset.
fn reset(stream: &TcpStream) {
    // Fails only if the connection has already ended.
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
}

#[cfg(test)]
mod tests {
    use super::*;
    use socket2::{Domain, Socket, Type};

    #[test]
    fn a_silent_target_leaves_time_for_the_next() {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let hole = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        hole.bind(&any.into()).unwrap();
        hole.listen(0).unwrap();
        let silent = hole.local_addr().unwrap().as_socket().unwrap();
        // Never accepted, and the backlog is full.
        let _full = std::net::TcpStream::connect(silent).unwrap();
        let answers = std::net::TcpListener::bind(any).unwrap();
        let targets = [silent, answers.local_addr().unwrap()];
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let runtime = runtime.unwrap();
        let within = Duration::from_secs(2);
        let stream = runtime.block_on(connect(&targets, within)).unwrap();
        assert_eq!(stream.peer_addr().unwrap(), targets[1]);
        let error = runtime
            .block_on(connect(&targets[..1], within))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }
}
