//! A connection of the scripted server: it reads requests, and writes what the script wants.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::time::{Duration, Instant};

use quinn_proto::{Connection, Dir, Event, StreamEvent, StreamId, VarInt};

use super::frames::reply;
use super::script::{ArrivedRequest, ReplyAct, ServerScript};

/// A request that is being received.
#[derive(Default)]
struct PartialRequest {
    length: usize,
    is_whole: bool,
}

/// A connection of a client.
pub(super) struct ServedClient {
    number: usize,
    pub(super) transport: Connection,
    requests: BTreeMap<StreamId, PartialRequest>,
    arrived: usize,
    control: Option<StreamId>,
    /// Bytes that wait for the window of the client: stream, bytes, and the end of the stream.
    unsent: Vec<(StreamId, Vec<u8>, bool)>,
    due: BinaryHeap<Reverse<(Instant, StreamId, Vec<u8>)>>,
    resets: Vec<(Instant, StreamId, u32)>,
    /// Streams that get zeros when their bytes are written.
    endless: Vec<StreamId>,
}

impl ServedClient {
    pub(super) fn new(number: usize, transport: Connection) -> Self {
        Self {
            number,
            transport,
            requests: BTreeMap::new(),
            arrived: 0,
            control: None,
            unsent: Vec::new(),
            due: BinaryHeap::new(),
            resets: Vec::new(),
            endless: Vec::new(),
        }
    }

    fn reset(&mut self, stream: StreamId, code: u32) {
        // The client may have stopped it.
        let _ = self
            .transport
            .send_stream(stream)
            .reset(VarInt::from_u32(code));
    }

    pub(super) fn next_due(&mut self) -> Option<Instant> {
        let reply = self.due.peek().map(|Reverse((due, ..))| *due);
        [reply, self.transport.poll_timeout()]
            .into_iter()
            .flatten()
            .min()
    }

    /// Reads the streams. Returns complete requests.
    pub(super) fn poll(&mut self, script: &ServerScript) -> Vec<(StreamId, ArrivedRequest)> {
        let mut readable = BTreeSet::new();
        while let Some(event) = self.transport.poll() {
            match event {
                Event::Connected => {
                    if let Some(bytes) = &script.control {
                        self.control = self.transport.streams().open(Dir::Uni);
                        let control = self.control.expect("clients permit a control stream");
                        self.unsent.push((control, bytes.clone(), false));
                    }
                }
                Event::Stream(StreamEvent::Opened { dir }) => {
                    while let Some(id) = self.transport.streams().accept(dir) {
                        readable.insert(id);
                    }
                }
                Event::Stream(StreamEvent::Readable { id }) => drop(readable.insert(id)),
                _ => {}
            }
        }
        let mut arrivals = Vec::new();
        for id in readable {
            let request = self.requests.entry(id).or_default();
            let mut stream = self.transport.recv_stream(id);
            let Ok(mut chunks) = stream.read(true) else {
                continue;
            };
            let mut is_whole = false;
            loop {
                match chunks.next(usize::MAX) {
                    Ok(Some(chunk)) => request.length += chunk.bytes.len(),
                    Ok(None) => break is_whole = true,
                    Err(_) => break,
                }
            }
            let _ = chunks.finalize();
            if is_whole && id.dir() == Dir::Bi && !request.is_whole {
                request.is_whole = true;
                let arrival = ArrivedRequest {
                    connection: self.number,
                    number: self.arrived,
                    length: request.length,
                    is_early: self.transport.is_handshaking(),
                };
                arrivals.push((id, arrival));
                self.arrived += 1;
            }
        }
        arrivals
    }

    pub(super) fn act(&mut self, act: ReplyAct, stream: StreamId, now: Instant) {
        // A reply follows frames of other streams, so that the client reads these first.
        let (whole, later) = (reply(b"hello"), now + Duration::from_millis(50));
        match act {
            ReplyAct::Send(bytes, delay) => self.due.push(Reverse((now + delay, stream, bytes))),
            ReplyAct::Begin(bytes) => self.unsent.push((stream, bytes, false)),
            ReplyAct::Reset(bytes, code) if bytes.is_empty() => self.reset(stream, code),
            ReplyAct::Reset(bytes, code) => {
                self.unsent.push((stream, bytes, false));
                // A reset overtakes bytes that have not left.
                self.resets
                    .push((now + Duration::from_millis(20), stream, code));
            }
            ReplyAct::Control(bytes) => {
                if let Some(control) = self.control {
                    self.unsent.push((control, bytes, false));
                }
                self.due.push(Reverse((later, stream, whole)));
            }
            ReplyAct::Stream(bytes) => {
                if let Some(other) = self.transport.streams().open(Dir::Uni) {
                    self.unsent.push((other, bytes, false));
                }
                self.due.push(Reverse((later, stream, whole)));
            }
            ReplyAct::Endless(bytes) => {
                self.unsent.push((stream, bytes, false));
                self.endless.push(stream);
            }
            ReplyAct::EndlessStream(bytes) => {
                if let Some(other) = self.transport.streams().open(Dir::Uni) {
                    self.unsent.push((other, bytes, false));
                    self.endless.push(other);
                }
            }
            ReplyAct::Stop(code) => {
                let _ = self
                    .transport
                    .recv_stream(stream)
                    .stop(VarInt::from_u32(code));
                self.unsent.push((stream, whole, true));
            }
            ReplyAct::Close(code) => {
                self.transport
                    .close(now, VarInt::from_u32(code), "bye".into());
            }
            ReplyAct::Forget | ReplyAct::Restart | ReplyAct::Ignore => {}
        }
    }

    /// Writes the replies that are due, as far as the windows of the client permit.
    pub(super) fn write_due(&mut self, now: Instant) {
        for (due, stream, code) in std::mem::take(&mut self.resets) {
            if due <= now {
                self.reset(stream, code);
            } else {
                self.resets.push((due, stream, code));
            }
        }
        while self
            .due
            .peek()
            .is_some_and(|Reverse((due, ..))| *due <= now)
        {
            let Reverse((_, stream, bytes)) = self.due.pop().expect("a reply is due");
            self.unsent.push((stream, bytes, true));
        }
        for (stream, mut bytes, is_last) in std::mem::take(&mut self.unsent) {
            let mut sending = self.transport.send_stream(stream);
            // A stream that the client has stopped needs no more.
            let written = match sending.write(&bytes) {
                Ok(count) => count,
                Err(quinn_proto::WriteError::Blocked) => 0,
                Err(_) => continue,
            };
            bytes.drain(..written);
            if bytes.is_empty() {
                if is_last {
                    let _ = sending.finish();
                }
            } else {
                self.unsent.push((stream, bytes, is_last));
            }
        }
        self.write_zeros();
    }

    /// Fills the windows of the endless streams.
    fn write_zeros(&mut self) {
        for stream in std::mem::take(&mut self.endless) {
            let waits = self.unsent.iter().any(|(other, ..)| *other == stream);
            let mut sending = self.transport.send_stream(stream);
            let mut written = Ok(0);
            while !waits && written.is_ok() {
                written = sending.write(&[0; 16 << 10]);
            }
            if matches!(written, Ok(_) | Err(quinn_proto::WriteError::Blocked)) {
                self.endless.push(stream);
            }
        }
    }
}
