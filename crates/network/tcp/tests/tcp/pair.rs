//! Two endpoints and a pipe that loses, delays and duplicates segments by position.

use std::collections::BTreeMap;
use std::sync::Arc;

use posthaste_tcp::{Endpoint, Profile, Segment, TcpState};
use posthaste_units::{Instant, Span};

/// Fate of the n-th segment of one direction, n from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fate {
    pub(crate) lost: bool,
    pub(crate) late: Span,
    pub(crate) twice: bool,
}

/// Application of an end: writes `writes` bytes as soon as the connection is established, then closes once it has read
/// the expected bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Application {
    pub(crate) writes: u64,
    pub(crate) expects: u64,
    /// Maximum number of bytes read in an instant. 0 for all.
    pub(crate) reads: u64,
    written: u64,
    read: u64,
    closed: bool,
    complete: Option<Instant>,
}

impl Application {
    pub(crate) fn new(writes: u64, expects: u64) -> Self {
        Self {
            writes,
            expects,
            ..Self::default()
        }
    }
}

/// One sent segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left {
    pub(crate) at: Instant,
    pub(crate) end: usize,
    pub(crate) segment: Segment,
    pub(crate) fate: Fate,
}

pub(crate) struct EndpointPair {
    pub(crate) ends: [Endpoint; 2],
    pub(crate) applications: [Application; 2],
    pub(crate) log: Vec<Left>,
    delay: Span,
    /// Transmission time of a segment with data, by end, and the end of the current transmission.
    lines: [(Span, Instant); 2],
    now: Instant,
    flying: BTreeMap<(Instant, u64), (usize, Segment)>,
    positions: [usize; 2],
    number: u64,
}

/// More segments than any run needs. Detects an endpoint that sends without end.
const MOST: usize = 200_000;

impl EndpointPair {
    /// Creates a pair: end 0 connects, end 1 listens. One way takes `delay`.
    pub(crate) fn new(profiles: [&Arc<Profile>; 2], isns: [u32; 2], delay: Span) -> Self {
        let began = Instant::from_nanos(1_000_000_000);
        Self {
            ends: [
                Endpoint::connect(profiles[0], isns[0], began),
                Endpoint::listen(profiles[1], isns[1]),
            ],
            applications: [Application::default(); 2],
            log: Vec::new(),
            delay,
            lines: [(Span::ZERO, began); 2],
            now: began,
            flying: BTreeMap::new(),
            positions: [0; 2],
            number: 0,
        }
    }

    /// Sets the transmission time of each segment with data from an end.
    pub(crate) fn serialise(&mut self, end: usize, span: Span) {
        self.lines[end].0 = span;
    }

    /// Runs until no event is left or `limit` has passed. Returns true if both ends are closed.
    pub(crate) fn run(&mut self, limit: Span, fate: impl Fn(usize, usize) -> Fate) -> bool {
        let until = self.now + limit;
        loop {
            for end in 0..2 {
                self.settle(end, &fate);
            }
            let next = self.flying.keys().next().map(|key| key.0);
            let wakes = self.ends.iter().filter_map(Endpoint::wake);
            let reading = self.ends.iter().any(|end| end.readable() > 0);
            let reads = reading.then(|| self.now + Span::from_millis(1));
            let Some(next) = wakes.chain(next).chain(reads).min() else {
                break;
            };
            assert!(next > self.now, "time stands still at {next:?}");
            if next > until || self.log.len() > MOST {
                break;
            }
            self.now = next;
            while let Some(entry) = self.flying.first_entry() {
                if entry.key().0 > self.now {
                    break;
                }
                let (end, segment) = entry.remove();
                self.ends[end].push(self.now, &segment);
                self.settle(end, &fate);
            }
        }
        self.ends.iter().all(|end| end.state().is_closed())
    }

    fn settle(&mut self, end: usize, fate: &impl Fn(usize, usize) -> Fate) {
        self.send(end, fate);
        self.apply(end);
        self.send(end, fate);
    }

    fn send(&mut self, end: usize, fate: &impl Fn(usize, usize) -> Fate) {
        while let Some(segment) = self.ends[end].pop(self.now) {
            self.positions[end] += 1;
            let fate = fate(end, self.positions[end]);
            self.log.push(Left {
                at: self.now,
                end,
                segment,
                fate,
            });
            assert!(self.log.len() <= 2 * MOST, "sends without end");
            if segment.len > 0 {
                let (span, free) = self.lines[end];
                self.lines[end].1 = free.max(self.now) + span;
            }
            let copies = if fate.lost {
                0
            } else {
                1 + usize::from(fate.twice)
            };
            for _ in 0..copies {
                self.number += 1;
                let busy = self.lines[end].1.max(self.now);
                let due = busy + self.delay + fate.late;
                self.flying.insert((due, self.number), (1 - end, segment));
            }
        }
        let wake = self.ends[end].wake();
        assert!(wake.is_none_or(|wake| wake > self.now), "wakes for nothing");
    }

    fn apply(&mut self, end: usize) {
        let (application, endpoint) = (&mut self.applications[end], &mut self.ends[end]);
        let most = match application.reads {
            0 => u64::MAX,
            most => most,
        };
        if endpoint.readable() > 0 {
            application.read += endpoint.read(most);
            if application.read >= application.expects {
                application.complete.get_or_insert(self.now);
            }
        }
        if !matches!(
            endpoint.state(),
            TcpState::Established | TcpState::CloseWait
        ) {
            return;
        }
        let left = application.writes - application.written;
        if left > 0 {
            application.written += endpoint.write(self.now, left);
        }
        let done =
            application.written == application.writes && application.read >= application.expects;
        if done && !application.closed {
            application.closed = true;
            endpoint.close();
        }
    }

    /// Bytes read at an end.
    pub(crate) fn read(&self, end: usize) -> u64 {
        self.applications[end].read
    }

    /// Time when an end had read everything, in milliseconds since the beginning.
    pub(crate) fn complete(&self, end: usize) -> f64 {
        let complete = self.applications[end].complete.expect("it had");
        complete
            .since(Instant::from_nanos(1_000_000_000))
            .as_millis_f64()
    }

    /// The run as lines, for failures and snapshots.
    pub(crate) fn ladder(&self) -> String {
        let mut text = String::new();
        let began = Instant::from_nanos(1_000_000_000);
        for left in &self.log {
            let isns = [self.ends[0].isn(), self.ends[1].isn()];
            let (own, peer) = (isns[left.end], isns[1 - left.end]);
            let segment = &left.segment;
            let flags: String = [
                (segment.syn, 'S'),
                (segment.fin, 'F'),
                (segment.rst, 'R'),
                (segment.psh, 'P'),
            ]
            .iter()
            .filter(|flag| flag.0)
            .map(|flag| flag.1)
            .collect();
            let seq = segment.seq.wrapping_sub(own);
            let ack = segment.ack.map(|ack| ack.wrapping_sub(peer));
            let sacks: Vec<String> = segment
                .options
                .sack
                .as_slice()
                .iter()
                .map(|block| {
                    format!(
                        "{}-{}",
                        block[0].wrapping_sub(peer),
                        block[1].wrapping_sub(peer)
                    )
                })
                .collect();
            text += &format!(
                "{:9.3} {} {seq}+{} {flags} ack {ack:?} win {} {} {}\n",
                left.at.since(began).as_millis_f64(),
                if left.end == 0 { ">" } else { "        <" },
                segment.len,
                segment.window,
                sacks.join(" "),
                if left.fate.lost { "LOST" } else { "" },
            );
        }
        text
    }
}
