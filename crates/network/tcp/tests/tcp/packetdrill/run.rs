//! Execution of a script in virtual time, with the rules of packetdrill: the next packet of the endpoint must be the
//! next expected one, and leave at its time within the tolerance. Packets behind the last expected one are not compared.

use std::collections::VecDeque;
use std::path::Path;

use posthaste_tcp::{Endpoint, Segment};
use posthaste_units::{Instant, Span};

use super::ScriptError;
use super::assertion::{self, Evaluation, Variables};
use super::script::{
    Action, EventTime, Expression, Packet, PacketdrillScript, ScriptEvent, SystemCall,
};
use super::segments::{Numbers, describe_packet, describe_segment, join};
use super::settings::{self, ScriptSettings};
use super::sockets::{CallOutcome, Sockets};

/// Start of scripts. Later than the origin, as for any real clock.
const BEGIN: Instant = Instant::from_nanos(10_000_000_000);
/// Longest wait for a packet that may come at any time.
const LONGEST: Span = Span::from_secs(60);
/// Limit of segments in one instant for a working endpoint.
const ENDLESS: usize = 10_000;

/// Runs a script. Returns the number of statements and results that the model cannot evaluate.
pub(super) fn run(script: &PacketdrillScript, folder: &Path) -> Result<usize, ScriptError> {
    let settings = ScriptSettings::from_script(script, folder)?;
    let mut run = PacketdrillRun {
        sockets: Sockets::new(settings.profile.clone()),
        settings,
        numbers: Numbers::default(),
        now: BEGIN,
        before: BEGIN,
        spoke: BEGIN,
        sent: VecDeque::new(),
        waiting: None,
        variables: Variables::new(),
        unevaluated: 0,
    };
    for event in &script.events {
        run.event(event)?;
    }
    run.end()?;
    Ok(run.unevaluated)
}

/// A call that blocks: when it should return.
struct WaitingCall {
    call: SystemCall,
    line: usize,
    until: Instant,
    tolerance: Span,
}

struct PacketdrillRun {
    settings: ScriptSettings,
    sockets: Sockets,
    numbers: Numbers,
    now: Instant,
    /// Time of the previous event.
    before: Instant,
    /// Time of the last data.
    spoke: Instant,
    sent: VecDeque<(Instant, Segment)>,
    waiting: Option<WaitingCall>,
    variables: Variables,
    unevaluated: usize,
}

impl PacketdrillRun {
    fn event(&mut self, event: &ScriptEvent) -> Result<(), ScriptError> {
        if let Action::Packet(packet) = &event.action
            && !packet.inbound
        {
            return self.expect(event, packet);
        }
        let (at, _) = self.window(event.time);
        self.advance(at, event.line)?;
        match &event.action {
            Action::Packet(packet) => self.inject(packet, event.line)?,
            Action::Call(call) => self.call(call, event.line)?,
            Action::Code(code) => self.code(code, event.line)?,
            Action::Shell(text) if settings::is_harmless(text) => self.unevaluated += 1,
            Action::Shell(text) => {
                let reason = format!("the command `{}` between events", text.trim());
                return Err(ScriptError::unsupported(event.line, reason));
            }
        }
        self.before = at;
        Ok(())
    }

    /// First and last time of an event.
    fn window(&self, time: EventTime) -> (Instant, Instant) {
        match time {
            EventTime::Absolute(from, to) => (BEGIN + from, BEGIN + to),
            EventTime::Relative(from, to) => (self.before + from, self.before + to),
            EventTime::Any => (self.before, self.now.max(self.before) + LONGEST),
        }
    }

    /// Tolerance of a time: a fixed one, or an eighth of the time since the previous event (packetdrill's
    /// `verify_time`).
    fn tolerance(&self, at: Instant) -> Span {
        let share = at.saturating_since(self.before).as_nanos() / 8;
        self.settings.tolerance.max(Span::from_nanos(share))
    }

    fn inject(&mut self, packet: &Packet, line: usize) -> Result<(), ScriptError> {
        let segment = self.numbers.inbound(packet);
        if segment.syn && segment.ack.is_none() {
            self.sockets.listen_again();
        }
        let now = self.now;
        let Some(endpoint) = &mut self.sockets.endpoint else {
            return Err(ScriptError::unsupported(line, "a packet without a socket"));
        };
        endpoint.push(now, &segment);
        self.pump(line)
    }

    fn call(&mut self, call: &SystemCall, line: usize) -> Result<(), ScriptError> {
        if self.waiting.is_some() {
            return Err(ScriptError::unsupported(
                line,
                "a call while another one waits",
            ));
        }
        let writes = call.name.starts_with("write") || call.name.starts_with("send");
        if writes && !self.settings.restarts && self.has_paused() {
            let reason = "data after a pause with net.ipv4.tcp_slow_start_after_idle=0";
            return Err(ScriptError::unsupported(line, reason));
        }
        let outcome = self.sockets.call(self.now, call);
        self.pump(line)?;
        let waits = matches!(outcome, CallOutcome::Waits(_));
        if let Some(until) = call.until.filter(|_| !self.sockets.returns_at_once(call)) {
            let until = self.before + until;
            let waiting = WaitingCall {
                call: call.clone(),
                line,
                until,
                tolerance: self.tolerance(until),
            };
            if !waits {
                return self.finish(&waiting, &outcome);
            }
            self.waiting = Some(waiting);
            return Ok(());
        }
        let outcome = match outcome {
            CallOutcome::Waits(error) if self.sockets.returns_at_once(call) => {
                CallOutcome::Fails(error)
            }
            CallOutcome::Unevaluated => {
                self.unevaluated += 1;
                CallOutcome::Unevaluated
            }
            other => other,
        };
        check_result(call, &outcome, line)
    }

    /// Returns true if data that is written now would meet a window that a pause has reduced.
    fn has_paused(&self) -> bool {
        let Some(endpoint) = &self.sockets.endpoint else {
            return false;
        };
        let look = endpoint.look();
        let pause = self.now.saturating_since(self.spoke);
        let has_sent = endpoint.acknowledged() > 0 && look.board.outstanding == 0;
        let has_grown = look.window > endpoint.profile().initial_window.bytes(look.mss);
        has_sent && has_grown && pause > look.timeout
    }

    /// Continues a call that waits.
    fn resume(&mut self) -> Result<(), ScriptError> {
        let Some(waiting) = self.waiting.take() else {
            return Ok(());
        };
        let outcome = self.sockets.call(self.now, &waiting.call);
        if matches!(outcome, CallOutcome::Waits(_)) {
            if self.now > waiting.until + waiting.tolerance {
                let text = format!("{} still waits", waiting.call.name);
                return Err(ScriptError::differs(waiting.line, text));
            }
            self.waiting = Some(waiting);
            return Ok(());
        }
        self.finish(&waiting, &outcome)
    }

    /// Lets a call that still waits return.
    fn end(&mut self) -> Result<(), ScriptError> {
        let Some(waiting) = &self.waiting else {
            return Ok(());
        };
        let (line, name) = (waiting.line, waiting.call.name.clone());
        self.advance(waiting.until + waiting.tolerance, line)?;
        match self.waiting {
            Some(_) => Err(ScriptError::differs(line, format!("{name} never returns"))),
            None => Ok(()),
        }
    }

    /// Compares the result of a blocking call, and its time.
    fn finish(&mut self, waiting: &WaitingCall, outcome: &CallOutcome) -> Result<(), ScriptError> {
        if *outcome == CallOutcome::Unevaluated {
            self.unevaluated += 1;
            return Ok(());
        }
        check_result(&waiting.call, outcome, waiting.line)?;
        let (now, until) = (self.now, waiting.until);
        let off = now.saturating_since(until).max(until.saturating_since(now));
        if off > waiting.tolerance {
            let (name, now, until) = (&waiting.call.name, since(now), since(until));
            let text = format!("{name} returns at {now}, expected at {until}");
            return Err(ScriptError::differs(waiting.line, text));
        }
        Ok(())
    }

    fn code(&mut self, code: &str, line: usize) -> Result<(), ScriptError> {
        let endpoint = self.sockets.endpoint.as_ref();
        match assertion::evaluate(code, &mut self.variables, endpoint) {
            Evaluation::Holds(unknown) => {
                self.unevaluated += unknown;
                Ok(())
            }
            Evaluation::Fails(values) => Err(ScriptError::differs(line, values)),
        }
    }

    /// Compares the next packet of the endpoint.
    fn expect(&mut self, event: &ScriptEvent, wanted: &Packet) -> Result<(), ScriptError> {
        let (from, to) = self.window(event.time);
        let tolerance = self.tolerance(from);
        let description = describe_packet(wanted);
        let Some((at, mut got)) = self.next_sent(to + tolerance, event.line)? else {
            let text = format!("expected {description} at {}, got nothing", since(from));
            return Err(ScriptError::differs(event.line, text));
        };
        while got.len < wanted.len
            && let Some((_, next)) = self.sent.front()
            && join(&mut got, next)
        {
            self.sent.pop_front();
        }
        let differs = |why: String| {
            let (at, from, got) = (since(at), since(from), describe_segment(&got));
            let text = format!("{why}: expected {description} at {from}, got {got} at {at}");
            ScriptError::differs(event.line, text)
        };
        self.numbers.compare(wanted, &got).map_err(differs)?;
        let early = event.time != EventTime::Any && at + tolerance < from;
        if early || at > to + tolerance {
            return Err(differs("time".to_owned()));
        }
        let tick = self
            .settings
            .timestamp_tick
            .map(|tick| (tick, self.settings.tolerance));
        self.numbers.stamp(wanted, &got, tick).map_err(differs)?;
        self.before = if event.time.is_instant() { from } else { at };
        Ok(())
    }

    /// Returns the next packet of the endpoint. Waits for timers up to `latest`.
    fn next_sent(
        &mut self,
        latest: Instant,
        line: usize,
    ) -> Result<Option<(Instant, Segment)>, ScriptError> {
        while self.sent.is_empty() {
            let wake = self.sockets.endpoint.as_ref().and_then(Endpoint::wake);
            let Some(wake) = wake.filter(|wake| *wake <= latest) else {
                break;
            };
            self.now = self.now.max(wake);
            self.pump(line)?;
        }
        Ok(self.sent.pop_front())
    }

    /// Advances time and handles every timer.
    fn advance(&mut self, until: Instant, line: usize) -> Result<(), ScriptError> {
        while let Some(wake) = self.sockets.endpoint.as_ref().and_then(Endpoint::wake)
            && wake <= until
        {
            self.now = self.now.max(wake);
            self.pump(line)?;
        }
        self.now = self.now.max(until);
        self.pump(line)
    }

    /// Takes all segments that can be sent now, and lets a waiting call continue.
    fn pump(&mut self, line: usize) -> Result<(), ScriptError> {
        self.take_sent(line)?;
        if self.waiting.is_some() {
            self.resume()?;
            self.take_sent(line)?;
        }
        Ok(())
    }

    fn take_sent(&mut self, line: usize) -> Result<(), ScriptError> {
        let now = self.now;
        for _ in 0..ENDLESS {
            let Some(segment) = self.sockets.endpoint.as_mut().and_then(|tcp| tcp.pop(now)) else {
                return Ok(());
            };
            if segment.len > 0 {
                self.spoke = now;
            }
            self.sent.push_back((now, segment));
        }
        Err(ScriptError::differs(
            line,
            "the endpoint sends without an end",
        ))
    }
}

fn check_result(call: &SystemCall, outcome: &CallOutcome, line: usize) -> Result<(), ScriptError> {
    let wanted = match (&call.result, call.error.as_deref()) {
        (Expression::Number(-1), Some(error)) => error.to_owned(),
        (Expression::Number(number), _) => number.to_string(),
        _ => return Ok(()),
    };
    let got = match outcome {
        CallOutcome::Returns(number) => number.to_string(),
        CallOutcome::Fails(error) => (*error).to_owned(),
        CallOutcome::Waits(_) => "nothing: it waits".to_owned(),
        CallOutcome::Unevaluated => return Ok(()),
        CallOutcome::Unsupported(reason) => {
            return Err(ScriptError::unsupported(line, reason.clone()));
        }
    };
    if got == wanted {
        return Ok(());
    }
    let text = format!("{} returns {got}, expected {wanted}", call.name);
    Err(ScriptError::differs(line, text))
}

fn since(at: Instant) -> String {
    at.saturating_since(BEGIN).to_string()
}
