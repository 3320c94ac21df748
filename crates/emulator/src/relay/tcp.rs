//! Connections: each one inside gets one outside, and both end alike.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

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
    let mut outside = match connect(&targets, CONNECT).await {
        Ok(outside) => outside,
        Err(error) => {
            // A refusal is another error: who is reset had been connected, be it for a moment.
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

/// A connection to the first of `targets` that answers. One that is silent leaves the others their share of the time.
async fn connect(targets: &[SocketAddr], within: Duration) -> io::Result<TcpStream> {
    let end = Instant::now() + within;
    let mut failure = ErrorKind::TimedOut;
    for (place, target) in targets.iter().enumerate() {
        let left = end.saturating_duration_since(Instant::now());
        let share = left / (targets.len() - place) as u32;
        match timeout(share, TcpStream::connect(target)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => failure = error.kind(),
            Err(_) => failure = ErrorKind::TimedOut,
        }
    }
    Err(failure.into())
}

/// Has the end of this socket be a reset.
fn reset(stream: &TcpStream) {
    // On a connection that is gone already there is nothing to reset.
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
        // Nobody accepts it, and there is no room for another.
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
