//! How exactly a line carries what it should in a second, beside the kernel's token bucket filter.

use super::worker::{Ran, Worker};
use super::{load, surroundings};
use crate::bench::witness::Pauses;
use crate::bench::{Bench, Figure, Measure};
use crate::tools;
use crate::trouble::Outcome;

/// A bandwidth, and TBF's options for it: a burst of a timer tick, as its manual asks, or a packet.
const LINES: [(&str, u64, &str); 2] = [
    ("100 Mbit/s", 100_000_000, "rate 100mbit burst 50kb"),
    ("300 kbit/s", 300_000, "rate 300kbit burst 2kb"),
];

/// What a packet is to each: an IP packet on our line, a frame in TBF.
const OUR_BYTES: f64 = 1500.0;
const TBF_BYTES: f64 = 1514.0;

/// So close to a pause an arrival may be late: what waited meanwhile goes first.
const CLOSE: u64 = 2_000_000;

/// A second, from the end of a packet to the end of another.
struct Window {
    from: u64,
    to: u64,
    /// Of the bandwidth, in per cent.
    error: f64,
}

impl Window {
    /// Whether neither end fell into a pause; one in the middle is made up for.
    fn is_quiet(&self, pauses: &Pauses) -> bool {
        [self.from, self.to]
            .iter()
            .all(|end| !pauses.hit(end - CLOSE, end + CLOSE))
    }
}

/// Both lines by both, in turns.
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
        let what = format!("{name}: error of a second");
        let which = "seconds that neither begin nor end in a pause";
        figures.push(
            Figure::new(format!("{what}, {which}"), quiet)
                .peer("the kernel's TBF", peers)
                .target("each within 0.2 %", worst <= 0.2),
        );
        let (all, _) = errors(ours, |_| true);
        let (peers, _) = errors(theirs, |_| true);
        figures
            .push(Figure::new(format!("{what}, all seconds"), all).peer("the kernel's TBF", peers));
    }
    Ok(figures)
}

/// The same sender and receiver on a loopback device with a token bucket filter.
fn through_tbf(worker: &Worker<'_>, options: &str, arguments: &str) -> Outcome<Ran> {
    // In a user namespace of his own where he is not root; then buffers are small.
    let unshare = match rustix::process::geteuid().is_root() {
        true => "-n",
        false => "-rn",
    };
    let script = format!(
        "ip link set lo up mtu 1500 && tc qdisc add dev lo root tbf {options} latency 500ms && exec \"$@\""
    );
    worker.run(&["unshare", unshare, "sh", "-c", &script, "sh"], arguments)
}

/// The seconds of a run but the first, in which a token bucket gives what it had saved.
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

/// The median in per cent, and the worst; not a number for none.
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
        // 1,000 packets of 1,500 bytes a second from the second second on, half of that before.
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
