//! Comparison of a segment with the script, and of a quantity with its value.

use posthaste_tcp::{ConnectionEnd, Endpoint, Segment, TcpState};
use posthaste_units::Span;

use super::parse::WrittenSegment;
use super::peer::ScriptedPeer;
use super::tokens::Tokens;

/// A quantity of an endpoint and its expected value.
#[derive(Clone, Debug)]
pub(super) struct Quantity {
    name: String,
    relation: String,
    value: ExpectedValue,
}

#[derive(Clone, Debug, PartialEq, PartialOrd)]
enum ExpectedValue {
    State(String),
    Number(u64),
    Time(Span),
    /// No value yet.
    Unknown,
}

impl Quantity {
    /// Parses `cwnd 10000`, `srtt >= 99ms` or `state established`.
    pub(super) fn read(tokens: &mut Tokens) -> Result<Self, String> {
        const RELATIONS: [&str; 5] = ["=", "<=", ">=", "<", ">"];
        let name = tokens.next().ok_or("expect what?")?.to_owned();
        let relation = match tokens.peek() {
            Some(word) if RELATIONS.contains(&word) => tokens.next().unwrap_or_default(),
            _ => "=",
        };
        let value = match name.as_str() {
            "state" => ExpectedValue::State(tokens.next().ok_or("a state is missing")?.to_owned()),
            "rto" | "srtt" => ExpectedValue::Time(tokens.span()?),
            _ => ExpectedValue::Number(tokens.value("a number")?),
        };
        Ok(Self {
            name,
            relation: relation.to_owned(),
            value,
        })
    }

    /// Compares the quantity with the endpoint.
    pub(super) fn check(&self, endpoint: &Endpoint) -> Result<(), String> {
        let got = answer(endpoint, &self.name)?;
        let holds = match self.relation.as_str() {
            "<=" => got <= self.value,
            ">=" => got >= self.value && got != ExpectedValue::Unknown,
            "<" => got < self.value,
            ">" => got > self.value && got != ExpectedValue::Unknown,
            _ => got == self.value,
        };
        if holds {
            return Ok(());
        }
        let (name, relation) = (&self.name, &self.relation);
        Err(format!(
            "  expected  {name} {relation} {:?}\n  got       {got:?}",
            self.value
        ))
    }
}

fn answer(endpoint: &Endpoint, name: &str) -> Result<ExpectedValue, String> {
    let look = endpoint.look();
    let counters = endpoint.counters();
    let refused = &counters.refused;
    Ok(ExpectedValue::Number(match name {
        "state" => return Ok(ExpectedValue::State(state(endpoint.state()).to_owned())),
        "rto" => return Ok(ExpectedValue::Time(look.timeout)),
        "srtt" => {
            return Ok(look
                .smoothed
                .map_or(ExpectedValue::Unknown, ExpectedValue::Time));
        }
        "cwnd" => look.window,
        "ssthresh" => look.threshold,
        "peer-window" => look.peer_window,
        "in-flight" => look.in_flight,
        "mss" => look.mss.into(),
        "outstanding" => look.board.outstanding.into(),
        "sacked" => look.board.sacked.into(),
        "lost" => look.board.lost.into(),
        "repeated" => look.board.repeated.into(),
        "reordering" => look.reordering.into(),
        "readable" => endpoint.readable(),
        "received" => endpoint.received(),
        "acknowledged" => endpoint.acknowledged(),
        "peer-has-closed" => endpoint.peer_has_closed().into(),
        "segments-in" => counters.segments_in,
        "segments-out" => counters.segments_out,
        "retransmissions" => counters.retransmissions,
        "fast" => counters.fast,
        "after-timeout" => counters.after_timeout,
        "probes" => counters.probes,
        "spurious" => counters.spurious,
        "timeouts" => counters.timeouts,
        "recoveries" => counters.recoveries,
        "undone" => counters.undone,
        "window-probes" => counters.window_probes,
        "duplicate-acks" => counters.duplicate_acks,
        "adaptive-acks" => counters.adaptive_acks,
        "uncounted-acks" => counters.uncounted_acks,
        "duplicate-data" => counters.duplicate_data,
        "out-of-order" => counters.out_of_order,
        "unanswered" => counters.unanswered,
        "refused" => refused.total(),
        "refused-out-of-window" => refused.out_of_window,
        "refused-paws" => refused.paws,
        "refused-ack-of-unsent" => refused.ack_of_unsent,
        "refused-ack-too-old" => refused.ack_too_old,
        "refused-no-ack" => refused.no_ack,
        "refused-syn" => refused.syn,
        "refused-rst" => refused.rst,
        "refused-after-fin" => refused.after_fin,
        "refused-no-connection" => refused.no_connection,
        _ => return Err(format!("nothing is called {name:?}")),
    }))
}

fn state(state: TcpState) -> &'static str {
    match state {
        TcpState::Listen => "listen",
        TcpState::SynSent => "syn-sent",
        TcpState::SynReceived => "syn-received",
        TcpState::Established => "established",
        TcpState::FinWait1 => "fin-wait-1",
        TcpState::FinWait2 => "fin-wait-2",
        TcpState::CloseWait => "close-wait",
        TcpState::Closing => "closing",
        TcpState::LastAck => "last-ack",
        TcpState::TimeWait => "time-wait",
        TcpState::Closed(ConnectionEnd::Finished) => "finished",
        TcpState::Closed(ConnectionEnd::Reset) => "reset",
        TcpState::Closed(ConnectionEnd::TimedOut) => "timed-out",
        TcpState::Closed(ConnectionEnd::Aborted) => "aborted",
    }
}

/// Returns true if a segment matches the script. SYN, FIN, RST, data and SACK blocks are always compared, everything
/// else only if it is written.
pub(super) fn matches(written: &WrittenSegment, segment: &Segment, peer: &ScriptedPeer) -> bool {
    let options = &segment.options;
    let start = peer.offset_of(segment.seq);
    let data = [start, start + i64::from(segment.len)];
    let blocks = options.sack.as_slice().iter();
    let own = |number| peer.own_offset(number);
    let ack = segment.ack.map(own);
    let times = options.timestamps.map(|times| [times.value, times.echo]);
    let is = |wanted: bool, given: bool| !wanted || given;
    segment.syn == written.syn
        && segment.fin == written.fin
        && segment.rst == written.rst
        && is(written.psh, segment.psh)
        && written
            .data
            .map_or(segment.len == 0, |wanted| wanted == data)
        && written.seq.is_none_or(|wanted| wanted == start)
        && written.ack.is_none_or(|wanted| Some(wanted) == ack)
        && is(written.no_ack, ack.is_none())
        && written
            .window
            .is_none_or(|wanted| wanted == peer.window(segment))
        && is(written.mss.is_some(), written.mss == options.mss)
        && is(
            written.scale.is_some(),
            written.scale == options.window_scale,
        )
        && is(written.sack_ok, options.sack_permitted)
        && is(written.timestamps.is_some(), written.timestamps == times)
        && written
            .echo
            .is_none_or(|wanted| times.is_some_and(|[_, echo]| echo == wanted))
        && blocks
            .map(|block| block.map(own))
            .eq(written.sack.iter().copied())
        && written.without.iter().all(|option| match option.as_str() {
            "mss" => options.mss.is_none(),
            "scale" => options.window_scale.is_none(),
            "sack-ok" => !options.sack_permitted,
            _ => options.timestamps.is_none(),
        })
}

/// Formats a segment of the endpoint in the language of scripts.
pub(super) fn describe(segment: &Segment, peer: &ScriptedPeer) -> String {
    let start = peer.offset_of(segment.seq);
    let mut text = match segment.len {
        0 => format!("seq {start}"),
        len => format!("{start}..{}", start + i64::from(len)),
    };
    for (word, set) in [
        (" syn", segment.syn),
        (" fin", segment.fin),
        (" rst", segment.rst),
        (" psh", segment.psh),
        (" sack-ok", segment.options.sack_permitted),
    ] {
        text += if set { word } else { "" };
    }
    if let Some(ack) = segment.ack {
        text += &format!(" ack {}", peer.own_offset(ack));
    }
    text += &format!(" win {}", peer.window(segment));
    let options = &segment.options;
    if let Some(mss) = options.mss {
        text += &format!(" mss {mss}");
    }
    if let Some(scale) = options.window_scale {
        text += &format!(" scale {scale}");
    }
    if let Some(times) = options.timestamps {
        text += &format!(" ts {} {}", times.value, times.echo);
    }
    if !options.sack.is_empty() {
        text += " sack";
    }
    for [start, end] in options.sack.as_slice() {
        text += &format!(" {}..{}", peer.own_offset(*start), peer.own_offset(*end));
    }
    text
}
