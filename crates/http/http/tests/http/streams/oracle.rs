//! The h2 crate as a server in memory: 10,000 requests with random fields, sizes, windows, trailers and resets.
//!
//! Both directions are compared: the server finds the fields and bodies that were sent, and the client reports those of
//! the reply. All futures are polled in turn, so that a seed repeats a run.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use h2::server::{Connection, SendResponse};
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use posthaste_http::streams::catalogue::{
    ConstantField, FieldCatalogue, RequestField, VariableField,
};
use posthaste_http::streams::http2::hpack::FieldPlan;
use posthaste_http::streams::http2::{ErrorCode, Http2StreamClient, StreamId};
use posthaste_http::streams::{StreamEnd, StreamRejection, StreamRequest};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::streams::support::{Event, Events};

const CONNECTIONS: u64 = 20;
const REQUESTS: u32 = 500;

/// A stream of random numbers (SplitMix64).
#[derive(Clone)]
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, limit: u64) -> usize {
        (self.next() % limit) as usize
    }

    /// True once in `times`.
    fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// A length: mostly small, sometimes above a frame and above a window.
    fn length(&mut self) -> usize {
        match self.below(10) {
            0..=3 => 0,
            4..=7 => self.below(2_000),
            8 => self.below(40_000),
            _ => self.below(150_000),
        }
    }

    fn text(&mut self, limit: u64) -> String {
        let letters = b"abcdefghijklmnopqrstuvwxyz0123456789 ,;=~%{}\"";
        let length = self.below(limit);
        let text = (0..length).map(|_| letters[self.below(letters.len() as u64)] as char);
        text.collect::<String>().trim().to_owned()
    }
}

/// The end that the server gives to a reply.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ReplyEnding {
    Whole,
    ResetBefore(Reason),
    ResetAfterHead(Reason),
    /// The client cancels the stream in some turn.
    Cancelled,
}

/// A request and its reply, made from a seed by both ends.
struct ExchangePlan {
    request_fields: Vec<(usize, String)>,
    body: usize,
    interim: bool,
    status: u16,
    fields: Vec<(String, String)>,
    content: usize,
    trailers: Vec<(String, String)>,
    ending: ReplyEnding,
}

impl ExchangePlan {
    fn new(connection: u64, token: u32) -> Self {
        let mut chance = SplitMix(connection << 32 | u64::from(token));
        let fields = |chance: &mut SplitMix, limit| {
            let field = |_| {
                let name = format!("x-{}", chance.below(12));
                let value = match chance.below(8) {
                    0 => chance.text(3_000),
                    1..=3 => chance.text(20),
                    _ => format!("value {}", chance.below(5)),
                };
                (name, value)
            };
            (0..limit).map(field).collect::<Vec<_>>()
        };
        let count = chance.below(8);
        let trailers = chance.below(12).saturating_sub(8);
        let reason = [
            Reason::CANCEL,
            Reason::REFUSED_STREAM,
            Reason::INTERNAL_ERROR,
            Reason::NO_ERROR,
        ];
        let reason = reason[chance.below(4)];
        let ending = match chance.below(30) {
            0 => ReplyEnding::ResetBefore(reason),
            1 => ReplyEnding::ResetAfterHead(Reason::CANCEL),
            2 => ReplyEnding::Cancelled,
            _ => ReplyEnding::Whole,
        };
        Self {
            request_fields: (0..chance.below(4))
                .map(|name| (name, chance.text(60)))
                .collect(),
            body: chance.length(),
            interim: chance.once_in(10),
            status: [200, 201, 404, 503][chance.below(4)],
            fields: fields(&mut chance, count),
            content: chance.length(),
            trailers: fields(&mut chance, trailers),
            ending,
        }
    }
}

/// Content of this length.
fn content(length: usize) -> Vec<u8> {
    (0..length)
        .map(|position| (position * 7 + position / 256) as u8)
        .collect()
}

/// Names of the fields of requests with varying values. The second one is secret.
const NAMES: [&str; 4] = ["x-request", "authorization", "accept", "x-number"];

/// Bytes on the way.
#[derive(Default)]
struct Wires {
    to_server: VecDeque<u8>,
    to_client: VecDeque<u8>,
    chance: Option<SplitMix>,
}

/// The server's end.
#[derive(Clone)]
struct Wire(Rc<RefCell<Wires>>);

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut wires = self.0.borrow_mut();
        let available = wires.to_server.len().min(buffer.remaining());
        if available == 0 {
            return Poll::Pending;
        }
        let length = 1 + wires.chance.as_mut().unwrap().below(available as u64);
        for byte in wires.to_server.drain(..length) {
            buffer.put_slice(&[byte]);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.borrow_mut().to_client.extend(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

type Task = Pin<Box<dyn Future<Output = Result<(), h2::Error>>>>;

fn map(fields: &[(String, String)]) -> HeaderMap {
    let pair = |(name, value): &(String, String)| {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        (name, HeaderValue::from_str(value).unwrap())
    };
    let mut map = HeaderMap::new();
    for (name, value) in fields.iter().map(pair) {
        map.append(name, value);
    }
    map
}

/// Serves one request: checks it, and sends the reply of its plan.
async fn serve(
    connection: u64,
    request: http::Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
) -> Result<(), h2::Error> {
    let token: u32 = request.headers()["x-number"]
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    let plan = ExchangePlan::new(connection, token);
    if let ReplyEnding::ResetBefore(reason) = plan.ending {
        respond.send_reset(reason);
        return Ok(());
    }
    assert_eq!(request.uri().path(), format!("/{}", token % 100));
    for (name, value) in &plan.request_fields {
        assert_eq!(request.headers()[NAMES[*name]], value[..]);
    }
    assert_eq!(request.headers().len(), plan.request_fields.len() + 2);
    let mut body = request.into_body();
    let mut received = Vec::new();
    while let Some(part) = body.data().await {
        let part = part?;
        received.extend_from_slice(&part);
        body.flow_control().release_capacity(part.len())?;
    }
    assert!(
        received == content(plan.body),
        "the body of request {token}"
    );
    if plan.interim {
        let interim = Response::builder().status(StatusCode::EARLY_HINTS);
        respond.send_informational(interim.header("link", "</a>").body(()).unwrap())?;
    }
    let mut reply = Response::builder().status(plan.status).body(()).unwrap();
    *reply.headers_mut() = map(&plan.fields);
    let is_empty =
        plan.content == 0 && plan.trailers.is_empty() && plan.ending == ReplyEnding::Whole;
    let mut stream = respond.send_response(reply, is_empty)?;
    if let ReplyEnding::ResetAfterHead(reason) = plan.ending {
        stream.send_data(Bytes::from_static(b"part"), false)?;
        stream.send_reset(reason);
    } else if !is_empty {
        send(
            &mut stream,
            content(plan.content).into(),
            plan.trailers.is_empty(),
        )
        .await?;
        if !plan.trailers.is_empty() {
            stream.send_trailers(map(&plan.trailers))?;
        }
    }
    Ok(())
}

/// Sends content as the client's windows permit.
async fn send(
    stream: &mut SendStream<Bytes>,
    mut content: Bytes,
    is_last: bool,
) -> Result<(), h2::Error> {
    if content.is_empty() && is_last {
        return stream.send_data(content, true);
    }
    while !content.is_empty() {
        stream.reserve_capacity(content.len());
        let Some(capacity) = poll_fn(|context| stream.poll_capacity(context)).await else {
            return Ok(());
        };
        let part = content.split_to(capacity?.min(content.len()));
        stream.send_data(part, is_last && content.is_empty())?;
    }
    Ok(())
}

/// The client's requests.
struct Requests {
    fixed: Vec<RequestField<'static>>,
    paths: Vec<ConstantField>,
    names: Vec<VariableField>,
}

impl Requests {
    fn new(catalogue: &mut FieldCatalogue) -> Self {
        let mut constant = |name: &str, value: &str| {
            catalogue
                .constant(name.as_bytes(), value.as_bytes())
                .unwrap()
        };
        let fixed = [
            (":method", "POST"),
            (":scheme", "http"),
            (":authority", "shop.example"),
        ];
        Self {
            fixed: fixed
                .map(|(name, value)| RequestField::Constant(constant(name, value)))
                .to_vec(),
            paths: (0..100)
                .map(|path| constant(":path", &format!("/{path}")))
                .collect(),
            names: NAMES
                .map(|name| catalogue.variable(name.as_bytes()).unwrap())
                .to_vec(),
        }
    }
}

/// One connection: the client, the server and the bytes between them.
struct OracleRun {
    number: u64,
    chance: SplitMix,
    client: Http2StreamClient,
    events: Events,
    requests: Requests,
    agent: ConstantField,
    wires: Rc<RefCell<Wires>>,
    tasks: Vec<Task>,
    opened: u32,
    /// Sent bytes of the bodies.
    bodies: BTreeMap<u32, (StreamId, usize)>,
    cancelled: Vec<u32>,
    /// Requests before the server's SETTINGS, which it may refuse.
    early: u32,
}

impl OracleRun {
    fn open(&mut self) {
        while self.opened < REQUESTS && self.client.room() > 0 && !self.chance.once_in(5) {
            let token = self.opened;
            let plan = ExchangePlan::new(self.number, token);
            let number = token.to_string();
            let mut fields = self.requests.fixed.clone();
            fields.push(RequestField::Constant(
                self.requests.paths[token as usize % 100],
            ));
            fields.push(RequestField::Constant(self.agent));
            for (name, value) in &plan.request_fields {
                fields.push(RequestField::Variable(
                    self.requests.names[*name],
                    value.as_bytes(),
                ));
            }
            fields.push(RequestField::Variable(
                self.requests.names[3],
                number.as_bytes(),
            ));
            let request = StreamRequest {
                fields: &fields,
                has_body: plan.body > 0,
                is_head: false,
            };
            let stream = self.client.open(token, &request).unwrap();
            self.opened += 1;
            if plan.body > 0 {
                self.bodies.insert(token, (stream, 0));
                self.send_body(token);
            }
            if plan.ending == ReplyEnding::Cancelled && self.client.reset(stream, ErrorCode::CANCEL)
            {
                self.cancelled.push(token);
            }
        }
    }

    fn send_body(&mut self, token: u32) {
        let (stream, sent) = self.bodies.get_mut(&token).unwrap();
        let body = content(ExchangePlan::new(self.number, token).body);
        *sent += self.client.send_body(*stream, &body[*sent..], true);
    }

    /// Moves bytes between both ends in pieces of random lengths.
    fn exchange(&mut self) {
        let output = self.client.output();
        let length = self.chance.below(output.len() as u64 + 1);
        self.wires.borrow_mut().to_server.extend(&output[..length]);
        self.client.sent(length);
        let mut wires = self.wires.borrow_mut();
        while !wires.to_client.is_empty() {
            let length = 1 + self.chance.below(wires.to_client.len().min(20_000) as u64);
            let piece: Vec<u8> = wires.to_client.drain(..length).collect();
            self.client.receive(&piece, &mut self.events).unwrap();
        }
        drop(wires);
        while let Some((_, token)) = self.client.next_writable() {
            self.send_body(token);
        }
    }

    /// Polls the server and its tasks.
    fn serve(&mut self, server: &mut Connection<Wire, Bytes>) {
        let mut context = Context::from_waker(Waker::noop());
        while let Poll::Ready(accepted) = server.poll_accept(&mut context) {
            let (request, respond) = accepted.expect("the connection continues").unwrap();
            self.tasks
                .push(Box::pin(serve(self.number, request, respond)));
        }
        // An error of a task follows a reset of the client.
        self.tasks
            .retain_mut(|task| task.as_mut().poll(&mut context).is_pending());
    }

    fn check(&self) {
        for token in 0..REQUESTS {
            let plan = ExchangePlan::new(self.number, token);
            let end = self.events.end_of(token);
            let reset = |reason: Reason| StreamEnd::Reset(ErrorCode(reason.into()).into());
            let refused = StreamEnd::Rejected(StreamRejection::Refused);
            if token < self.early && end == Some(refused) {
                continue;
            }
            let expected = match plan.ending {
                _ if self.cancelled.contains(&token) => None,
                ReplyEnding::ResetBefore(Reason::REFUSED_STREAM) => Some(refused),
                ReplyEnding::ResetBefore(reason) | ReplyEnding::ResetAfterHead(reason) => {
                    Some(reset(reason))
                }
                ReplyEnding::Whole | ReplyEnding::Cancelled => Some(StreamEnd::Complete),
            };
            assert_eq!(end, expected, "connection {}, token {token}", self.number);
            if end == Some(StreamEnd::Complete) {
                self.check_reply(token, &plan);
            }
        }
    }

    fn check_reply(&self, token: u32, plan: &ExchangePlan) {
        let mut fields = Vec::new();
        let mut trailers = Vec::new();
        let (mut statuses, mut interim) = (Vec::new(), 0);
        for event in &self.events.0 {
            match event {
                Event::Field(owner, name, value) if *owner == token => {
                    fields.push((name.clone(), value.clone()))
                }
                Event::Trailer(owner, name, value) if *owner == token => {
                    trailers.push((name.clone(), value.clone()));
                }
                Event::Head(owner, status) if *owner == token => statuses.push(*status),
                Event::Interim(owner, status) if *owner == token => {
                    interim += u16::from(*status == 103)
                }
                _ => {}
            }
        }
        assert_eq!(statuses, [plan.status]);
        assert_eq!(interim, u16::from(plan.interim));
        assert_eq!(
            sorted(fields),
            sorted(plan.fields.clone()),
            "fields of {token}"
        );
        assert_eq!(
            sorted(trailers),
            sorted(plan.trailers.clone()),
            "trailers of {token}"
        );
        assert!(
            self.events.body_of(token) == content(plan.content),
            "content of {token}"
        );
    }
}

/// HeaderMap groups fields by name. A stable order compares the values of a name in their order.
fn sorted(mut fields: Vec<(String, String)>) -> Vec<(String, String)> {
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    fields
}

/// Runs a connection with random settings of the server.
fn run(number: u64) {
    let mut chance = SplitMix(number.wrapping_mul(77));
    let wires = Rc::new(RefCell::new(Wires {
        chance: Some(chance.clone()),
        ..Wires::default()
    }));
    let mut builder = h2::server::Builder::new();
    builder
        .initial_window_size([1_000, 65_535, 100_000, 1 << 20][chance.below(4)])
        .initial_connection_window_size([65_535, 1 << 20][chance.below(2)])
        .max_frame_size([16_384, 50_000][chance.below(2)])
        .header_table_size([0, 100, 4096, 65_536][chance.below(4)])
        .max_concurrent_streams([1, 7, 50][chance.below(3)])
        .max_concurrent_reset_streams(1_000)
        .max_pending_accept_reset_streams(1_000)
        .max_local_error_reset_streams(None);
    let mut catalogue = FieldCatalogue::default();
    let requests = Requests::new(&mut catalogue);
    let agent = catalogue.constant(b"user-agent", b"posthaste").unwrap();
    let mut run = OracleRun {
        number,
        chance,
        client: Http2StreamClient::new(Arc::new(FieldPlan::new(&catalogue))),
        events: Events::default(),
        requests,
        agent,
        wires: Rc::clone(&wires),
        tasks: Vec::new(),
        opened: 0,
        bodies: BTreeMap::new(),
        cancelled: Vec::new(),
        early: 0,
    };
    let mut handshake = pin!(builder.handshake::<_, Bytes>(Wire(wires)));
    let mut context = Context::from_waker(Waker::noop());
    let mut server = loop {
        run.exchange();
        if let Poll::Ready(server) = handshake.as_mut().poll(&mut context) {
            break server.unwrap();
        }
    };
    let mut settled = false;
    for _ in 0..200_000 {
        settled = settled || !run.events.of_connection().is_empty();
        run.open();
        if !settled {
            run.early = run.opened;
        }
        run.exchange();
        run.serve(&mut server);
        if run.opened == REQUESTS && run.client.is_idle() {
            run.check();
            assert_eq!(run.client.counters().windows_exhausted, 0);
            return;
        }
    }
    panic!(
        "connection {number}: {} streams have no end",
        run.client.open_streams()
    );
}

#[test]
fn ten_thousand_requests_agree_with_the_h2_crate() {
    for number in 0..CONNECTIONS {
        run(number);
    }
}
