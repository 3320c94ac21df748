//! Execution of a script: one endpoint, virtual time, and a queue of sent segments not yet expected.

use std::collections::VecDeque;
use std::sync::Arc;

use posthaste_tcp::{Endpoint, Profile, Segment, TcpState};
use posthaste_units::{Instant, Span};

use super::expect::{describe, matches};
use super::parse::{ScriptEvent, ScriptLine, Time, WrittenSegment};
use super::peer::ScriptedPeer;
use super::settings::Settings;

/// Limit of segments in one instant, or of timers without effect, for a working endpoint.
const ENDLESS: usize = 10_000;
/// Lines of the ladder that a failure shows.
const SHOWN: usize = 24;
/// Start of scripts. Later than the origin, as for any real clock.
const BEGIN: Instant = Instant::from_nanos(10_000_000_000);

/// A running script.
pub(super) struct ScriptWorld<'a> {
    settings: &'a Settings,
    profile: Arc<Profile>,
    endpoint: Option<Endpoint>,
    peer: ScriptedPeer,
    now: Instant,
    /// Time of the previous line.
    before: Instant,
    /// Sent segments that no line has expected yet.
    sent: VecDeque<(Instant, Segment)>,
    ladder: Vec<String>,
}

impl<'a> ScriptWorld<'a> {
    pub(super) fn new(settings: &'a Settings, profile: Arc<Profile>) -> Self {
        Self {
            settings,
            profile,
            endpoint: None,
            peer: ScriptedPeer::new(settings),
            now: BEGIN,
            before: BEGIN,
            sent: VecDeque::new(),
            ladder: Vec::new(),
        }
    }

    /// Runs one line.
    pub(super) fn play(&mut self, line: &ScriptLine) -> Result<(), String> {
        let at = match line.time {
            None => self.before,
            Some(Time::At(span)) => BEGIN + span,
            Some(Time::After(span)) => self.before + span,
        };
        if let ScriptEvent::Out(wanted) = &line.event {
            let about = line.tolerance.unwrap_or(self.settings.tolerance);
            return self.expect_sent(wanted, at, about);
        }
        self.advance(at)?;
        self.before = at.max(self.now);
        match &line.event {
            ScriptEvent::Expect(quantity) => {
                let endpoint = self.endpoint.as_ref().ok_or("there is no endpoint yet")?;
                return quantity.check(endpoint);
            }
            ScriptEvent::Anything => {
                self.sent.clear();
                return Ok(());
            }
            ScriptEvent::Quiet => return self.nothing_unexpected(),
            _ => self.nothing_unexpected()?,
        }
        match &line.event {
            ScriptEvent::Listen => self.begin(false),
            ScriptEvent::Connect => self.begin(true),
            ScriptEvent::Accepted(round) => self.accepted(*round),
            ScriptEvent::Connected(round) => self.connected(*round),
            ScriptEvent::In(segments) => segments
                .iter()
                .try_for_each(|written| self.receive(written)),
            event => self.application(event),
        }
    }

    fn begin(&mut self, active: bool) -> Result<(), String> {
        let (profile, isn) = (&self.profile, self.settings.isn);
        let mut endpoint = if active {
            Endpoint::connect(profile, isn, self.now)
        } else {
            Endpoint::listen(profile, isn)
        };
        endpoint.set_no_delay(self.settings.no_delay);
        self.endpoint = Some(endpoint);
        self.pump()
    }

    /// The peer's SYN, our SYN-ACK, and the peer's ACK a round trip later.
    fn accepted(&mut self, round: Span) -> Result<(), String> {
        self.begin(false)?;
        let syn = WrittenSegment {
            syn: true,
            ..WrittenSegment::default()
        };
        self.receive(&syn)?;
        let at = self.now;
        let answer = WrittenSegment {
            ack: Some(1),
            ..syn.clone()
        };
        self.expect_sent(&[answer], at, Span::ZERO)?;
        self.advance(at + round)?;
        let ack = WrittenSegment {
            ack: Some(1),
            ..WrittenSegment::default()
        };
        self.receive(&ack)?;
        self.established()
    }

    /// Our SYN, the peer's SYN-ACK a round trip later, and our ACK.
    fn connected(&mut self, round: Span) -> Result<(), String> {
        self.begin(true)?;
        let syn = WrittenSegment {
            syn: true,
            ..WrittenSegment::default()
        };
        let at = self.now;
        self.expect_sent(std::slice::from_ref(&syn), at, Span::ZERO)?;
        self.advance(at + round)?;
        let answer = WrittenSegment {
            ack: Some(1),
            ..syn
        };
        self.receive(&answer)?;
        let ack = WrittenSegment {
            ack: Some(1),
            ..WrittenSegment::default()
        };
        let at = self.now;
        self.expect_sent(&[ack], at, Span::ZERO)?;
        self.established()
    }

    fn established(&mut self) -> Result<(), String> {
        self.before = self.now;
        match self.endpoint()?.state() {
            TcpState::Established => Ok(()),
            other => Err(format!("  expected  established\n  got       {other:?}")),
        }
    }

    fn receive(&mut self, written: &WrittenSegment) -> Result<(), String> {
        let segment = self.peer.segment(written, self.now);
        let now = self.now;
        self.endpoint()?.push(now, &segment);
        self.note(format!("<  {}", written_as(written)));
        self.pump()?;
        if self.settings.reads {
            self.endpoint()?.read(u64::MAX);
            self.pump()?;
        }
        Ok(())
    }

    fn application(&mut self, event: &ScriptEvent) -> Result<(), String> {
        let now = self.now;
        let endpoint = self.endpoint()?;
        let counted = match *event {
            ScriptEvent::Write { bytes, taken } => {
                Some(("taken", endpoint.write(now, bytes), taken))
            }
            ScriptEvent::Read(Some(bytes)) => Some(("read", endpoint.read(bytes), bytes)),
            ScriptEvent::Read(None) => {
                endpoint.read(u64::MAX);
                None
            }
            ScriptEvent::Close => {
                endpoint.close();
                None
            }
            ScriptEvent::Leave => {
                endpoint.leave(now);
                None
            }
            _ => {
                endpoint.abort();
                None
            }
        };
        self.pump()?;
        match counted {
            Some((subject, got, wanted)) if got != wanted => Err(format!(
                "  expected  {wanted} bytes {subject}\n  got       {got}"
            )),
            _ => Ok(()),
        }
    }

    fn endpoint(&mut self) -> Result<&mut Endpoint, String> {
        self.endpoint
            .as_mut()
            .ok_or_else(|| "connect, listen or accepted comes first".to_owned())
    }

    /// Advances time and handles every timer.
    fn advance(&mut self, until: Instant) -> Result<(), String> {
        while let Some(wake) = self.wake().filter(|wake| *wake <= until) {
            self.run_end(wake)?;
        }
        self.now = self.now.max(until);
        self.pump()
    }

    fn wake(&self) -> Option<Instant> {
        self.endpoint.as_ref().and_then(Endpoint::wake)
    }

    /// Handles one timer.
    fn run_end(&mut self, wake: Instant) -> Result<(), String> {
        let stuck = (self.now, self.sent.len());
        self.now = self.now.max(wake);
        self.pump()?;
        let same = (self.now, self.sent.len()) == stuck;
        if same && self.wake().is_some_and(|wake| wake <= self.now) {
            return Err("it wants to be woken again at once, and does nothing".to_owned());
        }
        Ok(())
    }

    /// Takes all segments that can be sent now.
    fn pump(&mut self) -> Result<(), String> {
        for _ in 0..ENDLESS {
            let now = self.now;
            let Some(endpoint) = &mut self.endpoint else {
                return Ok(());
            };
            let Some(segment) = endpoint.pop(now) else {
                return Ok(());
            };
            self.peer.note(&segment);
            self.note(format!(" > {}", describe(&segment, &self.peer)));
            self.sent.push_back((now, segment));
        }
        Err("it sends without an end".to_owned())
    }

    /// Checks that the next segments are `wanted`, sent at `at` within the tolerance `about`.
    fn expect_sent(
        &mut self,
        wanted: &[WrittenSegment],
        at: Instant,
        about: Span,
    ) -> Result<(), String> {
        for written in wanted {
            while self.sent.is_empty()
                && let Some(wake) = self.wake().filter(|wake| *wake <= at + about)
            {
                self.run_end(wake)?;
            }
            let expected = || format!("  expected  > {} at {}", written_as(written), since(at));
            let Some((sent, segment)) = self.sent.pop_front() else {
                return Err(format!("{}\n  got       nothing", expected()));
            };
            let late = sent.saturating_since(at) > about || at.saturating_since(sent) > about;
            if late || !matches(written, &segment, &self.peer) {
                let got = describe(&segment, &self.peer);
                return Err(format!(
                    "{}\n  got       > {got} at {}",
                    expected(),
                    since(sent)
                ));
            }
            self.before = sent;
        }
        Ok(())
    }

    /// Returns an error if a sent segment was not expected by any line.
    pub(super) fn nothing_unexpected(&self) -> Result<(), String> {
        match self.sent.front() {
            None => Ok(()),
            Some((sent, segment)) => {
                let got = describe(segment, &self.peer);
                Err(format!(
                    "  expected  nothing\n  got       > {got} at {}",
                    since(*sent)
                ))
            }
        }
    }

    fn note(&mut self, note: String) {
        self.ladder
            .push(format!("  {:>10} {note}", since(self.now)));
    }

    /// The last events, for a failure.
    pub(super) fn ladder(&self) -> String {
        self.ladder[self.ladder.len().saturating_sub(SHOWN)..].join("\n")
    }
}

fn since(at: Instant) -> String {
    at.since(BEGIN).to_string()
}

/// Short form of a written segment.
fn written_as(written: &WrittenSegment) -> String {
    let mut text = match (written.data, written.seq) {
        (Some([start, end]), _) => format!("{start}..{end}"),
        (None, Some(seq)) => format!("seq {seq}"),
        _ => String::new(),
    };
    for (word, set) in [
        ("syn", written.syn),
        ("fin", written.fin),
        ("rst", written.rst),
    ] {
        text += &if set {
            format!(" {word}")
        } else {
            String::new()
        };
    }
    if let Some(ack) = written.ack {
        text += &format!(" ack {ack}");
    }
    if let Some(window) = written.window {
        text += &format!(" win {window}");
    }
    if !written.sack.is_empty() {
        text += " sack";
    }
    for [start, end] in &written.sack {
        text += &format!(" {start}..{end}");
    }
    text.trim().to_owned()
}
