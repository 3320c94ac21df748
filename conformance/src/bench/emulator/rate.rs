//! Precision of a link's bandwidth over a second, compared with the kernel's token bucket filter.

use super::worker::{Ran, Worker};
use super::{load, surroundings};
use crate::bench::witness::Pauses;
use crate::bench::{Bench, Figure, Measure};
use crate::error::Outcome;
use crate::tools;

/// A bandwidth, and TBF's options for it: a burst of one timer tick, as its manual requires, or of one packet.
const LINES: [(&str, u64, &str); 2] = [
    ("100 Mbit/s", 100_000_000, "rate 100mbit burst 50kb"),
    ("300 kbit/s", 300_000, "rate 300kbit burst 2kb"),
];

/// Size of a packet for each: an IP packet on our link, a frame in TBF.
const OUR_BYTES: f64 = 1500.0;
const TBF_BYTES: f64 = 1514.0;

/// Arrivals this close to a pause may be late, because packets that waited in the pause go first.
const CLOSE: u64 = 2_000_000;

/// A period of one second, from the end of a packet to the end of another.
struct Window {
    from: u64,
    to: u64,
    /// Deviation from the bandwidth in percent.
    error: f64,
}

impl Window {
    /// True if neither end is in a pause. A pause in the middle is compensated.
    fn is_quiet(&self, pauses: &Pauses) -> bool {
        [self.from, self.to]
            .iter()
            .all(|end| !pauses.hit(end - CLOSE, end + CLOSE))
    }
}

/// Measures both bandwidths with both, in turns.
pub(in crate::bench) fn rate(bench: &Bench) -> Outcome<Vec<Figure>> {
    tools::debian(&bench.site.checkout, "tc", "iproute2")?;
    let worker = Worker::build(bench)?;
    let seconds = bench.or_quick(21, 4);
    let (load, witness) = (load(), bench.watch_all()?);
    let mut measured = Vec::new();
    for (name, bits, options) in LINES {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..bench.or_quick(3, 1) {
            let line = worker.run(&[], &format!("rate {bits} {seconds} fifo"))?;
            ours.extend(windows(&line, OUR_BYTES, bits));
            let line = through_tbf(&worker, options, &format!("rate {bits} {seconds} loopback"))?;
            theirs.extend(windows(&line, TBF_BYTES, bits));
        }
        measured.push((name, ours, theirs));
    }
    let pauses = witness.end();
    let mut figures = Vec::from(surroundings(load, &pauses));
    for (name, ours, theirs) in &measured {
        let (quiet, worst) = errors(ours, |window| window.is_quiet(&pauses));
        let (peers, _) = errors(theirs, |window| window.is_quiet(&pauses));
        let name = format!("{name}: error of a second");
        let which = "seconds that neither begin nor end in a pause";
        figures.push(
            Figure::new(format!("{name}, {which}"), quiet)
                .peer("the kernel's TBF", peers)
                .target("each within 0.2 %", worst <= 0.2),
        );
        let (all, _) = errors(ours, |_| true);
        let (peers, _) = errors(theirs, |_| true);
        figures
            .push(Figure::new(format!("{name}, all seconds"), all).peer("the kernel's TBF", peers));
    }
    Ok(figures)
}

/// The same sender and receiver on a loopback device with a token bucket filter.
fn through_tbf(worker: &Worker<'_>, options: &str, arguments: &str) -> Outcome<Ran> {
    // In a user namespace of its own unless we are root. Buffers are then small.
    let unshare = if rustix::process::geteuid().is_root() {
        "-n"
    } else {
        "-rn"
    };
    let script = format!(
        "ip link set lo up mtu 1500 && tc qdisc add dev lo root tbf {options} latency 500ms && exec \"$@\""
    );
    worker.run(&["unshare", unshare, "sh", "-c", &script, "sh"], arguments)
}

/// The seconds of a run except the first, in which a token bucket spends its saved tokens.
fn windows(ran: &Ran, bytes: f64, bits: u64) -> Vec<Window> {
    const SECOND: u64 = 1_000_000_000;
    let stamps: Vec<u64> = ran.packets.iter().map(|packet| packet.1).collect();
    let (Some(first), Some(last)) = (stamps.first(), stamps.last()) else {
        return Vec::new();
    };
    let seconds = (last - first) / SECOND;
    (1..seconds)
        .filter_map(|second| {
            let from = first + second * SECOND;
            let within = stamps.partition_point(|stamp| *stamp < from)
                ..stamps.partition_point(|stamp| *stamp < from + SECOND);
            let [from, .., to] = stamps.get(within.clone())? else {
                return None;
            };
            let sent = (within.len() - 1) as f64 * bytes * 8.0;
            let rate = sent * 1e9 / (to - from) as f64;
            Some(Window {
                from: *from,
                to: *to,
                error: (rate / bits as f64 - 1.0) * 100.0,
            })
        })
        .collect()
}

/// The median in percent, and the maximum. NaN for no windows.
fn errors(windows: &[Window], which: impl Fn(&Window) -> bool) -> (Measure, f64) {
    let errors: Vec<f64> = windows
        .iter()
        .filter(|window| which(window))
        .map(|window| window.error.abs())
        .collect();
    let worst = errors.iter().copied().fold(f64::NAN, f64::max);
    (Measure::median(&errors, "%"), worst)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_cut_at_packets() {
        // 1,000 packets of 1,500 bytes per second from the second second on, half of that before.
        let slow = (0..500).map(|number| (0, number * 2_000_000));
        let fast = (0..2001).map(|number| (0, 1_000_000_000 + number * 1_000_000));
        let ran = Ran {
            packets: slow.chain(fast).collect(),
            ..Ran::default()
        };
        let windows = windows(&ran, 1500.0, 12_000_000);
        assert_eq!(windows.len(), 2);
        assert!(windows.iter().all(|window| window.error.abs() < 1e-9));
        assert_eq!(windows[0].from, 1_000_000_000);
        let (median, worst) = errors(&windows, |_| false);
        assert!(worst.is_nan() && median.value.is_nan(), "{median}");
    }
}
