//! Bytes of one exchange: counted on the wire, and divided by purpose.
//!
//! A tap between the generator and the shop forwards one exchange and keeps it. Its count must equal the generator's.
//! The catalogue determines the content: the values of the book and the ISBN that was sent. All other bytes of a body
//! are markup.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use posthaste_bookshop::Catalogue;
use posthaste_load::{Arrivals, Pace, Plan, RateStep};
use posthaste_study::{Conditions, Failure, Needs, RecordTable, Records, Study};
use posthaste_units::{Rate, Seed, Span};

use super::facts;
use super::testbed::{RequestForm, ShopSettings, ShopTestbed};

pub(super) static STUDY: Study = Study {
    name: "overload-wire",
    needs: Needs::Processor,
    core: true,
    run: study,
};

/// Bytes of one exchange.
struct TappedExchange {
    request: Vec<u8>,
    reply: Vec<u8>,
}

fn study(conditions: &Conditions<'_>) -> Result<Records, Failure> {
    let shop = ShopSettings {
        slowdown: 1,
        backlog: 128,
        concurrency: None,
    };
    let testbed = ShopTestbed::open(conditions.seed, shop)?;
    let mut table = RecordTable::new([
        "form", "request", "reply", "content", "markup", "headers", "sent", "received",
    ]);
    let content = content_bytes(conditions.seed);
    for (done, form) in RequestForm::ALL.into_iter().enumerate() {
        conditions
            .progress
            .step(done as u64, RequestForm::ALL.len() as u64, form.name());
        let (exchange, sent, received) = exchange(&testbed, form, conditions)?;
        let heads = head(&exchange.request)? + head(&exchange.reply)?;
        let (request, reply) = (exchange.request.len(), exchange.reply.len());
        // Compression makes content and markup inseparable.
        let known = if form == RequestForm::Compressed {
            f64::NAN
        } else {
            content
        };
        let markup = (request + reply - heads) as f64 - known;
        let counts = [
            request as f64,
            reply as f64,
            known,
            markup,
            heads as f64,
            sent as f64,
            received as f64,
        ];
        table.push(
            [form.key().into()]
                .into_iter()
                .chain(counts.map(Into::into)),
        );
    }
    let mut records = Records::new();
    records.set_table("bytes", table);
    testbed.describe(&mut records, conditions, shop);
    Ok(records)
}

/// Bytes of the ISBN in the request and of all values in the reply.
pub(super) fn content_bytes(seed: Seed) -> f64 {
    let catalogue = Catalogue::new(1, seed);
    let book = &catalogue.books()[0];
    let values = facts::values(book);
    let bytes: usize = values.iter().map(|(_, value)| value.len()).sum();
    (book.isbn.len() + bytes) as f64
}

/// Runs one exchange through the tap. Returns its bytes, and the generator's counts of bytes sent and received.
fn exchange(
    testbed: &ShopTestbed,
    form: RequestForm,
    conditions: &Conditions<'_>,
) -> Result<(TappedExchange, u64, u64), Failure> {
    let tap = TcpListener::bind(("127.0.0.1", 0))?;
    let address = tap.local_addr()?;
    let pace = Pace::Open {
        arrivals: Arrivals::Constant,
        steps: vec![RateStep::steady(
            Rate::per_second(10.0).expect("ten is a rate"),
            Span::from_millis(100),
        )],
    };
    let plan = Plan {
        requests: vec![testbed.request(form, address)],
        ..testbed.plan(form, pace)
    };
    std::thread::scope(|scope| {
        let shop = testbed.address();
        let tapped = scope.spawn(move || pass_one(&tap, shop));
        let measured = testbed.measure(&plan, conditions.stop);
        // Unblocks a tap without a client. Refused if the tap has finished.
        let _ = TcpStream::connect(address);
        let measured = measured?.ok_or("stopped before anything was counted")?;
        let exchange = tapped.join().map_err(|_| "the tap panicked")??;
        Ok((
            exchange,
            measured.run.bytes_sent,
            measured.run.bytes_received,
        ))
    })
}

/// Forwards one exchange and keeps all its bytes until the end of the reply.
fn pass_one(tap: &TcpListener, shop: SocketAddr) -> io::Result<TappedExchange> {
    let (mut client, _) = tap.accept()?;
    let mut server = TcpStream::connect(shop)?;
    for socket in [&client, &server] {
        socket.set_read_timeout(Some(Duration::from_secs(10)))?;
    }
    let mut exchange = TappedExchange {
        request: Vec::new(),
        reply: Vec::new(),
    };
    let mut buffer = [0; 4096];
    // The server answers after the complete request and closes after the reply.
    while !is_whole(&exchange.request) {
        let length = client.read(&mut buffer)?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        exchange.request.extend_from_slice(&buffer[..length]);
        server.write_all(&buffer[..length])?;
    }
    server.read_to_end(&mut exchange.reply)?;
    client.write_all(&exchange.reply)?;
    Ok(exchange)
}

/// Length of the header of a message with its empty line.
fn head(message: &[u8]) -> Result<usize, Failure> {
    let end = message.windows(4).position(|four| four == b"\r\n\r\n");
    Ok(end.ok_or("an exchange without an HTTP header")? + 4)
}

/// True if a message is complete according to its Content-Length.
pub(super) fn is_whole(message: &[u8]) -> bool {
    message_length(message).is_ok_and(|length| message.len() >= length)
}

/// Length of a message with its body, according to its Content-Length.
pub(super) fn message_length(message: &[u8]) -> Result<usize, Failure> {
    let head = head(message)?;
    let text = String::from_utf8_lossy(&message[..head]);
    let fields = text.lines().filter_map(|line| line.split_once(':'));
    let mut lengths = fields.filter(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let body = lengths
        .next()
        .and_then(|(_, value)| value.trim().parse().ok());
    Ok(head + body.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_whole_with_its_body() {
        assert!(!is_whole(b"GET / HTTP/1.1\r\n"));
        assert!(is_whole(b"GET / HTTP/1.1\r\n\r\n"));
        let post = b"POST / HTTP/1.1\r\ncontent-length: 3\r\n\r\n";
        assert!(!is_whole(post));
        assert!(is_whole(&[&post[..], b"abc"].concat()));
    }
}
