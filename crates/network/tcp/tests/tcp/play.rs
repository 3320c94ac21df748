//! Two endpoints, a program at each and a link between them, simulated in virtual time.
//!
//! Checks every segment: conditions that must hold for any segment at any time are asserted here, so that every
//! scenario and every random test is checked for them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use posthaste_tcp::{Endpoint, Offset, Profile, Segment, TcpState, unwrap};
use posthaste_units::{Instant, Span};

/// Segments that an endpoint may send within one instant: a window of the smallest ones.
const BURST: usize = 1 << 16;

/// Decides the fate of a segment by its number, from 1: the delay of each copy that arrives.
pub(crate) type Fate = Box<dyn FnMut(u64, &Segment) -> Vec<Span>>;

/// One direction of the link.
pub(crate) struct TestLink {
    fate: Fate,
    /// Nanoseconds per byte of IP packet.
    byte: u64,
    free: Instant,
    sent: u64,
    flying: BTreeMap<(Instant, u64), Segment>,
    serial: u64,
}

impl TestLink {
    pub(crate) fn new(fate: Fate) -> Self {
        Self {
            fate,
            byte: 0,
            free: Instant::ORIGIN,
            sent: 0,
            flying: BTreeMap::new(),
            serial: 0,
        }
    }

    /// Creates a link that delivers all segments after `delay`, except those at `lost`.
    pub(crate) fn losing(delay: Span, lost: &[u64]) -> Self {
        let lost = lost.to_vec();
        Self::new(Box::new(move |position, _| {
            if lost.contains(&position) {
                Vec::new()
            } else {
                vec![delay]
            }
        }))
    }

    /// Sets the bandwidth in bits per second.
    pub(crate) fn at_rate(mut self, bits: u64) -> Self {
        self.byte = 8_000_000_000 / bits;
        self
    }

    fn push(&mut self, now: Instant, segment: Segment) {
        self.sent += 1;
        let copies = (self.fate)(self.sent, &segment);
        if copies.is_empty() {
            return;
        }
        let bytes = u64::from(20 + segment.header_bytes() + segment.len);
        self.free = self.free.max(now) + Span::from_nanos(bytes * self.byte);
        for delay in copies {
            self.serial += 1;
            self.flying
                .insert((self.free + delay, self.serial), segment);
        }
    }

    fn wake(&self) -> Option<Instant> {
        self.flying.keys().next().map(|(at, _)| *at)
    }

    fn pop(&mut self, now: Instant) -> Option<Segment> {
        let first = self.flying.first_entry()?;
        (first.key().0 <= now).then(|| first.remove())
    }
}

/// A program at one end.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// Bytes to write once `after` bytes have been read and `wait` has passed.
    pub(crate) bytes: u64,
    pub(crate) after: u64,
    pub(crate) wait: Span,
    /// Bytes read at a time, and the time between two reads.
    pub(crate) chunk: u64,
    pub(crate) pause: Span,
    /// Closes when all is written. Otherwise only after the peer has closed, too.
    pub(crate) closes_first: bool,
    /// Time of an abort, if any.
    pub(crate) quits: Option<Instant>,
    pub(crate) written: u64,
    pub(crate) read: u64,
    begins: Option<Instant>,
    reads: Instant,
    closed: bool,
}

impl Program {
    /// Creates a program that reads everything and closes once `bytes` are written.
    pub(crate) fn writing(bytes: u64) -> Self {
        Self {
            bytes,
            after: 0,
            wait: Span::ZERO,
            chunk: u64::MAX,
            pause: Span::ZERO,
            closes_first: true,
            quits: None,
            written: 0,
            read: 0,
            begins: None,
            reads: Instant::ORIGIN,
            closed: false,
        }
    }

    fn act(&mut self, now: Instant, end: &mut Endpoint) {
        if self.quits.is_some_and(|at| at <= now) {
            self.quits = None;
            end.abort();
        }
        if now >= self.reads {
            let read = end.read(self.chunk.min(end.readable()));
            self.read += read;
            if read > 0 && !self.pause.is_zero() {
                self.reads = now + self.pause;
            }
        }
        if !matches!(end.state(), TcpState::Established | TcpState::CloseWait) {
            return;
        }
        if self.read >= self.after {
            let begins = *self.begins.get_or_insert(now + self.wait);
            if now >= begins {
                self.written += end.write(now, self.bytes - self.written);
            }
        }
        let may = self.closes_first || end.peer_has_closed();
        if !self.closed && may && self.written == self.bytes && self.begins.is_some() {
            end.close();
            self.closed = true;
        }
    }

    fn wake(&self, end: &Endpoint) -> Option<Instant> {
        let read = (end.readable() > 0).then_some(self.reads);
        let open = matches!(end.state(), TcpState::Established | TcpState::CloseWait);
        let waits = open && self.written == 0 && self.bytes > 0;
        let begin = self.begins.filter(|_| waits);
        [read, begin, self.quits].into_iter().flatten().min()
    }
}

/// State of one direction as observed from its segments.
#[derive(Clone, Debug, Default)]
struct ObservedDirection {
    /// End of the sent sequence numbers (exclusive).
    reached: Offset,
    /// End of the advertised window (exclusive), as far as it has arrived.
    edge: Offset,
    mss: Option<u16>,
    /// The SYN's window scale. None before a SYN.
    shift: Option<Option<u8>>,
    /// Ranges that the receiver has accepted.
    taken: Vec<Range<Offset>>,
    received: u64,
}

/// One observed segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passed {
    pub(crate) at: Instant,
    /// The end that sent it.
    pub(crate) from: usize,
    pub(crate) segment: Segment,
}

/// A simulation of end 0 and end 1.
pub(crate) struct Play {
    pub(crate) now: Instant,
    pub(crate) ends: [Endpoint; 2],
    pub(crate) programs: [Program; 2],
    pub(crate) log: Vec<Passed>,
    /// Links by the end that sends into them.
    lines: [TestLink; 2],
    seen: [ObservedDirection; 2],
}

impl Play {
    /// Creates a simulation: end 0 connects to end 1, which listens.
    pub(crate) fn new(profiles: [&Arc<Profile>; 2], isns: [u32; 2], lines: [TestLink; 2]) -> Self {
        let now = Instant::from_nanos(1_000_000_000);
        Self {
            now,
            ends: [
                Endpoint::connect(profiles[0], isns[0], now),
                Endpoint::listen(profiles[1], isns[1]),
            ],
            programs: [Program::writing(0), Program::writing(0)],
            log: Vec::new(),
            lines,
            seen: [ObservedDirection::default(), ObservedDirection::default()],
        }
    }

    /// Makes end 1 connect as well: simultaneous open.
    pub(crate) fn open_both(&mut self) {
        let (profile, isn) = (self.ends[1].profile().clone(), self.ends[1].isn());
        self.ends[1] = Endpoint::connect(&profile, isn, self.now);
    }

    /// Runs until no event is left, or `until` or `steps` is reached. Returns true in the first case.
    pub(crate) fn run(&mut self, until: Instant, steps: usize) -> bool {
        for end in [0, 1] {
            self.run_end(end);
        }
        for _ in 0..steps {
            let Some(at) = self.next() else {
                return true;
            };
            if self.is_over() {
                return true;
            }
            if at > until {
                return false;
            }
            self.now = self.now.max(at);
            for end in [0, 1] {
                let segment = self.lines[1 - end].pop(self.now);
                if let Some(segment) = segment {
                    self.arrive(end, &segment);
                }
                let wakes = [
                    self.ends[end].wake(),
                    self.programs[end].wake(&self.ends[end]),
                ];
                if segment.is_some() || wakes.iter().flatten().any(|at| *at <= self.now) {
                    self.run_end(end);
                }
            }
        }
        false
    }

    /// The observed segments, a line each: milliseconds, sender, offsets, acknowledgement, window, SACK.
    pub(crate) fn ladder(&self) -> String {
        let isns = [0, 1].map(|end: usize| self.ends[end].isn());
        let line = |passed: &Passed| {
            let Passed { at, from, segment } = passed;
            let (own, other) = (isns[*from], isns[1 - from]);
            let start = segment.seq.wrapping_sub(own);
            let flags = [
                (segment.syn, "SYN "),
                (segment.fin, "FIN "),
                (segment.rst, "RST "),
            ];
            let flags: String = flags
                .iter()
                .filter(|flag| flag.0)
                .map(|flag| flag.1)
                .collect();
            let ack = segment.ack.map(|ack| ack.wrapping_sub(other));
            let blocks = segment.options.sack.as_slice().iter();
            let blocks: Vec<_> = blocks
                .map(|block| block.map(|n| n.wrapping_sub(other)))
                .collect();
            format!(
                "{:12.3} {}{flags}{start}+{} ack {ack:?} win {} {blocks:?}\n",
                at.as_nanos() as f64 / 1e6,
                if *from == 0 {
                    "> "
                } else {
                    "                    < "
                },
                segment.len,
                segment.window,
            )
        };
        self.log.iter().map(line).collect()
    }

    fn next(&self) -> Option<Instant> {
        let lines = self.lines.iter().filter_map(TestLink::wake);
        let ends = self.ends.iter().filter_map(Endpoint::wake);
        let pairs = self.programs.iter().zip(&self.ends);
        let programs = pairs.filter_map(|(program, end)| program.wake(end));
        lines.chain(ends).chain(programs).min()
    }

    /// Returns true if both ends are done and no segment is in flight.
    fn is_over(&self) -> bool {
        let done = |end: &Endpoint| end.state().is_closed() || end.state() == TcpState::TimeWait;
        let read = |end: &Endpoint| end.readable() == 0;
        self.ends.iter().all(|end| done(end) && read(end))
            && self.lines.iter().all(|line| line.flying.is_empty())
    }

    /// Pops until nothing comes, lets the program act, and pops again.
    fn run_end(&mut self, end: usize) {
        self.drain(end);
        let acknowledged = self.ends[end].acknowledged();
        assert!(
            acknowledged <= self.seen[end].received,
            "acknowledged before it came"
        );
        self.programs[end].act(self.now, &mut self.ends[end]);
        self.drain(end);
        let wake = self.ends[end].wake();
        assert!(
            wake.is_none_or(|at| at > self.now),
            "it would be woken for ever: {wake:?} at {:?} in {:?}",
            self.now,
            self.ends[end].state(),
        );
        // Windows rounded up to their scale promise slightly more than the buffer (Linux).
        let profile = self.ends[end].profile();
        let scale = u64::from(profile.offer.window_scale.unwrap_or(0));
        assert!(
            self.ends[end].readable() <= profile.receive_buffer + (1 << scale),
            "more than the buffer holds"
        );
    }

    fn drain(&mut self, end: usize) {
        for _ in 0..BURST {
            let Some(segment) = self.ends[end].pop(self.now) else {
                return;
            };
            self.look_at(end, &segment);
            self.log.push(Passed {
                at: self.now,
                from: end,
                segment,
            });
            self.lines[end].push(self.now, segment);
        }
        panic!("{BURST} segments within one instant");
    }

    /// Asserts the conditions for a segment that end `from` sends.
    fn look_at(&mut self, from: usize, segment: &Segment) {
        let (isn, written) = (self.ends[from].isn(), self.programs[from].written);
        let seen = &mut self.seen[from];
        if segment.rst {
            return;
        }
        let start = unwrap(isn, segment.seq, seen.reached).expect("before the SYN");
        let end = start + u64::from(segment.places());
        assert_eq!(
            segment.syn,
            start == 0 && end > 0,
            "the SYN is place 0: {segment:?}"
        );
        assert!(start <= seen.reached.max(1), "places left out: {segment:?}");
        if let Some(parity) = segment.options.parity.filter(|_| !segment.syn) {
            assert!(
                u64::from(parity.covered) < start,
                "covers the SYN: {segment:?}"
            );
            return;
        }
        let fin = u64::from(segment.fin);
        let data_end = end - fin;
        assert!(
            segment.len == 0 || data_end <= 1 + written,
            "never written: {segment:?}"
        );
        assert!(
            !segment.fin || end == written + 2,
            "a FIN in the middle: {segment:?}"
        );
        if segment.syn {
            seen.mss = segment.options.mss;
            seen.shift = Some(segment.options.window_scale);
        } else {
            // One byte may be sent into a closed window, as a probe.
            assert!(
                end <= seen.edge.max(1) + 1 + fin,
                "beyond {}: {segment:?}",
                seen.edge
            );
        }
        seen.reached = seen.reached.max(end);
        let (other_isn, other) = (self.ends[1 - from].isn(), &self.seen[1 - from]);
        let most = u32::from(other.mss.unwrap_or(536));
        assert!(
            segment.len <= most,
            "longer than the peer takes: {segment:?}"
        );
        if let Some(ack) = segment.ack {
            let ack = unwrap(other_isn, ack, other.reached).expect("acknowledged before the SYN");
            assert!(
                ack <= other.reached,
                "acknowledged before it was sent: {segment:?}"
            );
            for (index, block) in segment.options.sack.as_slice().iter().enumerate() {
                let [left, right] =
                    block.map(|number| unwrap(other_isn, number, other.reached).expect("a place"));
                assert!(left < right && right <= other.reached, "{segment:?}");
                assert!(
                    index == 0 || left > ack,
                    "SACKed and acknowledged: {segment:?}"
                );
            }
        }
    }

    /// Delivers a segment to an end.
    fn arrive(&mut self, end: usize, segment: &Segment) {
        let isn = self.ends[end].isn();
        let shifts = [self.seen[0].shift, self.seen[1].shift];
        let shift = match (segment.syn, shifts) {
            (false, [Some(Some(_)), Some(Some(_))]) => shifts[1 - end].flatten().unwrap_or(0),
            _ => 0,
        };
        let mine = &mut self.seen[end];
        if segment.syn {
            mine.edge = mine.edge.max(1 + u64::from(segment.window));
        }
        if let Some(ack) = segment.ack.and_then(|ack| unwrap(isn, ack, mine.reached)) {
            mine.edge = mine.edge.max(ack + (u64::from(segment.window) << shift));
        }
        let taken = self.ends[end].push(self.now, segment);
        let theirs = &mut self.seen[1 - end];
        if let Some(taken) = taken {
            let sender = self.ends[1 - end].isn();
            let start = unwrap(sender, segment.seq, theirs.reached).expect("taken, so sent");
            let data = start + u64::from(segment.syn);
            let brought = match segment.options.parity.filter(|_| !segment.syn) {
                Some(parity) => data - u64::from(parity.covered)..data,
                None => data..data + u64::from(segment.len),
            };
            assert!(brought.start <= taken.start && taken.end <= brought.end);
            theirs.taken.push(taken);
            join(&mut theirs.taken);
        }
        let received = self.ends[end].received();
        assert!(
            received >= theirs.received,
            "what was received is not any more"
        );
        theirs.received = received;
        let whole = theirs.taken.first().filter(|first| first.start == 1);
        let whole = whole.map_or(0, |first| first.end - 1);
        assert_eq!(
            whole, received,
            "what is whole, and what can be read: {:?}",
            theirs.taken
        );
    }
}

/// Sorts ranges and joins adjacent ones.
fn join(ranges: &mut Vec<Range<Offset>>) {
    ranges.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<Offset>> = Vec::new();
    for range in ranges.drain(..) {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    *ranges = joined;
}
