//! The framing of what clients send: cuts change nothing, a plain reader of whole streams finds the same messages, and the
//! parser of the services, given what was accepted, never finds another request than those whose heads were counted.

use std::cell::RefCell;
use std::convert::Infallible;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};

use hyper::body::{Body as _, Incoming};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use posthaste_serve::framing::{Cause, RequestFraming};

use crate::cuts::Cut;
use crate::within;

/// The parser's limit for a head, as the services set it.
const MAX_HEAD: usize = 64 << 10;

/// What was made of a stream.
#[derive(Debug, PartialEq, Eq)]
struct Framed {
    accepted: usize,
    heads: u64,
    refused: Option<Cause>,
    is_in_body: bool,
}

/// Cuts and the bytes of a connection.
pub fn request_framing(input: &[u8]) {
    if let Some(cut) = Cut::from_input(input) {
        frames_alike(cut.stream, cut.pieces());
    }
}

/// What must hold of a connection's bytes and of the pieces in which they come.
pub(crate) fn frames_alike<'a>(stream: &[u8], pieces: impl Iterator<Item = &'a [u8]>) {
    let whole = within("RequestFraming", stream.len(), 0, 0, || {
        frame([stream].into_iter())
    });
    assert_eq!(frame(pieces), whole, "cuts change nothing");
    assert_eq!(frame(stream.chunks(1)), whole, "cuts change nothing");
    assert_eq!(reference(stream), whole, "{}", stream.escape_ascii());
    let served = serve(&stream[..whole.accepted]);
    let description = || format!("{served:?} {whole:?} {}", stream.escape_ascii());
    assert!(
        served.begun <= whole.heads,
        "a request nobody counted: {}",
        description()
    );
    if !served.over {
        // The parser waits for more, and so for the same.
        assert_eq!(served.begun, whole.heads, "{}", description());
        let is_broken = whole.refused.is_some_and(|cause| !cause.is_of_head());
        if whole.refused.is_none() || is_broken {
            let open = u64::from(whole.is_in_body || is_broken);
            assert_eq!(served.ended, served.begun - open, "{}", description());
        }
    }
}

fn frame<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Framed {
    let mut framing = RequestFraming::default();
    let mut framed = Framed {
        accepted: 0,
        heads: 0,
        refused: None,
        is_in_body: false,
    };
    for piece in pieces {
        match framing.feed(piece) {
            Ok(()) => framed.accepted += piece.len(),
            Err(refused) => {
                assert!(refused.accepted <= piece.len());
                framed.accepted += refused.accepted;
                framed.refused = Some(refused.cause);
                break;
            }
        }
    }
    framed.heads = framing.heads();
    framed.is_in_body = framing.is_in_body();
    framed
}

/// The same by looking at the whole stream, as plainly as can be.
fn reference(stream: &[u8]) -> Framed {
    let mut framed = Framed {
        accepted: stream.len(),
        heads: 0,
        refused: None,
        is_in_body: false,
    };
    let mut at = 0;
    loop {
        let Some((head, end)) = head(stream, at) else {
            return framed;
        };
        framed.heads += 1;
        at = end;
        let body = match length(&head) {
            Ok(Some(length)) => {
                let end = usize::try_from(length)
                    .ok()
                    .and_then(|length| at.checked_add(length));
                end.filter(|end| *end <= stream.len()).ok_or(None)
            }
            Ok(None) => chunks(stream, at).map_err(Some),
            Err(cause) => Err(Some((at, Some(cause)))),
        };
        match body {
            Ok(end) => at = end,
            Err(None | Some((_, None))) => {
                framed.is_in_body = true;
                return framed;
            }
            Err(Some((accepted, cause))) => {
                (framed.accepted, framed.refused) = (accepted, cause);
                return framed;
            }
        }
    }
}

/// The lines of the head that begins at `at`, without those before it, and where it ends.
fn head(stream: &[u8], mut at: usize) -> Option<(Vec<&[u8]>, usize)> {
    let mut lines = Vec::new();
    loop {
        let length = stream[at..].iter().position(|byte| *byte == b'\n')?;
        let line = &stream[at..at + length];
        at += length + 1;
        match line.strip_suffix(b"\r").unwrap_or(line) {
            [] if lines.is_empty() => {}
            [] => return Some((lines, at)),
            _ => lines.push(line),
        }
    }
}

/// The length of a body by its head; none of chunks.
fn length(head: &[&[u8]]) -> Result<Option<u64>, Cause> {
    let values = |name: &str| -> Vec<(&[u8], usize)> {
        let fields = head[1..].iter().filter_map(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            let is_it = line[..colon].eq_ignore_ascii_case(name.as_bytes());
            is_it.then_some((&line[colon + 1..], line.len()))
        });
        fields.collect()
    };
    let trimmed = |(value, line): &(&[u8], usize)| -> Option<String> {
        let value = value.strip_suffix(b"\r").unwrap_or(value);
        let text: String = value.iter().map(|byte| char::from(*byte)).collect();
        (*line <= 64).then(|| text.trim_matches([' ', '\t']).to_owned())
    };
    let has_fragment = head[0].contains(&b'#');
    let (lengths, codings) = (values("content-length"), values("transfer-encoding"));
    match (&*lengths, &*codings) {
        ([], _) | (_, []) if has_fragment => Err(Cause::Target),
        ([], []) => Ok(Some(0)),
        ([..], [_, ..]) if !lengths.is_empty() => Err(Cause::Both),
        (_, [coding]) => match trimmed(coding) {
            Some(coding) if coding.eq_ignore_ascii_case("chunked") => Ok(None),
            _ => Err(Cause::Coding),
        },
        (_, [_, ..]) => Err(Cause::Coding),
        ([length], []) => {
            let text =
                trimmed(length).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
            let number = text.and_then(|text| text.parse::<u64>().ok());
            let number = number.filter(|number| *number <= u64::MAX - 2);
            number.map(Some).ok_or(Cause::Length)
        }
        _ => Err(Cause::Length),
    }
}

/// Where the chunks from `at` end; else the first byte that is wrong, and why, or no cause where the rest is missing.
fn chunks(stream: &[u8], mut at: usize) -> Result<usize, (usize, Option<Cause>)> {
    let want = |at: usize, byte: u8, cause: Cause| match stream.get(at) {
        Some(found) if *found == byte => Ok(at + 1),
        Some(_) => Err((at, Some(cause))),
        None => Err((at, None)),
    };
    loop {
        let rest = &stream[at..];
        let digits = rest
            .iter()
            .take_while(|byte| byte.is_ascii_hexdigit())
            .count();
        if digits > 16 {
            return Err((at + 16, Some(Cause::Size)));
        }
        if digits == 0 {
            return Err((at, rest.first().map(|_| Cause::Size)));
        }
        let blanks = rest[digits..]
            .iter()
            .take_while(|byte| matches!(byte, b' ' | b'\t'));
        let mut line = digits + blanks.count();
        if rest.get(line) == Some(&b';') {
            let more = rest[line..].iter();
            line += more
                .take_while(|byte| matches!(byte, b'\t' | b' '..=b'~' | 0x80..))
                .count();
        }
        if line > 1024 {
            return Err((at + 1024, Some(Cause::Size)));
        }
        let text = std::str::from_utf8(&rest[..digits]).unwrap_or_default();
        let size = u64::from_str_radix(text, 16).unwrap_or(u64::MAX);
        at = want(at + line, b'\r', Cause::Size)?;
        at = want(at, b'\n', Cause::Size)?;
        if size == 0 {
            return trailers(stream, at);
        }
        let end = usize::try_from(size)
            .ok()
            .and_then(|size| at.checked_add(size));
        at = end
            .filter(|end| *end <= stream.len())
            .ok_or((stream.len(), None))?;
        at = want(at, b'\r', Cause::End)?;
        at = want(at, b'\n', Cause::End)?;
    }
}

fn trailers(stream: &[u8], mut at: usize) -> Result<usize, (usize, Option<Cause>)> {
    let wrong = |at: usize| (at, stream.get(at).map(|_| Cause::Trailer));
    let mut room = 16 << 10;
    loop {
        let is_last = match stream.get(at) {
            Some(b'\r') => true,
            Some(b'!'..=b'9' | b';'..=b'~') => false,
            _ => return Err(wrong(at)),
        };
        let rest = stream[at..].iter();
        let line = rest
            .take_while(|byte| matches!(byte, b'\t' | b' '..=b'~' | 0x80..))
            .count();
        if line > room {
            return Err(wrong(at + room));
        }
        room -= line;
        at += line;
        for byte in [b'\r', b'\n'] {
            if stream.get(at) != Some(&byte) {
                return Err(wrong(at));
            }
            at += 1;
        }
        if is_last {
            return Ok(at);
        }
    }
}

/// What the parser found: requests, those whose body has ended, and whether it has closed the connection.
#[derive(Debug, Default)]
struct Served {
    begun: u64,
    ended: u64,
    over: bool,
}

/// A connection that has these bytes and then is silent.
struct Bytes<'a>(&'a [u8]);

impl Read for Bytes<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if self.0.is_empty() {
            return Poll::Pending;
        }
        let length = self.0.len().min(buf.remaining());
        let (now, later) = self.0.split_at(length);
        buf.put_slice(now);
        self.0 = later;
        Poll::Ready(Ok(()))
    }
}

impl Write for Bytes<'_> {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Relaxed);
    }
}

/// Has hyper read what was accepted, as the services do.
fn serve(stream: &[u8]) -> Served {
    let served = Rc::new(RefCell::<Served>::default());
    let counts = served.clone();
    let service = service_fn(move |request: Request<Incoming>| {
        counts.borrow_mut().begun += 1;
        let counts = counts.clone();
        async move {
            let mut body = request.into_body();
            let mut is_whole = true;
            while let Some(frame) =
                std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await
            {
                is_whole &= frame.is_ok();
            }
            counts.borrow_mut().ended += u64::from(is_whole);
            Ok::<_, Infallible>(Response::new(String::new()))
        }
    });
    let mut connection = pin!(
        http1::Builder::new()
            .max_buf_size(MAX_HEAD)
            .max_header_size(MAX_HEAD)
            .half_close(false)
            .serve_connection(Bytes(stream), service)
    );
    let woken = Arc::<Woken>::default();
    let waker = Waker::from(woken.clone());
    loop {
        woken.0.store(false, Relaxed);
        if connection
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_ready()
        {
            served.borrow_mut().over = true;
        }
        if served.borrow().over || !woken.0.load(Relaxed) {
            break;
        }
    }
    served.take()
}
