//! A connection to the bookshop: whatever is sent, it ends with whole replies, or frames, or with a close.
//!
//! A real shop on a loopback socket, since its handler cannot be called without a connection: the
//! path from accept to reply is the one that serves. A panic anywhere in it is a finding, although
//! the shop would survive it.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use posthaste_bookshop::{BookshopConfig, Running, start};
use posthaste_load::http::{ReplyProgress, ReplyReader};
use posthaste_load::reply::HttpReply;

use crate::cuts::Cut;

/// As much is sent: less than the sockets hold, so that sending never waits for the shop.
const SENT: usize = 64 << 10;

/// A connection that is silent for so long is stuck.
const PATIENCE: Duration = Duration::from_secs(8);

/// Every status the shop or hyper may answer with.
const ALLOWED: &[u16] = &[200, 400, 404, 405, 413, 414, 415, 417, 431, 500, 501, 505];

/// The bytes by which the shop recognises HTTP/2: no method of HTTP/1 begins like its preface.
const HTTP2_START: &[u8] = b"PRI ";

/// The longest frame that a client has allowed before it says so (RFC 9113, section 4.2).
const FRAME: usize = 16_384;

/// The type of a frame of settings (RFC 9113, section 6.5).
const SETTINGS: u8 = 4;

static PANICKED: AtomicBool = AtomicBool::new(false);

/// Any bytes as what a client sends, in any pieces, before it has nothing more to say.
pub fn bookshop(input: &[u8]) {
    let Some(cut) = Cut::from_input(&input[..input.len().min(SENT)]) else {
        return;
    };
    let (replies, closed) = converse(&cut);
    assert!(
        !PANICKED.load(Ordering::Relaxed),
        "a thread of the shop panicked"
    );
    if cut.stream.starts_with(HTTP2_START) {
        judge_frames(&replies, closed);
    } else {
        judge(&replies, closed, asks_for_head(cut.stream));
    }
}

fn shop() -> &'static Running {
    static SHOP: OnceLock<Running> = OnceLock::new();
    SHOP.get_or_init(|| {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICKED.store(true, Ordering::Relaxed);
            report(panic);
        }));
        let config = BookshopConfig {
            listen: (Ipv4Addr::LOCALHOST, 0).into(),
            books: 50,
            compression: Some(1),
            ..BookshopConfig::default()
        };
        start(config).expect("a shop opens on a loopback socket")
    })
}

/// Sends everything and reads to the end: what came, and whether the shop closed in good order.
fn converse(cut: &Cut<'_>) -> (Vec<u8>, bool) {
    let mut stream = TcpStream::connect(shop().addr).expect("the shop accepts");
    stream.set_nodelay(true).expect("a socket can be set up");
    stream
        .set_read_timeout(Some(PATIENCE))
        .expect("a socket can be set up");
    let sent = cut.pieces().try_for_each(|piece| stream.write_all(piece));
    let sent = sent.and_then(|()| stream.shutdown(Shutdown::Write));
    let mut replies = Vec::new();
    let read = stream.read_to_end(&mut replies);
    if let Err(error) = &read {
        let stuck = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
        assert!(!stuck, "neither a reply nor a close within {PATIENCE:?}");
    }
    // A shop that closes before it has read everything resets the connection.
    (replies, sent.is_ok() && read.is_ok())
}

/// A shop that is spoken to in HTTP/2 answers in whole frames, its settings first.
fn judge_frames(replies: &[u8], closed: bool) {
    let (mut rest, mut is_first) = (replies, true);
    while let [a, b, c, kind, body @ ..] = rest {
        let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
        assert!(length <= FRAME, "a frame of {length} bytes");
        assert!(!is_first || *kind == SETTINGS, "the first frame is {kind}");
        // Flags and a stream stand before what the frame holds.
        let Some(after) = body.get(5 + length..) else {
            break;
        };
        (rest, is_first) = (after, false);
    }
    assert!(rest.is_empty() || !closed, "the last frame is cut off");
}

/// Whether a reply may have no body because HEAD was asked for: only then is its length a riddle.
fn asks_for_head(stream: &[u8]) -> bool {
    stream.windows(4).any(|word| word == b"HEAD")
}

fn judge(replies: &[u8], closed: bool, head: bool) {
    let (mut reader, mut reply) = (ReplyReader::default(), HttpReply::default());
    let mut rest = replies;
    while !rest.is_empty() {
        reader.begin(head);
        let progress = reader.feed(rest, &mut reply).unwrap_or_else(|violation| {
            panic!(
                "{violation}: {}",
                String::from_utf8_lossy(&rest[..rest.len().min(400)])
            )
        });
        let used = match progress {
            ReplyProgress::Complete { used } => used,
            ReplyProgress::Partial if !closed => return,
            ReplyProgress::Partial => {
                assert!(reader.closed().is_ok(), "the last reply is cut off");
                rest.len()
            }
        };
        let status = reply.status();
        assert!(
            ALLOWED.contains(&status),
            "the status {status} was answered"
        );
        if head {
            return; // where the next reply begins is not known
        }
        rest = &rest[used..];
    }
}
