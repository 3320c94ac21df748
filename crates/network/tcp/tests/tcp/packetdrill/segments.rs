//! Conversion of packets between the numbers of a script and those of the endpoint, and their comparison.

use posthaste_tcp::{Options, SackBlocks, Segment, Timestamps};
use posthaste_units::Span;

use super::script::{Packet, PacketOptions};

/// Initial sequence number of the endpoint, which is 0 in scripts. The peer's numbers are those of the script.
pub(super) const OWN_ISN: u32 = 4_000_000_000;

/// Numbers of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers {
    /// Timestamp values of the endpoint, in the script and on the wire.
    seen: Vec<(u32, u32)>,
}

impl Numbers {
    /// Builds the segment of an inbound packet.
    pub(super) fn inbound(&self, packet: &Packet) -> Segment {
        let written = packet.options.clone().unwrap_or_default();
        let mut sack = SackBlocks::default();
        for block in &written.sack {
            let [start, end] = block.map(|number| number.wrapping_add(OWN_ISN));
            sack.push(start, end);
        }
        Segment {
            seq: packet.seq,
            ack: packet.ack.map(|ack| ack.wrapping_add(OWN_ISN)),
            syn: packet.flags.syn,
            fin: packet.flags.fin,
            rst: packet.flags.rst,
            psh: packet.flags.psh,
            window: packet.window.unwrap_or_default(),
            len: packet.len,
            options: Options {
                mss: written.mss,
                window_scale: written.scale,
                sack_permitted: written.sack_ok,
                timestamps: written.timestamps.map(|[value, echo]| Timestamps {
                    value,
                    echo: self.echo(echo),
                }),
                sack,
                parity: None,
            },
        }
    }

    /// The timestamp on the wire for one of the script.
    fn echo(&self, written: u32) -> u32 {
        let same = |seen: &&(u32, u32)| seen.0 == written;
        if let Some((_, wire)) = self.seen.iter().rev().find(same) {
            return *wire;
        }
        match self.seen.first() {
            Some((first, wire)) if written != 0 => wire.wrapping_add(written.wrapping_sub(*first)),
            _ => written,
        }
    }

    /// Compares a packet of the endpoint with the script. An error names the first difference.
    pub(super) fn compare(&self, wanted: &Packet, got: &Segment) -> Result<(), String> {
        let differs = |field: &str| Err(field.to_owned());
        let flags = wanted.flags;
        if (flags.syn, flags.fin, flags.rst) != (got.syn, got.fin, got.rst)
            || flags.ack != got.ack.is_some()
        {
            return differs("flags");
        }
        // The kernel also pushes at half the peer's window and at the end of a burst. The model pushes at the end of
        // the data alone. Only a push that the script does not have is a difference.
        if got.psh && !flags.psh && got.len > 0 {
            return differs("PSH");
        }
        if wanted.seq != got.seq.wrapping_sub(OWN_ISN) {
            return differs("sequence number");
        }
        if wanted.len != got.len {
            return differs("length");
        }
        if wanted.ack != got.ack {
            return differs("acknowledgement number");
        }
        if wanted.window.is_some_and(|window| window != got.window) {
            return differs("window");
        }
        let Some(options) = &wanted.options else {
            return Ok(());
        };
        compare_options(options, &got.options)
    }

    /// Compares the timestamp value with the one that the script expects after the first, within `about`, if the script
    /// gives the length of a tick. Then remembers both.
    pub(super) fn stamp(
        &mut self,
        wanted: &Packet,
        got: &Segment,
        tick: Option<(Span, Span)>,
    ) -> Result<(), String> {
        let written = wanted
            .options
            .as_ref()
            .and_then(|options| options.timestamps);
        let (Some([written, _]), Some(stamps)) = (written, got.options.timestamps) else {
            return Ok(());
        };
        if let (Some((tick, about)), Some((first, wire))) = (tick, self.seen.first()) {
            let wanted = written.wrapping_sub(*first);
            let found = stamps.value.wrapping_sub(*wire);
            if tick * u64::from(wanted.abs_diff(found)) > about {
                return Err(format!(
                    "timestamp: {wanted} ticks after the first, got {found}"
                ));
            }
        }
        self.seen.push((written, stamps.value));
        Ok(())
    }
}

fn compare_options(wanted: &PacketOptions, got: &Options) -> Result<(), String> {
    let differs = |field: &str| Err(field.to_owned());
    if wanted.mss != got.mss {
        return differs("MSS option");
    }
    if wanted.scale != got.window_scale {
        return differs("window scale option");
    }
    if wanted.sack_ok != got.sack_permitted {
        return differs("SACK-permitted option");
    }
    if wanted.sack != got.sack.as_slice() {
        return differs("SACK blocks");
    }
    match (wanted.timestamps, got.timestamps) {
        (None, None) => Ok(()),
        (Some([_, echo]), Some(stamps)) if echo == stamps.echo => Ok(()),
        (Some(_), Some(_)) => differs("timestamp echo"),
        _ => differs("timestamps option"),
    }
}

/// Joins segments that one packet of the kernel (TSO) would carry.
pub(super) fn join(first: &mut Segment, next: &Segment) -> bool {
    let follows = next.seq == first.seq.wrapping_add(first.len);
    let alike = next.ack == first.ack && next.window == first.window && !next.syn && !next.rst;
    if next.len == 0 || first.fin || !(follows && alike) {
        return false;
    }
    first.len += next.len;
    first.psh |= next.psh;
    first.fin |= next.fin;
    true
}

/// Formats a packet of the script.
pub(super) fn describe_packet(packet: &Packet) -> String {
    let options = packet
        .options
        .as_ref()
        .map_or("<...>".to_owned(), describe_options);
    let flags = packet.flags;
    let fields = describe_fields(
        [flags.syn, flags.fin, flags.rst, flags.psh],
        packet.seq,
        packet.len,
        packet.ack,
    );
    let window = packet.window.map(|window| format!(" win {window}"));
    format!("{fields}{} {options}", window.unwrap_or_default())
}

/// Formats a segment of the endpoint with the numbers of the script.
pub(super) fn describe_segment(segment: &Segment) -> String {
    let options = PacketOptions {
        mss: segment.options.mss,
        scale: segment.options.window_scale,
        sack_ok: segment.options.sack_permitted,
        sack: segment.options.sack.as_slice().to_vec(),
        timestamps: segment
            .options
            .timestamps
            .map(|stamps| [stamps.value, stamps.echo]),
    };
    let fields = describe_fields(
        [segment.syn, segment.fin, segment.rst, segment.psh],
        segment.seq.wrapping_sub(OWN_ISN),
        segment.len,
        segment.ack,
    );
    format!(
        "{fields} win {} {}",
        segment.window,
        describe_options(&options)
    )
}

fn describe_fields(flags: [bool; 4], seq: u32, len: u32, ack: Option<u32>) -> String {
    let letters: String = flags
        .iter()
        .zip("SFRP".chars())
        .filter_map(|(set, letter)| set.then_some(letter))
        .collect();
    let dot = if ack.is_some() { "." } else { "" };
    let ack = ack.map(|ack| format!(" ack {ack}")).unwrap_or_default();
    format!("{letters}{dot} {seq}:{}({len}){ack}", seq.wrapping_add(len))
}

fn describe_options(options: &PacketOptions) -> String {
    let mut parts = Vec::new();
    parts.extend(options.mss.map(|mss| format!("mss {mss}")));
    if options.sack_ok {
        parts.push("sackOK".to_owned());
    }
    let stamps = options.timestamps;
    parts.extend(stamps.map(|[value, echo]| format!("TS val {value} ecr {echo}")));
    parts.extend(options.scale.map(|shift| format!("wscale {shift}")));
    let blocks: Vec<String> = options
        .sack
        .iter()
        .map(|[start, end]| format!("{start}:{end}"))
        .collect();
    if !blocks.is_empty() {
        parts.push(format!("sack {}", blocks.join(" ")));
    }
    if parts.is_empty() {
        return String::new();
    }
    format!("<{}>", parts.join(","))
}
