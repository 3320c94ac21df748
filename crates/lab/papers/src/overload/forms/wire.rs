//! Bytes of one exchange of each kind of traffic, on a connection that carries several.
//!
//! A tap between the generator and the shop keeps all bytes of a connection. HTTP/1.1 is divided into its messages by
//! their lengths, HTTP/2 into the frames of each stream; frames of the connection itself are counted apart, and bytes
//! of TCP and IP not at all. Over HTTP/2 the first exchange has more bytes than later ones, whose fields the
//! compression of RFC 7541 has in its table. The date enters the table anew once a second. The most frequent number of
//! bytes of the later exchanges is therefore the same in every run.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};

use posthaste_load::{Outcome, Pace};
use posthaste_study::{Conditions, Failure, RecordTable};
use posthaste_units::Span;

use super::traffic::{FormsTestbed, Traffic};
use crate::overload::wire::{content_bytes, is_whole, message_length};

/// Time of the exchanges of a kind, one after another.
const LENGTH: Span = Span::from_millis(200);
/// Time between two of them.
const PAUSE: Span = Span::from_millis(5);

/// Start of the client's bytes of HTTP/2 (RFC 9113, section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes of a frame before its payload.
const FRAME_HEAD: usize = 9;

/// All bytes of a connection.
struct TappedConnection {
    requests: Vec<u8>,
    replies: Vec<u8>,
}

/// Bytes of one exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ExchangeBytes {
    request: usize,
    reply: usize,
}

/// The bytes of a connection by purpose.
#[derive(Debug, PartialEq, Eq)]
struct DividedConnection {
    exchanges: Vec<ExchangeBytes>,
    /// Bytes of the connection itself, in both directions.
    own: usize,
}

/// The table of bytes: a row for each kind of traffic.
pub(super) fn count_all(
    testbed: &FormsTestbed,
    conditions: &Conditions<'_>,
) -> Result<RecordTable, Failure> {
    let mut table = RecordTable::new([
        "traffic",
        "request",
        "reply",
        "first_request",
        "first_reply",
        "connection",
        "content",
        "exchanges",
        "tapped_sent",
        "tapped_received",
        "sent",
        "received",
        "good",
        "decoded",
    ]);
    let kinds = Traffic::on_the_wire();
    for (done, traffic) in kinds.iter().enumerate() {
        let message = format!("bytes of {}", traffic.key());
        conditions
            .progress
            .step(done as u64, kinds.len() as u64, &message);
        let Some((tapped, counts)) = tap(testbed, *traffic, conditions)? else {
            break;
        };
        let divided = if traffic.form.is_http2() {
            streams(&tapped)?
        } else {
            messages(&tapped)?
        };
        let first = divided.exchanges.first().copied();
        let later = most_frequent(divided.exchanges.get(1..).unwrap_or_default());
        let number = |bytes: Option<usize>| bytes.map_or(f64::NAN, |bytes| bytes as f64);
        let numbers = [
            number(later.map(|it| it.request)),
            number(later.map(|it| it.reply)),
            number(first.map(|it| it.request)),
            number(first.map(|it| it.reply)),
            divided.own as f64,
            content_bytes(conditions.seed),
            divided.exchanges.len() as f64,
            tapped.requests.len() as f64,
            tapped.replies.len() as f64,
        ];
        let numbers = numbers.into_iter().chain(counts);
        table.push(
            [traffic.key().into()]
                .into_iter()
                .chain(numbers.map(Into::into)),
        );
    }
    Ok(table)
}

/// Runs exchanges one after another through the tap. Returns its bytes, and the generator's counts: bytes sent and
/// received, good replies, and decoded bytes of a coded reply. `None` if stopped.
fn tap(
    testbed: &FormsTestbed,
    traffic: Traffic,
    conditions: &Conditions<'_>,
) -> Result<Option<(TappedConnection, [f64; 4])>, Failure> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let address = listener.local_addr()?;
    let pace = Pace::Closed {
        clients: 1,
        length: LENGTH,
    };
    let mut plan = testbed.plan(traffic, address, pace)?;
    plan.requests[0].think = PAUSE;
    plan.decoding = Some(1);
    std::thread::scope(|scope| {
        let shop = testbed.shop.address();
        let tapped = scope.spawn(move || pass(&listener, shop));
        let measured = testbed.measure(&plan, conditions.stop);
        // Ends a tap without a client. Refused if the tap has finished.
        drop(TcpStream::connect(address));
        let tapped = tapped.join().map_err(|_| "the tap panicked")??;
        Ok(measured?.map(|measured| {
            let run = &measured.run;
            let decoded = run.decoded.bytes as f64 / run.decoded.replies as f64;
            let good = run.outcomes[Outcome::Ok] as f64;
            let bytes = [run.bytes_sent, run.bytes_received].map(|bytes| bytes as f64);
            (tapped, [bytes[0], bytes[1], good, decoded])
        }))
    })
}

/// Forwards one connection until both ends have closed, and keeps its bytes.
fn pass(listener: &TcpListener, shop: SocketAddr) -> io::Result<TappedConnection> {
    let (client, _) = listener.accept()?;
    let server = TcpStream::connect(shop)?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    std::thread::scope(|scope| {
        let requests = scope.spawn(|| copy(&client, &server));
        let replies = copy(&server, &client)?;
        let requests = requests
            .join()
            .map_err(|_| io::Error::other("a copy panicked"))??;
        Ok(TappedConnection { requests, replies })
    })
}

/// Copies until the end of `from`, and closes `to` for writing. Returns the bytes that `to` accepted.
fn copy(mut from: &TcpStream, mut to: &TcpStream) -> io::Result<Vec<u8>> {
    let gone = |error: &io::Error| {
        use ErrorKind::{BrokenPipe, ConnectionReset, NotConnected};
        matches!(error.kind(), BrokenPipe | ConnectionReset | NotConnected)
    };
    let mut all = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let length = match from.read(&mut buffer) {
            Ok(length) => length,
            Err(error) if gone(&error) => 0,
            Err(error) => return Err(error),
        };
        if length == 0 {
            // The other end may be gone.
            let _ = to.shutdown(Shutdown::Write);
            return Ok(all);
        }
        match to.write_all(&buffer[..length]) {
            Ok(()) => all.extend_from_slice(&buffer[..length]),
            Err(error) if gone(&error) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Divides a connection of HTTP/1.1 into its messages.
fn messages(tapped: &TappedConnection) -> Result<DividedConnection, Failure> {
    let lengths = |mut bytes: &[u8]| {
        let mut lengths = Vec::new();
        while is_whole(bytes) {
            let length = message_length(bytes)?;
            lengths.push(length);
            bytes = &bytes[length..];
        }
        if bytes.is_empty() {
            Ok(lengths)
        } else {
            Err(Failure::from("a connection that ends within a message"))
        }
    };
    let pairs = lengths(&tapped.requests)?
        .into_iter()
        .zip(lengths(&tapped.replies)?);
    let exchange = |(request, reply)| ExchangeBytes { request, reply };
    let exchanges: Vec<ExchangeBytes> = pairs.map(exchange).collect();
    Ok(divided(tapped, exchanges))
}

/// Divides a connection of HTTP/2 into its streams.
fn streams(tapped: &TappedConnection) -> Result<DividedConnection, Failure> {
    let frames = tapped.requests.strip_prefix(PREFACE);
    let requests = bytes_of_streams(frames.ok_or("a connection without the preface of HTTP/2")?)?;
    let replies = bytes_of_streams(&tapped.replies)?;
    let exchanges = requests.into_iter().map(|(stream, request)| ExchangeBytes {
        request,
        reply: replies.get(&stream).copied().unwrap_or_default(),
    });
    let exchanges: Vec<ExchangeBytes> = exchanges.collect();
    Ok(divided(tapped, exchanges))
}

/// Bytes of each stream's frames, with the head of each frame.
fn bytes_of_streams(mut frames: &[u8]) -> Result<BTreeMap<u32, usize>, Failure> {
    let mut streams = BTreeMap::new();
    while let Some((head, rest)) = frames.split_first_chunk::<FRAME_HEAD>() {
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let stream = u32::from_be_bytes([head[5] & 0x7f, head[6], head[7], head[8]]);
        if stream != 0 {
            *streams.entry(stream).or_default() += FRAME_HEAD + length;
        }
        frames = rest
            .get(length..)
            .ok_or("a connection that ends within a frame")?;
    }
    Ok(streams)
}

fn divided(tapped: &TappedConnection, exchanges: Vec<ExchangeBytes>) -> DividedConnection {
    let all = tapped.requests.len() + tapped.replies.len();
    let of_exchanges: usize = exchanges.iter().map(|it| it.request + it.reply).sum();
    debug_assert!(
        of_exchanges <= all,
        "exchanges are parts of their connection"
    );
    DividedConnection {
        exchanges,
        own: all - of_exchanges,
    }
}

/// The most frequent exchange, the smaller one of equals.
fn most_frequent(exchanges: &[ExchangeBytes]) -> Option<ExchangeBytes> {
    let mut counts = BTreeMap::<ExchangeBytes, usize>::new();
    for exchange in exchanges {
        *counts.entry(*exchange).or_default() += 1;
    }
    let first = counts
        .iter()
        .max_by_key(|(it, count)| (**count, std::cmp::Reverse(**it)));
    first.map(|(it, _)| *it)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(request: usize, reply: usize) -> ExchangeBytes {
        ExchangeBytes { request, reply }
    }

    #[test]
    fn messages_are_divided_by_their_lengths() {
        let tapped = TappedConnection {
            requests: b"GET / HTTP/1.1\r\n\r\nGET /a HTTP/1.1\r\n\r\n".to_vec(),
            replies: b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\naHTTP/1.1 204 No\r\n\r\n"
                .to_vec(),
        };
        let divided = messages(&tapped).unwrap();
        let expected = vec![exchange(18, 39), exchange(19, 19)];
        assert_eq!((divided.exchanges, divided.own), (expected, 0));
        let cut = TappedConnection {
            requests: b"GET / HTTP/1.1\r\n".to_vec(),
            ..tapped
        };
        assert!(messages(&cut).is_err());
    }

    #[test]
    fn frames_belong_to_their_streams_or_to_the_connection() {
        let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
        let headers = [0, 0, 2, 1, 5, 0, 0, 0, 1, 7, 7];
        let tapped = TappedConnection {
            requests: [PREFACE, &settings, &headers].concat(),
            replies: [&settings[..], &headers, &headers].concat(),
        };
        let divided = streams(&tapped).unwrap();
        assert_eq!(divided.exchanges, [exchange(11, 22)]);
        assert_eq!(divided.own, PREFACE.len() + 18);
        assert!(bytes_of_streams(&headers[..10]).is_err());
    }

    #[test]
    fn the_most_frequent_exchange_counts() {
        let exchanges = [exchange(1, 9), exchange(1, 5), exchange(1, 5)];
        assert_eq!(most_frequent(&exchanges), Some(exchange(1, 5)));
        assert_eq!(most_frequent(&exchanges[..2]), Some(exchange(1, 5)));
        assert_eq!(most_frequent(&[]), None);
    }
}
